"""`/v1/completions`: text in, text out, for servers and models without a chat template.

The layout is plain roles at the beginning of lines. Tools cannot be offered here; whoever asks
writes them into the text, and reads the calls out of it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError

from caal_node.core.errors import ModelLacksTools, ModelReplyError
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.backends.chat_messages import arguments_object
from caal_node.models.backends.http_transport import HttpTransport, TransportDeadlines
from caal_node.models.backends.lenient_types import NULL_IS_EMPTY_LIST, OR_NONE, JoinedText
from caal_node.models.backends.line_reader import sse_data, whole_body
from caal_node.models.backends.openai_server import (
    LlamaTimings,
    TokenCounts,
    openai_wire,
    served_capabilities,
)
from caal_node.models.backends.server_errors import server_words

STOP: Final = ("\nUser:", "\nTool ", "\nSystem:")
"""Where the model would go on with somebody else's words. OpenAI allows four."""


class _Choice(BaseModel):
    text: JoinedText = None
    finish_reason: str | None = None


class _Event(BaseModel):
    error: Any = None
    choices: Annotated[list[_Choice], NULL_IS_EMPTY_LIST] = Field(default_factory=list[_Choice])
    usage: Annotated[TokenCounts | None, OR_NONE] = None
    timings: Annotated[LlamaTimings | None, OR_NONE] = None


class CompletionsBackend:
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
        self._model: Final = model
        self._always: Final = {"temperature": temperature, "stop": STOP, **(extra or {})}
        self._wire: Final[HttpTransport] = openai_wire(
            base_url, model=model, api_key=api_key, deadlines=deadlines
        )

    @property
    def model(self) -> str:
        return self._model

    @property
    def address(self) -> str:
        return self._wire.address

    async def capabilities(self) -> Capabilities:
        """See `Backend`. Never tools; a schema only where the server is llama.cpp's."""
        told = await served_capabilities(self._wire, self._model)
        return Capabilities(
            tools=False, thinking=False, schema=told.schema, context_tokens=told.context_tokens
        )

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`.

        Raises:
            ModelLacksTools: the request has tools.
        """
        if request.tools:
            raise ModelLacksTools("text completion takes no tools; write them into the prompt")
        split = sse_data if request.stream else whole_body
        finish: str | None = None
        usage = Usage()
        begun = False
        pieces = self._wire.pieces("/completions", self._body(request), split, request.first_s)
        async with aclosing(pieces):
            async for data in pieces:
                if data == b"[DONE]":
                    break
                event = self._parsed(data)
                for choice in event.choices[:1]:
                    # The prompt ends in "Assistant:", without the space that models put first.
                    text = choice.text or ""
                    text = text if begun else text.lstrip()
                    if text:
                        begun = True
                        yield TextChunk(text)
                    finish = choice.finish_reason or finish
                if event.usage is not None:
                    usage = event.usage.read(event.timings)
        if finish is None:
            raise ModelReplyError(f"{self.address} ended its reply in the middle")
        yield ReplyDone("length" if finish == "length" else "stop", usage)

    async def aclose(self) -> None:
        await self._wire.aclose()

    def _body(self, request: BackendRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "prompt": to_prompt(request.items),
            "stream": request.stream,
        }
        if request.stream:
            body["stream_options"] = {"include_usage": True}
        if request.schema is not None:
            body["json_schema"] = request.schema  # llama.cpp's; others read past it
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        return {**body, **self._always}

    def _parsed(self, data: bytes) -> _Event:
        try:
            event = _Event.model_validate_json(data)
        except ValidationError as error:
            raise ModelReplyError(f"{self.address} sent what is no completion") from error
        if event.error is not None:
            raise ModelReplyError(f"{self.address} broke off: {server_words(data)}")
        return event


def to_prompt(items: Sequence[Item]) -> str:
    """`items` as text: a role and a colon before each, and the assistant's turn to come."""
    lines = [f"{_role(item)} {_words(item)}" for item in items]
    return "\n".join([*lines, "Assistant:"])


def _role(item: Item) -> str:
    match item:
        case SystemItem():
            return "System:"
        case UserItem():
            return "User:"
        case AssistantItem() | CallItem():
            return "Assistant:"
        case ResultItem():
            return f"Tool {item.name}:"


def _words(item: Item) -> str:
    match item:
        case SystemItem() | UserItem() | AssistantItem():
            return item.text
        case ResultItem():
            return item.output
        case CallItem():
            call = {"name": item.name, "arguments": arguments_object(item)}
            return json.dumps({"type": "tool_call", **call}, ensure_ascii=False)
