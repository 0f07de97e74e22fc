"""Finds out, for a call that LiveKit runs, whether only a tool's words have asked for it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from livekit.agents import llm

from caal_node.core.items import AssistantItem, Item, ResultItem, UserItem
from caal_node.core.tool_spec import Effect, name_reads
from caal_node.core.turn import Turn
from caal_node.policy.provenance import TracedCall, comes_from_outside
from caal_node.policy.word_sources import ITEMS_MAX, Described
from caal_node.tools.call_middleware import ToolCallRequest
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import VOCABULARY
from mcp_bridge.discovery.bm25 import split_terms

SAID_CHARS: Final = 1_000
"""Characters of a request in which words for a tool are looked for: a minute of speech."""


def asked_for_by_a_tool(call: ToolCallRequest, effect: Effect | None = None) -> str:
    """Return why a call needs a person's yes, or "" where it needs none; see `comes_from_outside`.

    `effect` is what the owner's policy takes the tool for; None takes its source's word. Of a call
    of the control API every value is its caller's own, so it needs none.
    """
    if call.context is None or call.caller.origin == "api":
        return ""
    session, spec = call.context.session, call.entry.spec
    items = list(_items(_before(call.call_id, session.history.items)[-ITEMS_MAX:]))
    traced = TracedCall(
        call.entry.exposed,
        call.arguments,
        spec.parameters,
        effect or spec.effect,
        spec.description,
        is_meant(spec.own_name or spec.name, items),
    )
    table = getattr(session.current_agent, "table", None)
    described = table.described if isinstance(table, ToolTable) else Described()
    return comes_from_outside(traced, items, described)


def is_meant(tool: str, items: Sequence[Item]) -> bool:
    """Return whether the person's newest words stand for a word of a tool's name."""
    said = Turn(items).request
    own = frozenset(split_terms(tool))
    return any(not own.isdisjoint(terms) for terms in VOCABULARY.meant(said[:SAID_CHARS]))


def traced_as(entry: ToolEntry, effect: Effect) -> Effect:
    """Return what a tool is taken for where its values are traced to who said them.

    A policy takes a server's word for nothing that it does. Here a tool that says that it reads is
    only judged by where it sends what: else each file that a listing names would be asked about.
    """
    spec = entry.spec
    reads = spec.read_only is not False and name_reads(spec.own_name or spec.name)
    return "read" if effect == spec.effect == "write" and reads else effect


def _before(call_id: str, history: Sequence[llm.ChatItem]) -> Sequence[llm.ChatItem]:
    """Return what the model had read when it made a call. A call that still waits for others is in
    the history where the person has spoken over it, and what they said then asked for no such
    call."""
    for at in range(len(history) - 1, max(-1, len(history) - ITEMS_MAX), -1):
        item = history[at]
        if isinstance(item, llm.FunctionCall) and item.call_id == call_id:
            return history[:at]
    return history


def _items(history: Iterable[llm.ChatItem]) -> Iterator[Item]:
    """Yield what was said, in its order. Calls and instructions are left out, as nothing is traced
    to them; so this takes a third of the time that a prompt's items take."""
    for item in history:
        if isinstance(item, llm.FunctionCallOutput):
            yield ResultItem(item.call_id, item.name, item.output, item.is_error)
        elif isinstance(item, llm.ChatMessage) and item.role in ("user", "assistant"):
            text = "\n".join(part for part in item.content if isinstance(part, str))
            yield UserItem(text) if item.role == "user" else AssistantItem(text)
