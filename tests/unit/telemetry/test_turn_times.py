"""Turns out of a trace: what took which part of a turn's time, and files that are no trace."""

from __future__ import annotations

import json
import os
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from caal_node.cli.app import app
from caal_node.cli.trace_pictures import picture_of, print_pictures
from caal_node.core.errors import ConfigError
from caal_node.telemetry import turn_times
from caal_node.telemetry.turn_times import (
    CallTimes,
    CueTime,
    TraceSpan,
    TurnTimes,
    VoiceTimes,
    read_trace,
    turns_of,
)
from tests.stand_ins.traced_spans import CHAT, TOOL, answered, span, spoken, traced

TOOL_TURN = [spoken(), *answered()]


def write(path: Path, *spans: dict[str, Any]) -> Path:
    lines = [json.dumps(traced(each)) for each in spans]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def turns(tmp_path: Path, *spans: dict[str, Any]) -> list[TurnTimes]:
    return turns_of(read_trace(write(tmp_path / "trace.jsonl", *spans)))


def about(value: float) -> Any:
    return pytest.approx(value, abs=1e-5)


def test_a_turn_counts_from_the_end_of_speech(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *TOOL_TURN)
    assert turn.at == "2026-11-28T12:00:00.000+00:00"
    assert turn.speech_begin_s == about(-2.0)
    assert turn.transcribed_s == about(0.6)
    assert turn.words_s == about(1.0)
    first, second = turn.requests
    assert (first.begin_s, first.first_s, first.end_s) == (about(0.9), about(1.2), about(1.8))
    assert (first.prompt_tokens, first.cached_tokens) == (1400, 1360)
    assert (second.prompt_tokens, second.begin_s) == (None, about(2.3))
    assert turn.calls == (CallTimes("get_weather", about(1.8), about(2.3), "ok"),)
    assert turn.cues == (CueTime("tool", about(1.8)),)
    assert turn.voices == (VoiceTimes(about(2.8), about(3.1), about(5.0)),)
    assert (turn.first_word_s, turn.last_word_s) == (about(3.1), about(5.0))
    assert turn.begin_s == about(0.0)


def test_typed_words_count_from_their_arrival(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *answered())
    assert (turn.speech_begin_s, turn.transcribed_s, turn.words_s) == (None, None, 0.0)
    assert turn.requests[0].begin_s == about(0.0)
    assert turn.cues == (CueTime("tool", about(0.9)),)


def test_the_spans_of_a_collector_that_packs_many_in_a_line_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps(traced(*TOOL_TURN)), encoding="utf-8")
    assert turns_of(read_trace(path)) == turns(tmp_path, *TOOL_TURN)


def test_a_reply_that_was_thrown_away_before_the_last_word_is_no_turn(tmp_path: Path) -> None:
    early = [
        span(-0.6, -0.2, "chat m", "early", **CHAT),
        span(-0.6, -0.1, "agent_turn", id="early"),
    ]
    (turn,) = turns(tmp_path, *early, *TOOL_TURN)
    assert len(turn.requests) == 2


def test_a_reply_begun_before_the_turn_was_decided_is_the_turns(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, *TOOL_TURN)
    assert turn.requests[0].begin_s < turn.words_s


def test_what_is_said_without_the_model_is_no_turn_and_takes_nobodys_words(tmp_path: Path) -> None:
    said = [
        span(0.95, 0.99, "agent_speaking", "said"),
        span(0.94, 1.2, "agent_turn", id="said"),
    ]
    (turn,) = turns(tmp_path, *said, *TOOL_TURN)
    assert turn.speech_begin_s == about(-2.0)


def test_words_typed_after_a_spoken_turn_have_no_speech(tmp_path: Path) -> None:
    first, second = turns(tmp_path, *TOOL_TURN, *answered(later_s=60.0))
    assert (first.number, second.number) == (1, 2)
    assert first.speech_begin_s is not None
    assert second.speech_begin_s is None
    assert [len(turn.cues) for turn in (first, second)] == [1, 1]


def test_somebody_who_breaks_in_begins_a_turn_of_their_own(tmp_path: Path) -> None:
    later = [spoken(later_s=4.0), *answered(later_s=4.0)]
    first, second = turns(tmp_path, *TOOL_TURN, *later)
    assert first.speech_begin_s == second.speech_begin_s == about(-2.0)
    assert len(first.calls) == len(second.calls) == 1


def test_calls_over_the_api_belong_to_no_turn(tmp_path: Path) -> None:
    over_api = span(4.0, 4.1, "execute_tool get_weather", **TOOL)
    (turn,) = turns(tmp_path, *TOOL_TURN, over_api)
    assert len(turn.calls) == 1


