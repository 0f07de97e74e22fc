"""Files of the bridge: what is no file is never waited for, and what is written is whole."""

from __future__ import annotations

import os
import socket
import stat
import time
from pathlib import Path

import pytest

from mcp_bridge.core import files
from mcp_bridge.core.files import (
    SCRATCH_S,
    make_private_folder,
    new_scratch,
    no_folder,
    read_capped,
    replace_file,
)

POSIX = pytest.mark.skipif(os.name != "posix", reason="these files are POSIX's")


def refusal(path: Path) -> str:
    with pytest.raises(OSError, match="and no file") as caught:
        read_capped(path, 10)
    return str(caught.value.strerror)


@POSIX
def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert refusal(tmp_path / "fifo") == "it is a FIFO and no file"
    assert refusal(Path(os.devnull)) == "it is a device and no file"
    assert refusal(tmp_path) == "it is a folder and no file"
    (tmp_path / "link").symlink_to("fifo")
    assert refusal(tmp_path / "link") == "it is a FIFO and no file"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert refusal(tmp_path / "socket") == "it is a socket and no file"


def test_a_file_is_read_up_to_its_cap(tmp_path: Path) -> None:
    (file := tmp_path / "f").write_bytes(b"ten bytes.")
    assert read_capped(file, 10) == b"ten bytes."
    with pytest.raises(ValueError, match="more than 9 bytes"):
        read_capped(file, 9)
    with pytest.raises(FileNotFoundError):
        read_capped(tmp_path / "none", 9)


@POSIX
def test_folders_that_are_made_are_the_users_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    replace_file(tmp_path / "a" / "b" / "f", b"x")
    for made, mode in (("a", 0o700), ("a/b", 0o700), ("a/b/f", 0o600)):
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == mode
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_what_is_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    (file := tmp_path / "state").write_text("")
    assert no_folder(tmp_path / "other" / "pins") is None
    assert no_folder(file / "pins") == file
    with pytest.raises(NotADirectoryError, match=f"{file} is a file where a folder should be"):
        make_private_folder(file / "pins")
    (link := tmp_path / "link").symlink_to("nowhere")
    assert no_folder(link / "pins") == link


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "f").write_bytes(b"before")

    def full(_file: Path, _target: Path) -> Path:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(files.Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, b"after")
    assert file.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_what_a_killed_process_left_is_removed_and_what_another_one_writes_is_not(
    tmp_path: Path,
) -> None:
    names = list[str]()
    for _ in range(2):
        handle, scratch = new_scratch(tmp_path)
        os.close(handle)
        names.append(scratch.name)
    os.utime(tmp_path / names[0], (time.time() - SCRATCH_S - 1,) * 2)
    replace_file(tmp_path / "f", b"x")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([names[1], "f"])
