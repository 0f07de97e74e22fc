"""What is meant by words that correct or take back themselves."""

from __future__ import annotations

import pytest
from livekit.agents import llm

from caal_node.core.items import UserItem
from caal_node.language.disfluency import as_meant, is_taken_back
from caal_node.language.judge import READ_CHARS
from caal_node.language.requests import takes_back
from caal_node.models.chat_context import ItemsOfContext

CORRECTED = "Turn on the lights in the kitchen. No wait, the bedroom."


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (CORRECTED, "Turn on the lights in the bedroom."),
        ("Lock the front door. I mean... The back door.", "Lock the back door."),
        ("Turn off the kitchen lights. Oh no. The hallway lights.", "Turn off the hallway lights."),
        ("Heat the office to 22. No sorry. to 19 degrees.", "Heat the office to 19 degrees."),
        ("Play some pop, wait no. Some classical music.", "Play some classical music."),
        ("What's the weather in Rome? No, sorry. Milan.", "What's the weather in Milan."),
        (
            "Set a timer for ten minutes. No wait. Twelve minutes.",
            "Set a timer for Twelve minutes.",
        ),
        ("Open the blinds. No, no. Close the curtains.", "Close the curtains."),
    ],
)
def test_a_correction_is_put_in_the_place_of_what_it_corrects(said: str, meant: str) -> None:
    assert as_meant(said) == meant


@pytest.mark.parametrize(
    "last", ["Never mind.", "No, cancel that.", "No, don't do that.", "Actually, never mind."]
)
def test_what_is_taken_back_is_left_out(last: str) -> None:
    assert as_meant(f"Turn on the kitchen lights. {last}") == last


def test_a_sentence_alone_is_no_taking_back_in_one_breath() -> None:
    assert not is_taken_back("Never mind.")
    assert not is_taken_back("Good morning. Stop.")
    assert is_taken_back("Turn on the light. Never mind.")


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Never mind.",
        "Turn on the kitchen lights.",
        "Turn on the kitchen lights. And the bedroom lights, please.",
        "Is the door locked? If not, lock it.",
        "No, the bedroom.",
        "Tell Anna I am late. No wait, " + "x" * READ_CHARS,
        "Play the song I mean the most to you.",
        "Put tea on the list, no sugar. Put milk on the list.",
        "Remind me to call Bob. Don't forget.",
        "Clean the floor. Oh, and close the window.",
    ],
)
def test_other_words_stay_as_they_are(said: str) -> None:
    assert as_meant(said) == said


@pytest.mark.parametrize("spoken", [True, False])
def test_the_model_is_shown_what_is_meant_by_spoken_words_and_typed_ones_as_they_are(
    spoken: bool,
) -> None:
    message = llm.ChatMessage(
        role="user", content=[CORRECTED], transcript_confidence=0.9 if spoken else None
    )
    (item,) = ItemsOfContext().read(llm.ChatContext([message]))
    assert isinstance(item, UserItem)
    assert item.text == ("Turn on the lights in the bedroom." if spoken else CORRECTED)


@pytest.mark.parametrize(
    "words", ["never mind", "Stop.", "forget it", "Cancel that.", "scratch that"]
)
def test_a_turn_that_only_takes_back_is_known(words: str) -> None:
    assert takes_back(words)


@pytest.mark.parametrize(
    "words", ["what time is it?", "thanks", "turn off the lights", "okay", "no", "wait"]
)
def test_other_turns_take_nothing_back(words: str) -> None:
    assert not takes_back(words)
