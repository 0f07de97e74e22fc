"""Example replies: the project's own, and the collection of peers' suites where there is one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

_HERE = Path(__file__).parent
_OWN = _HERE / "data" / "reply_formats.jsonl"
_BESIDE = _HERE.parents[1] / "shared" / "cases" / "tool_call_texts.jsonl"


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
