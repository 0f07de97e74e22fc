"""Calls in `{{...}}`, from models whose template was taken literally, are read as in `{...}`."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.reply_parser import (
    BrokenCall,
    Event,
    ReplyParser,
    SpokenReplyParser,
    TextDelta,
    ToolCallEnd,
    parse_reply,
    summarise,
)
from tests.stand_ins.reply_examples import joined


def _tool(name: str, **properties: str) -> dict[str, Any]:
    types = {key: {"type": kind} for key, kind in properties.items()}
    schema = {"type": "object", "properties": types, "required": list(types)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS: Final = [_tool("get_time", city="string"), _tool("set_timer", minutes="integer")]
TIME: Final = '{{"name": "get_time", "arguments": {"city": "Berlin"}}}'
TIMER: Final = '{{"name": "set_timer", "arguments": {"minutes": 5}}}'
CALLED: Final[tuple[str, dict[str, Any]]] = ("get_time", {"city": "Berlin"})
BOTH: Final[list[tuple[str, dict[str, Any]]]] = [CALLED, ("set_timer", {"minutes": 5})]
PARSERS: Final = (ReplyParser, SpokenReplyParser)

TEXTS: Final[dict[str, tuple[list[tuple[str, dict[str, Any]]], str]]] = {
    TIME: ([CALLED], ""),
    f"One moment.\n{TIME}\nDone.": ([CALLED], "One moment.\n\nDone."),
    f"One moment. {TIME} Done.": ([CALLED], "One moment.  Done."),
    f"```json\n{TIME}\n```": ([CALLED], ""),
    f"```json\n{TIME}\n{TIMER}\n```": (BOTH, ""),
    f"{TIME}\n{TIMER}": (BOTH, ""),
    f"{TIME}, {TIMER}": (BOTH, ""),
    f"[{TIME}, {TIMER}]": (BOTH, ""),
    TIME.removesuffix("}"): ([CALLED], ""),
    '{{"name": "get_time", "arguments": {{"city": "Berlin"}}}}': ([CALLED], ""),
    '{{\n  "name": "get_time",\n  "arguments": {"city": "Berlin"}\n}\n}\nDone.': (
        [CALLED],
        "\nDone.",
    ),
    '{{"get_time": {"city": "Berlin"}}}': ([CALLED], ""),
    '{{"type": "final", "text": "It is two."}}': ([], "It is two."),
}


def events_of(
    text: str, size: int, kind: type[ReplyParser] | type[SpokenReplyParser]
) -> list[Event]:
    parser = kind(TOOLS)
    events = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
    return joined([*events, *parser.finish()])


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize("text", TEXTS)
def test_calls_in_doubled_braces_are_made(
    text: str, size: int, kind: type[ReplyParser] | type[SpokenReplyParser]
) -> None:
    reply = summarise(events_of(text, size, kind))
    calls, said = TEXTS[text]
    assert [(call.name, call.arguments) for call in reply.calls] == calls
    assert reply.text == said
    assert not reply.problems


@pytest.mark.parametrize("end", range(len('{{"name":'), len(TIME) - 2))
@pytest.mark.parametrize("before", ["", "One moment. ", "```json\n"])
def test_a_call_that_is_cut_off_is_reported_and_not_spoken(before: str, end: int) -> None:
    reply = parse_reply(before + TIME[:end], TOOLS)
    assert not reply.calls
    assert [type(problem) for problem in reply.problems] == [BrokenCall]
    assert reply.text == before.removesuffix("```json\n")


def test_python_quotes_are_read_and_other_data_is_not_spoken() -> None:
    text = "{{'name': 'get_time', 'arguments': {'city': 'Berlin'}}}"
    (call,) = summarise(events_of(text, 3, SpokenReplyParser)).calls
    assert (call.name, call.arguments) == CALLED
    assert summarise(
        events_of('It is warm. {{"temp": 21}}', 3, SpokenReplyParser)
    ).text.strip() == ("It is warm.")


@pytest.mark.parametrize(
    "text",
    [
        "Write {{ states('light.kitchen') }} into the card.",
        "{{ states('light.kitchen') }}",
        "Write this: {{ states('light.kitchen') }}. Then {{ now() }} is the time.",
        "It depends. {{ \"on\" if is_state('light.kitchen', 'on') else \"off\" }} says so.",
        'It depends. {{ {"on": 1}["on"] }} says so.',
    ],
)
@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("size", [1, 1_000])
def test_templates_are_spoken_as_they_stand(
    text: str, size: int, kind: type[ReplyParser] | type[SpokenReplyParser]
) -> None:
    assert events_of(text, size, kind) == [TextDelta(text)]


_OBJECTS: Final = st.sampled_from(
    [
        '{"name": "get_time", "arguments": {"city": "Berlin"}}',
        '{"name":"set_timer","arguments":{"minutes":5}}',
        '{"name": "set_timer", "minutes": 5}',
        '{"set_timer": {"minutes": 5}}',
        '{"function": {"name": "set_timer", "arguments": {"minutes": 5}}}',
        '{"calls":[{"name":"set_timer","arguments":{"minutes":5}}]}',
        '{"name": "unknown", "arguments": {"city": "x"}}',
        '{"type":"final","text":"Hello there."}',
    ]
)
_BETWEEN: Final = st.sampled_from(
    [
        "\n",
        "\n\n",
        " ",
        ", ",
        "It is done. ",
        "Look ",
        "\n```json\n",
        "\n```\n",
        "- ",
        "</tool_call>",
    ]
)


@given(
    st.lists(st.tuples(_BETWEEN, _OBJECTS), min_size=1, max_size=4),
    _BETWEEN,
    st.integers(1, 9),
    st.sampled_from(PARSERS),
)
def test_any_chunks_give_the_events_of_single_braces(
    parts: list[tuple[str, str]],
    end: str,
    size: int,
    kind: type[ReplyParser] | type[SpokenReplyParser],
) -> None:
    single = "".join(before + written for before, written in parts) + end
    doubled = "".join(f"{before}{{{written}}}" for before, written in parts) + end
    events = events_of(doubled, size, kind)
    assert events == events_of(doubled, len(doubled), kind)
    assert _without_braces(events) == _without_braces(events_of(single, len(single), kind))


def _without_braces(events: list[Event]) -> list[object]:
    """Return what was called and said; of what stays text, the braces differ."""
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    others = [e for e in events if not isinstance(e, TextDelta)]
    called = [(e.name, e.arguments) if isinstance(e, ToolCallEnd) else type(e) for e in others]
    return [said.replace("{", "").replace("}", ""), *called]
