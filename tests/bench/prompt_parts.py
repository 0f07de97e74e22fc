"""What a request has that the one before did not have, by what it is, in characters."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.bench.scripted_model import text_of

_TOLD_LINES: Final = re.compile(r"^- [\w-]+(?:: .*\n  \{.*|: .*| \{.*|\(.*)$", re.MULTILINE)
"""A tool's entry in a catalogue."""
_FOUND: Final = re.compile(r'callable_now|\A\{"name": "[^"]*", "description": ')
"""What a search has found, of ours and of LiveKit's ToolProxyToolset."""


def new_parts(before: Mapping[str, Any], body: Mapping[str, Any]) -> Mapping[str, int]:
    """Return characters by what they are: `told` tools, what a search has `found`, `results`,
    `calls`, `words` of the person, `answers`, `tools` (schemas), `head`.

    What stands behind the first difference is read again whatever it is, and so counts as new.
    """
    found: Counter[str] = Counter()
    earlier: Sequence[Mapping[str, Any]] = before.get("messages") or ()
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    same = 0
    # Schemas stand in front of every message.
    if before.get("tools") == body.get("tools"):
        pairs = zip(earlier, messages, strict=False)
        same = next((at for at, (one, other) in enumerate(pairs) if one != other), len(earlier))
        same = min(same, len(messages))
    else:
        found["tools"] = len(json.dumps(body.get("tools") or [], separators=(",", ":")))
    for message in messages[same:]:
        for name, chars in _parts(message):
            found[name] += chars
    return {name: chars for name, chars in found.items() if chars}


def _parts(message: Mapping[str, Any]) -> list[tuple[str, int]]:
    text = text_of(message)
    if message["role"] == "system":
        return [("head", len(text))]
    if message["role"] == "assistant":
        calls = json.dumps(message.get("tool_calls") or [], separators=(",", ":"))
        made = len(calls) if message.get("tool_calls") else 0
        said = "calls" if text.startswith('{"calls"') else "answers"
        return [("calls", made), (said, len(text))]
    if message["role"] == "tool" or "tool_observation" in text:
        return [("found" if _FOUND.search(text) else "results", len(text))]
    told = sum(len(line[0]) for line in _TOLD_LINES.finditer(text))
    return [("told", told), ("words", len(text) - told)]
