"""Every format once more, with other tools: six of a household, with enums, arrays and numbers.

`tests/data/reply_household.json` holds the tools and, for each reply, what it calls, says (white
space aside) and thinks.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from caal_node.reply_parser import Event, ReplyParser, parse_reply, summarise

_DATA = json.loads(
    (Path(__file__).parents[2] / "data" / "reply_household.json").read_text(encoding="utf-8")
)
TOOLS: list[dict[str, Any]] = _DATA["tools"]
REPLIES: list[dict[str, Any]] = _DATA["replies"]
of_each = pytest.mark.parametrize("case", REPLIES, ids=lambda case: case["text"][:48])


@of_each
def test_a_reply_calls_says_and_thinks(case: dict[str, Any]) -> None:
    reply = parse_reply(case["text"], TOOLS)
    assert [[call.name, call.arguments] for call in reply.calls] == case["calls"]
    assert " ".join(reply.text.split()) == case["say"]
    assert reply.reasoning == case["think"]


@of_each
def test_other_chunks_and_other_space_around_change_nothing(case: dict[str, Any]) -> None:
    rng = random.Random(case["text"])
    for text in (case["text"], case["text"] + "\n", case["text"] + "  \n"):
        parser = ReplyParser(TOOLS)
        events: list[Event] = []
        at = 0
        while at < len(text):
            size = rng.randint(1, 7)
            events += parser.feed(text[at : at + size])
            at += size
        reply = summarise([*events, *parser.finish()])
        assert [[call.name, call.arguments] for call in reply.calls] == case["calls"]
        assert " ".join(reply.text.split()) == case["say"]
