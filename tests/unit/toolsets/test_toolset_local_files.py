"""Files are read in the owner's folders and nowhere else; what is in one, and what it is called."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import InvalidArguments, ToolRefused
from caal_node.models import child_process
from caal_node.toolsets.local_files import allowed_files, file_text
from caal_node.toolsets.local_files.allowed_files import (
    AllowedFolders,
    AllowedPath,
    find_path,
    read_part,
    read_passages,
)
from caal_node.toolsets.local_files.file_text import NoText, answer, text_of
from tests.stand_ins.small_pdf import small_pdf


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two folders that may be read, and a secret beside them."""
    for name, text in {
        "recipes/pancakes.md": "flour",
        "recipes/cakes/apple.md": "apples",
        "recipes/.env": "KEY=1",
        "recipes/.git/config": "x",
        "letters/landlord.txt": "rent",
        "private/diary.md": "secret",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def folders(home: Path) -> AllowedFolders:
    return AllowedFolders([home / "recipes", home / "letters"])


def read(folders: AllowedFolders, path: str) -> str:
    found = folders.at(path)
    assert found is not None
    with found.open() as file:
        return file.read().decode()


def shown(folders: AllowedFolders) -> set[str]:
    return {each.shown for each in folders.walk()}


@pytest.mark.parametrize(
    "path", ["pancakes.md", "recipes/pancakes.md", "Recipes/pancakes.md", "cakes/../pancakes.md"]
)
def test_a_file_is_found_by_its_path_from_any_folder(folders: AllowedFolders, path: str) -> None:
    assert read(folders, path) == "flour"


def test_an_absolute_path_inside_is_read(folders: AllowedFolders, home: Path) -> None:
    assert read(folders, str(home / "letters/landlord.txt")) == "rent"


@pytest.mark.parametrize(
    "path",
    [
        "../private/diary.md",
        "recipes/../../private/diary.md",
        "cakes/../../../private/diary.md",
        "../nothing/at/all.md",
        "/etc/passwd",
        "/etc/there-is-no-such-file",
        "~/.ssh/id_rsa/../../../../etc/passwd",
        "recipes/.env",
        ".git/config",
        "recipes/./.env",
        "..",
        "/",
    ],
)
def test_what_lies_outside_or_is_hidden_is_refused_in_the_same_words(
    folders: AllowedFolders, path: str
) -> None:
    with pytest.raises(ToolRefused, match=r"^This is not in the folders that may be read\.$"):
        folders.at(path)


def test_a_link_that_leads_out_is_refused_and_not_listed(
    folders: AllowedFolders, home: Path
) -> None:
    (home / "recipes/diary.md").symlink_to(home / "private/diary.md")
    (home / "recipes/away").symlink_to(home / "private")
    (home / "recipes/keys.txt").symlink_to(home / "recipes/.env")
    for path in ("diary.md", "away/diary.md", "recipes/away", "keys.txt"):
        with pytest.raises(ToolRefused):
            folders.at(path)
    assert not {"recipes/diary.md", "recipes/away", "recipes/keys.txt"} & shown(folders)


def test_a_link_that_stays_inside_is_followed(folders: AllowedFolders, home: Path) -> None:
    (home / "letters/cake.md").symlink_to(home / "recipes/cakes/apple.md")
    (home / "letters/more").symlink_to(home / "recipes/cakes")
    assert read(folders, "letters/cake.md") == "apples"
    assert read(folders, "letters/more/apple.md") == "apples"


def test_a_folder_that_is_a_link_itself_is_the_owner_s_word(home: Path) -> None:
    (home / "linked").symlink_to(home / "recipes")
    folders = AllowedFolders([home / "linked"])
    assert folders.names == ("linked",)
    assert read(folders, "linked/pancakes.md") == "flour"


def test_links_in_a_ring_are_walked_once(folders: AllowedFolders, home: Path) -> None:
    (home / "recipes/cakes/up").symlink_to(home / "recipes")
    assert len([path for path in shown(folders) if path.endswith("pancakes.md")]) == 1


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="the system cannot")
def test_a_link_that_is_put_there_after_the_judgement_leads_nowhere(
    folders: AllowedFolders, home: Path
) -> None:
    file, inner = folders.at("pancakes.md"), folders.at("cakes/apple.md")
    assert file is not None
    assert inner is not None
    (home / "recipes/pancakes.md").unlink()
    (home / "recipes/pancakes.md").symlink_to(home / "private/diary.md")
    (home / "recipes/cakes/apple.md").unlink()
    (home / "recipes/cakes").rmdir()
    (home / "private/apple.md").write_text("secret")
    (home / "recipes/cakes").symlink_to(home / "private")
    for swapped in (file, inner):
        with pytest.raises(OSError, match=r"(?i)symbolic link|not a directory"):
            swapped.open()


