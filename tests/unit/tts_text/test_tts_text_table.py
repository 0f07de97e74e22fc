"""What is written is said as the table in docs/speech.md shows."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from livekit.agents.voice.transcription.filters import filter_emoji, filter_markdown

from tests.stand_ins.tts_text_driver import chunked, normalized
from tests.tts_text_table import PAGE, SAID, page

ROWS = [row for rows in SAID.values() for row in rows]


@pytest.mark.parametrize(("written", "spoken"), ROWS)
def test_what_is_written_is_said_as_the_table_shows(written: str, spoken: str) -> None:
    assert normalized(written) == spoken


@pytest.mark.parametrize(("written", "spoken"), ROWS)
def test_a_row_is_said_alike_character_by_character(written: str, spoken: str) -> None:
    assert chunked(written, [1]) == spoken


@pytest.mark.parametrize("spoken", [spoken for _, spoken in ROWS])
async def test_livekits_filters_find_nothing_left_to_take(spoken: str) -> None:
    async def words() -> AsyncIterator[str]:
        for word in spoken.split(" "):
            yield word + " "

    pieces = [piece async for piece in filter_emoji(filter_markdown(words()))]
    assert "".join(pieces).removesuffix(" ") == spoken


@pytest.mark.parametrize("spoken", [spoken for _, spoken in ROWS])
def test_what_is_said_is_said_alike_a_second_time(spoken: str) -> None:
    """Two agents of one session may both normalize a text for a moment."""
    assert normalized(spoken) == spoken


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.tts_text_table writes it"
