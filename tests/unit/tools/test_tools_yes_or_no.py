"""What a person answers to a call that is read back: yes to it alone, no, or neither."""

from __future__ import annotations

import re
import tomllib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.prompt_files import read
from caal_node.tools.spoken_question import MAX_YES_WORDS, read_answer

QUESTION = "Shall I use home to unlock door: front?"
WORDS = tomllib.loads(read("confirmation.toml"))
KNOWN = {
    word
    for language in ("en", "de")
    for words in WORDS[language].values()
    for phrase in words
    for word in re.findall(r"[^\W_]+(?:'[^\W_]+)?", phrase)
} | set(re.findall(r"\w+", QUESTION.lower()))


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("Yes.", "yes"),
        ("yes please", "yes"),
        ("Yeah, go ahead!", "yes"),
        ("Do it.", "yes"),
        ("Of course, thank you.", "yes"),
        ("Yes, unlock the front door.", "yes"),
        ("YES", "yes"),
        ("Please do.", "yes"),
        ("That's right.", "yes"),
        ("Yes it is.", "yes"),
        ("Ja, bitte.", "yes"),
        ("Ja, mach das.", "yes"),
        ("No.", "no"),
        ("Don’t!", "no"),
        ("please don't do that", "no"),
        ("Nein, danke.", "no"),
        ("Yes... no, wait", "no"),
        ("No, the bedroom.", "correction"),
        ("I meant the bedroom", "correction"),
        ("Yes, but the back door", "correction"),
        ("Nein, das Schlafzimmer", "correction"),
        ("Yes, we are watching the match.", "unclear"),
        ("Yes, the bedroom", "unclear"),
        ("Yes?", "unclear"),
        ("Yes 👎", "unclear"),
        ("Yes 2", "unclear"),
        ("Unlock the front door.", "unclear"),
        ("The bedroom", "unclear"),
        ("yesterday", "unclear"),
        ("is it yes", "unclear"),
        ("Can you do it", "unclear"),
        ("Ist das klar", "unclear"),
        ("right", "unclear"),
        ("It's on your right.", "unclear"),
        ("yeah right", "unclear"),
        ("please", "unclear"),
        ("but", "unclear"),
        ("", "unclear"),
        (" ".join(["yes"] * (MAX_YES_WORDS + 1)), "unclear"),
    ],
)
def test_only_a_yes_to_the_question_alone_is_one(said: str, means: str) -> None:
    assert read_answer(said, QUESTION) == means


def test_words_of_another_language_do_not_fill_up_a_yes() -> None:
    assert read_answer("yes, mal gut", QUESTION) == "unclear"


@given(st.text(max_size=60), st.sampled_from(["yes", "ja", "ok", "go ahead"]), st.text(max_size=60))
def test_no_text_that_holds_other_words_is_a_yes(before: str, yes: str, behind: str) -> None:
    said = f"{before} {yes} {behind}"
    plain = unicodedata.normalize("NFKC", said).casefold()  # "ª" is an "a".
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", plain)
    if any(word not in KNOWN for word in words):
        assert read_answer(said, QUESTION) != "yes"


@given(st.lists(st.sampled_from(sorted(KNOWN)), max_size=8))
def test_no_words_with_a_no_among_them_are_a_yes(words: list[str]) -> None:
    said = " ".join(words)
    if {"no", "not", "don't", "stop", "nein", "nicht"} & set(words):
        assert read_answer(said, QUESTION) in ("no", "correction")


@given(st.text(), st.text())
def test_no_words_break_the_reading(said: str, question: str) -> None:
    read_answer(said, question)
