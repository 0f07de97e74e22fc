"""caal-node: local LLMs that use tools by voice, in LiveKit rooms.

    from caal_node import CaalAgent, LLM

    session = AgentSession(llm=LLM("qwen3:8b"), ...)
    await session.start(CaalAgent(), room=room, session_host=False)

Names are loaded when they are first used, so that the parts that know no LiveKit (`reply_parser`,
`context`) can be imported without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from caal_node.own_packages import claim_names

if TYPE_CHECKING:
    from caal_node.agent import CaalAgent
    from caal_node.config.process_guard import guard_process
    from caal_node.context.tool_data import ToolDataCache
    from caal_node.conversation import Conversation, TurnRecord
    from caal_node.models.llm import LLM
    from caal_node.reply_parser import ReplyParser, parse_reply
    from caal_node.room.hooks import Hooks
    from caal_node.tools.effects import effect

__all__ = [
    "LLM",
    "CaalAgent",
    "Conversation",
    "Hooks",
    "ReplyParser",
    "ToolDataCache",
    "TurnRecord",
    "__version__",
    "effect",
    "guard_process",
    "parse_reply",
]

_HOMES = {
    "CaalAgent": "caal_node.agent",
    "Conversation": "caal_node.conversation",
    "Hooks": "caal_node.room.hooks",
    "LLM": "caal_node.models.llm",
    "ReplyParser": "caal_node.reply_parser",
    "ToolDataCache": "caal_node.context.tool_data",
    "TurnRecord": "caal_node.conversation",
    "effect": "caal_node.tools.effects",
    "guard_process": "caal_node.config.process_guard",
    "parse_reply": "caal_node.reply_parser",
}

__version__ = "0.1.0"
"""The version of the distribution, in one place."""

claim_names()


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module 'caal_node' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
