"""Offers a model the tool `mcp_discover` in the place of many schemas, and makes its answers.

The answer names every match: of the best it tells all that a call needs, as many as fit a budget of
bytes; of the rest it gives the names, and of what finds no room even so, the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_bridge.core.tools import ToolInfo

DISCOVER: Final = "mcp_discover"
TOOLS_MAX: Final = 10
"""Tools that one search makes callable."""
TEXT_BYTES: Final = 4_000
"""What is told of them together: some 1,000 tokens, ten usual tools."""
NAMES_BYTES: Final = 1_200
"""The names that are told beside them: some 300 tokens, forty names."""
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

    ready: Mapping[str, str]
    """The names of the best matches that fit the budget, best first, each with what is told of
    it."""
    others: tuple[str, ...]
    """Further matching names."""
    left_out: int
    """Matches that found no room at all."""

    def answer(self) -> Mapping[str, Any]:
        """Gives the answer that the model reads."""
        if not self.ready and not self.others:
            return {"found": 0, "note": "Nothing matches. Try other words, or say it is not there."}
        told: dict[str, Any] = {"callable_now": dict(self.ready)}
        if self.others:
            told["also_match"] = list(self.others)
            told["note"] = "These are callable too; search for a name to see what it needs."
        if self.left_out:
            told["left_out"] = f"{self.left_out} more match; ask for something narrower."
        return told


def offer(
    found: Iterable[str],
    text: Callable[[str], str],
    *,
    tools_max: int = TOOLS_MAX,
    text_bytes: int = TEXT_BYTES,
    names_bytes: int = NAMES_BYTES,
) -> Offer:
    """Divides the names `found`, best first, into what fits the budget and what does not.

    Args:
        text: Gives what a model has to read of a tool before it can call it.

    A tool too large for what is left does not keep a smaller, later one out. The best match is
    always ready, however large, as nothing could be done with its name alone.
    """
    ready: dict[str, str] = {}
    rest: list[str] = []
    left = text_bytes
    for name in found:
        # What is far behind is not written at all.
        told = text(name) if len(ready) < tools_max and len(rest) < tools_max else None
        if told is not None and ((size := len(told.encode())) <= left or not ready):
            ready[name] = told
            left -= size
        else:
            rest.append(name)
    named = _within(rest, names_bytes)
    return Offer(ready, tuple(named), len(rest) - len(named))


def _within(names: Sequence[str], max_bytes: int) -> list[str]:
    """Gives the first of `names` that fit, each with two bytes of punctuation."""
    kept: list[str] = []
    for name in names:
        max_bytes -= len(name.encode()) + 2
        if max_bytes < 0:
            break
        kept.append(name)
    return kept
