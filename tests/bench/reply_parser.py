"""How long a reply takes to be understood: us of CPU time a token, by the shape of the text.

    python -m tests.bench.reply_parser [CHARACTERS]

Each text of CHARACTERS (default 100,000) is fed in single characters, in tokens of 4 characters and
whole, cut beforehand. The best of three runs: other processes share the core's caches. First speech
and calls as models write them, then the worst cases: texts in which every character may begin
something, in which nothing ever ends, or in which a careless reader would go back to the beginning
again and again.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Final

from caal_node.reply_parser import ReplyParser
from tests.bench.table import print_table

TOKEN_CHARS: Final = 4
RUNS: Final = 3
TOOLS: Final[list[dict[str, Any]]] = [
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
_CALL: Final = '<tool_call>{"name":"set_timer","arguments":{"label":"%s"}}</tool_call>'
_PAIR: Final = "<tool_call>set_timer<arg_key>label</arg_key><arg_value>"
_OPEN_ARGUMENT: Final = (
    '<|open|>call tool="set_timer"<|sep|><|open|>argument key="label" type="string"<|sep|>'
)
_LABEL: Final = "<tool_call><function=set_timer><parameter=label>"


def texts(size: int) -> dict[str, str]:
    """Shape -> text of about `size` characters."""

    def filled(piece: str) -> str:
        return (piece * (size // len(piece) + 1))[:size]

    def deep(opening: str, closing: str) -> str:
        count = size // len(opening + closing)
        return opening * count + closing * count

    return {
        "prose": filled("The quick brown fox jumps over the lazy dog, and rests for a while. "),
        "prose in lines": filled("It is a fine day for a walk along the river bank.\n"),
        "prose, other scripts": filled("Сегодня хорошо. 今天天气很好。 Où étais-tu ? 🙂 שלום! "),
        "Markdown": filled("- **One** of `them` is [here](https://example.org/a).\n"),
        "thinking, one block": "<think>" + filled("Let me see what is to be done about it. "),
        "thinking, many blocks": filled("<think>Let me see.</think>Well. "),
        "thinking, closers alone": filled("</think>{"),
        "thinking, call in it": f"<think>{_CALL % 'tea'}" + filled("Let me see. "),
        "final answer": '{"type":"final_answer","text":"' + filled("Well, then. ") + '"}',
        "calls": filled('<tool_call>{"name":"set_timer","arguments":{"minutes":5}}</tool_call>'),
        "JSON string": _CALL % filled("some words "),
        "JSON string, escapes": _CALL % filled("a\\n"),
        "JSON string, bare": '{"name":"set_timer","arguments":{"label":"' + filled("word ") + '"}}',
        "element": _LABEL + filled("some words "),
        "element with <": _LABEL + filled("<"),
        "element, closers": _LABEL + filled("words </parameter>"),
        "element, closers far apart": _LABEL + filled("</parameter>" + "some words " * 50),
        "element, heads": _LABEL + filled("</parameter> x <parameter=x>"),
        "pairs, closers": _PAIR + filled("</arg_value> x "),
        "pairs, keys": _PAIR + filled("<arg_key> x "),
        "Kimi K3, closers": _OPEN_ARGUMENT + filled("<|close|>argument<|sep|> x "),
        "Gemma, closers": '<|tool_call>call:set_timer{label:<|"|>' + filled("<tool_call|> x "),
        "harmony, headers": filled("<|start|>assistant\n<|channel|>analysis\n"),
        "marker, never closed": "<tool_call>set_timer\n<arg_key>" + filled("some words "),
        "marker and prose": filled("<tool_call> is what they write, and then they talk on. "),
        "fence, never closed": "```python\n" + filled("x = [1, 2]\n"),
        "code fences": filled('```json\n{"name":"Bob"}\n```\n'),
        "run of <": filled("<"),
        "run of [": filled("["),
        "run of {": filled("{"),
        "run of (": filled("("),
        "run of ]": filled("]"),
        "run of }": filled("}"),
        "run of `": filled("`"),
        'run of "': filled('"'),
        "run of backslashes": filled("\\"),
        "spaces": filled(" "),
        "newlines": filled("\n"),
        "white space": filled(" \n\t"),
        "spaces in a call": "<tool_call>" + filled(" \n"),
        "nested [ ]": deep("[", "]"),
        "nested { }": deep('{"a":', "}"),
        "nested in a call": '<tool_call>{"name":"set_timer","arguments":' + filled('{"a":['),
        "{[ in turns": filled("{["),
        '[{" in turns': filled('[{"a":'),
        "lists of no calls": filled("[a"),
        "sentences and objects": filled('.{"'),
        "objects in lines": filled('\n{"a":1}'),
        "lists of objects in lines": filled("\n[{"),
        "half markers": filled("<tool_cal"),
        "openers": filled("<tool_call>"),
        "openers in brackets": filled("[TOOL_CALLS]"),
        "openers in brackets, more": filled("[TOOL_CALLS][,\n[ARGS]"),
        "closers": filled("a</think>"),
        "strays": filled("a<|end|>"),
        "headers": filled("<|start|>assistant to="),
        "call broken by a marker": '{"name":"a",<|end|>' + filled('"b":[1],'),
        "calls broken by markers": filled('{"name":"a<|end|>" b"} '),
        "speech in a broken call": '{"name":"a",<|end|>' + "a" * 150 + filled(" word"),
        "calls broken off": filled('<tool_call>{"name":"set_timer","arguments":{"label":"'),
    }


def cost(text: str, size: int) -> float:
    """Microseconds a chunk of `size` characters."""
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    best = float("inf")
    for _ in range(RUNS):
        parser = ReplyParser(TOOLS)
        feed = parser.feed
        began = time.process_time()
        for chunk in chunks:
            feed(chunk)
        parser.finish()
        best = min(best, time.process_time() - began)
    return best / len(chunks) * 1e6


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rows = [
        (
            shape,
            cost(text, 1),
            cost(text, TOKEN_CHARS),
            cost(text, len(text)) * TOKEN_CHARS / len(text),
        )
        for shape, text in texts(size).items()
    ]
    columns = (f"us, {size:,} characters", "a character", "a token", "a token, fed whole")
    print_table("Understanding a reply", columns, rows)


if __name__ == "__main__":
    main()
