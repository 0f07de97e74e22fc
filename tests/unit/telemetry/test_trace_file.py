"""The trace: no content unless asked for, one user's alone, bounded, and in a known form."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from livekit.agents.telemetry import tracer
from opentelemetry import trace
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.sdk.trace import TracerProvider

from caal_node.config.setting_tables import Trace
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings
from caal_node.telemetry import trace_file
from caal_node.telemetry.trace_file import write_trace
from tests.stand_ins.recorded_spans import kept_provider, recorded_spans

REDACTION = OutgoingRedaction(RedactionSettings(), lambda text: text.replace("garden", "***"))
posix = pytest.mark.skipif(os.name != "posix", reason="modes and links are POSIX's")


def turn() -> None:
    """A call inside a turn, with what LiveKit and others write on spans."""
    with (
        tracer.start_as_current_span("agent_turn", attributes={"lk.interrupted": False}),
        tracer.start_as_current_span("function_tool") as call,
    ):
        call.set_attributes(
            {
                "gen_ai.tool.name": "unlock",
                "caal.tool.outcome": "ok",
                "lk.pii.function_tool.arguments": '{"door": "garden"}',
                "unknown.words": "the garden door",
                "unknown.list": ["garden"],
                "took": 1.5,
            }
        )
        call.add_event("said", {"words": "garden", "n": 1})
        call.set_status(trace.StatusCode.ERROR, "no garden door")


def traced(path: Path, *, content: bool = False, turns: int = 1) -> list[dict[str, Any]]:
    """The spans in the file behind `turns`."""
    with kept_provider():
        processor = write_trace(Trace(file=path, content=content), REDACTION)
        for _ in range(turns):
            turn()
            processor.force_flush()
    return read(path)


def read(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [line["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in found]


def attributes(of: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in of.get("attributes", [])}


def test_a_trace_has_no_content(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    call, agent_turn = traced(path)
    assert (call["name"], agent_turn["name"]) == ("function_tool", "agent_turn")
    assert attributes(call) == {
        "gen_ai.tool.name": "unlock",
        "caal.tool.outcome": "ok",
        "took": 1.5,
    }
    assert attributes(agent_turn) == {"lk.interrupted": False}
    assert attributes(call["events"][0]) == {"n": "1"}
    assert call["status"] == {"code": 2}
    assert "garden" not in path.read_text(encoding="utf-8")


def test_a_whole_trace_has_redacted_content(tmp_path: Path) -> None:
    call, _ = traced(tmp_path / "trace.jsonl", content=True)
    assert attributes(call)["lk.pii.function_tool.arguments"] == '{"door": "***"}'
    assert attributes(call)["unknown.list"] == {"values": [{"stringValue": "***"}]}
    assert attributes(call["events"][0])["words"] == "***"


def test_agents_that_share_a_file_keep_each_others_secrets(tmp_path: Path) -> None:
    path, other = tmp_path / "trace.jsonl", OutgoingRedaction(RedactionSettings(), hide_doors)
    with kept_provider():
        for redaction in (REDACTION, other):
            processor = write_trace(Trace(file=path, content=True), redaction)
        turn()
        processor.force_flush()
        write_trace(Trace(file=path), other)
        turn()
        processor.force_flush()
    whole, _, plain, _ = read(path)
    assert attributes(whole)["lk.pii.function_tool.arguments"] == '{"+++": "***"}'
    assert "lk.pii.function_tool.arguments" not in attributes(plain), "one of them wants none"


def hide_doors(text: str) -> str:
    return text.replace("door", "+++")


def test_each_line_is_otlp(tmp_path: Path) -> None:
    """Ids are hexadecimal in OTLP's JSON; protobuf's own JSON takes them for base64."""
    path = tmp_path / "trace.jsonl"
    call, agent_turn = traced(path)
    assert len(bytes.fromhex(call["traceId"])) == 16
    assert len(bytes.fromhex(call["spanId"])) == 8
    assert call["parentSpanId"] == agent_turn["spanId"]
    assert "parentSpanId" not in agent_turn
    assert int(agent_turn["startTimeUnixNano"]) <= int(call["startTimeUnixNano"])
    for line in path.read_text(encoding="utf-8").splitlines():
        (resource,) = Parse(line, TracesData()).resource_spans
        assert "caal-node" in str(resource.resource)


def test_a_provider_that_is_there_stays_and_is_written_once_a_file(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with recorded_spans() as spans:
        first = write_trace(Trace(file=path), REDACTION)
        assert write_trace(Trace(file=path), REDACTION) is first
        second = write_trace(Trace(file=other), REDACTION)
        turn()
        first.force_flush()
        second.force_flush()
    assert len(spans.all) == len(read(path)) == len(read(other)) == 2


def test_without_one_livekits_tracer_gets_one_of_its_own(tmp_path: Path) -> None:
    with kept_provider():
        write_trace(Trace(file=tmp_path / "a.jsonl"), REDACTION)
        with tracer.start_as_current_span("one") as span:
            assert span.is_recording()
        assert not isinstance(trace.get_tracer_provider(), TracerProvider), "others have none"


@posix
def test_the_file_and_its_new_folder_are_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trace.jsonl"
    traced(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert len(traced(path)) == 4, "it is added to"
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
def test_what_is_no_file_of_this_user_is_not_written(
    place: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    path = folder / "trace.jsonl"
    place(path)
    assert traced(path, turns=2) == []
    assert caplog.text.count(f"CAAL_TRACE: {path}: ") == 1
    other = folder / "other"
    assert not other.exists() or other.read_text(encoding="utf-8") == "precious\n"


def test_a_full_file_ends_the_trace_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "MAX_FILE_BYTES", 100)
    path = tmp_path / "trace.jsonl"
    assert len(traced(path, turns=3)) == 2
    assert "move it away; the trace ends" in caplog.text
