"""Has a model write what people might say for a tool, and believes only what can be checked.

A request for each tool, by itself. Kept is what fits the tool's schema and says its own arguments:
an example whose city is not in its words would teach the model to make cities up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final, cast

from caal_node.core.items import AssistantItem, SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_examples import EXAMPLES_MAX
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.models.backends.base import Backend, BackendRequest, TextChunk
from caal_node.models.strategies.evidence import Evidence
from caal_node.models.strategies.prompt import catalogue
from caal_node.models.strategies.reply_schema import examples_schema
from caal_node.models.strategies.styles import dump
from caal_node.tools.argument_check import fits

REPLY_TOKENS: Final = 400
"""Three examples with long arguments; the schema ends the reply before."""
SAY_CHARS: Final = 160
"""Of what a person says in one breath."""
_SHOWN: Final[Mapping[str, Any]] = {
    "type": "function",
    "function": {
        "name": "book_table",
        "description": "Reserve a table at a restaurant.",
        "parameters": {
            "type": "object",
            "properties": {
                "restaurant": {"type": "string"},
                "people": {"type": "integer"},
                "time": {"type": "string", "description": "as the person said it"},
            },
            "required": ["restaurant", "people"],
        },
    },
}
_WRITTEN: Final = {
    "examples": [
        {
            "say": "get us a table for four at Luigi's",
            "arguments": {"restaurant": "Luigi's", "people": 4},
        },
        {
            "say": "I'd like to eat at the Blue Door tonight at eight, two of us",
            "arguments": {"restaurant": "the Blue Door", "people": 2, "time": "tonight at eight"},
        },
        {"say": "book Sakura for six", "arguments": {"restaurant": "Sakura", "people": 6}},
    ]
}


async def make_examples(backend: Backend, tool: ToolSchema) -> tuple[Example, ...]:
    """Up to three examples of `tool`; fewer, or none, where the model's do not hold.

    Raises:
        ModelError: as `Backend.ask`.
    """
    held = (await backend.capabilities()).schema is True
    request = BackendRequest(
        items=(
            SystemItem(read("protocol_make_examples.md")),
            UserItem(catalogue([_SHOWN])),
            AssistantItem(dump(_WRITTEN)),
            UserItem(catalogue([tool])),
        ),
        stream=False,
        schema=examples_schema(tool, EXAMPLES_MAX) if held else None,
        max_tokens=REPLY_TOKENS,
    )
    text: list[str] = []
    async with aclosing(backend.ask(request)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                text.append(chunk.text)
    return checked("".join(text), tool)


def checked(written: str, tool: ToolSchema) -> tuple[Example, ...]:
    """The examples in a model's reply that hold; never raises."""
    kept: dict[str, Example] = {}
    for row in _rows(written):
        say, arguments = row.get("say"), row.get("arguments")
        if not (isinstance(say, str) and 0 < len(say.strip()) <= SAY_CHARS):
            continue
        given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
        if _holds(tool, say, given):
            kept.setdefault(say.strip().casefold(), Example(say.strip(), given))
    return tuple(kept.values())[:EXAMPLES_MAX]


def _holds(tool: ToolSchema, say: str, arguments: Mapping[str, Any]) -> bool:
    parameters: Mapping[str, Any] = tool["function"].get("parameters") or {}
    if not fits(parameters, arguments):
        return False
    # All of it counts as optional, so that what is not in the words would be dropped.
    strict: dict[str, Any] = {
        "function": {**tool["function"], "parameters": {**parameters, "required": ()}}
    }
    return Evidence([UserItem(say)]).judge(strict, arguments).arguments == arguments


def _rows(written: str) -> list[dict[str, Any]]:
    begin, end = written.find("{"), written.rfind("}")
    try:
        value: Any = json.loads(written[begin : end + 1])
    except (ValueError, RecursionError):
        return []
    rows: Any = cast("dict[str, Any]", value).get("examples") if isinstance(value, dict) else None
    found = cast("list[Any]", rows) if isinstance(rows, list) else []
    return [cast("dict[str, Any]", row) for row in found if isinstance(row, dict)]
