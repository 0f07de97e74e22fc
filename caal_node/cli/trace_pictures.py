"""`caal-node trace`: the time of each turn of a recorded conversation, as a picture."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from caal_node.cli.output import console
from caal_node.core.errors import ConfigError
from caal_node.telemetry.turn_times import (
    CallTimes,
    RequestTimes,
    TurnTimes,
    read_trace,
    turns_of,
)

# The picture of a turn, before it is drawn: a lane for each thing, with bars and marks in seconds.
#
# A bar's light part is waiting (for the first token, for the first sound), its solid part the thing
# itself.

SPEECH_S: Final = 1.0
"""Seconds of the person's speech that are shown: only its end matters."""
LANES_MAX: Final = 24
"""Lanes of one turn: a turn of eight rounds with a call each."""
TICKS_MAX: Final = 10
LEGEND: Final = "light: waiting; solid: the thing itself; line: first word; 0: end of speech"


@dataclass(frozen=True, slots=True)
class Bar:
    """From `begin_s` to `solid_s` it is light, from there to `end_s` solid."""

    begin_s: float
    solid_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Lane:
    kind: LaneKind
    label: str
    note: str
    bars: tuple[Bar, ...] = ()
    marks_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    lanes: tuple[Lane, ...]
    begin_s: float
    end_s: float
    first_word_s: float | None
    tools: tuple[str, ...] = ()
    """Lines about the tools that the model was shown in the turn."""


def picture_of(turn: TurnTimes) -> Picture:
    """Return the lanes of a turn, in the order in which they begin."""
    lanes: list[Lane] = []
    if (spoke := turn.speech_begin_s) is not None:
        begin = max(spoke, -SPEECH_S)
        lanes.append(
            Lane("person", "person", f"spoke for {seconds(-spoke)}", (Bar(begin, begin, 0.0),))
        )
        known = turn.words_s if turn.transcribed_s is None else turn.transcribed_s
        note = f"words {seconds(known)}, turn {seconds(turn.words_s)}"
        lanes.append(Lane("words", "listening", note, (Bar(0.0, 0.0, turn.words_s),)))
    middle = [
        *(
            (each.begin_s, _request_lane(each, number if len(turn.requests) > 1 else 0))
            for number, each in enumerate(turn.requests, 1)
        ),
        *((each.begin_s, _call_lane(each)) for each in turn.calls),
    ]
    if turn.cues:
        kinds = Counter(cue.kind for cue in turn.cues)
        note = ", ".join(kind if n == 1 else f"{n} {kind}" for kind, n in kinds.items())
        marks = tuple(cue.at_s for cue in turn.cues)
        middle.append((marks[0], Lane("cue", "cue", f"{note}, {seconds(marks[0])}", (), marks)))
    lanes += (lane for _, lane in sorted(middle, key=lambda pair: pair[0]))
    lanes += _voice_lanes(turn)
    if len(lanes) > LANES_MAX:
        more = len(lanes) - LANES_MAX + 1
        lanes[LANES_MAX - 2 : -1] = [Lane("words", "...", f"{more} lanes more")]
    ends = [turn.end_s, *(bar.end_s for lane in lanes for bar in lane.bars)]
    begin = min([turn.begin_s, *(bar.begin_s for lane in lanes for bar in lane.bars)])
    tools = tuple(_tools_lines(turn))
    return Picture(_title(turn), tuple(lanes), begin, max(ends), turn.first_word_s, tools)


def _title(turn: TurnTimes) -> str:
    first = turn.first_word_s
    said = "no word" if first is None else f"first word after {seconds(first)}"
    if (last := turn.last_word_s) is not None:
        said += f", last after {seconds(last)}"
    tools = ", ".join(dict.fromkeys(call.tool for call in turn.calls))
    return f"Turn {turn.number}, {tools or 'no tool'}: {said}"


def _tools_lines(turn: TurnTimes) -> Iterable[str]:
    if turn.told:
        yield f"shown with the words: {', '.join(turn.told)}"
    for call in turn.calls:
        if call.found is not None:
            yield f"{call.tool} found: {', '.join(call.found) or 'no tool'}"


def _request_lane(request: RequestTimes, number: int) -> Lane:
    begin = request.begin_s
    first = request.end_s if request.first_s is None else request.first_s
    said = [] if request.outcome == "ok" else [request.outcome]
    said.append("nothing came" if request.first_s is None else f"first {seconds(first - begin)}")
    if (prompt := request.prompt_tokens) is not None:
        read = max(0, prompt - (request.cached_tokens or 0))
        said.append(f"{prompt} tokens" if read == prompt else f"read {read}/{prompt}")
    label = f"request {number}" if number else "request"
    return Lane("request", label, ", ".join(said), (Bar(begin, first, request.end_s),))


def _call_lane(call: CallTimes) -> Lane:
    note = seconds(call.end_s - call.begin_s)
    if call.outcome != "ok":
        note += f", {call.outcome}"
    return Lane("tool", call.tool, note, (Bar(call.begin_s, call.begin_s, call.end_s),))


