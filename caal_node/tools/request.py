"""The words of a person that a call of a tool answers."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

from typing import Any, Final

from livekit.agents import RunContext, llm

from caal_node.tools.caller_of_call import caller_of

REQUEST_CHARS: Final = 400
"""Characters of a request that are read: half a minute of speech."""


def request_of(context: RunContext[Any]) -> str:
    """Return the words that a call answers; "" for a call that nobody in the conversation made."""
    if caller_of(context).origin == "api":
        return ""
    for item in reversed(context.session.history.items):
        if isinstance(item, llm.ChatMessage) and item.role == "user":
            return (item.text_content or "")[:REQUEST_CHARS]
    return ""