def test_a_pipe_is_no_file(folders: AllowedFolders, home: Path) -> None:
    os.mkfifo(home / "recipes/pipe.md")
    assert folders.at("pipe.md") is None
    assert "recipes/pipe.md" not in shown(folders)


def test_a_pipe_that_takes_a_file_s_place_keeps_nobody_waiting(
    folders: AllowedFolders, home: Path
) -> None:
    file = folders.at("pancakes.md")
    assert file is not None
    (home / "recipes/pancakes.md").unlink()
    os.mkfifo(home / "recipes/pancakes.md")
    with pytest.raises(OSError, match="no file"):
        file.open()


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for each in ("anna/notes", "ben/notes"):
        (tmp_path / each).mkdir(parents=True)
    folders = AllowedFolders([tmp_path / "anna/notes", tmp_path / "ben/notes"])
    assert folders.names == ("anna notes", "ben notes")


def test_a_folder_that_is_missing_is_named(folders: AllowedFolders, home: Path) -> None:
    gone = AllowedFolders([home / "recipes", home / "gone"])
    assert folders.missing == ()
    assert gone.missing == (home / "gone",)


@given(st.text(alphabet="./a~\\\0recips-", max_size=24))
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    home = tmp_path_factory.getbasetemp() / "given"
    (home / "recipes/a").mkdir(parents=True, exist_ok=True)
    folders = AllowedFolders([home / "recipes"])
    try:
        found = folders.at(path)
    except ToolRefused:
        return
    assert found is None or found.real.is_relative_to(home / "recipes")


# What a person calls a file


@pytest.mark.parametrize(
    ("said", "file"),
    [
        ("the pancake recipe", "recipes/pancakes.md"),
        ("pancakes", "recipes/pancakes.md"),
        ("the letter to the landlord", "letters/landlord.txt"),
        ("apple cake", "recipes/cakes/apple.md"),
        ("Landlord", "letters/landlord.txt"),
        ("'pancakes.md'", "recipes/pancakes.md"),
    ],
)
def test_a_file_is_found_by_what_it_is_called(
    folders: AllowedFolders, said: str, file: str
) -> None:
    assert find_path(folders, said, folder=False).shown == file


def test_several_files_that_may_be_meant_are_named(folders: AllowedFolders, home: Path) -> None:
    (home / "recipes/apple pie.md").write_text("pie")
    with pytest.raises(InvalidArguments, match=r"recipes/cakes/apple.md"):
        find_path(folders, "the apple recipe", folder=False)


@pytest.mark.parametrize("said", ["", "   ", "the file", "waffles", "a\0b", "x" * 5_000])
def test_a_file_that_is_not_there_is_said(folders: AllowedFolders, said: str) -> None:
    with pytest.raises(InvalidArguments):
        find_path(folders, said, folder=False)


def test_a_folder_is_found_by_its_name_and_is_no_file(folders: AllowedFolders) -> None:
    assert find_path(folders, "the cakes folder", folder=True).shown == "recipes/cakes"
    with pytest.raises(InvalidArguments):
        find_path(folders, "cakes folder", folder=False)


# What is in a file


def test_markdown_is_read_by_its_headings_without_its_marks() -> None:
    text = (
        "---\ntitle: The *house*\ntags: [a]\n---\nWelcome to [the house](https://x.example).\n"
        "## Heating **now**\nSee [[boiler|the boiler]] and `F28`.\n```sh\n# no heading\n```\n"
        "<!-- nobody reads this -->\n### Empty\n\n# Last #\nEnd."
    )
    document = text_of(text.encode(), "house.md")
    assert document.title == "The *house*"
    assert text_of(b"\n# The *lease*\n\nRent.\n", "a.md").title == "The lease"
    assert text_of(b"Rent.\n# Pets\n", "lease-2026.md").title == "lease 2026"
    assert [part.place for part in document.sections] == ["", "Heating now", "Last"]
    assert document.sections[0].text == "Welcome to the house."
    assert "See the boiler and F28." in document.sections[1].text
    assert "# no heading" in document.sections[1].text
    assert "nobody" not in document.text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Grüße".encode(), "Grüße"),
        (b"\xef\xbb\xbfbegin", "begin"),
        ("Grüße".encode("cp1252"), "Grüße"),
        ("Grüße".encode("utf-16"), "Grüße"),
        (b"one\r\ntwo\rthree", "one\ntwo\nthree"),
        (b"", ""),
    ],
)
def test_text_is_read_in_the_encodings_that_people_have(data: bytes, text: str) -> None:
    document = text_of(data, "my_house-notes.txt")
    assert document.text == text
    assert document.title == "my house notes"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\0\0", b"a" * ((4 << 20) + 1)])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(NoText):
        text_of(data, "photo.txt")


