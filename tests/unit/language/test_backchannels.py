"""What counts as said in passing, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.language.backchannels import MAX_CHARS, is_backchannel

IN_PASSING = (
    "Mm-hmm.",
    "mm hm",
    "Uh-huh, right.",
    "Okay.",
    "Yeah, yeah, I see.",
    "OH, REALLY",
    "That’s right.",
    "Mhm.",
    "Ach so, genau.",
    "Ja klar.",
)
MEANT = (
    "",
    "...",
    "Stop.",
    "Okay, stop.",
    "Wait.",
    "No.",
    "Right?",
    "Turn right.",
    "Yes, lock it.",
    "okay okay okay okay",
    "Good morning.",
    "Ja, mach das.",
    "Genau, right.",
    "Halt.",
    "Gut, und im Bad?",
)


@pytest.mark.parametrize("words", IN_PASSING)
def test_what_is_said_in_passing(words: str) -> None:
    assert is_backchannel(words)


@pytest.mark.parametrize("words", MEANT)
def test_what_is_meant_to_be_heard(words: str) -> None:
    assert not is_backchannel(words)


@given(st.sampled_from(IN_PASSING), st.text(min_size=MAX_CHARS))
def test_long_words_are_never_said_in_passing(words: str, more: str) -> None:
    assert not is_backchannel(words + more)
