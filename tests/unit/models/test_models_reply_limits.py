"""How much of one reply is taken, however it is cut into events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.items import CallItem, Item, ResultItem, Turn, UserItem
from caal_node.models.reply_limits import (
    ARGUMENTS_CHARS_MAX,
    CALLS_MAX,
    CALLS_PER_TURN_MAX,
    PERIOD_CHARS,
    REPEATED_CHARS,
    SPEECH_CHARS_MAX,
    THINKING_CHARS_MAX,
    ReplyLimits,
    calls_left,
)
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    ReasoningDelta,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    UnknownCall,
)


def _call(number: int, **arguments: Any) -> list[Event]:
    call_id = f"call_{number}"
    return [ToolCallEnd(call_id, "f", arguments)]


def _heard(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def _calling(number: int, kind: str) -> list[Event]:
    match kind:
        case "made":
            return _call(number)
        case "unknown":
            return [UnknownCall("g", ())]
        case _:
            return [BrokenCall(f"call_{number}", "f", "It broke off.")]


_KINDS = st.sampled_from(["made", "unknown", "broken"])


@given(st.lists(_KINDS, max_size=80))
def test_no_reply_has_more_calls_than_the_limit(kinds: list[str]) -> None:
    limits, kept = ReplyLimits(), list[Event]()
    for number, kind in enumerate(kinds):
        kept += limits.admit(_calling(number, kind))
    calls = [e for e in kept if isinstance(e, ToolCallEnd | UnknownCall | BrokenCall)]
    assert len(calls) == min(len(kinds), CALLS_MAX)
    assert (limits.note is not None) == (len(kinds) > CALLS_MAX)


_BETWEEN = st.sampled_from([ReasoningDelta("And now?"), TextDelta("\n"), TextDelta("  ")])


@given(
    st.lists(_KINDS, min_size=1, max_size=4),
    st.lists(_BETWEEN, max_size=2),
    st.lists(_KINDS, max_size=2),
)
def test_a_reply_ends_in_front_of_what_is_said_behind_its_calls(
    kinds: list[str], between: list[Event], more: list[str]
) -> None:
    limits, before = ReplyLimits(), TextDelta("One moment. ")
    reply: list[Event] = [before]
    for number, kind in enumerate(kinds):
        reply += [*_calling(number, kind), *between]
    behind: list[Event] = [
        TextDelta("It is 40 degrees."),
        *(e for k in more for e in _calling(9, k)),
    ]
    assert limits.admit([*reply, *behind]) == reply
    assert limits.reached == "behind_call"
    assert limits.admit(behind) == []


@given(st.lists(st.integers(1, 9_000), max_size=12))
def test_what_is_heard_is_the_beginning_of_what_was_written_whatever_its_pieces(
    sizes: list[int],
) -> None:
    words = " ".join(map(str, range(20_000)))
    limits, at, kept = ReplyLimits(), 0, list[Event]()
    for size in sizes:
        kept += limits.admit([TextDelta(words[at : at + size])])
        at += size
    heard = _heard(kept)
    assert words.startswith(heard)
    assert len(heard) <= SPEECH_CHARS_MAX
    assert (limits.reached == "speech") == (at > SPEECH_CHARS_MAX)
    if limits.reached is None:
        assert heard == words[:at]


def test_text_that_turns_out_to_be_thinking_does_not_count_as_heard() -> None:
    limits = ReplyLimits()
    thought = " ".join(map(str, range(4_000)))
    limits.admit([TextDelta(thought), TextWasThinking(), TextDelta(thought)])
    assert limits.reached is None


@pytest.mark.parametrize("piece", ["very ", "I will look that up for you. ", "ha", "x" * 149 + " "])
def test_a_piece_said_over_and_over_ends_the_reply(piece: str) -> None:
    limits = ReplyLimits()
    said = 0
    while limits.reached is None:
        said += len(_heard(limits.admit([TextDelta(piece)])))
        assert said < 2 * REPEATED_CHARS
    assert limits.reached == "speech"
    assert said >= REPEATED_CHARS


@given(st.integers(0, 10_000))
def test_an_ordinary_list_is_no_loop(first: int) -> None:
    lines = [f"Number {n} is on the list. " for n in range(first, first + 200)]
    limits = ReplyLimits()
    assert _heard(limits.admit(map(TextDelta, lines))) == "".join(lines)
    assert limits.reached is None


def test_a_refrain_that_is_longer_than_a_period_is_no_loop() -> None:
    refrain = " ".join(str(n) for n in range(1_000, 1_000 + PERIOD_CHARS))
    limits = ReplyLimits()
    limits.admit([TextDelta(refrain)] * 12)
    assert limits.reached is None


def test_endless_thinking_ends_the_reply() -> None:
    limits = ReplyLimits()
    piece = ReasoningDelta("x" * 1_000)
    kept = [event for _ in range(1_000) for event in limits.admit([piece])]
    assert limits.reached == "thinking"
    assert len(kept) * 1_000 <= THINKING_CHARS_MAX


@given(st.integers(0, 2 * ARGUMENTS_CHARS_MAX))
def test_arguments_beyond_the_limit_are_a_broken_call_that_says_so(chars: int) -> None:
    (end,) = ReplyLimits().admit(_call(1, text="x" * chars))
    size = len(json.dumps({"text": "x" * chars}))
    if size <= ARGUMENTS_CHARS_MAX:
        assert isinstance(end, ToolCallEnd)
    else:
        assert isinstance(end, BrokenCall)
        assert str(ARGUMENTS_CHARS_MAX) in end.problem


def test_a_turn_has_a_limit_over_all_its_replies() -> None:
    def rounds(count: int) -> list[Item]:
        made: list[Item] = [CallItem(f"c{n}", "f", "{}") for n in range(count)]
        return [*made, *(ResultItem(f"c{n}", "f", "1") for n in range(count))]

    go = UserItem("go")
    assert calls_left(Turn([go])) == CALLS_MAX
    assert calls_left(Turn([go, *rounds(CALLS_PER_TURN_MAX - 3)])) == 3
    assert calls_left(Turn([go, *rounds(CALLS_PER_TURN_MAX + 3)])) == 0
    assert calls_left(Turn([go, *rounds(CALLS_PER_TURN_MAX), UserItem("again")])) == CALLS_MAX
