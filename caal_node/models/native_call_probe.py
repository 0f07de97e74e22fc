"""Does a model call tools the way its server says it does? Asked once, before anybody speaks.

Ollama reports `tools` for every model whose template mentions them, also for those that write each
call as JSON in a code fence. One short question with one tool shows which kind it is.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from caal_node.core.errors import ModelLacksTools, ModelReplyError
from caal_node.core.items import SystemItem, UserItem
from caal_node.models.backends.base import Backend, BackendRequest, NativeCall, TextChunk
from caal_node.models.failure_signals import is_about_the_way
from caal_node.reply_parser import Event, ReplyParser, TextWasThinking

PROBE_TOKENS: Final = 64
"""Tokens: a call of one short argument takes 20 to 30 in every dialect."""
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
_REQUEST: Final = BackendRequest(
    items=(
        SystemItem("You are a helpful assistant. Use the tools."),
        UserItem("What is the weather in Oslo right now?"),
    ),
    tools=(_TOOL,),
    stream=False,
    max_tokens=PROBE_TOKENS,
)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    native: bool
    """It was answered with a structured call."""
    thinks_aloud: bool = False
    """The answer began in thinking, of which it had the closer alone."""


async def calls_natively(backend: Backend) -> bool:
    """As `probe`, for those who ask nothing else."""
    return (await probe(backend)).native


async def probe(backend: Backend) -> ProbeResult:
    """Ask `backend` the short question.

    Raises:
        ModelError: the server could not be asked; nothing is known then.
    """
    if (await backend.capabilities()).tools is False:
        return ProbeResult(native=False)
    native, text = False, ReplyParser((_TOOL,))
    events: list[Event] = []
    try:
        async with aclosing(backend.ask(_REQUEST)) as chunks:
            async for chunk in chunks:
                native |= isinstance(chunk, NativeCall)
                if isinstance(chunk, TextChunk):
                    events += text.feed(chunk.text)
    except (ModelLacksTools, ModelReplyError) as error:
        if not is_about_the_way(error):
            raise
    events += text.finish()
    return ProbeResult(native, any(isinstance(event, TextWasThinking) for event in events))
