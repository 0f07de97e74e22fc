"""The table of words by which tools are found that share no word with a request."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.weights import MINILM
from mcp_bridge.embedding import MiniLM
from mcp_bridge.embedding.semantic_index import MAX_CHARS, embed_words, word_table
from tests.stand_ins.cached_weights import cached


def near(one: str, other: str) -> float:
    first, second = embed_words([one, other])
    return float(first @ second)


@pytest.mark.parametrize(
    ("said", "meant", "other"),
    [
        ("I am freezing", "set thermostat temperature", "play music"),
        ("who scored last night", "football results", "set alarm"),
        ("how do I get to the station", "directions and route", "recipe search"),
    ],
)
def test_texts_are_near_that_mean_the_like(said: str, meant: str, other: str) -> None:
    assert near(said, meant) > near(said, other) + 0.1


def test_a_text_without_a_known_word_has_no_direction() -> None:
    assert not embed_words(["", "…", "zzqx"]).any()


def test_words_behind_the_cap_are_not_read() -> None:
    one, other = embed_words(["lamp" + " " * MAX_CHARS, "lamp" + " " * MAX_CHARS + "music"])
    assert np.array_equal(one, other)


@given(st.lists(st.text(max_size=60), max_size=4))
def test_every_text_has_a_row_of_unit_length_or_of_zeros(texts: list[str]) -> None:
    lengths = np.linalg.norm(embed_words(texts), axis=1)
    assert all(abs(length - 1) < 1e-5 or length == 0 for length in lengths)


@pytest.mark.model
def test_words_stand_to_each_other_as_the_model_has_them() -> None:
    words = ["lamp", "light", "music", "song", "taxi", "train", "weather", "rain", "alarm", "clock"]
    full = asyncio.run(MiniLM(cached(MINILM)).embed(words))
    table = embed_words(words)
    assert np.corrcoef((full @ full.T).ravel(), (table @ table.T).ravel())[0, 1] > 0.9
    assert len(word_table()[0]) == 16_000
