"""Turns out of a trace: what took which part of a turn's time, and files that are no trace."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from caal_node.cli.app import app
from caal_node.cli.trace import turn_times
from caal_node.cli.trace.command import picture_of, print_pictures, turns_of
from caal_node.cli.trace.turn_times import CallTimes, CueTime, TurnTimes, VoiceTimes, read_trace
from caal_node.core.errors import ConfigError
from caal_node.core.events import (
    AgentVoice,
    CuePlayed,
    ModelRequestEnded,
    PersonSpoke,
    Spoken,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    UserSaid,
)
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings
from caal_node.room.trace_file import TraceFile

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
CALL = {"call_id": "c1", "tool": "get_weather", "tier": "n8n"}


def line(at_s: float, event: str, /, *, session: str = "s1", **fields: Any) -> dict[str, Any]:
    """A line as it is written `at_s` seconds after noon, where the monotonic clock shows 500."""
    at = (NOON + timedelta(seconds=at_s)).isoformat(timespec="milliseconds")
    return {"at": at, "mono_s": 500 + at_s, "session": session, "type": event, **fields}


SPOKEN = (
    line(1.0, "person_spoke", spoke_ms=2000, silent_ms=1000, transcribed_ms=600),
    line(1.0, "user", text_chars=20),
)
TOOL_TURN = (
    *SPOKEN,
    line(1.8, "model_request_ended", took_ms=900, first_ms=300, outcome="ok", prompt_tokens=1400,
         cached_tokens=1360, completion_tokens=20),
    line(1.8, "tool_call_started", **CALL, source="n8n", arguments_chars=9),
    line(1.8, "cue", kind="tool"),
    line(2.3, "tool_call_ended", **CALL, outcome="ok", duration_ms=500, decisions=[]),
    line(2.3, "tool_result", **CALL, is_error=False, output_chars=3),
    line(3.0, "model_request_ended", took_ms=700, first_ms=200, outcome="ok", prompt_tokens=None,
         cached_tokens=None, completion_tokens=None),
    line(2.8, "speech", text_chars=12),
    line(3.1, "agent_voice", sounding=True, heard=True),
    line(5.0, "agent_voice", sounding=False, heard=True),
    line(5.0, "turn_ended", rounds=1, requests=2, duration_ms=4000),
)  # fmt: skip


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")
    return path


def turns(tmp_path: Path, *lines: dict[str, Any]) -> list[TurnTimes]:
    return turns_of(read_trace(write(tmp_path / "trace.jsonl", *lines)))


def about(value: float) -> Any:
    return pytest.approx(value, abs=1e-6)


def test_a_turn_counts_from_the_end_of_speech(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *TOOL_TURN)
    assert turn.speech_begin_s == about(-2.0)
    assert turn.transcribed_s == about(0.6)
    assert turn.words_s == about(1.0)
    first, second = turn.requests
    assert (first.begin_s, first.first_s, first.end_s) == (about(0.9), about(1.2), about(1.8))
    assert (first.prompt_tokens, first.cached_tokens) == (1400, 1360)
    assert (second.prompt_tokens, second.begin_s) == (None, about(2.3))
    assert turn.calls == (CallTimes("get_weather", about(1.8), about(2.3), "ok"),)
    assert turn.cues == (CueTime("tool", about(1.8)),)
    assert turn.voices == (VoiceTimes(about(2.8), about(3.1), about(5.0), True),)
    assert (turn.first_word_s, turn.last_word_s) == (about(3.1), about(5.0))


def test_typed_words_count_from_their_arrival(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *TOOL_TURN[1:])
    assert turn.speech_begin_s is None
    # The model was asked a tenth of a second before the words came up.
    assert turn.words_s == about(0.1)
    assert turn.requests[0].begin_s == about(0.0)


def test_a_trace_of_an_older_version_is_read_by_its_wall_clock(tmp_path: Path) -> None:
    new = {"person_spoke", "model_request_ended", "agent_voice"}
    old = [
        {key: value for key, value in each.items() if key != "mono_s"}
        for each in TOOL_TURN
        if each["type"] not in new
    ]
    (turn,) = turns(tmp_path, *old)
    assert turn.calls == (CallTimes("get_weather", about(0.8), about(1.3), "ok"),)
    assert turn.sentences_s == (about(1.8),)
    assert turn.first_word_s is None
    assert "sentences" in drawn(turn)


def test_a_request_of_a_pause_is_not_of_the_turn_and_one_begun_early_is(tmp_path: Path) -> None:
    closed = {"took_ms": 500, "first_ms": None, "outcome": "closed", "prompt_tokens": None}
    (turn,) = turns(
        tmp_path,
        line(-0.5, "model_request_ended", **closed),
        line(0.9, "model_request_ended", **{**closed, "took_ms": 1000, "outcome": "ok"}),
        *SPOKEN,
        line(2.0, "turn_ended", rounds=0, requests=2, duration_ms=1000),
    )
    (request,) = turn.requests
    assert (request.begin_s, request.end_s) == (about(-0.1), about(0.9))
    assert turn.begin_s == about(-0.1)


def test_what_ends_behind_a_turn_is_still_its_own(tmp_path: Path) -> None:
    late = {"took_ms": 2000, "first_ms": None, "outcome": "closed", "prompt_tokens": None}
    first, second = turns(
        tmp_path,
        *TOOL_TURN[:-2],
        line(5.0, "turn_ended", rounds=1, requests=2, duration_ms=4000),
        line(5.2, "agent_voice", sounding=False, heard=True),
        line(5.3, "model_request_ended", **late),
        line(9.0, "user", text_chars=3),
        line(9.5, "turn_ended", rounds=0, requests=0, duration_ms=500),
    )
    assert first.last_word_s == about(5.2)
    assert [request.outcome for request in first.requests] == ["ok", "ok", "closed"]
    assert (second.requests, second.voices) == ((), ())


def test_an_answer_that_a_tool_asked_for_belongs_to_its_turn(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *TOOL_TURN[:5], line(2.0, "user", text_chars=3), *TOOL_TURN[5:])
    assert turn.words_s == about(1.0)
    assert turn.calls[0].end_s == about(2.3)


def test_words_that_nothing_answered_end_with_the_next_ones(tmp_path: Path) -> None:
    found = turns(tmp_path, line(0.2, "user", text_chars=1), *TOOL_TURN)
    assert [(turn.number, len(turn.calls)) for turn in found] == [(1, 0), (2, 1)]


def test_calls_over_the_api_belong_to_no_turn(tmp_path: Path) -> None:
    api = {**CALL, "call_id": "api_1"}
    (turn,) = turns(
        tmp_path,
        *TOOL_TURN[:-1],
        line(4.0, "tool_call_started", **api, source="n8n"),
        line(4.1, "tool_call_ended", **api, outcome="ok", duration_ms=100),
        TOOL_TURN[-1],
    )
    assert len(turn.calls) == 1


def test_sessions_that_share_a_file_are_told_apart(tmp_path: Path) -> None:
    other = [{**each, "session": "s2", "mono_s": each["mono_s"] - 400} for each in TOOL_TURN]
    mixed = [each for pair in zip(TOOL_TURN, other, strict=True) for each in pair]
    first, second = turns(tmp_path, *mixed)
    assert (first.session, second.session) == ("s1", "s2")
    assert (first.number, second.number) == (1, 2)
    assert first.calls == second.calls == (CallTimes("get_weather", about(1.8), about(2.3), "ok"),)


def test_tools_that_were_told_for_a_turn_are_named_where_the_trace_has_them(tmp_path: Path) -> None:
    told = line(1.1, "tools_told", names=["get_weather", "list_events", "a", "b"])
    (turn,) = turns(tmp_path, *SPOKEN, told, *TOOL_TURN[2:])
    assert turn.tools_told[0].names == ("get_weather", "list_events", "a", "b")
    assert "get_weather, list_events" in drawn(turn, width=120)
    (unnamed,) = turns(tmp_path, *SPOKEN, line(1.1, "tools_told", names_chars=9), *TOOL_TURN[2:])
    assert unnamed.tools_told[0].names == ()


def test_a_line_of_a_newer_version_is_passed_over(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *SPOKEN, line(1.2, "moon_phase", phase=3), *TOOL_TURN[2:])
    assert turn.first_word_s == about(3.1)


async def test_what_the_trace_writes_is_what_is_read(tmp_path: Path) -> None:
    clock = iter(range(100))
    path = tmp_path / "trace.jsonl"
    trace = TraceFile(
        path,
        redaction=OutgoingRedaction(RedactionSettings()),
        monotonic=lambda: float(next(clock)),
    )
    events = (
        PersonSpoke(spoke_ms=1500, silent_ms=500, transcribed_ms=None),
        UserSaid("What is the weather?"),
        ModelRequestEnded(took_ms=400, first_ms=100, outcome="ok", prompt_tokens=9),
        ToolCallStarted("c1", "get_weather", "n8n", "n8n", {"city": "Oslo"}),
        CuePlayed("tool"),
        ToolCallEnded("c1", "get_weather", "n8n", "ok", 2000),
        Spoken("Sunny."),
        AgentVoice(sounding=True, heard=True),
        AgentVoice(sounding=False, heard=True),
        TurnEnded(1, 1, 7000),
    )
    for event in events:
        trace(event)
    await trace.aclose()
    (turn,) = turns_of(read_trace(path))
    assert turn.words_s == about(1.5)
    assert turn.requests[0].begin_s == about(2.1)
    assert turn.calls == (CallTimes("get_weather", about(3.5), about(5.5), "ok"),)
    assert (turn.first_word_s, turn.last_word_s) == (about(7.5), about(8.5))
    assert "Oslo" not in path.read_text(encoding="utf-8")


WRONG = {
    "no JSON": "hello",
    "cut off": json.dumps(TOOL_TURN[0])[:-9],
    "no object": "[1, 2]",
    "another program's": '{"time": 1, "level": "info"}',
    "no time": '{"at": "noon", "session": "s", "type": "user"}',
    "no clock": json.dumps({**SPOKEN[1], "mono_s": "noon"}),
    "NaN": json.dumps({**SPOKEN[1], "mono_s": float("nan")}),
    "far": json.dumps({**SPOKEN[1], "mono_s": 1e300}),
    "deep": "[" * 100_000,
    "wrong field": json.dumps(line(1.5, "model_request_ended", took_ms="long", outcome="ok")),
    "negative": json.dumps(line(1.5, "model_request_ended", took_ms=-4, outcome="ok")),
    "no flag": json.dumps(line(1.5, "agent_voice", sounding=1, heard=True)),
    "no name": json.dumps(line(1.5, "cue", kind=4)),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_broken_line_is_named_with_its_fix(wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in SPOKEN) + wrong, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"trace\.jsonl, line 3: .*Delete that line"):
        turns_of(read_trace(path))


def test_lines_and_files_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_times, "MAX_LINE_BYTES", 400)
    with pytest.raises(ConfigError, match="line 2: it has more than"):
        turns(tmp_path, TOOL_TURN[0], line(1.0, "user", text="x" * 400))
    monkeypatch.setattr(turn_times, "MAX_BYTES", 900)
    with pytest.raises(ConfigError, match="no trace is"):
        turns(tmp_path, *TOOL_TURN)


def drawn(*shown: TurnTimes, width: int = 80, encoding: str = "utf-8") -> str:
    class Paper(StringIO):
        @property
        def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
            return encoding

    paper = Paper()
    out = Console(file=paper, width=width, soft_wrap=True, color_system=None)
    print_pictures(out, [picture_of(turn) for turn in shown])
    return paper.getvalue()


NUMBER = st.one_of(st.integers(-5, 10**13), st.floats(), st.none(), st.just("x"))
NAME = st.one_of(st.text(max_size=80), st.integers(), st.none())
NUMBERS = (
    *("took_ms", "first_ms", "silent_ms", "spoke_ms", "transcribed_ms", "duration_ms"),
    *("prompt_tokens", "cached_tokens", "completion_tokens"),
)
LINE = st.fixed_dictionaries(
    {
        "at": st.just("2026-11-23T12:00:00+00:00"),
        "session": st.sampled_from(["a", "b"]),
        "type": st.sampled_from(sorted({each["type"] for each in TOOL_TURN} | {"tools_told"})),
    },
    optional={
        "mono_s": st.floats(-1e6, 1e6),
        "call_id": st.sampled_from(["c1", "c2", "api_1"]),
        "names": st.lists(NAME, max_size=40),
        "sounding": st.booleans(),
        "heard": st.booleans(),
        **dict.fromkeys(("tool", "outcome", "kind"), NAME),
        **dict.fromkeys(NUMBERS, NUMBER),
    },
)
GOOD_LINE = st.builds(
    lambda each, ms, name: {
        **each,
        **dict.fromkeys(("took_ms", "silent_ms", "spoke_ms", "duration_ms"), ms),
        **dict.fromkeys(("tool", "outcome", "kind"), name),
        "first_ms": ms / 2,
        "transcribed_ms": ms,
        "call_id": each.get("call_id", "c3"),
        "sounding": each.get("sounding", True),
        "heard": True,
        "prompt_tokens": 5,
        "cached_tokens": 9,
        "completion_tokens": None,
        "names": [name],
    },
    LINE,
    st.one_of(st.floats(0, 1e6), st.integers(0, 10**12)),
    st.text(max_size=90),
)
any_file = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def fault(path: Path) -> str | None:
    """The words of the error, or None where the file could be read."""
    try:
        turns_of(read_trace(path))
    except ConfigError as error:
        return str(error)
    return None


@any_file
@given(st.binary(max_size=400))
def test_any_bytes_are_a_trace_or_an_error_with_the_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(data)
    assert str(path) in (fault(path) or str(path))


@any_file
@given(st.lists(LINE, max_size=20))
def test_any_fields_are_a_trace_or_an_error_with_the_line(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    path = write(tmp_path / "any", *lines)
    assert f"{path}, line " in (fault(path) or f"{path}, line ")


@any_file
@given(st.lists(GOOD_LINE, max_size=30), st.integers(20, 200))
def test_any_turn_can_be_drawn_in_its_columns(
    tmp_path: Path, lines: list[dict[str, Any]], width: int
) -> None:
    found = turns_of(read_trace(write(tmp_path / "any", *lines)))
    assert [turn.number for turn in found] == list(range(1, len(found) + 1))
    for turn in found:
        json.dumps(turn.as_json(), allow_nan=False)
        text = drawn(turn, width=width)
        assert all(c.isprintable() or c == "\n" for c in text)


def test_eighty_columns_are_enough_and_the_lanes_stand_in_their_order(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *TOOL_TURN)
    title, *lanes, axis = drawn(turn).splitlines()
    assert title == "Turn 1, get_weather: first word after 3.10 s, last after 5.00 s"
    labels = [lane[:14].strip() for lane in lanes]
    assert labels == [
        "person", "listening", "request 1", "get_weather", "cue", "request 2", "voice",
    ]  # fmt: skip
    assert all(len(each) <= 80 for each in (*lanes, axis))
    assert "read 40/1400" in lanes[2]
    assert "░" in lanes[2]
    assert axis.split() == ["-1", "0", "1", "2", "3", "4", "5", "s"]
    # The first word's line stands where the voice becomes solid.
    assert lanes[0].index("│") == lanes[-1].index("█")


def test_a_terminal_without_unicode_gets_letters(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *TOOL_TURN)
    text = drawn(turn, encoding="ascii")
    assert text.isascii()
    assert "..###" in text


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["trace", *map(str, arguments)], env={"COLUMNS": "80"})


def test_the_command_draws_all_turns_or_those_that_are_named(tmp_path: Path) -> None:
    later = [{**each, "mono_s": each["mono_s"] + 60} for each in TOOL_TURN]
    path = write(tmp_path / "trace.jsonl", *TOOL_TURN, *later)
    out = run(path).output
    assert [each[:6] for each in out.splitlines() if each.startswith("Turn")] == [
        "Turn 1",
        "Turn 2",
    ]
    assert "Turn 1" not in run(path, "--turn", "2").output
    wrong = run(path, "--turn", "3")
    assert "it has the turns 1 to 2, and no turn 3" in str(wrong.exception)
    many = run(path, *["--turn=1"] * 41)
    assert "41 turns are too many for one picture" in str(many.exception)


def test_of_a_long_trace_the_last_turns_are_drawn(tmp_path: Path) -> None:
    many = [{**each, "mono_s": each["mono_s"] + 60 * n} for n in range(12) for each in TOOL_TURN]
    out = run(write(tmp_path / "trace.jsonl", *many)).output
    assert "Turn 2," not in out
    assert "Turn 3," in out
    assert "the last 10 of 12 turns; --turn N shows another" in out


def test_json_is_an_object_a_turn(tmp_path: Path) -> None:
    out = run(write(tmp_path / "trace.jsonl", *TOOL_TURN), "--json").output
    (turn,) = [json.loads(each) for each in out.splitlines()]
    assert (turn["number"], turn["first_word_s"], turn["last_word_s"]) == (1, 3.1, 5.0)
    assert turn["requests"][0]["first_s"] == 1.2
    assert turn["calls"] == [{"tool": "get_weather", "begin_s": 1.8, "end_s": 2.3, "outcome": "ok"}]


def test_a_file_without_turns_says_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.jsonl", line(0.0, "speech", text_chars=4))
    assert "Set CAAL_TRACE=" in str(run(path).exception)
    assert "No such file" in str(run(tmp_path / "none").exception)


@pytest.mark.skipif(os.name != "posix", reason="a FIFO is POSIX's")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "a FIFO and no file" in str(run(tmp_path / "pipe").exception)


def test_names_of_a_foreign_file_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    evil = [{**each, "tool": "\x1b[2J[bold]x"} if "tool" in each else each for each in TOOL_TURN]
    out = run(write(tmp_path / "trace.jsonl", *evil)).output
    assert "\x1b" not in out
    assert "·[2J[bold]x" in out


def test_the_removed_picture_says_what_to_write_instead(tmp_path: Path) -> None:
    file, svg = write(tmp_path / "trace.jsonl", *TOOL_TURN), tmp_path / "turns.svg"
    refused = run(file, "--png", tmp_path / "turns.png")
    assert refused.exit_code == 2
    assert "write --svg FILE" in refused.output
    assert run(file, "--svg", svg).exit_code == 0
    assert "get_weather" in svg.read_text(encoding="utf-8")
