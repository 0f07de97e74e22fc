"""The toolset `documents` answers from the owner's documents and says where, or that they don't."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke, ToolUnavailable
from caal_node.core.events import Events, Source, SourcesCited
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets import documents as toolset_module
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.documents import Documents, DocumentsOptions, title_of, write_note
from caal_node.toolsets.documents.passage_index import (
    IndexedDocument,
    PassageIndex,
    PassageSearch,
    question_words,
)
from caal_node.toolsets.local_files.allowed_files import AllowedPath
from caal_node.toolsets.local_files.file_text import (
    PASSAGE_CHARS,
    DocumentText,
    Passage,
    Section,
    passages_of,
)
from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.embedding.embedders import Vectors, unit
from tests.stand_ins.conversation import Heard
from tests.stand_ins.small_pdf import small_pdf

CORPUS = Path(__file__).parents[2] / "data" / "documents"
QUESTIONS = json.loads((CORPUS / "questions.json").read_text("utf-8"))


class Topics:
    """An embedder of two directions: pets, and all else."""

    name = "topics"
    failing = False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.failing:
            raise EmbeddingUnavailable("it is off")
        rows = [[1.0, 0.1] if {"pets", "puppy"} & _words(text) else [0.0, 1.0] for text in texts]
        return unit(np.array(rows, np.float32))


def _words(text: str) -> set[str]:
    return set(text.casefold().replace(".", " ").split())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "boiler.md").write_text(
        "# Boiler manual\n\n## Fault codes\nF28 means that no gas arrives.\n\n"
        "## Water pressure\nIt should be at 1.3 bar.\n"
    )
    (folder / "lease.txt").write_text("Pets need the landlord's consent.")
    (folder / "photo.jpg").write_bytes(b"\0")
    return folder


def documents(home: Path, **options: Any) -> Documents:
    embedder = options.pop("embedder", None)
    services = ToolsetServices(state=home.parent / "state", embedder=embedder)
    return Documents(DocumentsOptions(folders=(home,), **options), services)


async def ask(toolset: Documents, question: str) -> Any:
    return await toolset.ask_documents(question=question)


async def sources(toolset: Documents, question: str) -> list[str]:
    found = await ask(toolset, question)
    value = found.value if isinstance(found, VerbatimResult) else found
    return [each["source"] for each in value["answer_from"]]


async def test_an_answer_has_its_texts_with_their_sources(home: Path) -> None:
    found = await ask(documents(home), "what does F28 mean on the boiler?")
    assert found["answer_from"][0] == {
        "source": "Boiler manual, Fault codes",
        "text": "F28 means that no gas arrives.",
    }
    assert "name the source" in found["note"]


async def test_what_an_answer_is_made_of_is_told_as_an_event(home: Path) -> None:
    told: list[Any] = []
    services = ToolsetServices(state=home.parent / "state", events=Events(Heard(told)))
    toolset = Documents(DocumentsOptions(folders=(home,)), services)
    await ask(toolset, "what does F28 mean on the boiler?")
    cited = SourcesCited(
        "ask_documents", (Source("Boiler manual, Fault codes", "papers/boiler.md", "papers"),)
    )
    assert told == [cited]
    await ask(toolset, "who wrote Hamlet?")
    assert told == [cited]


async def test_a_page_of_a_pdf_is_a_source(home: Path) -> None:
    (home / "tyre guide.pdf").write_bytes(
        small_pdf([["Cover"], ["Winter tyres: 2.4 bar in front"]])
    )
    assert (await sources(documents(home), "pressure of the winter tyres"))[
        0
    ] == "tyre guide, page 2"


async def test_documents_first_says_that_they_have_nothing(home: Path) -> None:
    found = await ask(documents(home, mode="documents_first"), "who wrote Hamlet?")
    assert found.words == toolset_module.NOTHING
    assert found.value["answer_from"] == []


async def test_answer_first_leaves_it_to_the_model_where_they_have_nothing(home: Path) -> None:
    found = await ask(documents(home), "who wrote Hamlet?")
    assert found["answer_from"] == []
    assert "Say so" in found["note"]


@pytest.mark.parametrize("question", ["", "   "])
async def test_a_question_without_words_is_refused(home: Path, question: str) -> None:
    with pytest.raises(InvalidArguments):
        await ask(documents(home), question)


@pytest.mark.parametrize(
    "question",
    ['" OR 1=1', "NEAR(a b)", "title:boiler", "*", "a" * 4_000, "\0", "(((", "what is it"],
)
async def test_no_question_breaks_the_search(home: Path, question: str) -> None:
    await ask(documents(home), question)


async def test_notes_are_listed_once_each_with_what_they_say(home: Path) -> None:
    found = await documents(home).search_notes(words="boiler pressure")
    assert [row["file"] for row in found.value] == ["papers/boiler.md"]
    assert found.words == "I found one: Boiler manual."
    assert "1.3 bar" in found.value[0]["says"]


async def test_the_newest_notes_are_listed_where_nothing_is_asked_for(home: Path) -> None:
    os.utime(home / "boiler.md", (1e9, 1e9))
    found = await documents(home).search_notes(words="")
    assert [row["title"] for row in found.value] == ["lease", "Boiler manual"]
    assert found.words == "I found 2: lease and Boiler manual."
    assert found.value[1]["changed"] == "2001-09-09"


async def test_a_search_that_finds_nothing_is_said(home: Path) -> None:
    assert (await documents(home).search_notes(words="saxophone")).words == toolset_module.NOTHING


# New notes


async def test_a_note_is_written_and_found_at_once(home: Path) -> None:
    toolset = documents(home)
    said = await toolset.notes_create(text="The plumber comes on Monday", title="")
    assert said.words == "I made a note: The plumber comes on Monday."
    assert (home / "The plumber comes on Monday.md").read_text() == (
        "# The plumber comes on Monday\n\nThe plumber comes on Monday\n"
    )
    assert await sources(toolset, "when does the plumber come") == ["The plumber comes on Monday"]


async def test_no_note_is_written_over_another(home: Path) -> None:
    toolset = documents(home)
    await toolset.notes_create(text="one", title="garden")
    said = await toolset.notes_create(text="two", title="garden")
    assert said.words == "I made a note: Garden 2."
    assert "one" in (home / "Garden.md").read_text()


async def test_new_notes_go_to_their_own_folder_which_is_searched_too(home: Path) -> None:
    notes = home.parent / "new" / "notes"
    toolset = documents(home, notes=notes)
    await toolset.notes_create(text="Buy bulbs", title="garden")
    assert (notes / "Garden.md").exists()
    assert await sources(toolset, "bulbs") == ["Garden"]


@pytest.mark.parametrize("text", ["", "  ", "x" * 20_001])
async def test_what_is_no_note_is_refused(home: Path, text: str) -> None:
    with pytest.raises(InvalidArguments):
        await documents(home).notes_create(text=text, title="a")


async def test_a_folder_that_cannot_be_written_is_said(home: Path) -> None:
    (home / "file").touch()
    with pytest.raises(ToolBroke) as caught:
        await documents(home, notes=home / "file" / "in").notes_create(text="a", title="b")
    assert caught.value.words == toolset_module.NOT_WRITTEN


@given(st.text(max_size=80), st.text(min_size=1, max_size=80))
def test_any_title_is_a_name_inside_the_folder(title: str, text: str) -> None:
    name = title_of(title, text)
    assert name == name.strip()
    assert not {"/", "\\", ":", "\0", "\n"} & set(name)
    assert not name.startswith(".")
    assert 0 < len(name) <= 70


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "A.md").symlink_to(outside)
    assert write_note(tmp_path / "notes", "A", "text").name == "A 2.md"
    assert not outside.exists()


# What changes


async def test_a_change_is_read_and_what_is_gone_is_forgotten(home: Path) -> None:
    toolset = documents(home)
    assert await sources(toolset, "landlord consent")
    (home / "lease.txt").unlink()
    (home / "boiler.md").write_text("# Boiler manual\n\nThe number of Lindqvist is 555 0147.\n")
    assert await sources(toolset, "landlord consent") == []
    assert await sources(toolset, "Lindqvist number") == ["Boiler manual"]


async def test_a_file_that_has_not_changed_is_not_read_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(documents(home), "F28")

    async def unread(file: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr("caal_node.toolsets.documents.read_passages", unread)
    assert await sources(documents(home), "F28") == ["Boiler manual, Fault codes"]


async def test_a_link_out_of_the_folders_is_not_indexed(home: Path) -> None:
    (home.parent / "diary.md").write_text("The secret is saxophone.")
    (home / "diary.md").symlink_to(home.parent / "diary.md")
    assert await sources(documents(home), "the secret saxophone") == []


@pytest.mark.parametrize("damage", [b"", b"nothing like a database at all" * 99])
async def test_an_index_that_is_damaged_is_made_anew(home: Path, damage: bytes) -> None:
    toolset = documents(home)
    await ask(toolset, "F28")
    toolset._index.path.write_bytes(damage)
    assert await sources(toolset, "F28") == ["Boiler manual, Fault codes"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE words_data SET block = x'00000001ffffffffffffffff'",  # seen by a search alone
        "UPDATE document SET title = CAST(x'd0d0' AS TEXT)",
        "UPDATE words_content SET c2 = CAST(x'd0d0' AS TEXT)",
        "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = CAST(x'd0' AS TEXT)",
        "DROP TABLE words",
    ],
)
@pytest.mark.parametrize("in_session", [False, True])
async def test_what_is_asked_of_a_damaged_index_is_answered_from_the_documents(
    home: Path, damage: str, in_session: bool, caplog: pytest.LogCaptureFixture
) -> None:
    toolset = documents(home)
    if in_session:
        await toolset.setup()
    try:
        assert await sources(toolset, "F28") == ["Boiler manual, Fault codes"]
        with closing(sqlite3.connect(toolset._index.path)) as connection:
            connection.executescript(damage)
        for _ in range(2):
            assert await sources(toolset, "F28") == ["Boiler manual, Fault codes"]
    finally:
        await toolset.aclose()
    assert caplog.text.count("is damaged or old") == 1


async def test_an_index_of_another_version_is_made_anew(home: Path) -> None:
    toolset = documents(home)
    await ask(toolset, "F28")
    with sqlite3.connect(toolset._index.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert await sources(toolset, "F28") == ["Boiler manual, Fault codes"]


async def test_a_state_folder_that_cannot_be_written_is_a_sentence(home: Path) -> None:
    (home.parent / "state").touch()
    with pytest.raises(ToolUnavailable) as caught:
        await ask(documents(home), "F28")
    assert caught.value.words == toolset_module.UNREADABLE


# Meaning


async def test_what_means_the_same_is_found_without_a_shared_word(home: Path) -> None:
    toolset = documents(home, embedder=Topics())
    assert await sources(toolset, "may I have a puppy") == []
    await toolset._upkeep.embed_all(Topics())
    assert await sources(toolset, "may I have a puppy") == ["lease"]


async def test_without_its_embedder_a_search_goes_by_words(home: Path) -> None:
    embedder = Topics()
    toolset = documents(home, embedder=embedder)
    await toolset.check()
    await toolset._upkeep.embed_all(embedder)
    embedder.failing = True
    assert await sources(toolset, "F28") == ["Boiler manual, Fault codes"]


# A whole session: the task that follows the folders


@pytest.fixture
async def running(home: Path) -> AsyncIterator[Documents]:
    toolset = documents(home, embedder=Topics())
    await toolset.setup()
    yield toolset
    await toolset.aclose()


async def test_in_a_session_the_folders_are_read_by_a_task_that_ends_with_it(
    running: Documents,
) -> None:
    assert (await sources(running, "F28"))[0] == "Boiler manual, Fault codes"
    await running.aclose()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "documents"]
    await running.setup()
    assert (await sources(running, "F28"))[0] == "Boiler manual, Fault codes"


async def test_a_question_during_the_first_reading_is_told_to_wait(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forever(file: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("caal_node.toolsets.documents.read_passages", forever)
    monkeypatch.setattr(toolset_module, "FIRST_LOOK_S", 0.05)
    toolset = documents(home)
    await toolset.setup()
    with pytest.raises(ToolUnavailable) as caught:
        await ask(toolset, "F28")
    assert caught.value.words == toolset_module.STILL_READING
    await toolset.aclose()


# The check


async def test_the_check_counts_and_names_what_cannot_be_read(home: Path) -> None:
    (home / "scan.pdf").write_bytes(small_pdf([[]]))
    found = await documents(home).check()
    assert found.startswith(
        "2 documents, 3 passages; cannot be read: papers/scan.pdf (it has no text"
    )


async def test_the_check_names_a_folder_that_is_missing(home: Path) -> None:
    with pytest.raises(ConfigError, match="gone: there is no such folder"):
        await documents(home / "gone").check()


async def test_a_missing_library_is_named_with_its_extra(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"caal-node\[documents\]"):
        await documents(home).check()


# The parts


@pytest.mark.parametrize("row", [row for row in QUESTIONS if row.get("by") != "meaning"])
async def test_the_labelled_questions_are_found_by_words(
    row: dict[str, Any], corpus: PassageIndex, tmp_path: Path
) -> None:
    matches = await PassageSearch(corpus, None).search(row["ask"], 3)
    texts = " ".join(match.found.passage.text for match in matches)
    if row["in"] is not None:
        assert row["says"] in " ".join(texts.split())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    folder = tmp_path_factory.mktemp("corpus")
    services = ToolsetServices(state=folder)
    folders = (CORPUS / "manuals", CORPUS / "notes")
    toolset = Documents(DocumentsOptions(folders=folders), services)
    asyncio.run(toolset.check())
    return toolset._index


async def test_few_questions_about_nothing_find_something(corpus: PassageIndex) -> None:
    search = PassageSearch(corpus, None)
    asked = [row["ask"] for row in QUESTIONS if row["in"] is None]
    found = [question for question in asked if await search.search(question, 3)]
    assert len(found) <= 2


@given(st.lists(st.tuples(st.sampled_from(["", "page 2"]), st.text(max_size=3_000)), max_size=4))
def test_passages_hold_all_words_in_their_order(parts: list[tuple[str, str]]) -> None:
    document = DocumentText("a", tuple(Section(*part) for part in parts))
    passages = passages_of(document)
    assert all(0 < len(each.text) <= PASSAGE_CHARS for each in passages)
    squeezed = "".join("".join(each.text.split()) for each in passages)
    assert squeezed == "".join("".join(text.split()) for _, text in parts)


def test_passages_keep_paragraphs_whole() -> None:
    document = DocumentText("a", (Section("x", f"{'one ' * 100}\n\n{'two ' * 150}"),))
    assert [each.text.split()[0] for each in passages_of(document)] == ["one", "two"]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What's in my notes?", []),
        ("Where's the dishwasher’s filter?", ["dishwasher", "filter"]),
        ("what does F28 mean", ["f28"]),
        ("a b c", []),
        ("wo ist die Heizung", ["wo", "ist", "die", "heizung"]),
    ],
)
def test_the_words_that_matter_are_kept(question: str, words: list[str]) -> None:
    assert question_words(question) == words


def test_vectors_are_kept_by_their_embedder(tmp_path: Path) -> None:
    index = PassageIndex(tmp_path / "index.db")
    index.put(IndexedDocument("/a", "a", "A", 1, 1), [Passage("", "one"), Passage("", "two")])
    ((first, text), _) = index.without_vector("m", 9)
    assert text == "A\n\none"
    index.add_vectors("m", {first: np.array([0.6, 0.8], np.float32), 99: np.ones(2, np.float32)})
    ids, rows = index.vectors("m")
    assert ids == [first]
    assert rows.shape == (1, 2)
    assert len(index.without_vector("m", 9)) == 1
    assert len(index.without_vector("other", 9)) == 2
    assert index.vectors("other")[0] == []
    index.put(IndexedDocument("/a", "a", "A", 2, 2), [Passage("", "three")])
    assert index.vectors("m")[0] == []


async def test_a_check_of_large_folders_ends_and_keeps_what_it_has_read(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = toolset_module.read_passages

    async def slow(file: AllowedPath) -> DocumentText:
        return await whole(file) if file.name == "boiler.md" else await asyncio.Event().wait()

    monkeypatch.setattr(toolset_module, "read_passages", slow)
    monkeypatch.setattr(toolset_module, "CHECK_S", 0.5)
    assert (await documents(home).check()) == (
        "1 document, 2 passages so far; the rest is read when an agent runs"
    )


def test_many_who_open_a_new_index_at_once_all_read_it(tmp_path: Path) -> None:
    """SQLite refuses a write at once to who has read before another one's write has ended."""
    with ThreadPoolExecutor(8) as threads:
        for each in range(8):
            path = tmp_path / str(each) / "index.db"
            counts = threads.map(lambda path: PassageIndex(path).count(), [path] * 8)
            assert list(counts) == [0] * 8
