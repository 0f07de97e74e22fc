"""The index is built beside its callers: late, lost, cancelled, cached, and for new tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from mcp_bridge import EmbeddingUnavailable, ToolInfo, VectorCache
from mcp_bridge.embedding import semantic_index
from mcp_bridge.embedding.embedders import Vectors
from mcp_bridge.embedding.semantic_index import SemanticIndex
from tests.stand_ins.embedding_stand_ins import WIDTH, StandInEmbedder, hang

LONG_S = 20.0


def tools(*names: str) -> tuple[ToolInfo, ...]:
    return tuple(ToolInfo(f"s__{n}", "s", n, f"About {n}.", {"type": "object"}) for n in names)


LAMPS = tools("lamp", "light")


@pytest.fixture
async def embedder() -> AsyncIterator[StandInEmbedder]:
    yield StandInEmbedder()
    assert len(asyncio.all_tasks()) == 1, "closing joins everything"


async def fail() -> None:
    raise EmbeddingUnavailable("the model is on holiday; wait")


async def break_down() -> None:
    raise RuntimeError("secret text")


async def test_vectors_are_made_beside_the_callers_and_searches_go_by_words_until_then(
    embedder: StandInEmbedder,
) -> None:
    index = SemanticIndex(embedder)
    try:
        index.set_tools(LAMPS)
        assert await index.query(LAMPS, ["dark"]) is None
        assert embedder.asked == []
        query = await index.query(LAMPS, ["dark"], wait_s=LONG_S)
        assert query is not None
        assert (query.tools.rows.shape, list(query.requests)) == ((2, WIDTH), ["dark"])
        assert embedder.texts == ["lamp. About lamp.", "light. About light.", "dark"]
        index.set_tools(LAMPS)
        assert await index.query(LAMPS, []) is None
        assert len(embedder.texts) == 3
    finally:
        await index.aclose()


async def test_only_new_tools_are_embedded_when_the_tools_change(
    embedder: StandInEmbedder,
) -> None:
    index = SemanticIndex(embedder)
    try:
        index.set_tools(LAMPS)
        await index.query(LAMPS, ["dark"], wait_s=LONG_S)
        embedder.asked.clear()
        more = (*LAMPS, *tools("song"))
        index.set_tools(more)
        assert await index.query(LAMPS, ["dark"], wait_s=LONG_S) is None, "these are the old tools"
        assert await index.query(more, ["dark"], wait_s=LONG_S) is not None
        assert embedder.texts == ["song. About song.", "dark"]
    finally:
        await index.aclose()


async def test_a_change_under_way_ends_the_work_for_the_old_tools(
    embedder: StandInEmbedder,
) -> None:
    index = SemanticIndex(embedder)
    begun = embedder.hold()
    try:
        index.set_tools(LAMPS)
        await begun.wait()
        embedder.before = None
        songs = tools("song")
        index.set_tools(songs)
        assert await index.query(songs, ["music"], wait_s=LONG_S) is not None
        assert embedder.cancelled == 1
    finally:
        await index.aclose()


async def test_closing_ends_what_is_under_way_and_it_can_be_used_again(
    embedder: StandInEmbedder,
) -> None:
    index = SemanticIndex(embedder)
    begun = embedder.hold()
    index.set_tools(LAMPS)
    await begun.wait()
    await index.aclose()
    assert embedder.cancelled == 1
    embedder.before = None
    index.set_tools(LAMPS)
    assert await index.query(LAMPS, ["dark"], wait_s=LONG_S) is not None
    await index.aclose()


@pytest.mark.parametrize(
    ("way", "told"), [(fail, "the model is on holiday; wait"), (break_down, "RuntimeError")]
)
async def test_an_embedder_that_fails_is_told_of_once_and_tried_again_with_other_tools(
    embedder: StandInEmbedder,
    way: Callable[[], Awaitable[None]],
    told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    index = SemanticIndex(embedder)
    embedder.before = way
    try:
        index.set_tools(LAMPS)
        for _ in range(3):
            assert await index.query(LAMPS, ["dark"], wait_s=LONG_S) is None
        (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
        assert record.getMessage() == f"tools are searched for without a model: {told}"
        assert len(embedder.asked) == 1
        embedder.before = None
        index.set_tools(others := tools("song"))
        assert await index.query(others, ["music"], wait_s=LONG_S) is not None
    finally:
        await index.aclose()


async def test_a_request_that_cannot_be_embedded_goes_by_words_and_is_told_of_once(
    embedder: StandInEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    index = SemanticIndex(embedder)
    try:
        index.set_tools(LAMPS)
        await index.query(LAMPS, ["dark"], wait_s=LONG_S)
        embedder.before = fail
        assert await index.query(LAMPS, ["dark"]) is None
        asked = len(embedder.asked)
        assert await index.query(LAMPS, ["dark"]) is None
        assert len(embedder.asked) == asked
        assert caplog.text.count("without a model") == 1
    finally:
        await index.aclose()


async def test_a_request_has_a_deadline_and_an_embedder_that_is_always_late_is_left_alone(
    embedder: StandInEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    index = SemanticIndex(embedder, request_s=0.01, late_pause_s=LONG_S)
    try:
        index.set_tools(LAMPS)
        while await index.query(LAMPS, ["dark"], wait_s=LONG_S) is None:
            index.set_tools(LAMPS)
        embedder.before = hang
        assert await index.query(LAMPS, ["dark"]) is None
        embedder.before = None
        assert await index.query(LAMPS, ["dark"]) is not None, "late once is no reason to give up"
        embedder.before = hang
        for _ in range(semantic_index.MAX_LATE + 2):
            assert await index.query(LAMPS, ["dark"]) is None
        assert embedder.cancelled == 1 + semantic_index.MAX_LATE
        assert caplog.text.count("too slow") == 1
    finally:
        await index.aclose()


async def test_an_embedder_that_was_late_too_often_is_asked_again_after_a_while(
    embedder: StandInEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    index = SemanticIndex(embedder, request_s=0.01, late_pause_s=0.0)
    try:
        index.set_tools(LAMPS)
        while await index.query(LAMPS, ["dark"], wait_s=LONG_S) is None:
            index.set_tools(LAMPS)
        embedder.before = hang
        for _ in range(semantic_index.MAX_LATE + 2):
            assert await index.query(LAMPS, ["dark"]) is None
        assert embedder.cancelled == semantic_index.MAX_LATE + 2
        assert caplog.text.count("too slow") == 1
        embedder.before = None
        assert await index.query(LAMPS, ["dark"]) is not None
    finally:
        await index.aclose()


async def test_a_cancelled_search_cancels_the_embedding_and_the_next_one_works(
    embedder: StandInEmbedder,
) -> None:
    index = SemanticIndex(embedder)
    try:
        index.set_tools(LAMPS)
        await index.query(LAMPS, ["dark"], wait_s=LONG_S)
        begun = embedder.hold()
        search = asyncio.create_task(index.query(LAMPS, ["dark"]))
        await begun.wait()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert embedder.cancelled == 1
        embedder.before = None
        assert await index.query(LAMPS, ["dark"]) is not None
    finally:
        await index.aclose()


@pytest.mark.parametrize(
    "turn",
    [
        lambda rows: rows[:-1],
        lambda rows: rows.ravel(),
        lambda rows: np.full_like(rows, np.nan),
    ],
    ids=["a row is missing", "no rows", "no numbers"],
)
async def test_an_embedder_that_gives_nonsense_is_not_used(
    embedder: StandInEmbedder, turn: Callable[[Vectors], Vectors]
) -> None:
    index = SemanticIndex(embedder)
    embedder.turn = turn
    try:
        index.set_tools(LAMPS)
        assert await index.query(LAMPS, ["dark"], wait_s=LONG_S) is None
    finally:
        await index.aclose()


async def test_vectors_of_another_length_than_the_tools_are_not_used(
    embedder: StandInEmbedder,
) -> None:
    index = SemanticIndex(embedder)
    try:
        index.set_tools(LAMPS)
        await index.query(LAMPS, ["dark"], wait_s=LONG_S)
        embedder.turn = lambda rows: rows[:, :3]
        assert await index.query(LAMPS, ["dark"]) is None
    finally:
        await index.aclose()


async def test_a_second_session_embeds_one_text_to_see_that_the_model_is_the_same(
    embedder: StandInEmbedder, tmp_path: Path
) -> None:
    for _ in range(2):
        embedder.asked.clear()
        index = SemanticIndex(embedder, VectorCache(tmp_path))
        index.set_tools(LAMPS)
        assert await index.query(LAMPS, ["dark"], wait_s=LONG_S) is not None
        await index.aclose()
    assert embedder.texts == ["lamp. About lamp.", "dark"]


@pytest.mark.parametrize("turn", [lambda rows: -rows, lambda rows: rows[:, :5]])
async def test_kept_vectors_of_what_was_another_model_are_made_anew(
    embedder: StandInEmbedder,
    tmp_path: Path,
    turn: Callable[[Vectors], Vectors],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for way in (embedder.turn, turn, turn):
        embedder.asked.clear()
        embedder.turn = way
        index = SemanticIndex(embedder, VectorCache(tmp_path))
        index.set_tools(LAMPS)
        query = await index.query(LAMPS, ["dark"], wait_s=LONG_S)
        await index.aclose()
        assert query is not None
    assert caplog.text.count("other vectors than before") == 1
    assert embedder.texts == ["lamp. About lamp.", "dark"], "the new ones are kept"
