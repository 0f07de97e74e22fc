"""A file that the node changes while a person edits it keeps what both have written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import ToolRefused
from caal_node.toolsets import edited_file
from caal_node.toolsets.edited_file import change_text, new_text
from caal_node.toolsets.lists import ListFolder
from caal_node.toolsets.local_files.allowed_files import AllowedFolders

CAP = 10_000


def adding(line: str) -> edited_file.Edit[int]:
    def edit(text: str | None) -> tuple[str | None, int]:
        return (text or "") + line, len(text or "")

    return edit


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "list.md"
    path.write_bytes(b"one\n")
    os.utime(path, (1, 1))
    return path


def test_a_file_is_changed_and_what_the_edit_told_returned(file: Path) -> None:
    assert change_text(file, adding("two\n"), CAP) == 4
    assert file.read_bytes() == b"one\ntwo\n"


def test_a_missing_file_is_begun_with_its_folder_for_all_who_may_open_that(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir(mode=0o755)
    change_text(tmp_path / "new" / "list.md", adding("one\n"), CAP)
    assert (tmp_path / "new" / "list.md").stat().st_mode & 0o777 == 0o644
    change_text(tmp_path / "deep" / "er" / "list.md", adding("one\n"), CAP)


def test_rights_and_links_stay(file: Path, tmp_path: Path) -> None:
    file.chmod(0o640)
    link = tmp_path / "link.md"
    link.symlink_to(file)
    change_text(link, adding("two\n"), CAP)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.read_bytes() == b"one\ntwo\n"


def test_nothing_is_written_where_nothing_changes(file: Path) -> None:
    before = file.stat().st_ino
    assert change_text(file, lambda data: (None, "told"), CAP) == "told"
    assert change_text(file, lambda data: (data, "same"), CAP) == "same"
    assert file.stat().st_ino == before


def test_what_is_written_meanwhile_stays(file: Path) -> None:
    """An editor that replaces the file, between our reading and our writing."""
    calls: list[str | None] = []

    def edit(data: str | None) -> tuple[str | None, None]:
        calls.append(data)
        if len(calls) == 1:
            (file.parent / "scratch").write_bytes(b"one\nby hand\n")
            (file.parent / "scratch").replace(file)
            os.utime(file, (1, 1))
        return (data or "") + "two\n", None

    change_text(file, edit, CAP)
    assert file.read_bytes() == b"one\nby hand\ntwo\n"
    assert calls == ["one\n", "one\nby hand\n"]


def test_what_is_written_into_the_replaced_file_itself_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor that had the file open, and writes just when it is replaced."""
    held = file.open("ab", buffering=0)
    replace = edited_file._replace  # pyright: ignore[reportPrivateUsage]

    def replace_late(place: Path, before: bytes | None, *rest: Any) -> bool:
        done = replace(place, before, *rest)
        held.write(b"by hand\n") if before == b"one\n" else None
        return done

    monkeypatch.setattr(edited_file, "_replace", replace_late)
    change_text(file, adding("two\n"), CAP)
    held.close()
    assert file.read_bytes() == b"one\nby hand\ntwo\n"


