"""Every extension point, on one screen. Import what you need from here.

Tools of your agent: methods of your `CaalAgent` with `@function_tool`. `@effect("destructive")`
    has a call read back, and asks for a yes. One that returns an `Undoable` can be taken back.
How its tools run, its text is spoken and its window is cut: `own_tools`, `speakable` and
    `window_turns` in the class of your `CaalAgent`.
Tools that others can install: a `ConfiguredToolset` with its `ToolsetOptions`, as an entry point
    of the group `caal_node.tools`.
Another source of tools: a `ToolSource`, in `CaalAgent(tiers={"name": source})`.
Rules about calls: a `CallMiddleware`, in `CaalAgent(gates=Gates(middleware=[rule]))`.
A front end: `Hooks` or a function of every `Event`, in `CaalAgent(hooks=hooks, on_event=note)`.
Another way to play cues: a `CueSink`, in `CaalAgent(cue_sink=sink)`.
Another model: any LiveKit plugin's model, by `LLM.over(model)` or `CAAL_API=livekit`.
Speech: a function that makes a LiveKit plugin, by `CAAL_STT=module:function`, `CAAL_TTS` and
    `CAAL_VAD`.
Words and prompts: the files in `prompts/`.

A new format of tool calls (`CallFormat`), a way of asking a model (`CallStrategy`) and a model's
server (`Backend`) are files of this package: CONTRIBUTING.md shows how.
"""

from __future__ import annotations

from caal_node.core.events import Event
from caal_node.models.backends.base import Backend
from caal_node.models.llm import LLM
from caal_node.models.strategies.base import CallStrategy
from caal_node.reply_parser.parse_context import CallFormat
from caal_node.room.cue_player import CueSink
from caal_node.room.hooks import Hooks
from caal_node.tools.call_middleware import CallMiddleware, Preview, ToolCallRequest
from caal_node.tools.effects import effect
from caal_node.tools.pipeline import Gates
from caal_node.tools.source import (
    CallConversation,
    ToolListing,
    ToolSource,
    Undoable,
    VerbatimResult,
)
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, ToolsetServices

__all__ = [
    "LLM",
    "Backend",
    "CallConversation",
    "CallFormat",
    "CallMiddleware",
    "CallStrategy",
    "ConfiguredToolset",
    "CueSink",
    "Event",
    "Gates",
    "Hooks",
    "Preview",
    "ToolCallRequest",
    "ToolListing",
    "ToolSource",
    "ToolsetOptions",
    "ToolsetServices",
    "Undoable",
    "VerbatimResult",
    "effect",
]
