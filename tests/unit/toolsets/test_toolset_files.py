"""The toolset `files` lists and reads what the owner allows."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke, ToolRefused
from caal_node.tools.effects import declared_effect
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.files import Files, FilesOptions, spoken_size
from caal_node.toolsets.local_files.file_text import PART_CHARS
from tests.stand_ins.small_pdf import small_pdf

DAY = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "todo.txt").write_text("Buy milk.")
    (folder / "plan.md").write_text("# Plan\n\nPaint the *fence*.")
    os.utime(folder / "todo.txt", (DAY.timestamp(), DAY.timestamp()))
    return folder


@pytest.fixture
def files(home: Path, tmp_path: Path) -> Files:
    return Files(
        FilesOptions(folders=(home,)), ToolsetServices(state=tmp_path / "state", timezone=UTC)
    )


async def listed(files: Files, folder: str = "") -> Any:
    return await files.list_directory(folder=folder)


async def read(files: Files, file: str, part: int = 1) -> Any:
    return await files.read_file(file=file, part=part)


async def test_a_folder_is_listed_with_sizes_and_days(files: Files) -> None:
    found = await listed(files)
    assert found["folder"] == "papers"
    assert [row["name"] for row in found["entries"]] == ["old", "plan.md", "todo.txt"]
    assert found["entries"][2] == {
        "name": "todo.txt",
        "kind": "file",
        "size": "9 bytes",
        "changed": "2026-11-20",
    }


async def test_with_several_folders_their_names_are_told_first(home: Path) -> None:
    files = Files(FilesOptions(folders=(home, home / "old")))
    assert await listed(files) == {"folders": ["papers", "old"]}
    assert (await listed(files, "the old folder"))["entries"] == []


async def test_a_large_folder_says_how_much_it_left_out(files: Files, home: Path) -> None:
    for number in range(60):
        (home / "old" / f"{number:02}.txt").touch()
    found = await listed(files, "old")
    assert len(found["entries"]) == 50
    assert found["left_out"] == 10


async def test_a_file_is_read_with_its_name(files: Files) -> None:
    assert await read(files, "todo.txt") == {"file": "papers/todo.txt", "text": "Buy milk."}
    assert (await read(files, "plan"))["text"] == "Paint the fence."


async def test_a_long_file_is_read_in_parts(files: Files, home: Path) -> None:
    (home / "book.txt").write_text("a" * PART_CHARS + "b" * 10)
    first, second = await read(files, "book.txt"), await read(files, "book.txt", 2)
    assert (first["part"], first["parts"]) == (1, 2)
    assert second["text"] == "b" * 10
    for wrong in (0, -1, 3, 10**30):
        with pytest.raises(InvalidArguments, match="2 parts"):
            await read(files, "book.txt", wrong)


async def test_a_pdf_is_read_too(files: Files, home: Path) -> None:
    (home / "lease.pdf").write_bytes(small_pdf([["Rent: 1,240 euros"]]))
    assert "1,240" in (await read(files, "lease"))["text"]


async def test_what_is_no_text_is_said(files: Files, home: Path) -> None:
    (home / "photo.jpg").write_bytes(b"\xff\xd8\0\0")
    with pytest.raises(ToolBroke, match=r"papers/photo.jpg cannot be read: it is no text"):
        await read(files, "photo.jpg")


async def test_a_file_that_may_not_be_opened_is_said(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: object) -> Any:
        raise PermissionError(13, "Permission denied", "/a/path/nobody/may/hear")

    monkeypatch.setattr("caal_node.toolsets.local_files.allowed_files.AllowedPath.open", denied)
    with pytest.raises(ToolBroke, match="it cannot be opened") as caught:
        await read(files, "todo.txt")
    assert "nobody" not in str(caught.value)


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.txt", "../../etc/hostname"])
async def test_nothing_outside_is_read_or_listed(files: Files, home: Path, path: str) -> None:
    (home.parent / "secret.txt").write_text("secret")
    with pytest.raises(ToolRefused):
        await read(files, path)
    with pytest.raises(ToolRefused):
        await listed(files, path)


async def test_the_check_counts_files_and_names_a_folder_that_is_missing(
    files: Files, tmp_path: Path
) -> None:
    assert await files.check() == "2 files in papers"
    with pytest.raises(ConfigError, match=r"gone: there is no such folder"):
        await Files(FilesOptions(folders=(tmp_path / "gone",))).check()


def test_folders_may_be_typed_in_one_line(tmp_path: Path) -> None:
    typed = FilesOptions.model_validate({"folders": f"{tmp_path}/a, {tmp_path}/b"})
    assert typed.folders == (tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_500, "2 kB"), (3_400_000, "3.4 MB"), (2e9, "2.0 GB")],
)
def test_sizes_are_said_as_people_do(size: float, words: str) -> None:
    assert spoken_size(int(size)) == words


@pytest.fixture
def writing(home: Path, tmp_path: Path) -> Files:
    return Files(
        FilesOptions(folders=(home,), new_files=True),
        ToolsetServices(state=tmp_path / "state", timezone=UTC),
    )


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def names(files: Files) -> set[str]:
    return {each.id for each in files.tools}


async def test_files_are_made_only_where_the_owner_says_so(files: Files, writing: Files) -> None:
    assert names(files) == {"list_directory", "read_file"}
    assert names(writing) == {"list_directory", "read_file", "create_file"}
    assert declared_effect(writing.create_file) == "destructive", "so that it needs a yes"


async def test_a_new_file_has_the_text_and_is_its_owners_alone(writing: Files, home: Path) -> None:
    made = await writing.create_file(name="boat ideas", text="Buy a bøat.")
    assert made == {"file": "papers/boat ideas.txt", "size": "12 bytes"}
    assert (home / "boat ideas.txt").read_text(encoding="utf-8") == "Buy a bøat."
    assert (home / "boat ideas.txt").stat().st_mode & 0o777 == 0o600
    await writing.create_file(name="later.md", text="# Later", folder="old")
    assert (home / "old" / "later.md").read_text() == "# Later"


async def test_nothing_is_overwritten(writing: Files, home: Path) -> None:
    with pytest.raises(InvalidArguments, match="nothing is overwritten"):
        await writing.create_file(name="todo.txt", text="")
    assert (home / "todo.txt").read_text() == "Buy milk."


async def test_a_link_of_that_name_leads_nowhere(
    writing: Files, home: Path, tmp_path: Path
) -> None:
    (home / "out.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(InvalidArguments, match="already"):
        await writing.create_file(name="out.txt", text="x")
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.parametrize("name", ["", " ", ".env", "../x", "a/b", "a\\b", "C:x", "a\0b", "x" * 81])
async def test_a_name_that_leads_elsewhere_or_is_hidden_is_refused(
    writing: Files, home: Path, name: str
) -> None:
    before = entries(home)
    with pytest.raises(InvalidArguments, match="name:"):
        await writing.create_file(name=name, text="x")
    assert entries(home) == before


@pytest.mark.parametrize("folder", ["..", "/usr", ".hidden", "nowhere"])
async def test_no_file_is_made_outside_of_the_folders(
    writing: Files, home: Path, folder: str
) -> None:
    (home / ".hidden").mkdir()
    with pytest.raises((InvalidArguments, ToolRefused)):
        await writing.create_file(name="x", text="x", folder=folder)


async def test_with_several_folders_it_has_to_be_said_which(home: Path) -> None:
    files = Files(FilesOptions(folders=(home, home / "old"), new_files=True))
    with pytest.raises(InvalidArguments, match="say in which: papers, old"):
        await files.create_file(name="x", text="x")