@given(st.binary(max_size=400), st.sampled_from(["a.md", "a.txt", ".md", "a"]))
def test_any_bytes_are_text_or_refused(data: bytes, name: str) -> None:
    try:
        document = text_of(data, name)
    except NoText:
        return
    assert isinstance(document.text, str)


@pytest.mark.parametrize(
    "unit", ["[", "[[", "![", "<!--", "*", "`", "[a](", "# ", "---\n", "a*", "[[a|", " ", "#", "\n"]
)
@pytest.mark.parametrize("head", ["", "# ", "---\ntitle: ", "## a"])
def test_marks_without_an_end_take_no_time(head: str, unit: str) -> None:
    started = time.process_time()
    text_of((head + unit * (400_000 // len(unit)) + "x").encode(), "a.md")
    assert time.process_time() - started < 5.0


async def at(folder: Path, name: str, data: bytes) -> AllowedPath:
    (folder / name).write_bytes(data)
    file = AllowedFolders([folder]).at(name)
    assert file is not None
    return file


@pytest.mark.parametrize("name", ["long.md", "long.txt"])
async def test_a_long_text_is_taken_apart_in_a_child_and_a_short_one_here(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = b"The valve is behind the washing machine. "
    long = await at(tmp_path, name, b"# Valves\n" + sentence * (4_000_000 // len(sentence)))
    short = await at(tmp_path, f"short-{name}", b"# Valves\n" + sentence)
    handled = list[int]()
    whole = file_text.answer

    def counted(data: bytes, *rest: str) -> Iterator[object]:
        handled.append(len(data))
        return whole(data, *rest)

    monkeypatch.setattr(allowed_files, "answer", counted)
    found = await read_passages(long)
    text = " ".join(each.text for each in found.passages)
    assert text.count("washing machine") == 4_000_000 // len(sentence)  # to the last one
    assert (await read_part(long, 2)).parts > 1_000
    assert handled == []
    assert "washing" in (await read_part(short, 1)).text
    assert max(handled) <= child_process.AT_ONCE_BYTES


@given(st.binary(max_size=3_000), st.sampled_from(["a.md", "a.txt"]), st.integers(0, 3))
def test_the_parts_of_a_file_are_its_text(data: bytes, name: str, zeros: int) -> None:
    data += b"0" * 2_000 * zeros
    try:
        _, parts = answer(data, name, "1")
    except NoText:
        return
    read = [next(answer(data, name, str(each))) for each in range(1, parts + 1)]
    assert "".join(read) == text_of(data, name).text


async def test_a_text_that_is_too_large_is_not_opened_and_says_what_helps(tmp_path: Path) -> None:
    file = await at(tmp_path, "log.txt", b"a" * ((4 << 20) + 1))
    (tmp_path / "log.txt").unlink()  # opening it would be an OSError
    with pytest.raises(NoText, match=r"more than 4 MB.*cut it into several, or leave it out of"):
        await read_passages(file)


async def test_a_child_that_says_too_much_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowed_files, "MAX_OUTPUT_BYTES", 10_000)
    file = await at(tmp_path, "a.txt", b"word " * 20_000)
    with pytest.raises(NoText, match="too much text"):
        await read_passages(file)


def test_a_heading_of_a_megabyte_is_not_kept_with_every_passage() -> None:
    text = b"# " + b"a" * 1_000_000 + b"\n## " + b"b " * 500_000 + b"\n" + b"word. " * 100_000
    title, *rows = answer(text, "a.md", "passages")
    assert len(title) + sum(len(place) + len(said) for place, said in rows) < 1_000_000


async def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "boiler manual.pdf").write_bytes(
        small_pdf([["Boiler"], [], ["Error F28 means", "that no gas arrives."]])
    )
    file = AllowedFolders([tmp_path]).at("boiler manual.pdf")
    assert file is not None
    document = await read_passages(file)
    assert document.title == "boiler manual"
    assert [part.place for part in document.passages] == ["page 1", "page 3"]
    assert "no gas arrives" in document.passages[1].text


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"%PDF-1.4 nothing", "damaged"),
        (b"", "damaged"),
        (small_pdf([[]]), "only pictures"),
        (b"hello", "damaged"),
    ],
)
async def test_a_pdf_without_text_says_why(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "scan.pdf").write_bytes(data)
    file = AllowedFolders([tmp_path]).at("scan.pdf")
    assert file is not None
    with pytest.raises(NoText, match=why):
        await read_passages(file)


async def test_a_pdf_that_takes_for_ever_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = tmp_path / "endless.py"
    endless.write_text("while True: pass\n")
    monkeypatch.setattr(child_process, "_MAIN", endless)
    monkeypatch.setattr(allowed_files, "READ_S", 0.2)
    (tmp_path / "a.pdf").write_bytes(b"x")
    file = AllowedFolders([tmp_path]).at("a.pdf")
    assert file is not None
    with pytest.raises(NoText, match="longer than"):
        await read_passages(file)
