"""A model that holds a scripted conversation, and comes by each tool as a real one would.

A call is made directly where the request offers its tool, by a carrier where the tool stands in the
conversation, as text where the request offers no tools at all, and otherwise only after a search. A
tool that even that does not bring is a missed call. Our search and carrier are `mcp_discover` and
`use_tool`, those of LiveKit's ToolProxyToolset `tool_search` and `call_tool`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from tests.bench.scripted_day import Scripted, Turn
from tests.stand_ins.stand_in_model import Call, Reply

SEARCHES: Final = {"mcp_discover": "patterns", "tool_search": "query"}
"""The names of the searches, and of what each is told."""
CARRIERS: Final = {"use_tool": "arguments", "call_tool": "parameters"}
"""The tools that call another one, and what they name its arguments."""
HELLO: Final = Turn("", (), "Hello.")
SEARCHES_MAX: Final = 2
"""Searches for one tool, with the same words: what the second does not find is not there."""
_SCHEMA_FIELDS: Final = (
    "format",
    "response_format",
    "structured_outputs",
    "guided_json",
    "json_schema",
)
_HELD: Final = "k7q2"
"""Stands in the schema by which it is found out whether a server holds a reply to one."""
_ID: Final = re.compile(r"[a-z]{3}_\d{5}")
"""The identifiers of the tools' records."""

Way: TypeAlias = Literal["direct", "carried", "text"]
Did: TypeAlias = Literal["warm-up", "search", "call", "answer"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What one request shows a model."""

    tools: tuple[str, ...]
    """Names whose schemas are in the request."""
    text: str
    """What stands in the messages."""
    schema: str | None
    """What the reply is held to, as JSON."""
    unpaired: int
    """Calls without exactly one result."""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Shown:
        messages: Sequence[Mapping[str, Any]] = body["messages"]
        held = [body[name] for name in _SCHEMA_FIELDS if name in body]
        calls = [call["id"] for each in messages for call in each.get("tool_calls") or ()]
        results = [each["tool_call_id"] for each in messages if each["role"] == "tool"]
        return cls(
            tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
            "\n".join(text_of(each) for each in messages),
            json.dumps(held[0]) if held else None,
            len(set(calls) ^ set(results)) + len(results) - len(set(results)),
        )

    @property
    def carrier(self) -> str | None:
        return next((name for name in self.tools if name in CARRIERS), None)

    def way_to(self, tool: str) -> tuple[Way, str] | None:
        """Return how `tool` can be called, and by which name; None where it cannot."""
        for name in self.tools:
            if _is(name, tool):
                return "direct", name
        if (name := self._told(tool)) is None:
            return None
        if self.carrier is not None:
            return "carried", name
        # A grammar that does not admit the name keeps a model from writing it.
        admitted = self.schema is None or json.dumps(name) in self.schema
        return ("text", name) if not self.tools and admitted else None

    def _told(self, tool: str) -> str | None:
        """Return the name by which the conversation tells of `tool`: a line of a catalogue, or a
        key of what a search has found."""
        name = rf"(?P<name>(?:[\w-]+__)?{re.escape(tool)})"
        line = re.search(rf"- {name}(?:: | \{{|\()", self.text)
        found = re.search(rf'callable_now.*?"{name}\\*"\s*:', self.text)
        schema = re.search(rf'\\*"name\\*": \\*"{name}\\*", \\*"description', self.text)
        told = line or found or schema
        return None if told is None else told["name"]


def text_of(message: Mapping[str, Any]) -> str:
    """Return a message's text, without calls."""
    content: Any = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in cast("list[dict[str, Any]]", content))


def _is(name: str, tool: str) -> bool:
    """Say whether `name` is `tool`, which may have its server's name in front."""
    return name == tool or name.endswith(f"__{tool}")


@dataclass(slots=True)
class Script:
    """Where the conversation is. What comes before the first turn is answered with a greeting."""

    turn: Turn = HELLO
    turns: int = 0
    asked: int = 0
    """Requests in this turn."""
    made: int = 0
    """Calls of this turn that are made."""
    did: Did = "warm-up"
    """What the newest reply was."""
    searched: list[int] = field(default_factory=list[int])
    """The number of the turn of each search."""
    told_first: set[int] = field(default_factory=set[int])
    """The turns in whose first request every tool that they need could be called."""
    given_up: list[str] = field(default_factory=list[str])
    """Tools that could not be called."""
    lost_ids: list[str] = field(default_factory=list[str])
    """Identifiers that a call needs and the prompt did not have; calls that have lost theirs."""

    def begin(self, turn: Turn) -> None:
        self.turn, self.asked, self.made = turn, 0, 0
        self.turns += 1

    def next(self, body: Mapping[str, Any]) -> Reply:
        """Return what the model says to a request."""
        shown = Shown.of(body)
        if shown.schema is not None and _HELD in shown.schema:
            return [json.dumps({"code": _HELD})]
        if not self.turns:
            return [_spoken(self.turn.answer, shown)]
        self.asked += 1
        if self.asked == 1 and all(shown.way_to(call.tool) for call in self.turn.calls):
            self.told_first.add(self.turns)
        if shown.unpaired:
            self.lost_ids.append(f"{shown.unpaired} calls in turn {self.turns}")
        left = self.turn.calls[self.made :]
        if left and (reply := self._call(left[0], shown)) is not None:
            return reply
        self.did = "answer"
        return [_spoken(self.turn.answer, shown)]

    def _call(self, call: Scripted, shown: Shown) -> Reply | None:
        if (way := shown.way_to(call.tool)) is not None:
            self.made, self.did = self.made + 1, "call"
            needed = _ID.findall(json.dumps(dict(call.arguments)))
            self.lost_ids += [each for each in needed if each not in shown.text]
            return self._written(shown, *way, call.arguments)
        searches = self.asked - 1 - self.made
        for search, words in SEARCHES.items():
            if searches < SEARCHES_MAX and (way := shown.way_to(search)) is not None:
                self.did = "search"
                self.searched.append(self.turns)
                said = [call.searched_by] if words == "patterns" else call.searched_by
                return self._written(shown, *way, {words: said})
        self.given_up.append(call.tool)
        self.made = len(self.turn.calls)
        return None

    def _written(self, shown: Shown, way: Way, name: str, arguments: Mapping[str, Any]) -> Reply:
        # New in the conversation, as a real server's are: LiveKit pairs results by it.
        call_id = f"call_{self.turns}_{self.asked}"
        match way:
            case "direct":
                return [Call(name, dict(arguments), id=call_id)]
            case "carried":
                carrier = shown.carrier or ""
                carried = {"name": name, CARRIERS[carrier]: dict(arguments)}
                return [Call(carrier, carried, id=call_id)]
            case "text":
                return [json.dumps({"calls": [{"name": name, "arguments": dict(arguments)}]})]


def _spoken(words: str, shown: Shown) -> str:
    return words if shown.schema is None else json.dumps({"say": words})
