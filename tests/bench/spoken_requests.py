"""Requests as people speak them, the tools they are for, and what would be right.

`measured_requests.json` holds the sixty that the figures come from; `tuning_requests.json` others,
with other tools, on which ways of asking are shaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from caal_node.core.tool_spec import Example, ToolSchema

Called = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Spoken:
    say: str
    calls: tuple[Called, ...]
    """What would be right. A list as an argument names what would do; None: it may be missing."""


@dataclass(frozen=True, slots=True)
class Requests:
    tools: tuple[ToolSchema, ...]
    examples: Mapping[str, tuple[Example, ...]]
    requests: tuple[Spoken, ...]

    def first(self, limit: int | None) -> Requests:
        """Every so many of the requests, so that each kind keeps its share."""
        if limit is None or limit >= len(self.requests):
            return self
        step = len(self.requests) / limit
        chosen = tuple(self.requests[int(n * step)] for n in range(limit))
        return Requests(self.tools, self.examples, chosen)


def load(name: str) -> Requests:
    data = json.loads(Path(__file__).with_name(f"{name}_requests.json").read_text("utf-8"))
    return Requests(
        tuple(
            {
                "type": "function",
                "function": {k: tool[k] for k in ("name", "description", "parameters")},
            }
            for tool in data["tools"]
        ),
        {
            tool["name"]: tuple(Example(e["say"], e["arguments"]) for e in tool["examples"])
            for tool in data["tools"]
        },
        tuple(
            Spoken(row["say"], tuple((c["name"], c["arguments"]) for c in row["calls"]))
            for row in data["requests"]
        ),
    )


@dataclass(frozen=True, slots=True)
class Heard:
    """What a way of asking made of one request."""

    calls: tuple[Called, ...]
    spoken: str
    seconds: float
    prompt_tokens: int


@dataclass(slots=True)
class Score:
    """Counts over all requests of a run."""

    name: int = 0
    """Requests of one call: the right tool, and no other."""
    arguments: int = 0
    """Of these, with the right arguments."""
    none: int = 0
    """Requests without a tool: no call, and something said."""
    two: int = 0
    """Requests of two calls: both tools, with the right arguments."""
    leaks: int = 0
    """JSON spoken aloud."""
    right: int = 0

    def add(self, request: Spoken, heard: Heard) -> bool:
        leaked = "{" in heard.spoken or "tool_call" in heard.spoken
        self.leaks += leaked
        names = sorted(name for name, _ in heard.calls)
        same_names = names == sorted(name for name, _ in request.calls)
        same = same_names and all(_is_called(call, heard.calls) for call in request.calls)
        if not request.calls:
            right = not heard.calls and bool(heard.spoken.strip()) and not leaked
            self.none += right
        elif len(request.calls) == 1:
            self.name += same_names
            self.arguments += same
            right = same and not leaked
        else:
            self.two += same
            right = same and not leaked
        self.right += right
        return right


def _is_called(wanted: Called, calls: Sequence[Called]) -> bool:
    return any(name == wanted[0] and _fits(wanted[1], args) for name, args in calls)


def _fits(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    if any(key not in wanted for key in given):
        return False
    return all(_will_do(value, given.get(key)) for key, value in wanted.items())


def _will_do(wanted: Any, given: Any) -> bool:
    choices = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    return any(_plain(one) == _plain(given) for one in choices)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.casefold().strip(" .!?\"'").split())
    if isinstance(value, list):
        return sorted(str(_plain(one)) for one in cast("list[Any]", value))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def is_right(request: Spoken, call: Called) -> bool:
    """Return whether one call is among those that `request` wants."""
    return any(_is_called(wanted, [call]) for wanted in request.calls)