def _voice_lanes(turn: TurnTimes) -> Iterable[Lane]:
    if not turn.voices:
        return
    bars = tuple(
        Bar(voice.begin_s if voice.given_s is None else voice.given_s, voice.begin_s, voice.end_s)
        for voice in turn.voices
    )
    first = turn.voices[0]
    note = f"from {seconds(first.begin_s)}" + (", written" if first.given_s is None else "")
    yield Lane("voice", "voice", note, bars)


def seconds(value: float) -> str:
    """Return a time as words: with two digits below 10 s, and one above."""
    return f"{value:.2f} s" if abs(value) < 9.995 else f"{value:.1f} s"


def ticks(begin_s: float, end_s: float) -> list[float]:
    """Return round seconds between the two, at most TICKS_MAX + 1."""
    length = max(end_s - begin_s, 1e-3)
    step = 10.0 ** math.floor(math.log10(length / TICKS_MAX))
    step = next(
        step * factor for factor in (1, 2, 5, 10, 20) if length / (step * factor) <= TICKS_MAX
    )
    first, last = math.ceil(begin_s / step), math.floor(end_s / step)
    return [number * step for number in range(first, last + 1)]


def tick_label(value: float, all_ticks: list[float]) -> str:
    """Return a tick's number with the digits that tell it from its neighbours."""
    step = all_ticks[1] - all_ticks[0] if len(all_ticks) > 1 else 1.0
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:.{digits}f}" if value else "0"


# Draws turns as lines of text: for a terminal of any width, without colour, and in ASCII.

LABEL: Final = 14
"""Columns of a lane's name; a longer one is cut."""
NOTE: Final = 27
"""Columns of what is said of a lane."""
BAR_MIN: Final = 16
BAR_MAX: Final = 100
STYLES: Final[dict[LaneKind, str]] = {
    "person": "cyan",
    "words": "dim",
    "request": "blue",
    "tool": "magenta",
    "cue": "yellow",
    "voice": "green",
}


@dataclass(frozen=True, slots=True)
class _Signs:
    light: str
    solid: str
    mark: str
    first_word: str


_UNICODE: Final = _Signs("░", "█", "◆", "│")
_ASCII: Final = _Signs(".", "#", "*", "|")


def print_pictures(out: Console, pictures: Iterable[Picture]) -> None:
    """Print each picture, with a line between two."""
    # In a file without an encoding of its own, as on a dumb terminal, letters must do.
    signs = _ASCII if out.options.ascii_only else _UNICODE
    columns = min(max(out.width - LABEL - NOTE - 2, BAR_MIN), BAR_MAX)
    for number, picture in enumerate(pictures):
        if number:
            out.print()
        for line in _lines(picture, columns, signs):
            out.print(line)


def _lines(picture: Picture, columns: int, signs: _Signs) -> Iterable[Text]:
    across = (columns - 1) / max(picture.end_s - picture.begin_s, 1e-3)

    def place(at_s: float) -> int:
        return min(max(round((at_s - picture.begin_s) * across), 0), columns - 1)

    yield Text(_printable(picture.title), style="bold")
    for line in picture.tools[:LANES_MAX]:
        yield Text(_printable(line))
    for lane in picture.lanes:
        cells = [" "] * columns
        if picture.first_word_s is not None:
            cells[place(picture.first_word_s)] = signs.first_word
        for bar in lane.bars:
            begin, solid, end = map(place, (bar.begin_s, bar.solid_s, bar.end_s))
            cells[begin : end + 1] = signs.light * (solid - begin) + signs.solid * (end + 1 - solid)
        for mark_s in lane.marks_s:
            cells[place(mark_s)] = signs.mark
        yield Text.assemble(
            f"{_fitted(lane.label, LABEL)} ",
            ("".join(cells), STYLES[lane.kind]),
            (f" {_fitted(lane.note, NOTE).rstrip()}", "dim"),
        )
    yield Text(" " * (LABEL + 1) + _axis(picture, columns, place), style="dim")


def _axis(picture: Picture, columns: int, place: Callable[[float], int]) -> str:
    """Return a line of seconds below their places; a number that does not fit is left out."""
    cells = [" "] * (columns + NOTE)
    shown = ticks(picture.begin_s, picture.end_s)
    free = 0
    for tick in shown:
        label = tick_label(tick, shown)
        at = max(place(tick) - len(label) // 2, 0)
        if at >= free:
            cells[at : at + len(label)] = label
            free = at + len(label) + 1
    return "".join(cells).rstrip() + " s"


def _fitted(text: str, columns: int) -> str:
    """Return `text` in so many columns; letters of some scripts take two."""
    text = _printable(text)
    if cell_len(text) > columns:
        text = f"{set_cell_size(text, columns - 1)}~"
    return set_cell_size(text, columns)


def _printable(text: str) -> str:
    """Return `text` without what a terminal would obey and a picture may not hold."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


LaneKind: TypeAlias = Literal["person", "words", "request", "tool", "cue", "voice"]


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
