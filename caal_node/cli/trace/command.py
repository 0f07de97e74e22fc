"""`caal-node trace`: the time of each turn of a recorded conversation, as a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from caal_node.cli.output import console
from caal_node.cli.trace.picture import LEGEND, picture_of
from caal_node.cli.trace.svg import write_svg
from caal_node.cli.trace.terminal import print_pictures
from caal_node.cli.trace.trace_lines import read_trace
from caal_node.cli.trace.turn_times import TurnTimes
from caal_node.cli.trace.turns import turns_of
from caal_node.core.errors import ConfigError

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
