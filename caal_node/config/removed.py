"""Names of settings that are gone. Each is refused, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from caal_node.config.setting_tables import CHECKS, switched


class Instead(NamedTuple):
    """The setting to write, its value, and what else is to be known."""

    setting: str
    value: Any
    remark: str = ""


_Removed: TypeAlias = Callable[[Any], Instead | str]
"""Takes the value that was given. It returns a text where no setting replaces it."""


def _without(check: str) -> _Removed:
    others = ",".join(name for name in CHECKS if name != check)
    return lambda value: Instead("checks", others if switched(value) is False else "on")


def _limit(key: str) -> _Removed:
    return lambda value: Instead("text_limits", {key: value})


def _fallbacks(key: str, value: Any) -> Instead:
    return Instead("fallbacks", {"models": ["llama3.2"], key: value}, ", with your models")


def _switch(setting: str, on: str, off: str) -> _Removed:
    return lambda value: Instead(setting, on if switched(value) else off)


def _cue(kind: str) -> _Removed:
    remark = f", and name the file there {kind}.wav"
    return lambda value: Instead("cues", str(Path(str(value)).parent), remark)


def _in_class(name: str) -> _Removed:
    return lambda value: f"write {name} = {value!r} into the class of your CaalAgent"


REMOVED: Final[Mapping[str, _Removed]] = {
    "needless_calls": _without("needless_calls"),
    "references": _without("references"),
    "claims": _without("claims"),
    "facts": _without("facts"),
    "search_if_hedged": _without("hedges"),
    "text_protocol": lambda value: Instead("tool_calls", value),
    "server_runs_tools": _switch("tool_calls", "server", "auto"),
    "text_iterations": _limit("replies"),
    "text_calls": _limit("calls"),
    "text_turn_calls": _limit("turn_calls"),
    "text_payload": _limit("payload"),
    "text_observation": _limit("observation"),
    "text_seconds": _limit("seconds"),
    "fallback_after": lambda value: _fallbacks("after", value),
    "use_only_validated_fallbacks": lambda value: _fallbacks(
        "only_validated", switched(value) is True
    ),
    "cue_tool": _cue("tool"),
    "cue_agent": _cue("agent"),
    "cue_error": _cue("error"),
    "agent_tools": lambda value: Instead("cues", {"agent_tools": value}),
    "trace_content": lambda value: Instead(
        "trace", {"file": "trace.jsonl", "content": switched(value) is True}, ", with your file"
    ),
    "show_arguments": _switch("room_sees", "arguments", "names"),
    "open_session_host": _switch("room_sees", "everything", "names"),
    "mcp_tokens": lambda value: Instead("tool_tokens", value),
    "window_tokens": lambda value: Instead(
        "num_ctx",
        max(512, -(-value * 4 // 3)) if isinstance(value, int) else 8192,
        "; the window is three quarters of it",
    ),
    "window_turns": _in_class("window_turns"),
    "own_tools": _in_class("own_tools"),
    "speakable": lambda value: _in_class("speakable")(switched(value) is not False),
    "mcp_new_tools": lambda value: (
        f'write "new_tools": "{value}" into each server\'s entry in mcp_servers.json'
    ),
    "n8n_poll": lambda _: "call POST /reload-tools from a schedule of n8n (docs/n8n.md)",
}
"""What replaces each setting that there was."""
