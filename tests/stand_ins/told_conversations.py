"""Conversations whose model is told of tools on demand: a supply of tools, and turns that grow."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from livekit.agents import llm

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import search_spec

NAMES: Final = tuple(f"tool_{number}" for number in range(12))
SEARCH: Final = "mcp_discover"


def spec(name: str, about: str = "", **more: Any) -> ToolSpec:
    """A tool of an n8n tier that takes one text."""
    properties = {"text": {"type": "string", "description": "what it is about"}}
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    about = about or f"Does what {name} does. " + "It does it well. " * 3
    examples = (Example(f"do {name}", {"text": "now"}),)
    return ToolSpec("n8n", "n8n", name, name, about, schema, examples, **more)


class Supply:
    """A `ToolSupply` whose ranking a test has written, by the words."""

    def __init__(self, table: ToolTable, fits: Mapping[str, Sequence[str]] | None = None) -> None:
        self.table = table
        self.search: ToolEntry = table.beside(search_spec(table))
        self.head: frozenset[str] | None = frozenset({SEARCH})
        self.fits: Mapping[str, Sequence[str]] = fits or {}
        self.asked: list[str] = []

    def allow_head(self, max_tokens: int) -> None: ...

    def choose_head(self, *, most: int) -> None:
        raise AssertionError("the tools of these tests have room")

    def function_tools(self, names: Iterable[str]) -> list[llm.Tool]:
        return []

    async def fitting(self, words: str, besides: Collection[str] = ()) -> tuple[str, ...]:
        self.asked.append(words)
        return tuple(name for name in self.fits.get(words, ()) if name not in besides)


@dataclass(frozen=True)
class Turn:
    """One turn: the words, what fits them, and rounds of calls with their results."""

    words: UserItem
    fits: tuple[str, ...]
    rounds: tuple[tuple[Item, ...], ...]
    answer: AssistantItem
    early: UserItem | None = None
    """Words that were guessed early and then changed."""
    gone: tuple[str, ...] = field(default=())
    """Tools that are not there any more when it begins."""


def found(names: Sequence[str]) -> str:
    """The result of a search."""
    return json.dumps({"callable_now": dict.fromkeys(names, "Does it. {text: string}")})


@st.composite
def told_turns(draw: st.DrawFn, max_turns: int = 7) -> list[Turn]:
    """Turns in which tools are told, searched for, called and taken away."""
    turns: list[Turn] = []
    for number in range(draw(st.integers(1, max_turns))):
        text = draw(st.sampled_from(["do it", "the second one", "more about that one please"]))
        words = UserItem(f"{text} {number} " + "w" * draw(st.integers(0, 400)), f"u{number}")
        fits = tuple(draw(st.lists(st.sampled_from(NAMES), max_size=5, unique=True)))
        rounds: list[tuple[Item, ...]] = []
        for each in range(draw(st.integers(0, 3))):
            name = draw(st.sampled_from([*NAMES, SEARCH, SEARCH]))
            some = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
            rows = [{"name": f"thing {n}", "size": n} for n in range(draw(st.integers(0, 20)))]
            output = found(some) if name == SEARCH else json.dumps(rows)
            call_id = f"c{number}_{each}"
            failed = draw(st.integers(0, 9)) == 0
            rounds.append(
                (
                    CallItem(call_id, name, '{"text":"x"}', f"r{number}_{each}/fnc_0"),
                    ResultItem(call_id, name, output, failed, f"o{number}_{each}"),
                )
            )
        early = UserItem("guessed", f"early{number}") if draw(st.booleans()) else None
        gone = tuple(draw(st.lists(st.sampled_from(NAMES), max_size=1)))
        gone = gone if draw(st.integers(0, 4)) == 0 else ()
        answer = AssistantItem(f"done {number}", f"a{number}")
        turns.append(Turn(words, fits, tuple(rounds), answer, early, gone))
    return turns
