"""Example replies: the project's own, and the collection of peers' suites where there is one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from caal_node.reply_parser import Event, ReasoningDelta, TextDelta

_TESTS = Path(__file__).parents[1]
_OWN = _TESTS / "data" / "reply_formats.jsonl"
_BESIDE = _TESTS.parents[1] / "shared" / "cases" / "tool_call_texts.jsonl"


def _lines(file: Path) -> list[dict[str, Any]]:
    """The cases in `file`; none where it is not there."""
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


PEERS_FILE: Final = Path(os.environ.get("CAAL_REPLY_CASES") or _BESIDE)
PEERS: Final = _lines(PEERS_FILE)
"""Each with text, tools, expected calls, tier."""
CASES: Final = _lines(_OWN)
"""Each with family, text, calls, say, think, in_thinking; for `TOOLS`."""
EXAMPLES: Final[tuple[str, ...]] = tuple(case["text"] for case in CASES)
TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": "set_timer",
            "description": "Set a kitchen timer",
            "parameters": {
                "type": "object",
                "properties": {"minutes": {"type": "integer"}, "label": {"type": "string"}},
                "required": ["minutes"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "Get current time in a zone",
            "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
        },
    },
]


def joined(events: Iterable[Event]) -> list[Event]:
    """Return `events` with neighbouring deltas of a kind as one."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            out[-1] = ReasoningDelta(last.text + event.text)
        else:
            out.append(event)
    return out
