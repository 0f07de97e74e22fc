"""`/v1/completions`: text in, text out, for servers and models without a chat template.

The layout is plain roles at the beginning of lines. Tools cannot be offered here; whoever asks
writes them into the text, and reads the calls out of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

from caal_node.core.errors import ModelLacksTools
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    TextChunk,
    Usage,
)
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.openai_server import OpenAIServer, ServerEvent
from caal_node.models.backends.tool_calls import (
    NULL_IS_EMPTY_LIST,
    JoinedText,
    arguments_object,
    first_of,
)

STOP: Final = ("\nUser:", "\nTool ", "\nSystem:")
"""Where the model would go on with somebody else's words. OpenAI allows four."""

_BREAK: Final = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")
_BEFORE_ROLE: Final = re.compile(r"(?<!\s)\s++(?=User|Assistant|System|Tool\b)")


class _Choice(BaseModel):
    text: JoinedText = None
    finish_reason: str | None = None


class TextEvent(ServerEvent):
    choices: Annotated[list[_Choice], NULL_IS_EMPTY_LIST, first_of(1)] = Field(
        default_factory=list[_Choice]
    )

    @property
    def says_something(self) -> bool:
        return any(choice.text for choice in self.choices)


class CompletionsBackend(OpenAIServer):
    """One model on one server, as `OpenAIBackend`, by its older endpoint."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float = 0.0,
        extra: Mapping[str, Any] | None = None,
        deadlines: TransportDeadlines | None = None,
    ) -> None:
        """See `OpenAIBackend`.

        Raises:
            ConfigError: the address or the key cannot be used.
        """
        always = {"temperature": temperature, "stop": STOP, **(extra or {})}
        super().__init__(model, base_url, api_key, deadlines, always)

    async def capabilities(self) -> Capabilities:
        """See `Backend`. There are never tools, and a schema only if the server is llama.cpp's."""
        return replace(await super().capabilities(), tools=False, thinking=False)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`.

        Raises:
            ModelLacksTools: the request has tools.
        """
        if request.tools:
            raise ModelLacksTools("text completion takes no tools; write them into the prompt")
        prompt: dict[str, Any] = {"prompt": to_prompt(request.items)}
        if request.schema is not None:
            prompt |= self.dialect.schema_field(request.schema, "json_schema")
        body = self._body(request, prompt)
        finish: str | None = None
        usage = Usage()
        begun = False
        async with aclosing(self._events("/completions", body, request, TextEvent)) as events:
            async for event in events:
                for choice in event.choices[:1]:
                    # The prompt ends in "Assistant:", without the space that models put first.
                    text = choice.text or ""
                    text = text if begun else text.lstrip()
                    if text:
                        begun = True
                        yield TextChunk(text)
                    finish = choice.finish_reason or finish
                usage = event.token_usage() or usage
        yield self._done(finish, usage, request)


def to_prompt(items: Sequence[Item]) -> str:
    """Write `items` as text: a role and a colon before each, and the assistant's turn to come."""
    return "\n".join([*map(_line, items), "Assistant:"])


def _line(item: Item) -> str:
    match item:
        case SystemItem():
            return f"System: {item.text}"
        case UserItem():
            return f"User: {_within_turn(item.text)}"
        case AssistantItem():
            return f"Assistant: {_within_turn(item.text)}"
        case ResultItem():
            return f"Tool {item.name}: {_within_turn(item.output)}"
        case CallItem():
            call = {"type": "tool_call", "name": item.name, "arguments": arguments_object(item)}
            return f"Assistant: {json.dumps(call, ensure_ascii=False)}"


def _within_turn(text: str) -> str:
    """Return `text` with no line that begins as a turn does. A role's lines are its only mark."""
    return _BEFORE_ROLE.sub(lambda blank: _BREAK.sub(r"\g<0> ", blank[0]), text)
