"""Documents on real parts: changes of the disk, and an embedding in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caal_node import weights
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.documents import Documents, DocumentsOptions, passage_index
from mcp_bridge import MiniLM
from tests.stand_ins.cached_weights import cached
from tests.stand_ins.small_pdf import small_pdf

pytestmark = pytest.mark.long

CORPUS = Path(__file__).parents[1] / "data" / "documents"
WAIT_S = 20.0
"""Seconds in which a change has to be noticed on a busy machine; it takes two."""


async def eventually(holds: Callable[[Any], bool], ask: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds(await ask()):  # noqa: ASYNC110 - the disk has no event
            await asyncio.sleep(0.1)


async def test_changes_on_the_disk_are_followed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    services = ToolsetServices(state=tmp_path / "state")
    documents = Documents(DocumentsOptions(folders=(notes,)), services)

    async def sources() -> list[str]:
        found = await documents.ask_documents(question="what is the saxophone's number")
        return [each["source"] for each in found["answer_from"]]

    await documents.setup()
    try:
        assert await sources() == []
        (notes / "music.md").write_text("The saxophone's number is 81.")
        await eventually(lambda found: found == ["music"], sources)
        (notes / "music.md").rename(notes / "brass.md")
        await eventually(lambda found: found == ["brass"], sources)
        (notes / "deep").mkdir()
        (notes / "deep" / "case.pdf").write_bytes(small_pdf([["The saxophone has the number 82"]]))
        await eventually(lambda found: "case, page 1" in found, sources)
        (notes / "brass.md").unlink()
        await eventually(lambda found: found == ["case, page 1"], sources)
    finally:
        await documents.aclose()


async def test_a_folder_that_comes_later_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caal_node.toolsets.documents.AGAIN_S", 0.05)
    services = ToolsetServices(state=tmp_path / "state")
    documents = Documents(DocumentsOptions(folders=(tmp_path / "disk",)), services)

    async def found() -> Any:
        return (await documents.ask_documents(question="the saxophone"))["answer_from"]

    await documents.setup()
    try:
        assert await found() == []
        (tmp_path / "disk").mkdir()
        (tmp_path / "disk" / "music.md").write_text("The saxophone is here.")
        await eventually(bool, found)
    finally:
        await documents.aclose()


@pytest.mark.model
async def test_with_an_embedding_questions_in_other_words_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passage_index, "EMBED_S", WAIT_S)  # on a busy machine too
    embedder = MiniLM(cached(weights.MINILM))
    services = ToolsetServices(state=tmp_path, embedder=embedder)
    folders = (CORPUS / "manuals", CORPUS / "notes")
    documents = Documents(DocumentsOptions(folders=folders), services)
    await documents.setup()
    try:
        async with asyncio.timeout(3 * WAIT_S):
            while not await asyncio.to_thread(_all_embedded, documents, embedder.name):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        right, wrong, answered = 0, list[str](), 0
        for row in json.loads((CORPUS / "questions.json").read_text("utf-8")):
            found = await documents.ask_documents(question=row["ask"])
            texts = " ".join(" ".join(each["text"].split()) for each in found["answer_from"])
            if row["in"] is None:
                answered += bool(found["answer_from"])
            elif row["says"] in texts:
                right += 1
            else:
                wrong.append(row["ask"])
    finally:
        await documents.aclose()
    assert right >= 24, wrong
    assert answered <= 1


def _all_embedded(documents: Documents, embedder: str) -> bool:
    index = documents._index
    return bool(index.count()) and not index.without_vector(embedder, 1)
