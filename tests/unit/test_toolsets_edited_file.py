"""A file that the node changes while a person edits it keeps what both have written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from caal_node.toolsets import edited_file
from caal_node.toolsets.edited_file import change_file

CAP = 10_000


def adding(line: bytes) -> edited_file.Edit[int]:
    def edit(data: bytes | None) -> tuple[bytes | None, int]:
        return (data or b"") + line, len(data or b"")

    return edit


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "list.md"
    path.write_bytes(b"one\n")
    os.utime(path, (1, 1))
    return path


def test_a_file_is_changed_and_what_the_edit_told_returned(file: Path) -> None:
    assert change_file(file, adding(b"two\n"), CAP) == 4
    assert file.read_bytes() == b"one\ntwo\n"


def test_a_missing_file_is_begun_with_its_folder_for_all_who_may_open_that(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir(mode=0o755)
    change_file(tmp_path / "new" / "list.md", adding(b"one\n"), CAP)
    assert (tmp_path / "new" / "list.md").stat().st_mode & 0o777 == 0o644
    change_file(tmp_path / "deep" / "er" / "list.md", adding(b"one\n"), CAP)


def test_rights_and_links_stay(file: Path, tmp_path: Path) -> None:
    file.chmod(0o640)
    link = tmp_path / "link.md"
    link.symlink_to(file)
    change_file(link, adding(b"two\n"), CAP)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.read_bytes() == b"one\ntwo\n"


def test_nothing_is_written_where_nothing_changes(file: Path) -> None:
    before = file.stat().st_ino
    assert change_file(file, lambda data: (None, "told"), CAP) == "told"
    assert change_file(file, lambda data: (data, "same"), CAP) == "same"
    assert file.stat().st_ino == before


def test_what_is_written_meanwhile_stays(file: Path) -> None:
    """An editor that replaces the file, between our reading and our writing."""
    calls: list[bytes | None] = []

    def edit(data: bytes | None) -> tuple[bytes | None, None]:
        calls.append(data)
        if len(calls) == 1:
            (file.parent / "scratch").write_bytes(b"one\nby hand\n")
            (file.parent / "scratch").replace(file)
            os.utime(file, (1, 1))
        return (data or b"") + b"two\n", None

    change_file(file, edit, CAP)
    assert file.read_bytes() == b"one\nby hand\ntwo\n"
    assert calls == [b"one\n", b"one\nby hand\n"]


def test_what_is_written_into_the_replaced_file_itself_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor that had the file open, and writes just when it is replaced."""
    held = file.open("ab", buffering=0)
    replace = edited_file._replace  # pyright: ignore[reportPrivateUsage]

    def replace_late(place: Path, before: bytes | None, after: bytes, cap: int) -> bool:
        done = replace(place, before, after, cap)
        held.write(b"by hand\n") if before == b"one\n" else None
        return done

    monkeypatch.setattr(edited_file, "_replace", replace_late)
    change_file(file, adding(b"two\n"), CAP)
    held.close()
    assert file.read_bytes() == b"one\nby hand\ntwo\n"


def test_a_file_that_is_just_being_written_is_waited_for(file: Path) -> None:
    file.write_bytes(b"")  # an editor empties it, and then writes
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        file.write_bytes(b"one\nby hand\n")
        os.utime(file, (1, 1))

    change_file(file, adding(b"two\n"), CAP, pause=pause)
    assert waits == [edited_file.QUIET_S]
    assert file.read_bytes() == b"one\nby hand\ntwo\n"


def test_one_that_is_written_all_the_time_is_given_up(file: Path) -> None:
    def pause(seconds: float) -> None:
        file.write_bytes(b"")

    pause(0)
    with pytest.raises(OSError, match=r"list\.md is being written all the time"):
        change_file(file, adding(b"two\n"), CAP, pause=pause)


def test_a_file_past_its_cap_is_left_alone(file: Path) -> None:
    with pytest.raises(ValueError, match="more than 3 bytes"):
        change_file(file, adding(b"two\n"), 3)
    assert file.read_bytes() == b"one\n"


def test_a_failed_write_leaves_the_file_and_nothing_beside_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        change_file(file, adding(b"two\n"), CAP)
    assert file.read_bytes() == b"one\n"
    assert not list(file.parent.glob(".new-*"))


def test_another_process_that_holds_the_folder_is_not_waited_for_without_end(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edited_file, "LOCK_S", 0.0)
    with FileLock(file.parent / ".caal-node.lock"), pytest.raises(TimeoutError):
        change_file(file, adding(b"two\n"), CAP)


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
        change_file(file, adding(b"ours%d\n" % at), CAP)
    writer.join()
    lines = file.read_text().splitlines()
    assert sorted(lines) == sorted(
        ["one", *(f"hand{at}" for at in range(60)), *(f"ours{at}" for at in range(8))]
    )