def test_sessions_that_share_a_file_are_told_apart(tmp_path: Path) -> None:
    other = [spoken("t2", 0.5), *answered("t2", 0.5)]
    mixed = [each for pair in zip(TOOL_TURN, other, strict=True) for each in pair]
    first, second = turns(tmp_path, *mixed)
    assert (first.session, second.session) == ("t1", "t2")
    assert (first.number, second.number) == (1, 2)
    assert first.calls == second.calls == (CallTimes("get_weather", about(1.8), about(2.3), "ok"),)


def test_a_request_or_call_that_failed_says_how(tmp_path: Path) -> None:
    failed = {**TOOL, "caal.tool.outcome": "timeout", "error.type": "tool_error"}
    foreign = {"gen_ai.operation.name": "chat", "error.type": "TimeoutError"}
    (turn,) = turns(
        tmp_path,
        span(1.0, 2.0, "llm_request", "turn", **foreign),
        span(2.0, 3.0, "function_tool", "turn", **failed),
        span(0.0, 4.0, "agent_turn", id="turn"),
    )
    assert turn.requests[0].outcome == "error"
    assert turn.calls[0].outcome == "timeout"
    assert "timeout" in drawn(turn)
    assert "nothing came" in drawn(turn)


WRONG = {
    "no JSON": "hello",
    "cut off": json.dumps(traced(*TOOL_TURN))[:-9],
    "no object": "[1, 2]",
    "another program's": '{"time": 1, "level": "info"}',
    "deep": "[" * 100_000,
    "no spans": '{"resourceSpans": [{"scopeSpans": [{"spans": 4}]}]}',
}
WRONG_FIELDS: dict[str, dict[str, Any]] = {
    "no time": {"startTimeUnixNano": "noon"},
    "negative": {"startTimeUnixNano": "-1"},
    "far": {"endTimeUnixNano": str(1 << 70)},
    "no name": {"name": None},
    "no id": {"spanId": 4},
    "long id": {"spanId": "0" * 100},
}


@pytest.mark.parametrize(
    "wrong",
    [
        *WRONG.values(),
        *(json.dumps(traced({**spoken(), **each})) for each in WRONG_FIELDS.values()),
    ],
    ids=[*WRONG, *WRONG_FIELDS],
)
def test_a_broken_line_is_named_with_its_fix(wrong: str, tmp_path: Path) -> None:
    path = write(tmp_path / "trace.jsonl", *TOOL_TURN[:2])
    with path.open("a", encoding="utf-8") as file:
        file.write(wrong)
    with pytest.raises(ConfigError, match=r"trace\.jsonl, line 3: .*Delete that line"):
        turns_of(read_trace(path))


def test_a_trace_of_an_older_version_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"at":"2026-11-23T12:00:00+00:00","session":"a","type":"user"}\n', "utf-8")
    with pytest.raises(ConfigError, match=r"line 1: .*resourceSpans: Field required"):
        turns_of(read_trace(path))


def test_lines_and_files_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_times, "MAX_LINE_BYTES", 1000)
    with pytest.raises(ConfigError, match="line 2: it has more than"):
        turns(tmp_path, spoken(), span(0, 1, "x" * 1000))
    monkeypatch.setattr(turn_times, "MAX_BYTES", 2000)
    with pytest.raises(ConfigError, match="no trace is"):
        turns(tmp_path, *TOOL_TURN)


def test_the_work_grows_as_the_spans_do() -> None:
    """A file of nothing but turns, speech, cues and voices is read in one pass."""

    def seconds(count: int) -> float:
        made = [
            each
            for n in range(count)
            for each in (
                TraceSpan("t", f"u{n}", "", "user_turn", n, n + 1e9, {}),
                TraceSpan("t", f"a{n}", "", "agent_turn", n, n + 2e9, {}),
                TraceSpan("t", f"c{n}", f"a{n}", "chat m", n, n, CHAT),
                TraceSpan("t", f"q{n}", "", "cue", n, n, {}),
                TraceSpan("t", f"v{n}", "a0", "agent_speaking", n, n, {}),
                TraceSpan("t", f"s{n}", "a0", "tts_request", n, n, {}),
            )
        ]
        began = time.process_time()
        assert len(turns_of(made)) == count
        return time.process_time() - began

    seconds(200)
    # Ten times the spans; read pair by pair it would be a hundred times the work.
    assert seconds(8_000) < 40 * seconds(800)


def test_spans_that_stand_in_each_other_end(tmp_path: Path) -> None:
    ring = [
        span(0.0, 1.0, "chat m", "b", id="a", **CHAT),
        span(0.0, 1.0, "llm_node", "a", id="b"),
        span(0.0, 1.0, "agent_turn", id="turn"),
    ]
    assert turns(tmp_path, *ring) == []


