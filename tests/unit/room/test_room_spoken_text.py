"""Text on its way to speech is reported sentence by sentence, and passed on with every space."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hypothesis import given, settings
from hypothesis import strategies as st
from livekit.agents import tokenize

from caal_node.room.spoken_text import SENTENCE_CHARS, speakable, watched


async def pieces(*given: str) -> AsyncIterator[str]:
    for piece in given:
        yield piece


async def told(*given: str, as_spoken: bool = False) -> tuple[str, list[str]]:
    sentences: list[str] = []
    out = [p async for p in watched(pieces(*given), sentences.append, as_spoken=as_spoken)]
    return "".join(out), sentences


async def test_sentences_are_reported_and_the_text_passes_unchanged() -> None:
    text, sentences = await told("It is  3.", "5 miles, e.g", ". by bus. ", " Go!\n\nNow", " ok")
    assert text == "It is  3.5 miles, e.g. by bus.  Go!\n\nNow ok"
    assert sentences == ["It is  3.5 miles, e.g. by bus.", "Go!", "Now ok"]


@settings(deadline=None)
@given(st.lists(st.text("aB .!?\n'\")e", max_size=6)))
async def test_no_chunking_loses_a_space_or_a_word(chunks: list[str]) -> None:
    text, sentences = await told(*chunks)
    assert text == "".join(chunks)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    whole = await told("".join(chunks))
    assert sentences == whole[1]


async def test_text_without_an_end_is_reported_in_parts() -> None:
    _, sentences = await told(*["word "] * 1000)
    assert len(sentences) > 1
    assert max(map(len, sentences)) <= SENTENCE_CHARS
    assert " ".join(sentences).split() == ["word"] * 1000


async def test_an_interruption_reports_what_was_said_until_then() -> None:
    sentences: list[str] = []
    stream = watched(pieces("First. Second", " half", " never"), sentences.append)
    assert await anext(stream) == "First. Second"
    assert await anext(stream) == " half"
    await stream.aclose()
    assert sentences == ["First.", "Second"]


async def test_what_people_read_stays_written_and_what_is_reported_is_speakable() -> None:
    text, sentences = await told("It is **21", " °C**. See https://x.org/", "a.", as_spoken=True)
    assert text == "It is **21 °C**. See https://x.org/a."
    assert sentences == ["It is 21 degrees Celsius.", "See a link to x.org."]


async def test_abbreviations_decimals_and_spaces_reach_a_voice_whole() -> None:
    """Through the sentences that LiveKit's adapter makes for a voice that cannot stream."""
    written = "Dr. Lee ran 3.5  miles, e.g. on 2026-11-22.  At 8:30 a.m. it was 5 °C. Bye!"
    said = "".join([p async for p in speakable(pieces(*written))])
    assert said == (
        "Dr. Lee ran 3.5  miles, e.g. on November 22, 2026.  At 8:30 a.m. it was 5 degrees"
        " Celsius. Bye!"
    )
    stream = tokenize.blingfire.SentenceTokenizer(retain_format=True).stream()
    for char in said:
        stream.push_text(char)
    stream.end_input()
    sentences = [event.token async for event in stream]
    assert "".join("".join(sentences).split()) == "".join(said.split())
    for whole in ("Dr. Lee", "3.5  miles", "e.g. on", "8:30 a.m."):
        assert any(whole in sentence for sentence in sentences)
