"""Which words sound as if they were for somebody else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from caal_node.language.addressee import OVERHEARD, OVERHEARD_IN_TALK, overheard
from tests.labelled_sentences import sentences


def test_of_held_out_requests_hardly_one_is_taken_for_talk() -> None:
    meant = [
        overheard(each.text)
        for each in sentences("request", held_out=True)
        if each.label not in ("chat", "aside")
    ]
    assert len(meant) > 1_300
    assert sum(score >= OVERHEARD for score in meant) <= 0.025 * len(meant)
    assert sum(score >= OVERHEARD_IN_TALK for score in meant) <= 0.018 * len(meant)


@given(st.text(max_size=2_000))
def test_any_text_has_a_score(words: str) -> None:
    assert -30 < overheard(words) < 40
