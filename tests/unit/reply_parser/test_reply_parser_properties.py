"""What holds for every text: nothing raises, no marker is spoken, chunks do not matter."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.reply_parser import (
    BrokenCall,
    Event,
    ReplyParser,
    ToolCallEnd,
    ToolCallStart,
    parse_reply,
    summarise,
)
from caal_node.reply_parser.formats import MARKERS
from caal_node.reply_parser.markers import THINKING_BLOCKS, THINKING_CLOSERS
from tests.stand_ins.reply_examples import EXAMPLES, TOOLS, joined

_FRAGMENTS = st.one_of(
    st.sampled_from(
        sorted(
            {
                *MARKERS.openers,
                *THINKING_BLOCKS,
                *THINKING_CLOSERS,
                *("</tool_call>", "</function>", "[ARGS]", "<|end|>", "```json\n", "```", "`"),
                *('{"name": "set_timer", "arguments": ', '{"minutes": 5}', "set_timer", "call:"),
                *("{", "}", "[", "]", "(", ")", '"', "'", "\\", "\n", " ", ",", ":", ";", "=", "<"),
                *(
                    '{"type":"final_answer","text":"',
                    '{"calls":[',
                    "\\u00e9",
                    "\\ud83d",
                    "|>",
                    "｜",
                ),
            }
        )
    ),
    st.text(max_size=8),
    st.sampled_from(EXAMPLES),
)


@st.composite
def replies(draw: st.DrawFn) -> str:
    parts = draw(st.lists(_FRAGMENTS, max_size=12))
    cut = [part[draw(st.integers(0, 3)) :] if draw(st.booleans()) else part for part in parts]
    text = "".join(cut)
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@st.composite
def chunked(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(replies())
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=20))
    chunks: list[str] = []
    at = turn = 0
    while at < len(text):
        chunks.append(text[at : at + sizes[turn % len(sizes)]])
        at += len(chunks[-1])
        turn += 1
    return text, chunks


def events_of(chunks: list[str], *, in_thinking: bool) -> list[Event]:
    parser = ReplyParser(TOOLS, in_thinking=in_thinking)
    events: list[Event] = []
    for chunk in chunks:
        events += parser.feed(chunk)
    return events + parser.finish()


@settings(max_examples=400, deadline=None)
@given(chunked(), st.booleans())
def test_any_chunks_give_the_events_of_the_whole(
    sample: tuple[str, list[str]], in_thinking: bool
) -> None:
    text, chunks = sample
    whole = joined(events_of([text], in_thinking=in_thinking))
    assert joined(events_of(chunks, in_thinking=in_thinking)) == whole


@settings(max_examples=400, deadline=None)
@given(replies(), st.booleans())
def test_no_marker_is_ever_spoken(text: str, in_thinking: bool) -> None:
    events = events_of([text], in_thinking=in_thinking)
    assert MARKERS.strip.search(summarise(events).text) is None


@settings(max_examples=300, deadline=None)
@given(replies(), st.booleans())
def test_every_end_has_one_start_and_calls_have_ids_of_their_own(
    text: str, in_thinking: bool
) -> None:
    events = events_of([text], in_thinking=in_thinking)
    ends = [(event.id, event.name) for event in events if isinstance(event, ToolCallEnd)]
    assert ends == [(e.id, e.name) for e in events if isinstance(e, ToolCallStart)]
    ids = [event.id for event in events if isinstance(event, ToolCallEnd | BrokenCall)]
    assert len(set(ids)) == len(ids)


@settings(max_examples=300, deadline=None)
@given(replies())
def test_only_tools_that_are_there_are_called(text: str) -> None:
    names = {tool["function"]["name"] for tool in TOOLS}
    assert {call.name for call in parse_reply(text, TOOLS).calls} <= names


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_characters="<[]{`◁"), max_size=200))
def test_text_without_any_special_character_is_spoken_as_it_stands(text: str) -> None:
    if "</" not in text and "to=" not in text and "Action:" not in text:
        said = summarise(events_of([text], in_thinking=False)).text
        assert said.strip() == text.strip()


def test_finishing_twice_gives_nothing_more() -> None:
    parser = ReplyParser(TOOLS)
    parser.feed("Hello")
    parser.finish()
    assert parser.finish() == []


_MARKERS: Final = sorted(
    {*MARKERS.all, *THINKING_BLOCKS, *THINKING_CLOSERS, "<|im_end|>", "<｜x｜>"}
)
_SPEECH: Final = st.sampled_from(
    ("", " ", "\n", "It is two < three. ", "Good night.", "set_timer ")
)


@pytest.mark.parametrize("marker", _MARKERS)
def test_a_marker_alone_doubled_or_broken_off_is_not_spoken(marker: str) -> None:
    texts = [marker, marker * 2, f"Yes {marker} no.", f"Yes{marker}{marker[:-1]}", f"{marker}Yes"]
    texts += [f"Yes {marker[:end]}{marker}" for end in range(1, len(marker))]
    for text in texts:
        for size in (1, len(text)):
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            spoken = summarise(events_of(pieces, in_thinking=False)).text
            assert MARKERS.strip.search(spoken) is None, text


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(_SPEECH, st.sampled_from(_MARKERS), st.integers(0, 3)), max_size=6))
def test_markers_in_the_wrong_order_are_not_spoken(parts: list[tuple[str, str, int]]) -> None:
    text = "".join(speech + marker[cut if cut < 3 else 0 :] for speech, marker, cut in parts)
    spoken = summarise(events_of([text], in_thinking=False)).text
    assert MARKERS.strip.search(spoken) is None
