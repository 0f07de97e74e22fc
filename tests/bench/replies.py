"""How fast a reply is understood: MB of text a second, as a table.

    python -m tests.bench.replies [CHARACTERS]

Each text of CHARACTERS (default 1,000,000) is fed in chunks of 1 character, of 16, and whole.
CPU time of this process, one run each. The worst cases are texts in which every character may
begin something, or in which a careless reader would go back to the beginning again and again.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from caal_node.replies import ReplyParser

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "set_timer",
            "description": "Set a timer",
            "parameters": {
                "type": "object",
                "properties": {"minutes": {"type": "integer"}, "label": {"type": "string"}},
            },
        },
    }
]


def texts(size: int) -> dict[str, str]:
    """Name -> text of about `size` characters."""

    def filled(piece: str) -> str:
        return (piece * (size // len(piece) + 1))[:size]

    call = '<tool_call>{"name":"set_timer","arguments":{"label":"%s"}}</tool_call>'
    return {
        "speech": filled("The quick brown fox jumps over the lazy dog, and rests for a while. "),
        "speech in lines": filled("It is a fine day for a walk along the river bank.\n"),
        "thinking": "<think>" + filled("Let me see what there is to be done about it. "),
        "final answer": '{"type":"final_answer","text":"' + filled("Well, then. ") + '"}',
        "JSON argument": call % filled("some words "),
        "JSON escapes": call % filled("\\n"),
        "element value": "<tool_call><function=set_timer><parameter=label>" + filled("a b c "),
        "calls": filled('<tool_call>{"name":"set_timer","arguments":{"minutes":5}}</tool_call>'),
        "only <": filled("<"),
        "only [": filled("["),
        "only {": filled("{"),
        "only newlines": filled("\n"),
        "half markers": filled("<tool_cal"),
        "openers": filled("<tool_call>"),
        "closers": filled("a</think>"),
        "open strings": filled('<tool_call>{"name":"set_timer","arguments":{"label":"</tool_call>'),
        "nested bare JSON": filled('{"arguments":'),
        "headers": filled("<|start|>assistant to="),
        "code fences": filled('```json\n{"name":'),
    }


def rate(text: str, chunk: int) -> float:
    """MB/s."""
    feed = (parser := ReplyParser(TOOLS)).feed
    began = time.process_time()
    for start in range(0, len(text), chunk):
        feed(text[start : start + chunk])
    parser.finish()
    return len(text) / (time.process_time() - began) / 1e6


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{'MB/s, ' + format(size, ',') + ' characters':34}{'by 1':>8}{'by 16':>8}{'whole':>8}")
    for name, text in texts(size).items():
        print(f"{name:34}" + "".join(f"{rate(text, n):8.2f}" for n in (1, 16, len(text))))


if __name__ == "__main__":
    main()
