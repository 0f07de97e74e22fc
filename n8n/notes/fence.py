"""The schema block of notes: what stands between `---schema` and `---`, or in a code fence.

JSON such as `{"city": {"type": "string", "required": true}}`, a whole JSON schema of an object, or
lines of `city: string, required`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from n8n.core.json_values import DECODER, well_formed
from n8n.notes.parameter import Parameter
from n8n.notes.parameter_text import from_list_line
from n8n.notes.schema_block import from_schema_block

_OPENS: Final = re.compile(r"^\s*(?:-{3,}\s*schema\s*-*|`{3,}\s*schema)\s*:?\s*$", re.IGNORECASE)
_CLOSES: Final = re.compile(r"^\s*(?:-{3,}|`{3,})\s*$")
_CODE: Final = re.compile(r"^\s*`{3,}\w*\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """A schema block as it was read."""

    end: int
    """The line to go on with."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])
    problem: str | None = None


def opens_block(line: str) -> bool:
    return _OPENS.match(line) is not None


def read_block(lines: list[str], start: int) -> Block:
    """The block whose fence is the line at `start`. Total: what cannot be read is a problem."""
    body = "\n".join("" if _CODE.match(x) else x for x in lines[start + 1 :])
    opening = len(body) - len(body.lstrip())
    try:
        block, end = DECODER.raw_decode(body, opening)
        found = from_schema_block(well_formed(body, block))
    except (ValueError, RecursionError) as e:
        past = _past(lines, start + 1, lambda x: not _CLOSES.match(x))
        if body.lstrip()[:1] not in ("{", "[") and (found := _plain_lines(lines, start)):
            return Block(past, found)
        at = start + 2 + body.count("\n", 0, getattr(e, "pos", opening))
        reason = e.msg if isinstance(e, json.JSONDecodeError) else str(e)
        return Block(past, problem=f"line {at}: the ---schema block: {reason}")
    after = start + 2 + body.count("\n", 0, end)
    return Block(_past(lines, after, lambda x: not x.strip() or bool(_CODE.match(x))), found)


def _plain_lines(lines: list[str], start: int) -> dict[str, Parameter]:
    """`city: string, required` lines up to the closing fence."""
    found: dict[str, Parameter] = {}
    for line in lines[start + 1 :]:
        if _CLOSES.match(line):
            break
        found |= from_list_line(line.strip().lstrip("-*• "), "schema")
    return found


def _past(lines: list[str], at: int, skipped: Callable[[str], bool]) -> int:
    while at < len(lines) and skipped(lines[at]):
        at += 1
    return at + 1 if at < len(lines) and _CLOSES.match(lines[at]) else at
