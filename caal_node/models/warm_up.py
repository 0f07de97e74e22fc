"""Have the server read a prompt's head before anybody waits for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from caal_node.core.items import UserItem
from caal_node.models.backends.base import Backend, BackendRequest, ReplyDone, Usage

_OPENING: Final = UserItem("Hello.")
"""Some chat templates fail without a person's message. It stands after all that is to be kept."""


PATIENCE_S: Final = 900.0
"""For the whole head, a model still to be loaded included. Nobody waits for it yet, and what was
read is lost with a request that is given up: 14 tools with examples take a 1.5B 150 s on one core
of a small machine, which is over any deadline that suits a turn."""


async def warm(backend: Backend, head: BackendRequest) -> Usage:
    """Ask for one token, so that the server keeps what it has read of `head`.

    `head` is what every later request begins with: the system prompt, the tools, the example
    turns, as they will be sent. 20 tools take 51 s on two cores, once.

    Raises:
        ModelError: as `Backend.ask`.
    """
    items = head.items
    if not items or not isinstance(items[-1], UserItem):
        items = (*items, _OPENING)
    one = replace(
        head,
        items=items,
        stream=False,
        schema=None,
        max_tokens=1,
        top_logprobs=0,
        first_s=PATIENCE_S,
    )
    usage = Usage()
    async for chunk in backend.ask(one):
        if isinstance(chunk, ReplyDone):
            usage = chunk.usage
    return usage
