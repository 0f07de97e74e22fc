"""Tools told with a request: whether the right ones are, how many, and for how many tokens.

A part of `python -m tests.bench.discovery`. The rule (`mcp_bridge/discovery/tool_search.py`) and
the everyday words (`prompts/everyday_words.toml`) were shaped on the household's requests and on
the tuning half of those that need no tool. The other sets were only measured; those of tests/data/
tool_fit were written before the rule, by whoever wrote the everyday words. An author's example that
is itself the request is left out while it is asked.

`right` is the share of the right tools that are told, averaged over requests, `all` the requests in
which all are, `silent` the requests without a tool with which none is told. Tokens are estimates,
which err high by a third: `full` of the catalogue's entries, `brief` where the best tool has its
entry, and the others their names and those of their parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from caal_node.context.schemas import catalogue, compact_schema
from caal_node.context.token_estimate import text_tokens
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.tools.tool_search import VOCABULARY, caution_of
from mcp_bridge import Example as Said
from mcp_bridge import ToolInfo
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.semantic_index import SemanticQuery
from tests.bench import household, needless_calls, spoken_requests
from tests.bench.semantic_discovery import ByMeaning
from tests.stand_ins.fifty_tools import tools as fifty_tools

HELD_OUT: Final = Path(__file__).parents[1] / "data" / "tool_fit" / "held_out.json"
COLUMNS: Final = (
    "requests", "", "with a tool", "right", "all", "tools", "full", "brief", "with none", "silent",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    say: str
    needs: tuple[frozenset[str], ...]
    """For each thing that is asked for, the exposed names of the tools that would do."""


@dataclass(frozen=True, slots=True)
class ToldTask:
    title: str
    tools: tuple[ToolInfo, ...]
    wanted: tuple[Wanted, ...]

    def without(self, say: str) -> tuple[ToolInfo, ...]:
        """Return the tools without an example that is itself the request."""
        if not any(each.say == say for tool in self.tools for each in tool.examples):
            return self.tools
        return tuple(
            replace(tool, examples=tuple(each for each in tool.examples if each.say != say))
            for tool in self.tools
        )


def tasks() -> list[ToldTask]:
    """Return the sets of requests that are here, the one that the rule was shaped on first."""
    return [
        _needs("tuning", "no tool needed, shaped on"),
        _needs("held_out", "no tool needed, measured"),
        _toolsets(),
        _held_out("fifty", "fifty tools, held out", _fifty()),
        _held_out("toolsets", "toolsets, held out", _of_toolsets()),
    ]


def with_examples(tools: Iterable[ToolInfo]) -> tuple[ToolInfo, ...]:
    """Return the household's tools with what their authors' examples say."""
    said: dict[str, tuple[Said, ...]] = {}
    for name in ("tuning", "measured"):
        for own, examples in spoken_requests.load(name).examples.items():
            said[own] = _said(examples)
    return tuple(replace(tool, examples=said.get(tool.tool, ())) for tool in tools)


async def rows(task: ToldTask, meant: ByMeaning | str) -> list[list[object]]:
    """Return the rows of a table with `COLUMNS`, by words and with the embedding."""
    by_words = [task.title, "by words", *await _measured(task, None)]
    if isinstance(meant, str):
        return [by_words, [task.title, meant, *("" for _ in COLUMNS[2:])]]
    return [by_words, [task.title, "with the embedding", *await _measured(task, meant)]]


async def _measured(task: ToldTask, meant: ByMeaning | None) -> list[object]:
    sizes = {tool.name: (_full(tool), _brief(tool)) for tool in task.tools}
    right: list[float] = []
    told: list[Sequence[str]] = []
    silent: list[bool] = []
    whole = ToolFinder(task.tools, VOCABULARY)
    space = await meant.space(task.tools) if meant is not None else None
    parts_of = {wanted.say: whole.parts_of(wanted.say) for wanted in task.wanted}
    asked = sorted({part for parts in parts_of.values() for part in parts})
    vectors = await meant.vectors(asked) if meant is not None else {}
    for wanted in task.wanted:
        finder, parts, near = whole, parts_of[wanted.say], space
        if (tools := task.without(wanted.say)) is not task.tools:
            finder = ToolFinder(tools, VOCABULARY)
            parts = finder.parts_of(wanted.say)
            if meant is not None:
                near, vectors = await meant.space(tools), vectors | await meant.vectors(parts)
        meaning = SemanticQuery(near, vectors) if near is not None else None
        found = finder.fitting(parts, meaning, caution=caution_of(wanted.say))
        names = [tool.name for tool in found]
        if not wanted.needs:
            silent.append(not names)
            continue
        right.append(fmean(not need.isdisjoint(names) for need in wanted.needs))
        told.append(names)
    return [
        len(right),
        100 * fmean(right),
        100 * fmean(share == 1 for share in right),
        fmean(map(len, told)),
        fmean(sum(sizes[name][0] for name in names) for names in told),
        fmean(sum(sizes[name][at > 0] for at, name in enumerate(names)) for names in told),
        len(silent),
        100 * fmean(silent) if silent else "",
    ]


def _full(tool: ToolInfo) -> int:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.input_schema),
    }
    return text_tokens(
        catalogue([{"type": "function", "function": compact_schema(function)}]) + "\n"
    )


def _brief(tool: ToolInfo) -> int:
    return text_tokens(f"- {tool.name} {{{', '.join(tool.input_schema.get('properties', {}))}}}\n")


def _needs(part: str, title: str) -> ToldTask:
    chosen = needless_calls.part(part)
    kinds = ("tool", "knowledge", "chat")  # what none of the tools can do may well look like them
    asked = zip(chosen.requests.requests, chosen.kinds, strict=True)
    return ToldTask(
        title,
        _infos(chosen.requests.tools, chosen.requests.examples),
        tuple(
            Wanted(row.say, tuple(frozenset([name]) for name, _ in row.calls))
            for row, kind in asked
            if kind in kinds
        ),
    )


def _toolsets() -> ToldTask:
    asked = list(household.requests())
    wanted = (Wanted(row.say, (frozenset([row.tool]),) if row.tool else ()) for row in asked)
    return ToldTask("toolsets, measured", _of_toolsets(), tuple(wanted))


def _held_out(name: str, title: str, tools: tuple[ToolInfo, ...]) -> ToldTask:
    data = json.loads(HELD_OUT.read_text("utf-8"))
    asked = [Wanted(row["say"], tuple(map(frozenset, row["needs"]))) for row in data[name]]
    return ToldTask(title, tools, (*asked, *(Wanted(say, ()) for say in data["none"])))


def _fifty() -> tuple[ToolInfo, ...]:
    return tuple(
        ToolInfo(tool.name, "s", tool.name, tool.description or "", tool.input_schema)
        for tool in fifty_tools()
    )


def _of_toolsets() -> tuple[ToolInfo, ...]:
    tools = household.tools_of(sorted({row.toolset for row in household.requests()}))
    return _infos(tools.schemas, tools.examples)


def _infos(
    schemas: Iterable[ToolSchema], examples: Mapping[str, Sequence[Example]]
) -> tuple[ToolInfo, ...]:
    functions = (schema["function"] for schema in schemas)
    return tuple(
        ToolInfo(
            each["name"], "s", each["name"], each["description"], each["parameters"],
            examples=_said(examples.get(each["name"], ())),
        )
        for each in functions
    )  # fmt: skip


def _said(examples: Iterable[Example]) -> tuple[Said, ...]:
    return tuple(Said(each.utterance, each.arguments) for each in examples)
