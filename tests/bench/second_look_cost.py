"""What a second look by the model that called costs on a server that keeps one prompt at a time.

Run: `python -m tests.bench.second_look_cost --ollama URL MODEL [--limit 4]`. Each request is asked
as in a session, with its tools and examples, and then the turn's second request, with the call and
a result. `s` is the mean time to the first token of that second request: without a look in between,
behind a look by the same model, and behind one that goes on from the conversation's own prompt.
`look s` is the mean of the look itself. Nothing is kept, as the time is what is asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from statistics import fmean
from typing import Final

from caal_node.context.prompt_tools import PromptTools
from caal_node.core.items import CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import Backend, BackendRequest
from caal_node.models.question import Question
from caal_node.models.second_look import ProposedCall, second_look_request
from caal_node.models.strategies import JsonReplyStrategy
from tests.bench.confidence import server
from tests.bench.spoken_requests import Requests, Spoken, load
from tests.bench.table import print_table

LOOKS: Final = ("none", "by itself", "behind the prompt")


async def seconds(backend: Backend, request: BackendRequest) -> float:
    began = time.perf_counter()
    async with aclosing(backend.ask(request)) as chunks:
        async for _ in chunks:
            pass
    return time.perf_counter() - began


def behind(prompt: Sequence[Item], look: BackendRequest) -> BackendRequest:
    """Return `look` as a continuation of a conversation's `prompt`."""
    rules, data = look.items
    assert isinstance(rules, SystemItem)
    assert isinstance(data, UserItem)
    return replace(look, items=(*prompt, UserItem(f"{rules.text}\n\n{data.text}")))


async def turn(
    backend: Backend, requests: Requests, spoken: Spoken, look: str
) -> tuple[float, float]:
    """Return the seconds of the look and those of the turn's second request."""
    way = JsonReplyStrategy()
    tools = PromptTools(requests.tools, requests.examples)
    items: tuple[Item, ...] = (SystemItem(read("system.md")), UserItem(spoken.say))
    first = way.request(Question(items, tools, max_tokens=1))
    await seconds(backend, first)
    name, arguments = spoken.calls[0]
    does = next(
        t["function"]["description"] for t in requests.tools if t["function"]["name"] == name
    )
    asked = second_look_request(items, ProposedCall(name, does, arguments))
    took = 0.0
    if look != "none":
        took = await seconds(backend, asked if look == "by itself" else behind(first.items, asked))
    made = (
        CallItem("c1", name, json.dumps(dict(arguments))),
        ResultItem("c1", name, '{"ok":true}'),
    )
    return took, await seconds(backend, way.request(Question((*items, *made), tools, max_tokens=1)))


async def run(given: argparse.Namespace) -> None:
    url, model = given.ollama
    requests = load("measured")
    asked = [one for one in requests.requests if len(one.calls) == 1][: given.limit]
    backend = server(url, model)
    rows: list[tuple[object, ...]] = []
    try:
        for look in LOOKS:
            took = [await turn(backend, requests, spoken, look) for spoken in asked]
            found = (fmean(look for look, _ in took), fmean(second for _, second in took))
            rows.append((look, len(asked), *(round(each, 1) for each in found)))
    finally:
        await backend.aclose()
    print_table(f"a look on one slot, {model}", ("look", "turns", "look s", "s"), rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"), required=True)
    options.add_argument("--limit", type=int, default=4)
    asyncio.run(run(options.parse_args()))


if __name__ == "__main__":
    main()
