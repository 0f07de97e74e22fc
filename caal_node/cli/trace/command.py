"""`caal-node trace`: the time of each turn of a recorded conversation, as a picture."""

from __future__ import annotations

import io
import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from caal_node.cli.output import console
from caal_node.cli.trace.picture import LEGEND, Picture, picture_of, print_pictures
from caal_node.cli.trace.turn_times import REQUEST, TraceLine, TurnTimes, read_trace, times_of
from caal_node.core.errors import ConfigError

# Finds the turns in a trace.
#
# A turn is from a person's words (`user`) to `turn_ended`. What its answer needed may stand before
# its words, since LiveKit may ask the model before a turn is sure to be over, and behind its end.

BETWEEN_MAX: Final = 1_000
"""Lines between two turns that are kept: those of announcements, of calls over the Tools API."""


@dataclass(slots=True)
class _Draft:
    """A turn that is being read."""

    number: int
    user: TraceLine
    person: TraceLine | None
    early: list[TraceLine]
    """Lines before its words, which may be this turn's."""
    lines: list[TraceLine] = field(default_factory=list[TraceLine])
    open_calls: set[str] = field(default_factory=set[str])

    def add(self, line: TraceLine) -> None:
        self.lines.append(line)
        if line.type == "tool_call_started":
            self.open_calls.add(line.name("call_id"))
        elif line.type == "tool_call_ended":
            self.open_calls.discard(line.name("call_id"))

    def finish(self, behind: Iterable[TraceLine] = ()) -> TurnTimes:
        """Return the turn; `behind` are the lines between it and the next one."""
        lines = [*self.early, *self.lines, *self._own(behind)]
        return times_of(self.number, self.user, self.person, lines)

    def _own(self, behind: Iterable[TraceLine]) -> Iterable[TraceLine]:
        """Yield what of `behind` began in this turn: the end of its voice, and of its requests."""
        end = self.lines[-1].time_s if self.lines else self.user.time_s
        voices = [line for line in self.lines if line.type == "agent_voice"]
        sounds = bool(voices) and voices[-1].flag("sounding")
        for line in behind:
            if line.type == "agent_voice" and sounds and not line.flag("sounding"):
                sounds = False
                yield line
            elif line.type == REQUEST and line.time_s - line.ms("took_ms") < end:
                yield line


class _Session:
    """The turns of one session, of which one is open at most."""

    def __init__(self) -> None:
        self._open: _Draft | None = None
        self._ended: _Draft | None = None
        """The turn before, which may still get lines."""
        self._between: deque[TraceLine] = deque(maxlen=BETWEEN_MAX)
        self._person: TraceLine | None = None

    def read(self, line: TraceLine, number: int) -> tuple[TurnTimes | None, bool]:
        """Take a line; return a turn that is over, and whether one of this number has begun."""
        over, began = None, False
        match line.type:
            case "user" if self._open is None or not self._open.open_calls:
                over = self._begin(line, number)
                began = True
            case "person_spoke":
                self._person = line  # its words are the next line of "user"
            case "turn_ended" if self._open is not None:
                self._open.add(line)
                self._ended, self._open = self._open, None
            case _ if self._open is not None:
                self._open.add(line)
            case _:
                self._between.append(line)
        return over, began

    def finish(self) -> TurnTimes | None:
        """Return the last turn. One that has no end ends with its last line."""
        draft = self._open or self._ended
        return None if draft is None else draft.finish(() if self._open else self._between)

    def _begin(self, user: TraceLine, number: int) -> TurnTimes | None:
        over = self.finish()
        before = self._open or self._ended
        # Where a person breaks in, the model may be asked before the turn that they end is over.
        asked = [line for line in before.lines if line.type == REQUEST] if before else []
        self._open = _Draft(number, user, self._person, [*asked, *self._between])
        self._between.clear()
        self._ended = self._person = None
        return over


def turns_of(lines: Iterable[TraceLine]) -> list[TurnTimes]:
    """Return the turns of a trace, by their numbers, which count from 1 in the whole file.

    Raises:
        ConfigError: a line is not as it should be; also what `lines` raises.
    """
    sessions: dict[str, _Session] = {}
    turns: list[TurnTimes] = []
    begun = 0
    for line in lines:
        session = sessions.setdefault(line.session, _Session())
        over, began = session.read(line, begun + 1)
        begun += began
        if over is not None:
            turns.append(over)
    turns += (last for session in sessions.values() if (last := session.finish()) is not None)
    return sorted(turns, key=lambda turn: turn.number)


# Writes the picture of turns as an SVG, as a terminal shows it.

COLUMNS: Final = 120
_FORMAT: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
<rect width="100%" height="100%" fill="white" />
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own form without its frame, and without the fonts that it loads from the network."""
_COLOURS: Final = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [
        *((36, 41, 47), (207, 34, 46), (17, 99, 41), (154, 103, 0)),
        *((9, 105, 218), (130, 80, 223), (27, 124, 131), (110, 119, 129)),
    ],
)


def write_svg(path: Path, pictures: Sequence[Picture]) -> None:
    """Write the pictures one below the other.

    Raises:
        ConfigError: the file cannot be written.
    """
    out = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    print_pictures(out, pictures)
    out.print(LEGEND, style="dim")
    drawn = out.export_svg(theme=_COLOURS, code_format=_FORMAT, unique_id="turns")
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror or error}. Name a file in a folder that can be written"
        ) from None


DRAWN_MAX: Final = 10
"""Turns that are drawn where none is named: a picture of more is no picture."""

NAMED_MAX: Final = 40
"""Turns that may be named at once: a picture of more is none."""


def show_trace(
    file: Path | None, numbers: Sequence[int], svg: Path | None, *, as_json: bool
) -> None:
    """Print the turns of these numbers, or the last DRAWN_MAX, and draw them to `svg`.

    As JSON it is one object a turn, and all turns where none is named.

    Raises:
        ConfigError: the file is no trace, or has no such turn; the picture cannot be drawn.
    """
    if file is None:
        raise ConfigError("name the file that CAAL_TRACE wrote, or set CAAL_TRACE")
    turns = turns_of(read_trace(file))
    if not turns:
        raise ConfigError(
            f"{file}: there is no turn in it. Set CAAL_TRACE={file}, and talk to the agent"
        )
    chosen = _chosen(file, turns, numbers)
    drawn = chosen if numbers else chosen[-DRAWN_MAX:]
    pictures = [picture_of(turn) for turn in drawn]
    if svg is not None:
        write_svg(svg, pictures)
    if as_json:
        for turn in chosen:
            print(json.dumps(turn.as_json(), ensure_ascii=False))
        return
    out = console()
    print_pictures(out, pictures)
    out.print(LEGEND, style="dim")
    if len(drawn) < len(chosen):
        out.print(f"the last {len(drawn)} of {len(turns)} turns; --turn N shows another")


def _chosen(file: Path, turns: Sequence[TurnTimes], numbers: Sequence[int]) -> list[TurnTimes]:
    if not numbers:
        return list(turns)
    if len(numbers) > NAMED_MAX:
        raise ConfigError(f"{len(numbers)} turns are too many for one picture: name {NAMED_MAX}")
    known = {turn.number: turn for turn in turns}
    for number in numbers:
        if number not in known:
            raise ConfigError(f"{file}: it has the turns 1 to {len(turns)}, and no turn {number}")
    return [known[number] for number in numbers]