@pytest.mark.parametrize("text", ["one\nby hand\n", "one\nby hand\ntwo\n"])
def test_one_that_empties_the_file_just_when_it_is_replaced_is_waited_for(
    file: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    editor = os.open(file, os.O_RDWR)
    replace = edited_file._replace  # pyright: ignore[reportPrivateUsage]

    def replace_late(place: Path, before: bytes | None, *rest: Any) -> bool:
        done = replace(place, before, *rest)
        os.truncate(editor, 0) if before == b"one\n" else None
        return done

    def pause(seconds: float) -> None:
        os.pwrite(editor, text.encode(), 0)
        os.utime(editor, (1, 1))

    def edit(known: str | None) -> tuple[str | None, None]:
        return (None if "two" in (known or "") else f"{known}two\n"), None

    monkeypatch.setattr(edited_file, "_replace", replace_late)
    change_text(file, edit, CAP, pause=pause)
    os.close(editor)
    assert file.read_text() == "one\nby hand\ntwo\n"


def test_a_file_that_is_just_being_written_is_waited_for(file: Path) -> None:
    file.write_bytes(b"")  # an editor empties it, and then writes
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        file.write_bytes(b"one\nby hand\n")
        os.utime(file, (1, 1))

    change_text(file, adding("two\n"), CAP, pause=pause)
    assert waits == [edited_file.QUIET_S]
    assert file.read_bytes() == b"one\nby hand\ntwo\n"


def test_one_that_an_editor_has_just_emptied_is_waited_for_a_while(file: Path) -> None:
    """An editor on a slow disk, which pauses between emptying the file and writing it."""
    file.write_bytes(b"")
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        os.utime(file, (time.time() - sum(waits),) * 2)
        if sum(waits) > 0.3:
            file.write_bytes(b"one\nby hand\n")
            os.utime(file, (1, 1))

    assert edited_file.read_text(file, CAP, pause=pause) == "one\nby hand\n"
    waits.clear()
    file.write_bytes(b"")
    change_text(file, adding("two\n"), CAP, pause=pause)
    assert sum(waits) > 0.3
    assert file.read_bytes() == b"one\nby hand\ntwo\n"


def test_one_that_somebody_has_emptied_for_good_is_begun_anew(file: Path) -> None:
    file.write_bytes(b"")
    os.utime(file, (1, 1))
    assert edited_file.read_text(file, CAP) == ""
    change_text(file, adding("two\n"), CAP)
    assert file.read_bytes() == b"two\n"


def test_one_that_an_editor_has_moved_away_for_a_moment_is_waited_for(file: Path) -> None:
    file.rename(file.with_suffix(".md~"))

    def pause(seconds: float) -> None:
        file.write_bytes(b"one\nby hand\n")
        os.utime(file, (1, 1))

    change_text(file, adding("two\n"), CAP, pause=pause)
    assert file.read_bytes() == b"one\nby hand\ntwo\n"


def test_a_new_file_is_not_written_over_one_that_somebody_makes_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "list.md"

    def edit(text: str | None) -> tuple[str | None, None]:
        if text is None:
            file.write_bytes(b"by hand\n")
            os.utime(file, (1, 1))
        return (text or "") + "two\n", None

    change_text(file, edit, CAP)
    assert file.read_bytes() == b"by hand\ntwo\n"


@pytest.mark.parametrize("data", ["Käse\n".encode("latin-1"), "Käse\n".encode("utf-16"), b"\xff"])
def test_a_file_that_is_not_utf_8_is_named_and_left_alone(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    os.utime(file, (1, 1))
    with pytest.raises(ValueError, match=r"list\.md is not UTF-8; save it as UTF-8"):
        change_text(file, adding("two\n"), CAP)
    with pytest.raises(ValueError, match=r"list\.md is not UTF-8"):
        edited_file.read_text(file, CAP)
    assert file.read_bytes() == data


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    st.booleans(),
    st.text(max_size=20),
)
def test_every_byte_of_a_file_stays_that_the_edit_does_not_touch(
    tmp_path_factory: pytest.TempPathFactory, text: str, marked: bool, new: str
) -> None:
    file = tmp_path_factory.mktemp("edited") / "list.md"
    before = (b"\xef\xbb\xbf" if marked else b"") + text.encode()
    file.write_bytes(before)
    os.utime(file, (1, 1))
    change_text(file, adding(new), CAP)
    assert file.read_bytes() == before + new.encode(errors="replace")


def test_a_private_file_and_its_folder_are_for_their_user_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        change_text(tmp_path / "own" / "page.md", adding("one\n"), CAP, private=True)
        new_text(tmp_path / "own" / "note.md", "one\n", private=True)
    finally:
        os.umask(umask)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / "own").iterdir()} == {0o600}


