"""A streamed text is cut into clauses, and nothing of it is lost however it comes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.answers.checked_reply import WHOLE_CLAUSE_CHARS, ClauseSplitter

TEXTS = st.text(alphabet="ab .,;:!?\n-–\"'and but so", max_size=1200)


def clauses(*pieces: str) -> list[str]:
    splitter = ClauseSplitter()
    found = [clause for piece in pieces for clause in splitter.feed(piece)]
    return [*found, rest] if (rest := splitter.finish()) else found


@given(TEXTS)
def test_the_clauses_of_a_text_are_that_text(text: str) -> None:
    assert "".join(clauses(text)) == text


@given(TEXTS, st.lists(st.integers(1, 1200), max_size=30))
def test_the_clauses_do_not_depend_on_how_the_text_was_cut(text: str, cuts: list[int]) -> None:
    at = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [text[begin:end] for begin, end in pairwise(at)]
    assert clauses(*pieces) == clauses(text) == clauses(*text)


@given(TEXTS)
def test_no_clause_is_longer_than_the_limit(text: str) -> None:
    assert all(len(clause) <= WHOLE_CLAUSE_CHARS + 16 for clause in clauses(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Okay. I did it!", ["Okay. ", "I did it!"]),
        ("The fan is on, but the door is open", ["The fan is on, ", "but the door is open"]),
        ("milk, eggs and bread", ["milk, eggs and bread"]),
        ("at 10:30 or 7.5 degrees", ["at 10:30 or 7.5 degrees"]),
        ('He said "stop." Then no more', ['He said "stop." ', "Then no more"]),
        ("one\ntwo; three - four", ["one\n", "two; ", "three - ", "four"]),
        ("I like it, android", ["I like it, android"]),
    ],
)
def test_where_a_clause_ends(text: str, expected: list[str]) -> None:
    assert clauses(text) == expected


def test_a_clause_is_given_once_its_end_is_there() -> None:
    splitter = ClauseSplitter()
    assert splitter.feed("I did it.") == []
    assert splitter.feed(" ") == ["I did it. "]
    assert splitter.held == ""
