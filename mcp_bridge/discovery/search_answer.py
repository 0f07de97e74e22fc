"""Offers a model the tool `mcp_discover` in the place of many schemas, and makes its answers.

The answer names every match: the best become tools that can be called, as many as fit a budget of
bytes; of the rest it gives the names, and of what finds no room even so, the number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_bridge.core.tools import ToolInfo

DISCOVER: Final = "mcp_discover"
SCHEMA_BYTES: Final = 6_000
"""The schemas that one search adds, as compact JSON: some 1,500 tokens, ten usual tools."""
NAMES_BYTES: Final = 1_200
"""The names that are told beside them: some 300 tokens, forty names."""
SUMMARY_CHARS: Final = 80
"""So much of a ready tool's description is in the answer; its schema has the whole."""
SERVER_CHARS: Final = 400
"""The names of servers in the tool's own description: twenty of them."""
_PATTERNS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "patterns": {
            "type": "array",
            "items": {"type": "string"},
            "description": "words for what is needed, or names with *, one for each need",
        }
    },
    "required": ["patterns"],
}


def discover_tool(servers: Sequence[str]) -> ToolInfo:
    """Gives the one tool that stands for all of `servers`."""
    named = _within(servers, SERVER_CHARS)
    more = f" and {len(servers) - len(named)} more" if len(named) < len(servers) else ""
    return ToolInfo(
        name=DISCOVER,
        server="",
        tool=DISCOVER,
        description=(
            "Find tools that are not listed yet, before saying that something cannot be done. "
            "What it finds can be called afterwards. "
            f"Sources: {', '.join(named)}{more}."
        ),
        input_schema=_PATTERNS,
        read_only=True,
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """What one search found."""

    ready: tuple[ToolInfo, ...]
    """The best matches, whose schemas fit the budget; best first."""
    others: tuple[str, ...]
    """Further matching names."""
    left_out: int
    """Matches that found no room at all."""
    known: frozenset[str] = frozenset()
    """Names among `ready` that could be called before."""

    def answer(self) -> Mapping[str, Any]:
        """Gives the answer that the model reads."""
        if not self.ready and not self.others:
            return {"found": 0, "note": "Nothing matches. Try other words, or say it is not there."}
        told: dict[str, Any] = {"callable_now": {tool.name: _summary(tool) for tool in self.ready}}
        if self.others:
            told["also_match"] = list(self.others)
            told["note"] = "Search for one of these names to make it callable."
        if self.left_out:
            told["left_out"] = f"{self.left_out} more match; ask for something narrower."
        return told


def offer(
    found: Iterable[ToolInfo],
    *,
    size: Callable[[ToolInfo], int] | None = None,
    known: frozenset[str] = frozenset(),
    schema_bytes: int = SCHEMA_BYTES,
    names_bytes: int = NAMES_BYTES,
) -> Offer:
    """Divides the matches `found`, best first, into what fits the budget and what does not.

    Args:
        size: Gives the bytes of a tool's schema as the model reads it; None counts compact JSON.
        known: Names that can be called already, and so cost nothing.

    A tool too large for what is left does not keep a smaller, later one out. The best match is
    always ready, however large, as nothing could be done with its name alone.
    """
    measure = size or schema_size
    ready: list[ToolInfo] = []
    rest: list[str] = []
    left = schema_bytes
    for tool in found:
        cost = 0 if tool.name in known else measure(tool)
        if cost <= left or not ready:
            ready.append(tool)
            left -= cost
        else:
            rest.append(tool.name)
    named = _within(rest, names_bytes)
    both = known & {tool.name for tool in ready}
    return Offer(tuple(ready), tuple(named), len(rest) - len(named), both)


def schema_size(tool: ToolInfo) -> int:
    """Gives the bytes of name, description and schema as compact JSON."""
    shown = [tool.name, tool.description, dict(tool.input_schema)]
    return len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode())


def _summary(tool: ToolInfo) -> str:
    first = tool.description.partition("\n")[0].strip()
    return first if len(first) <= SUMMARY_CHARS else first[: SUMMARY_CHARS - 1] + "…"


def _within(names: Sequence[str], max_bytes: int) -> list[str]:
    """Gives the first of `names` that fit, each with two bytes of punctuation."""
    kept: list[str] = []
    for name in names:
        max_bytes -= len(name.encode()) + 2
        if max_bytes < 0:
            break
        kept.append(name)
    return kept
