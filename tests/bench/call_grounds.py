"""Right calls that the judge of needless calls leaves out, and what it takes. No model is asked.

Run: `python -m tests.bench.call_grounds [--bfcl]`. Each request that needs calls is given exactly
the right ones: those of the three sets of spoken requests, with and without their tools' examples,
those over the toolsets that come along, and the typed ones of BFCL, whose wheel is downloaded
once. `trusted` is how a model is judged that calls well, `small` how another is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.question import Question
from caal_node.models.strategies.call_judge import CallJudge
from caal_node.reply_parser import ToolCallEnd
from tests.bench import bfcl_data
from tests.bench import household as bench_household
from tests.bench.spoken_requests import load
from tests.bench.table import print_table

TYPED: Final[tuple[bfcl_data.Category, ...]] = ("simple", "multiple")
Right = tuple[Question, str, Mapping[str, Any]]
"""What is asked, and one call that it needs."""


def spoken(name: str, *, examples: bool) -> Iterator[Right]:
    requests = load(name)
    tools = PromptTools(requests.tools, requests.examples if examples else {})
    for request in requests.requests:
        for tool, wanted in request.calls:
            values = {key: _one(value) for key, value in wanted.items()}
            given = {key: value for key, value in values.items() if value is not None}
            yield _question(request.say, tools), tool, given


def typed(category: bfcl_data.Category) -> Iterator[Right]:
    for asked in bfcl_data.questions(bfcl_data.wheel(), category):
        tools = PromptTools(tuple(cast("Sequence[ToolSchema]", asked.tools)))
        for tool, wanted in (asked.answers or {}).items():
            values = {key: next((v for v in some if v != ""), None) for key, some in wanted.items()}
            given = {key: value for key, value in values.items() if value is not None}
            yield _question(asked.said, tools), tool, given


def household() -> Iterator[Right]:
    """The requests over the toolsets that come along, with every argument that would do."""
    tools = bench_household.tools_of(sorted({one.toolset for one in bench_household.requests()}))
    for asked in bench_household.requests():
        values = {key: _as_list(value) for key, value in asked.arguments.items()}
        for at in range(max(map(len, values.values()), default=1)):
            given = {key: some[min(at, len(some) - 1)] for key, some in values.items()}
            if asked.tool is not None:
                yield _question(asked.say, tools), asked.tool, given


def _question(said: str, tools: PromptTools) -> Question:
    return Question((SystemItem(read("system.md")), UserItem(said)), tools)


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _one(value: Any) -> Any:
    return cast("list[Any]", value)[0] if isinstance(value, list) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bfcl", action="store_true", help="BFCL's typed requests as well")
    with_typed: bool = parser.parse_args().bfcl
    sets: list[tuple[str, list[Right]]] = [
        (f"{name}{'' if examples else ', no examples'}", [*spoken(name, examples=examples)])
        for name in ("measured", "tuning", "needs")
        for examples in (True, False)
    ]
    sets.append(("household toolsets", [*household()]))
    if with_typed:
        sets += [(f"BFCL {category}", [*typed(category)]) for category in TYPED]
    rows: list[tuple[object, ...]] = []
    for name, calls in sets:
        lost = {True: 0, False: 0}
        began = time.process_time()
        for trusted in lost:
            for question, tool, arguments in calls:
                judge = CallJudge(question, as_said=False, trusted=trusted)
                lost[trusted] += not judge.judged([ToolCallEnd("1", tool, dict(arguments))])
        each = (time.process_time() - began) / len(calls) / len(lost) * 1e3
        rows.append((name, len(calls), lost[True], lost[False], each))
    print_table("right calls left out", ("set", "calls", "trusted", "small", "ms each"), rows)


if __name__ == "__main__":
    main()
