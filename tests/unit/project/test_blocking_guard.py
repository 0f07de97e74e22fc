"""The guard itself: it catches what would be heard, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from blockbuster import BlockingError

from caal_node.cli.demo.scenes import AudioTimeline
from caal_node.core import prompt_files
from n8n.notes import parser as notes


async def test_a_sleep_in_the_projects_own_code_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def read(name):\n    sleep(0.001)\n"
    scope = {"sleep": time.sleep}
    exec(compile(source, prompt_files.__file__, "exec"), scope)  # noqa: S102 - as if it stood there
    monkeypatch.setattr(prompt_files, "read", scope["read"])
    with pytest.raises(BlockingError):
        prompt_files.read("system.md")


async def test_a_file_written_by_a_test_or_the_demo_is_none_of_its_business(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x", encoding="utf-8")
    AudioTimeline(lambda: 0.0).write(tmp_path / "b.wav")
    assert notes.__file__


def test_without_an_event_loop_anything_goes() -> None:
    time.sleep(0)
