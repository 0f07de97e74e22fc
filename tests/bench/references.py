"""References to earlier results, sixty of them: what small models make of them, without and with
the hint of what is meant.

Run: `python -m tests.bench.references [--ollama URL MODEL] [--part held_out] [--folder F]`. By
default the embedded engine with the 0.5B demo weights (python -m caal_node.weights
qwen2.5-coder-0.5b). Temperature 0. Each request follows a conversation with a call and its result
(asked.json of tests/data/references, and asked_later.json with other tools), and is asked as one
JSON reply, with an example of each tool. Right is the one call with the one right argument, or a
spoken answer with the right fact. With `--folder` each reply is kept there, and read again from
there by a later run. The resolver's own table, over all labelled requests, comes first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, cast

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import Example
from caal_node.grounding.references import references_in
from caal_node.models.backends.base import Backend, ReplyDone, ServerCall, ServerResult
from caal_node.models.model_connection import ModelConnection
from caal_node.models.question import Question
from caal_node.models.strategies import JsonReplyStrategy
from caal_node.reply_parser import Event, summarise
from tests.bench.asked_ways import Only
from tests.bench.recorded_replies import RecordedBackend
from tests.bench.small_models import served
from tests.bench.table import print_table
from tests.stand_ins.labelled_references import FOLDER, LabelledRequest, labelled, scored

REPLY_TOKENS: Final = 120
PARTS: Final = {"tuning": "asked", "held_out": "asked", "later": "asked_later"}
"""The file of each part."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"))
    parser.add_argument("--gguf", type=Path, help="other weights for the embedded engine")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--part", choices=list(PARTS), help="of the sixty; all unless given")
    parser.add_argument("--folder", type=Path, help="where replies are kept")
    parser.add_argument("--table", action="store_true", help="the resolver's table alone")
    return parser.parse_args()


def tools(name: str) -> PromptTools:
    """Return the tools of one file of requests."""
    rows = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["tools"]
    keys = ("name", "description", "parameters")
    return PromptTools(
        tuple({"type": "function", "function": {k: row[k] for k in keys}} for row in rows),
        {
            row["name"]: tuple(Example(e["say"], e["arguments"]) for e in row["examples"][:1])
            for row in rows
        },
    )


def is_right(expected: Mapping[str, Any], calls: Sequence[Any], spoken: str) -> bool:
    """Whether a reply is what `expected` wants: its one call, or words of its answer."""
    if words := expected.get("says"):
        return not calls and _has_one(words, spoken)
    if len(calls) != 1 or calls[0].name != expected["tool"]:
        return False
    given = cast("Mapping[str, Any]", calls[0].arguments)
    return all(_has_one(value, given.get(key)) for key, value in expected["arguments"].items())


def _has_one(words: str | Sequence[str], text: object) -> bool:
    choices = [words] if isinstance(words, str) else words
    return any(one.casefold() in str(text).casefold() for one in choices)


async def asked(
    backend: Backend, requests: Sequence[LabelledRequest], offered: PromptTools, *, hint: bool
) -> int:
    """Return how many requests `backend`'s model does right."""
    connection = ModelConnection(backend, native_tools=False)
    connection.retry_policy = Only(backend.model, JsonReplyStrategy())
    right = 0
    for request in requests:
        items = (SystemItem(read("system.md")), *request.earlier, UserItem(request.say))
        question = Question(
            items,
            offered,
            stream=False,
            max_tokens=REPLY_TOKENS,
            references=references_in(items) if hint else (),
        )
        events: list[Event] = []
        async with aclosing(connection.ask(question)) as parts:
            async for part in parts:
                if not isinstance(part, ReplyDone | ServerCall | ServerResult):
                    events.append(part)
        reply = summarise(events)
        done = is_right(request.expect, reply.calls, reply.text)
        right += done
        if not done:
            calls = [(call.name, call.arguments) for call in reply.calls]
            print(f"  {'hint' if hint else 'off'}: {request.say!r}: {calls} {reply.text[:90]!r}")
    return right


def print_resolved() -> None:
    rows: list[tuple[object, ...]] = []
    for name in ("tuning", "held_out", "unseen", "asked", "asked_later"):
        requests = list(labelled(name))
        score = scored(requests)
        kinds = ", ".join(f"{kind} {score.right[kind]}/{n}" for kind, n in score.of.items())
        rows.append((name, len(requests), score.right.total(), score.wrong, kinds))
    print_table("references resolved", ("set", "requests", "right", "wrong hints", "kinds"), rows)


async def run(given: argparse.Namespace) -> None:
    print_resolved()
    if given.table:
        return
    rows: list[tuple[object, ...]] = []
    async with served(given) as (server, _, model, _):
        backend = RecordedBackend(server, given.folder) if given.folder else server
        for part in [given.part] if given.part else PARTS:
            requests = [one for one in labelled(PARTS[part]) if one.part == part]
            offered = tools(PARTS[part])
            counts = [await asked(backend, requests, offered, hint=hint) for hint in (False, True)]
            rows.append((part, len(requests), *counts))
    print_table(f"references done right, {model}", ("part", "requests", "off", "hint"), rows)


if __name__ == "__main__":
    asyncio.run(run(options()))
