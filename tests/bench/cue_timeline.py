"""Draws what is heard in a hard turn: the real cue player on a virtual clock.

Run: `python -m tests.bench.cue_timeline docs/pictures/cues.svg [FOLDER]`. A WAV file of each cue is
written into FOLDER.
"""

from __future__ import annotations

import sys
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

from caal_node.core.events import CueKind
from caal_node.room.cues import SAMPLE_RATE_HZ, CueSet
from tests.stand_ins.cue_room import CueRoom, Span

WIDTH: Final = 900
LEFT: Final = 64
LANE: Final = 46
SECOND: Final = 34
"""Points of a second."""
_COLOURS: Final = {"you": "#4a7ab5", "tools": "#c9c9c9", "cues": "#d9822b", "agent": "#3c9a5f"}


def hard_turn() -> CueRoom:
    """Return a turn with a slow tool, one that fails, and somebody who speaks meanwhile."""
    room = CueRoom()
    room.you_say(0.2, 2.0)
    room.agent_says(2.6, "Let me look.", 1.0)
    room.call(2.7, "search", 14.2)
    room.call(2.7, "get_weather", 1.1, "error")
    room.agent_says(7.5, "One moment, please.", 1.4)
    room.you_say(13.0, 0.8, new_turn=False)
    room.agent_says(15.0, "From search: page 2.", 1.7)
    room.round_ends(16.9)
    room.call(17.4, "set_lamp", 0.3, "timeout")
    room.agent_says(17.71, "the answer", 4.0)
    room.run(24)
    return room


def draw(room: CueRoom) -> str:
    """Return the turn as SVG: a lane each for the person, the tools, the cues and the voice."""
    lanes: dict[str, Sequence[Span]] = {
        "you": room.you,
        "tools": room.tools,
        "cues": room.cues,
        "agent": room.agent,
    }
    height = LANE * len(lanes) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for second in range(0, 25, 2):
        x = LEFT + second * SECOND
        parts.append(f'<path d="M{x},6V{height - 22}" stroke="#eee"/>')
        parts.append(f'<text x="{x}" y="{height - 8}" text-anchor="middle">{second} s</text>')
    for number, (name, spans) in enumerate(lanes.items()):
        top = 8 + LANE * number
        parts.append(f'<text x="8" y="{top + 18}" font-weight="bold">{name}</text>')
        for at, span in enumerate(spans):
            parts += _bar(span, name, top, at)
    return "\n".join([*parts, "</svg>", ""])


def _bar(span: Span, lane: str, top: float, at: int) -> list[str]:
    x, width = LEFT + span.start * SECOND, max((span.end - span.start) * SECOND, 2.0)
    is_cue = lane == "cues"
    up = 14 if lane == "tools" and at % 2 else 0
    bar = (
        f'<rect x="{x:.1f}" y="{top + up}" width="{width:.1f}" height="{12 if up else 13}" rx="2"'
        f' fill="{_COLOURS[lane]}"/>'
    )
    where = top + up + 10 if lane == "tools" else top + (36 if at % 2 else 25)
    text = f'<text x="{x if is_cue else x + 3:.1f}" y="{where}">{span.what}</text>'
    return [bar, text]


def write_sounds(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cues = CueSet.of({})
    for kind in get_args(CueKind):
        with wave.open(str(folder / f"{kind}.wav"), "wb") as file:
            file.setparams((1, 2, SAMPLE_RATE_HZ, 0, "NONE", ""))
            file.writeframes(cues[kind].tobytes())


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    for folder in sys.argv[2:]:
        write_sounds(Path(folder))
    room = hard_turn()
    Path(sys.argv[1]).write_text(draw(room), encoding="utf-8")
    for lane in (room.you, room.cues, room.agent):
        print(", ".join(f"{span.what} {span.start:.2f}-{span.end:.2f}" for span in lane))
    return 0


if __name__ == "__main__":
    sys.exit(main())