def test_a_new_file_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(handle: int) -> None:
        assert not (tmp_path / "note.md").exists()  # a kill here leaves no half note
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", killed)
        with pytest.raises(OSError, match="No space"):
            new_text(tmp_path / "note.md", "one\n")
    assert [each.name for each in tmp_path.iterdir()] == [".caal-node.lock"]
    new_text(tmp_path / "note.md", "one\n")
    with pytest.raises(FileExistsError):
        new_text(tmp_path / "note.md", "two\n")
    assert (tmp_path / "note.md").read_text() == "one\n"


def test_where_there_are_no_hard_links_a_new_file_is_still_whole_and_over_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    new_text(tmp_path / "note.md", "one\n")
    with pytest.raises(FileExistsError):
        new_text(tmp_path / "note.md", "two\n")
    assert (tmp_path / "note.md").read_text() == "one\n"


def test_one_that_is_written_all_the_time_is_given_up(file: Path) -> None:
    def pause(seconds: float) -> None:
        file.write_bytes(b"")

    pause(0)
    with pytest.raises(OSError, match=r"list\.md is being written all the time"):
        change_text(file, adding("two\n"), CAP, pause=pause)


def test_a_file_past_its_cap_is_left_alone(file: Path) -> None:
    with pytest.raises(ValueError, match="more than 3 bytes"):
        change_text(file, adding("two\n"), 3)
    assert file.read_bytes() == b"one\n"


def test_a_failed_write_leaves_the_file_and_nothing_beside_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        change_text(file, adding("two\n"), CAP)
    assert file.read_bytes() == b"one\n"
    assert not list(file.parent.glob("*new-*"))


KILLED = """
import os, signal, sys
from pathlib import Path
from caal_node.toolsets.edited_file import change_text
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
change_text(Path(sys.argv[1]), lambda text: (text + "two\\n", None), 100_000)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
def test_what_a_killed_process_left_is_shown_nowhere_and_gone_after_the_next_change(
    tmp_path: Path,
) -> None:
    file = tmp_path / "lists" / "shopping.md"
    file.parent.mkdir()
    file.write_text("one\n", encoding="utf-8")
    root = Path(edited_file.__file__).parents[2]
    command = [sys.executable, "-c", KILLED, str(file)]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(root)}, check=False)
    assert ended.returncode == -9
    (left,) = file.parent.glob("*new-*")
    assert left.read_bytes() == b"one\ntwo\n"
    assert [each.name for each in ListFolder(file.parent).lists()] == ["shopping"]
    allowed = AllowedFolders([file.parent])
    assert [each.name for each in allowed.walk() if not each.is_folder] == ["shopping.md"]
    with pytest.raises(ToolRefused):
        allowed.at(left.name)
    (file.parent / ".new-recipes").touch()  # somebody else's
    assert change_text(file, adding("three\n"), CAP) is not None
    assert file.read_text(encoding="utf-8") == "one\nthree\n"
    assert not left.exists()
    assert (file.parent / ".new-recipes").exists()


def test_another_process_that_holds_the_folder_is_not_waited_for_without_end(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edited_file, "LOCK_S", 0.0)
    with FileLock(file.parent / ".caal-node.lock"), pytest.raises(TimeoutError):
        change_text(file, adding("two\n"), CAP)


WRITER = """
import sys
for at in range(60):
    with open(sys.argv[1], "ab", buffering=0) as file:
        file.write(b"hand%d\\n" % at)
"""


def test_another_programs_lines_and_ours_are_all_there_in_the_end(file: Path) -> None:
    writer = threading.Thread(
        target=subprocess.run,
        args=([sys.executable, "-c", WRITER, str(file)],),
        kwargs={"check": True, "timeout": 60},
    )
    writer.start()
    for at in range(8):
        change_text(file, adding(f"ours{at}\n"), CAP)
    writer.join()
    lines = file.read_text().splitlines()
    assert sorted(lines) == sorted(
        ["one", *(f"hand{at}" for at in range(60)), *(f"ours{at}" for at in range(8))]
    )
