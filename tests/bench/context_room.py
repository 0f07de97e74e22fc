"""CPU time of the context room on the sizes it must stand: `python -m tests.bench.context_room`.

Everything here runs on the event loop, where 20 ms is the limit for one step.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from caal_node.context.builder import ContextBuilder
from caal_node.context.one_line_json import LINE_CHARS, to_line
from caal_node.context.pairing import repair
from caal_node.context.schemas import compact_schema
from caal_node.context.tool_data import ToolDataCache
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem

RUNS = 9


def large_values() -> dict[str, Any]:
    """Tool results of about 4 MiB, in the forms that they come in."""
    records = [
        {"id": each, "name": f"Thing number {each}", "price": each * 1.5, "tags": ["a", "b"]}
        for each in range(50_000)
    ]
    text = json.dumps(records)
    return {
        "4 MiB of records": records,
        "4 MiB of records as JSON text": text,
        "the same inside an object": {"content": text},
        "4 MiB of words": "Some words, and more. " * 200_000,
        "4 MiB of base64": "QUJD" * 1_048_576,
        "an object of 200,000 members": {f"key {each}": {"v": each} for each in range(200_000)},
        "20,000 JSON texts": [json.dumps({"a": list(range(60))}) for _ in range(20_000)],
        "100 lists of 100 lists of 100": [[[1] * 100] * 100] * 100,
    }


def conversation(turns: int) -> list[Item]:
    """Every turn with a tool call, a 1 kB result and an answer."""
    items: list[Item] = [SystemItem("You are a helpful voice assistant. " * 20)]
    for turn in range(turns):
        items += [
            UserItem(f"Please look up thing number {turn} for me."),
            CallItem(f"c{turn}", "look_up", json.dumps({"number": turn})),
            ResultItem(
                f"c{turn}", "look_up", json.dumps({"name": f"Thing {turn}", "text": "x" * 1_000})
            ),
            AssistantItem(f"Thing number {turn} is in stock and costs twelve euros."),
        ]
    return items


def milliseconds(work: Callable[[], object]) -> str:
    times: list[float] = []
    for _ in range(RUNS):
        began = time.process_time()
        work()
        times.append((time.process_time() - began) * 1_000)
    return f"{statistics.median(times):7.2f} ms (worst {max(times):6.2f})"


def main() -> None:
    print(f"CPU time, median of {RUNS}")
    for name, value in large_values().items():
        print(f"{milliseconds(lambda v=value: to_line(v))}  to_line, {name}")
        print(f"{milliseconds(lambda v=value: keep_and_line(v))}  kept and lined, {name}")
    for turns in (100, 1_000, 4_000):
        items = conversation(turns)
        builder = ContextBuilder()
        print(f"{milliseconds(lambda i=items: repair(i))}  repair, {turns} turns")
        print(f"{milliseconds(lambda i=items, b=builder: b.build(i))}  build, {turns} turns")
    field = {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "F", "default": None}
    tool = {"type": "object", "properties": {f"field_{each}": field for each in range(20)}}
    print(f"{milliseconds(lambda: [compact_schema(tool) for _ in range(50)])}  50 tool schemas")


def keep_and_line(value: Any) -> None:
    """What one tool result costs in one step: tool data and the line for the model."""
    ToolDataCache().add_result("call", "tool", {}, value)
    to_line(value, max_chars=LINE_CHARS)


if __name__ == "__main__":
    main()
