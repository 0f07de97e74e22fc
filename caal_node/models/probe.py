"""Does a model call tools the way its server says it does? Asked once, before anybody speaks.

Ollama reports `tools` for every model whose template mentions them, also for those that write each
call as JSON in a code fence. One short question with one tool shows which kind it is.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from caal_node.context.items import System, User
from caal_node.errors import ModelLacksTools, ModelReplyError
from caal_node.models.port import Backend, NativeCall, Request
from caal_node.models.signs import is_about_the_way

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
_REQUEST: Final = Request(
    items=(
        System("You are a helpful assistant. Use the tools."),
        User("What is the weather in Oslo right now?"),
    ),
    tools=(_TOOL,),
    stream=False,
    max_tokens=PROBE_TOKENS,
)


async def calls_natively(backend: Backend) -> bool:
    """Whether `backend` answers the probe with a structured call.

    Raises:
        ModelError: the server could not be asked; nothing is known then.
    """
    if (await backend.capabilities()).tools is False:
        return False
    try:
        async with aclosing(backend.ask(_REQUEST)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, NativeCall):
                    return True
    except (ModelLacksTools, ModelReplyError) as error:
        if not is_about_the_way(error):
            raise
    return False
