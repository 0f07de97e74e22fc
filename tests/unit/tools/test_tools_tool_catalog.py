"""The few tools of all tiers that fit a person's words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.table import ToolTable
from caal_node.tools.tool_search import VOCABULARY, ToolCatalog
from mcp_bridge.embedding.embedders import Vectors, unit
from mcp_bridge.embedding.semantic_index import SemanticIndex
from tests.stand_ins.fifty_tools import tools as fifty_tools

CATALOG = ToolCatalog(
    ToolTable(
        ToolSpec("mcp", "s", tool.name, tool.name, tool.description or "", tool.input_schema)
        for tool in fifty_tools()
    )
)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("I'm freezing in here", "set_thermostat"),
        ("we're out of butter", "add_to_shopping"),
        ("do I need an umbrella in Glasgow today", "get_forecast"),
        ("get me a cab to the station", "book_taxi"),
        ("Good morning, what is on my calendar today?", "list_events"),
    ],
)
async def test_what_people_say_has_its_tool(words: str, name: str) -> None:
    assert name in await CATALOG.fitting(words)


@pytest.mark.parametrize(
    "words",
    [
        "Thank you, that is much better.",
        "Good morning!",
        "Yes, please.",
        "How are you doing today?",
        "no, never mind",
        "",
        "?",
    ],
)
async def test_words_that_ask_for_nothing_have_none(words: str) -> None:
    assert await CATALOG.fitting(words) == ()


async def test_a_tool_that_is_known_is_left_out_and_nothing_takes_its_place() -> None:
    said = "play some quiet music in the study"
    told = await CATALOG.fitting(said)
    assert told[0] == "play_music"
    assert await CATALOG.fitting(said, besides=["play_music"]) == told[1:]
    assert await CATALOG.fitting(said, besides=told) == ()


async def test_both_parts_of_a_request_have_their_tools() -> None:
    told = await CATALOG.fitting("dim the kitchen light and then transfer money to Paul")
    assert set(told[:2]) == {"set_light", "transfer_money"}


class _Near:
    """An embedding to which the tool `get_sun_times` and the word "moon" are near each other."""

    name = "near"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        rows = np.zeros((len(texts), 8), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0 if "moon" in text or "sunrise" in text else 1 + len(text) % 7] = 1.0
        return unit(rows)


async def test_meaning_tells_what_shares_no_word() -> None:
    embedder = _Near()
    meanings = SemanticIndex(embedder)
    assert await CATALOG.find(["weather"], meanings)  # its vectors are made now
    assert (await CATALOG.fitting("the moon?", meanings))[0] == "get_sun_times"
    assert embedder.asked[-1] == "the moon?"
    await meanings.aclose()


async def test_no_vector_is_made_of_words_that_ask_for_nothing() -> None:
    embedder = _Near()
    meanings = SemanticIndex(embedder)
    await CATALOG.find(["weather"], meanings)
    made = len(embedder.asked)
    assert await CATALOG.fitting("thank you", meanings) == ()
    assert len(embedder.asked) == made
    await meanings.aclose()


def test_every_everyday_phrase_is_found_and_stands_for_some_word() -> None:
    for said, means in _pairs():
        for phrase in said:
            terms = [set(group) for group in VOCABULARY.meant(phrase.replace("*", "any"))]
            assert terms, phrase
        assert means


def _pairs() -> Sequence[tuple[Sequence[str], Sequence[str]]]:
    import tomllib

    from caal_node.core.prompt_files import read

    return tomllib.loads(read("everyday_words.toml"))["en"]["means"]
