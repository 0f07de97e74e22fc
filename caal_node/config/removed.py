"""Names of settings that are gone. Each is refused, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from caal_node.config.setting_tables import switched


class Instead(NamedTuple):
    """The setting to write, its value, and what else is to be known."""

    setting: str
    value: Any
    remark: str = ""


def _without(check: str, value: Any) -> Instead:
    return Instead("checks", f"-{check}" if switched(value) is False else "on")


def _fallbacks(key: str, value: Any) -> Instead:
    return Instead("fallbacks", {"models": ["llama3.2"], key: value}, ", with your models")


def _cue(kind: str, value: Any) -> Instead:
    remark = f", and name the file there {kind}.wav"
    return Instead("cues", str(Path(str(value)).parent), remark)


def _in_class(name: str, value: Any) -> str:
    return f"write {name} = {value!r} into the class of your CaalAgent"


def _window(tokens: Any) -> Instead:
    size = max(512, -(-tokens * 4 // 3)) if isinstance(tokens, int) else 8192
    return Instead("num_ctx", size, "; the window is three quarters of it")


REMOVED: Final[Mapping[str, Callable[[Any], Instead | str]]] = {
    "needless_calls": lambda value: _without("needless_calls", value),
    "references": lambda value: _without("references", value),
    "claims": lambda value: _without("claims", value),
    "facts": lambda value: _without("facts", value),
    "search_if_hedged": lambda value: _without("hedges", value),
    "text_protocol": lambda value: Instead("tool_calls", value),
    "server_runs_tools": lambda on: Instead("tool_calls", "server" if switched(on) else "auto"),
    "text_iterations": lambda value: Instead("text_limits", {"replies": value}),
    "text_calls": lambda value: Instead("text_limits", {"calls": value}),
    "text_turn_calls": lambda value: Instead("text_limits", {"turn_calls": value}),
    "text_payload": lambda value: Instead("text_limits", {"payload": value}),
    "text_observation": lambda value: Instead("text_limits", {"observation": value}),
    "text_seconds": lambda value: Instead("text_limits", {"seconds": value}),
    "fallback_after": lambda value: _fallbacks("after", value),
    "use_only_validated_fallbacks": lambda on: _fallbacks("only_validated", switched(on) is True),
    "cue_tool": lambda value: _cue("tool", value),
    "cue_agent": lambda value: _cue("agent", value),
    "cue_error": lambda value: _cue("error", value),
    "agent_tools": lambda value: Instead("cues", {"agent_tools": value}),
    "trace_content": lambda on: Instead(
        "trace", {"file": "trace.jsonl", "content": switched(on) is True}, ", with your file"
    ),
    "show_arguments": lambda on: Instead("room_sees", "arguments" if switched(on) else "names"),
    "open_session_host": lambda on: Instead("room_sees", "everything" if switched(on) else "names"),
    "mcp_tokens": lambda value: Instead("tool_tokens", value),
    "window_tokens": _window,
    "window_turns": lambda value: _in_class("window_turns", value),
    "own_tools": lambda value: _in_class("own_tools", value),
    "speakable": lambda on: _in_class("speakable", switched(on) is not False),
    "mcp_new_tools": lambda value: (
        f'write "new_tools": "{value}" into each server\'s entry in mcp_servers.json'
    ),
    "n8n_poll": lambda _: "call POST /reload-tools from a schedule of n8n (docs/n8n.md)",
}
"""What replaces each setting that there was, by the value that was given."""
