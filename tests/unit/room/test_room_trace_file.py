"""The trace: no content unless asked for, one user's alone, bounded, and never in the way."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from livekit.agents import FunctionToolsExecutedEvent, llm

from caal_node.core.events import (
    Decision,
    Spoken,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    UserSaid,
)
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings
from caal_node.room import trace_file
from caal_node.room.trace_file import TraceFile

AT = datetime(2026, 11, 23, 12, 0, 0, 250_000, UTC)
DECISION = Decision("policy", "allowed", "caal.toml, line 12", 0.5)
EVENTS = (
    UserSaid("Unlock the door"),
    ToolCallStarted("c1", "unlock", "mcp", "home", {"door": "garden"}),
    ToolCallEnded("c1", "unlock", "mcp", "ok", 120, (DECISION,)),
    Spoken("It is open."),
    TurnEnded(1, 2, 900),
)
RESULTS = FunctionToolsExecutedEvent(
    function_calls=[llm.FunctionCall(call_id="c1", name="unlock", arguments="{}")],
    function_call_outputs=[
        llm.FunctionCallOutput(call_id="c1", name="unlock", output="open: garden", is_error=False)
    ],
)
REDACTION = OutgoingRedaction(RedactionSettings(), lambda text: text.replace("garden", "***"))
posix = pytest.mark.skipif(os.name != "posix", reason="modes and links are POSIX's")


async def traced(path: Path, *, with_content: bool = False) -> list[dict[str, Any]]:
    trace = TraceFile(
        path,
        redaction=REDACTION,
        with_content=with_content,
        now=lambda: AT,
        monotonic=lambda: 7.00004,
    )
    for event in EVENTS:
        trace(event)
    trace.note_results(RESULTS)
    await trace.aclose()
    return read(path)


def read(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def without_session(line: dict[str, Any]) -> dict[str, Any]:
    return {key: line[key] for key in line if key not in ("session", "at", "mono_s")}


async def test_a_trace_has_no_content(tmp_path: Path) -> None:
    lines = await traced(tmp_path / "trace.jsonl")
    assert {line["at"] for line in lines} == {"2026-11-23T12:00:00.250+00:00"}
    assert {line["mono_s"] for line in lines} == {7.0}
    assert len({line["session"] for line in lines}) == 1
    tool = {"call_id": "c1", "tool": "unlock", "tier": "mcp", "source": "home"}
    ended = {"call_id": "c1", "tool": "unlock", "tier": "mcp", "outcome": "ok", "duration_ms": 120}
    reasons = {"reason_chars": 0, "result_chars": 0}
    decided = {"by": "policy", "verdict": "allowed", "line_chars": 18, "took_ms": 0.5}
    assert list(map(without_session, lines)) == [
        {"type": "user", "text_chars": 15},
        {"type": "tool_call_started", **tool, "arguments_chars": 18},
        {"type": "tool_call_ended", **ended, "decisions": [decided], **reasons},
        {"type": "speech", "text_chars": 11},
        {"type": "turn_ended", "rounds": 1, "requests": 2, "duration_ms": 900},
        {"type": "tool_result", "call_id": "c1", "tool": "unlock", "is_error": False,
         "output_chars": 12},
    ]  # fmt: skip


async def test_a_whole_trace_has_words_arguments_and_redacted_results(tmp_path: Path) -> None:
    lines = await traced(tmp_path / "trace.jsonl", with_content=True)
    assert lines[0]["text"] == "Unlock the door"
    assert lines[1]["arguments"] == {"door": "garden"}, "events are redacted before they come here"
    assert lines[2]["decisions"][0]["line"] == "caal.toml, line 12"
    assert lines[5]["output"] == "open: ***"


@posix
async def test_the_file_and_its_new_folder_are_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trace.jsonl"
    await traced(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert len(await traced(path)) == 2 * (len(EVENTS) + 1), "it is added to"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def as_link(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("precious\n", encoding="utf-8")
    path.symlink_to(other)


def as_second_name(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("precious\n", encoding="utf-8")
    path.hardlink_to(other)


def as_fifo(path: Path) -> None:
    os.mkfifo(path)


def in_an_open_folder(path: Path) -> None:
    path.parent.chmod(0o777)


@posix
@pytest.mark.parametrize("place", [as_link, as_second_name, as_fifo, Path.mkdir, in_an_open_folder])
async def test_what_is_no_file_of_this_user_is_not_written(
    place: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    path = folder / "trace.jsonl"
    place(path)
    assert await traced(path) == []
    assert f"CAAL_TRACE: {path}: " in caplog.text
    other = folder / "other"
    assert not other.exists() or other.read_text(encoding="utf-8") == "precious\n"


async def test_a_full_file_ends_the_trace_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "MAX_FILE_BYTES", 100)
    path = tmp_path / "trace.jsonl"
    first = await traced(path)
    assert len(first) == len(EVENTS) + 1
    assert len(await traced(path)) == len(first)
    assert "move it away; the trace ends" in caplog.text


async def test_a_disk_that_is_too_slow_costs_events_and_no_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "MAX_WAITING", 4)
    path = tmp_path / "trace.jsonl"
    assert len(await traced(path)) == 4
    assert caplog.text.count("is too slow; events are left out") == 1
