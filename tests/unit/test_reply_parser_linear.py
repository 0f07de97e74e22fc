"""Reading takes as many steps as there is text, however it is cut; counted, not timed."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from caal_node.reply_parser import ReplyParser
from caal_node.reply_parser.tape import Tape
from tests.bench.reply_parser import TOOLS, texts

SIZE = 2_000
MOST_LOOKS = 240
"""Times that a character is made readable at most: a name is looked at until it can be none."""
_SHAPES = sorted(texts(SIZE))


class Counter:
    """Counts what a parser's readers do with a text."""

    def __init__(self, text: str, chunk: int) -> None:
        self.wakes = 0
        self.looked_at = 0
        arrive, unread = Tape.arrive, Tape.unread

        def counted(source: Tape, walked: str, new: str, reached: object) -> None:
            arrive(source, walked, new, reached)  # type: ignore[arg-type]
            self.wakes += 1
            self.looked_at += len(source.text)

        def read_again(source: Tape, text: str) -> None:
            unread(source, text)
            self.looked_at += len(text)

        parser = ReplyParser(TOOLS)
        with patch.object(Tape, "arrive", counted), patch.object(Tape, "unread", read_again):
            for at in range(0, len(text), chunk):
                parser.feed(text[at : at + chunk])
            parser.finish()


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("chunk", [1, 64])
def test_twice_the_text_is_at_most_twice_the_work(shape: str, chunk: int) -> None:
    Counter(texts(SIZE)[shape], chunk)  # The automaton learns what it needs.
    small = Counter(texts(SIZE)[shape], chunk)
    large = Counter(texts(4 * SIZE)[shape], chunk)
    assert large.wakes <= 4.5 * small.wakes + 50
    assert large.looked_at <= 4.5 * small.looked_at + 2_000


@pytest.mark.parametrize("shape", _SHAPES)
def test_no_character_is_looked_at_over_and_over(shape: str) -> None:
    text = texts(SIZE)[shape]
    assert Counter(text, 1).looked_at <= MOST_LOOKS * len(text)


@pytest.mark.parametrize(
    "shape",
    [
        "prose",
        "prose, other scripts",
        "thinking, one block",
        "thinking, many blocks",
        "final answer",
        "JSON string",
        "JSON string, escapes",
        "element",
        "element with <",
        "marker, never closed",
        "run of <",
        "run of [",
        "run of {",
        "run of `",
        "white space",
        "nested [ ]",
        "nested in a call",
        "half markers",
        "calls broken off",
    ],
)
def test_what_is_known_wakes_no_reader(shape: str) -> None:
    text = texts(4 * SIZE)[shape]
    Counter(text, 1)
    assert Counter(text, 1).wakes <= len(text) / 80


def test_a_learned_step_is_what_the_readers_do() -> None:
    text = "One < two, [three], {four}\n\n`five` <think>six</think> seven. " * 3
    parser = ReplyParser([])
    first = [parser.feed(char) for char in text]
    again = ReplyParser([])
    assert [again.feed(char) for char in text] == first
