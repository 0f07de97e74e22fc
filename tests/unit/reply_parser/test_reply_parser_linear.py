"""Reading takes as many steps as there is text, however it is cut; counted, not timed."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from caal_node.models.strategies.base import without_thinking
from caal_node.reply_parser import (
    Event,
    ReplyParser,
    SpokenReplyParser,
    parse_context,
    summarise,
)
from caal_node.reply_parser.cursor import Cursor
from tests.bench.reply_parser import TOOLS, texts

pytestmark = pytest.mark.long

SIZE = 2_000
MOST_GROWTH = 6
"""How much the work may grow with four times the text: quadratic work would grow sixteenfold. What
nests too deep is given up at some length, so that more text may be read another way."""
MAX_LOOKS = 40
"""How often a character is looked at on average, at most: until it can begin no marker."""
SHAPES = sorted(texts(SIZE))


def function_calls(text: str, chunk: int) -> int:
    """How many functions, Python's own among them, the reading of `text` calls, and that of the
    events that come of it."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    parser = SpokenReplyParser(TOOLS)
    events: list[Event] = []
    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        for at in range(0, len(text), chunk):
            events += parser.feed(text[at : at + chunk])
        summarise([*events, *parser.finish()])
        without_thinking(events)
    finally:
        sys.setprofile(before)
    return count


def characters_looked_at(text: str, chunk: int) -> int:
    """How many characters are there to be searched, each time that some arrive."""
    looked_at = 0

    class CountingCursor(Cursor):
        def append(self, chunk: str) -> None:
            nonlocal looked_at
            super().append(chunk)
            looked_at += len(self.text)

        def unread(self, text: str) -> None:
            nonlocal looked_at
            super().unread(text)
            looked_at += len(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse_context, "Cursor", CountingCursor)
        parser = ReplyParser(TOOLS)
    for at in range(0, len(text), chunk):
        parser.feed(text[at : at + chunk])
    parser.finish()
    return looked_at


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chunk", [1, 64, 4 * SIZE])
def test_the_work_grows_with_the_text_and_not_with_its_square(shape: str, chunk: int) -> None:
    small, large = texts(SIZE)[shape], texts(4 * SIZE)[shape]
    assert function_calls(large, chunk) <= MOST_GROWTH * function_calls(small, chunk)
    looked_at = characters_looked_at(large, chunk)
    assert looked_at <= MOST_GROWTH * characters_looked_at(small, chunk)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_character_is_looked_at_over_and_over(shape: str) -> None:
    text = texts(SIZE)[shape]
    assert characters_looked_at(text, 1) <= MAX_LOOKS * len(text)
