"""Which words sound as if they were for somebody else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from caal_node.language.addressee import OVERHEARD, OVERHEARD_IN_TALK, overheard
from tests.labelled_sentences import HARDER, sentences


def meant(*, harder: bool) -> list[float]:
    """The scores of held-out words that are for the agent."""
    asked = sentences("request", held_out=True)
    said = [each for each in asked if each.label not in ("chat", "aside")]
    return [overheard(each.text) for each in said if (each.topic in HARDER) == harder]


def test_of_held_out_requests_hardly_one_is_taken_for_talk() -> None:
    scores = meant(harder=False)
    assert len(scores) > 300
    assert sum(score >= OVERHEARD for score in scores) <= 0.01 * len(scores)
    assert not any(score >= OVERHEARD_IN_TALK for score in scores)


def test_of_held_out_requests_that_sound_like_talk_few_are_taken_for_it() -> None:
    scores = meant(harder=True)
    assert len(scores) > 1_000
    assert sum(score >= OVERHEARD for score in scores) <= 0.03 * len(scores)


@given(st.text(max_size=2_000))
def test_any_text_has_a_score(words: str) -> None:
    assert -30 < overheard(words) < 40
