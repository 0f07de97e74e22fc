"""Vectors on disk are found again, within their cap, and never read from a damaged file."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import VectorCache
from mcp_bridge.embedding import semantic_index
from tests.stand_ins.embedding_stand_ins import vector

TEXTS = {text: vector(text) for text in ("a lamp", "a song", "kühl \ud800")}


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_vectors_are_found_again_by_their_text_and_embedder(tmp_path: Path) -> None:
    VectorCache(tmp_path / "new").add("one", TEXTS)
    again = VectorCache(tmp_path / "new")
    found = again.read("one", [*TEXTS, "unknown"])
    assert list(found) == list(TEXTS)
    for text, row in TEXTS.items():
        assert found[text].dtype == np.float32
        assert float(found[text] @ row) > 0.999
    assert again.read("other", list(TEXTS)) == {}


def test_what_is_added_stands_beside_what_is_there(tmp_path: Path) -> None:
    first, second = VectorCache(tmp_path), VectorCache(tmp_path)
    first.add("one", {"a lamp": vector("a lamp")})
    second.add("one", {"a song": vector("a song")})
    first.add("one", {})
    assert set(first.read("one", list(TEXTS))) == {"a lamp", "a song"}


def test_rows_of_another_length_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    store = VectorCache(tmp_path)
    store.add("one", TEXTS)
    store.add("one", {"a lamp": np.ones(3, np.float32)})
    assert {text: len(row) for text, row in store.read("one", list(TEXTS)).items()} == {"a lamp": 3}


def test_past_the_cap_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic_index, "MAX_FILE_BYTES", 1_024 + 2 * (32 + 2 * len(vector(""))))
    store = VectorCache(tmp_path)
    for text in ("first", "second", "first", "third"):
        store.add("one", {text: vector(text)})
    assert set(store.read("one", ["first", "second", "third"])) == {"first", "third"}
    assert only_file(tmp_path).stat().st_size <= semantic_index.MAX_FILE_BYTES


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"[]\n", b"null\n", b"\xff" * 40, b"[" * 2_000])
def test_a_damaged_file_is_told_of_and_made_anew(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = VectorCache(tmp_path)
    store.add("one", TEXTS)
    only_file(tmp_path).write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert store.read("one", list(TEXTS)) == {}
    assert "damaged" in caplog.text
    store.add("one", TEXTS)
    assert set(store.read("one", list(TEXTS))) == set(TEXTS)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_changed_byte_gives_a_wrong_vector(
    tmp_path_factory: pytest.TempPathFactory, at: int, change: int
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    store = VectorCache(folder)
    store.add("one", TEXTS)
    path = only_file(folder)
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= change
    path.write_bytes(data)
    for text, row in store.read("one", list(TEXTS)).items():
        assert float(row @ TEXTS[text]) > 0.999


def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    VectorCache(tmp_path / "file").add("one", TEXTS)
    assert "cannot be written" in caplog.text


def test_a_file_of_another_embedder_is_not_read(tmp_path: Path) -> None:
    VectorCache(tmp_path).add("one", TEXTS)
    name = hashlib.sha256(b"other").hexdigest()[:16]
    only_file(tmp_path).rename(tmp_path / f"{name}.vectors")
    assert VectorCache(tmp_path).read("other", list(TEXTS)) == {}
