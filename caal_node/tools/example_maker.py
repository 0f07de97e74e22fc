"""Has a model write what people might say for a tool, and keeps only what can be checked.

The model is asked about one tool at a time. An example is kept where it fits the tool's schema and
its words hold its arguments: one whose city is not in its words would teach the model to invent
cities.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final, cast

from caal_node.context.catalogue import catalogue
from caal_node.core.items import AssistantItem, SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import EXAMPLES_MAX, Example, ToolSchema
from caal_node.models.backends.base import Backend, BackendRequest, TextChunk
from caal_node.models.strategies.evidence import Evidence
from caal_node.models.strategies.reply_schema import examples_schema
from caal_node.models.strategies.styles import dump
from caal_node.tools.argument_check import fits

REPLY_TOKENS: Final = 400
"""Tokens of a reply: three examples with long arguments. Mostly its schema ends it before."""
SAY_CHARS: Final = 160
"""Characters of what a person says in one breath."""
_SAMPLE: Final[Mapping[str, Any]] = json.loads(read("protocol_make_examples.json"))
"""A tool, and the reply that is wanted for it."""


async def make_examples(backend: Backend, tool: ToolSchema) -> tuple[Example, ...]:
    """Return up to three examples of `tool`; fewer, or none, where the model's are not valid.

    Raises:
        ModelError: as `Backend.ask`.
    """
    takes_schema = (await backend.capabilities()).schema is True
    request = BackendRequest(
        items=(
            SystemItem(read("protocol_make_examples.md")),
            UserItem(catalogue([_SAMPLE["tool"]])),
            AssistantItem(dump(_SAMPLE["reply"])),
            UserItem(catalogue([tool])),
        ),
        stream=False,
        schema=examples_schema(tool, EXAMPLES_MAX) if takes_schema else None,
        max_tokens=REPLY_TOKENS,
    )
    text: list[str] = []
    async with aclosing(backend.ask(request)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                text.append(chunk.text)
    return valid_examples("".join(text), tool)


def valid_examples(reply: str, tool: ToolSchema) -> tuple[Example, ...]:
    """Return the examples in a model's reply that are valid for `tool`. It never raises."""
    kept: dict[str, Example] = {}
    for row in _rows(reply):
        say, arguments = row.get("say"), row.get("arguments")
        if not (isinstance(say, str) and 0 < len(say.strip()) <= SAY_CHARS):
            continue
        values = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
        if _is_valid(tool, say, values):
            kept.setdefault(say.strip().casefold(), Example(say.strip(), values))
    return tuple(kept.values())[:EXAMPLES_MAX]


def _is_valid(tool: ToolSchema, say: str, arguments: Mapping[str, Any]) -> bool:
    parameters: Mapping[str, Any] = tool["function"].get("parameters") or {}
    if not fits(parameters, dict(arguments)):
        return False
    # With all arguments optional, the judge drops each that is not in the words.
    lenient: dict[str, Any] = {
        "function": {**tool["function"], "parameters": {**parameters, "required": ()}}
    }
    return Evidence([UserItem(say)]).judge(lenient, arguments).arguments == arguments


def _rows(reply: str) -> list[dict[str, Any]]:
    begin, end = reply.find("{"), reply.rfind("}")
    try:
        value: Any = json.loads(reply[begin : end + 1])
    except (ValueError, RecursionError):
        return []
    rows: Any = cast("dict[str, Any]", value).get("examples") if isinstance(value, dict) else None
    found = cast("list[Any]", rows) if isinstance(rows, list) else []
    return [cast("dict[str, Any]", row) for row in found if isinstance(row, dict)]