def drawn(*shown: TurnTimes, width: int = 80, encoding: str = "utf-8") -> str:
    class Paper(StringIO):
        @property
        def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
            return encoding

    paper = Paper()
    out = Console(file=paper, width=width, soft_wrap=True, color_system=None)
    print_pictures(out, [picture_of(turn) for turn in shown])
    return paper.getvalue()


SECONDS = st.floats(0, 1e6)
IDS = st.sampled_from(["a", "b", "c", "turn", "session"])
NAMES = sorted({each["name"] for each in TOOL_TURN})
ATTRIBUTES = sorted(
    {each["key"] for span in TOOL_TURN for each in span["attributes"]} | {"error.type"}
)
ANY_VALUE = st.one_of(
    st.text(max_size=80),
    st.integers(-(10**18), 10**18),
    st.floats(),
    st.booleans(),
    st.sampled_from(["chat", "execute_tool"]),
)
ANY_SPAN = st.builds(
    lambda begin_s, length_s, name, above, id, trace, attributes: span(
        begin_s, begin_s + length_s, name, above, id=id, trace=trace, **attributes
    ),
    SECONDS,
    st.floats(-10, 1e6),
    st.one_of(st.sampled_from(NAMES), st.text(max_size=80)),
    IDS,
    IDS,
    st.sampled_from(["t1", "t2"]),
    st.dictionaries(st.sampled_from(ATTRIBUTES), ANY_VALUE, max_size=6),
)
any_file = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@any_file
@given(st.binary(max_size=400))
def test_any_bytes_are_a_trace_or_an_error_with_the_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(data)
    try:
        turns_of(read_trace(path))
    except ConfigError as error:
        fault = str(error)
    else:
        fault = str(path)
    assert str(path) in fault


@any_file
@given(st.lists(ANY_SPAN, max_size=30), st.integers(20, 200))
def test_any_turn_can_be_drawn_in_its_columns(
    tmp_path: Path, spans: list[dict[str, Any]], width: int
) -> None:
    found = turns_of(read_trace(write(tmp_path / "any", *spans)))
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
    path = write(tmp_path / "trace.jsonl", *TOOL_TURN, spoken(later_s=60.0), *answered("t1", 60.0))
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
    many = [each for n in range(12) for each in answered(later_s=60.0 * n)]
    out = run(write(tmp_path / "trace.jsonl", *many)).output
    assert "Turn 2," not in out
    assert "Turn 3," in out
    assert "the last 10 of 12 turns; --turn N shows another" in out


def test_json_is_an_object_a_turn(tmp_path: Path) -> None:
    out = run(write(tmp_path / "trace.jsonl", *TOOL_TURN), "--json").output
    (turn,) = [json.loads(each) for each in out.splitlines()]
    assert (turn["number"], turn["first_word_s"], turn["last_word_s"]) == (1, 3.1, 5.0)
    assert turn["requests"][0]["first_s"] == 1.2
    call = {"tool": "get_weather", "begin_s": 1.8, "end_s": 2.3, "outcome": "ok", "found": None}
    assert turn["calls"] == [call]


def test_a_file_without_turns_says_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.jsonl", span(0.0, 1.0, "on_enter"))
    assert "Set CAAL_TRACE=" in str(run(path).exception)
    assert "No such file" in str(run(tmp_path / "none").exception)


@pytest.mark.skipif(os.name != "posix", reason="a FIFO is POSIX's")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "a FIFO and no file" in str(run(tmp_path / "pipe").exception)


def test_a_list_of_tools_has_a_limit_and_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    many = ",".join(f"\x1b[31m{number}{'n' * 400}" for number in range(1_000))
    node = span(0.9, 1.8, "llm_node", "turn-0.0", **{"caal.tools.told": many})
    (turn,) = turns(tmp_path, node, *answered())
    assert 0 < len(turn.told) <= turn_times.NAMES_MAX
    assert all(len(name) <= turn_times.NAME_CHARS for name in turn.told)
    assert "\x1b" not in drawn(turn)


def test_names_of_a_foreign_file_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    evil = {**TOOL, "gen_ai.tool.name": "\x1b[2J[bold]x"}
    call = span(1.0, 2.0, "function_tool", "turn-0.0", **evil)
    out = run(write(tmp_path / "trace.jsonl", call, *TOOL_TURN)).output
    assert "\x1b" not in out
    assert "·[2J[bold]x" in out


def test_the_removed_picture_says_what_to_write_instead(tmp_path: Path) -> None:
    file, svg = write(tmp_path / "trace.jsonl", *TOOL_TURN), tmp_path / "turns.svg"
    refused = run(file, "--png", tmp_path / "turns.png")
    assert refused.exit_code == 2
    assert "write --svg FILE" in refused.output
    assert run(file, "--svg", svg).exit_code == 0
    assert "get_weather" in svg.read_text(encoding="utf-8")
