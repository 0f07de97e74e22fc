"""Which spoken words reach the session, and which turns are left alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import AgentStateChangedEvent, StopResponse, UserStateChangedEvent, llm
from livekit.agents.stt import SpeechData, SpeechEvent, SpeechEventType
from livekit.rtc import EventEmitter

from caal_node.config.setting_tables import Answers
from caal_node.config.settings import load_settings
from caal_node.config.switches import Switches
from caal_node.core.prompt_files import sentence
from caal_node.room.hearing import IN_TALK_S, NOT_YOU_S, TURN_S, WOKEN_S, Hearing, sounds_wanted
from tests.stand_ins.virtual_clock import VirtualClock

FINAL, INTERIM = SpeechEventType.FINAL_TRANSCRIPT, SpeechEventType.INTERIM_TRANSCRIPT
AGENT = object()
ALWAYS = Answers()


class Session(EventEmitter[Any]):
    """What the filter sees of a session, which changes as a story says."""

    def __init__(self) -> None:
        super().__init__()
        self.agent_state: Any = "listening"
        self.user_state: Any = "listening"
        self.current_agent: object = AGENT

    def agent(self, state: Any) -> None:
        old, self.agent_state = self.agent_state, state
        self.emit("agent_state_changed", AgentStateChangedEvent(old_state=old, new_state=state))

    def person(self, state: Any) -> None:
        old, self.user_state = self.user_state, state
        self.emit("user_state_changed", UserStateChangedEvent(old_state=old, new_state=state))

    def person_speaks(self) -> None:
        self.person("speaking")
        self.person("listening")


class Story:
    """An agent's hearing in a session; `hears` returns what is left of speech to text."""

    def __init__(self, answers: Answers = ALWAYS, wake_word: Any = None) -> None:
        self.session: Any = Session()
        self.clock = VirtualClock()
        self.hearing = Hearing(AGENT, answers, self.clock, wake_word=wake_word)
        self.hearing.begin(self.session)

    def agent_says(self, *sentences: str) -> None:
        """Let the agent say a reply to its end."""
        self.session.agent("thinking")
        for each in sentences:
            self.hearing.note_sentence(each)
        self.session.agent("speaking")
        self.session.agent("listening")

    async def hears(self, *words: str, types: Sequence[SpeechEventType] = (FINAL,)) -> list[str]:
        async def stt_node(*_: Any) -> AsyncGenerator[SpeechEvent]:
            for each in words:
                for kind in types:
                    yield SpeechEvent(kind, alternatives=[SpeechData("en", each)])
            yield SpeechEvent(SpeechEventType.END_OF_SPEECH)

        heard = [event async for event in self.hearing.of_node(stt_node)(None, None)]
        assert heard.pop().type is SpeechEventType.END_OF_SPEECH
        return [event.alternatives[0].text for event in heard]


@pytest.fixture
def story() -> Story:
    told = Story()
    told.session.agent("thinking")
    told.session.agent("speaking")
    return told


async def test_over_the_agents_speech_a_backchannel_is_dropped(story: Story) -> None:
    story.session.person_speaks()
    assert await story.hears("Mm-hmm.", types=(INTERIM, FINAL)) == []


@pytest.mark.parametrize("words", ["Stop.", "Right, and in the bathroom?"])
async def test_all_else_interrupts(story: Story, words: str) -> None:
    story.session.person_speaks()
    assert await story.hears(words) == [words]


async def test_what_begins_behind_the_agents_speech_is_heard(story: Story) -> None:
    story.session.agent("listening")
    story.session.person_speaks()
    assert await story.hears("Okay.") == ["Okay."]


async def test_words_of_two_stretches_are_dropped_only_if_both_began_over_speech(
    story: Story,
) -> None:
    story.session.person_speaks()
    story.session.agent("listening")
    story.session.person_speaks()
    assert await story.hears("Okay.") == ["Okay."]


async def test_a_noise_without_words_in_an_earlier_turn_counts_for_nothing(story: Story) -> None:
    story.session.agent("listening")
    story.session.person_speaks()
    story.session.agent("thinking")
    story.session.agent("speaking")
    story.session.person_speaks()
    assert await story.hears("Mm-hmm.") == []


async def test_while_the_agent_is_paused_for_one_another_is_dropped_too(story: Story) -> None:
    story.session.person("speaking")
    story.session.agent("listening")
    assert await story.hears("Mm-hmm.") == []
    story.session.person("listening")
    story.session.person_speaks()
    assert await story.hears("Right.") == []
    story.session.agent("speaking")
    story.session.agent("listening")
    story.session.person_speaks()
    assert await story.hears("Right.") == ["Right."]


async def test_where_the_reply_asks_something_right_may_be_the_answer(story: Story) -> None:
    story.hearing.note_sentence("Left or right?")
    story.session.person_speaks()
    assert await story.hears("Right.") == ["Right."]
    story.session.agent("thinking")
    story.session.agent("speaking")
    story.session.person_speaks()
    assert await story.hears("Right.") == []


async def test_a_task_that_asks_hears_everything(story: Story) -> None:
    story.session.current_agent = object()
    story.session.person_speaks()
    assert await story.hears("Yes.") == ["Yes."]


async def test_after_the_session_everything_is_heard(story: Story) -> None:
    story.session.person_speaks()
    story.hearing.end()
    assert await story.hears("Okay.") == ["Okay."]
    story.session.person_speaks()
    assert await story.hears("Okay.") == ["Okay."]


async def test_a_node_may_be_awaited_or_none_as_in_livekit() -> None:
    story = Story()

    async def events() -> AsyncGenerator[SpeechEvent]:
        yield SpeechEvent(FINAL, alternatives=[SpeechData("en", "Okay.")])

    async def awaited(*_: Any) -> AsyncGenerator[SpeechEvent]:
        return events()

    heard = [each async for each in story.hearing.of_node(awaited)(None, None)]
    assert [each.alternatives[0].text for each in heard] == ["Okay."]
    assert [each async for each in story.hearing.of_node(lambda *_: None)(None, None)] == []


async def test_the_agents_own_words_are_not_heard_and_a_stop_behind_them_is(story: Story) -> None:
    story.hearing.note_sentence("The light in the kitchen is on, and the door is locked.")
    for words, heard in (
        ("the light in the chicken is on", []),
        ("and the door is locked.", []),
        ("the light in the kitchen is on stop", ["the light in the kitchen is on stop"]),
        ("no the door is locked", ["no the door is locked"]),
        ("is on", ["is on"]),
    ):
        story.session.person_speaks()
        assert await story.hears(words) == heard


TALK = "Oh my god, you told her about the wedding? I can't believe it."
REQUEST = "Turn off the light in the hall."


def test_by_default_everything_is_answered() -> None:
    story = Story()
    assert not story.hearing.leaves_alone(TALK)
    assert not story.hearing.leaves_alone(REQUEST)


def test_addressed_leaves_talk_alone_and_answers_requests_and_its_name() -> None:
    story = Story(Answers("addressed", ("Olly",)))
    assert story.hearing.leaves_alone(TALK)
    assert not story.hearing.leaves_alone(REQUEST)
    assert not story.hearing.leaves_alone(f"Olly, {TALK}")
    assert story.hearing.leaves_alone(f"Jolly good. {TALK}")


def test_what_answers_the_agents_question_is_for_it() -> None:
    story = Story(Answers("addressed"))
    story.agent_says("Which of them do you mean?")
    assert not story.hearing.leaves_alone(TALK)
    story.clock.advance(IN_TALK_S)
    assert story.hearing.leaves_alone(TALK)
    story.agent_says("It is on.")
    assert story.hearing.leaves_alone(TALK)


def test_with_a_name_only_what_has_it_and_what_follows_is_answered() -> None:
    story = Story(Answers("named", ("hey Olly",)))
    assert story.hearing.leaves_alone(REQUEST)
    assert not story.hearing.leaves_alone("hey Olly turn off the light")
    story.agent_says("It is off.")
    assert not story.hearing.leaves_alone("and the one in the hall")
    story.clock.advance(IN_TALK_S)
    assert story.hearing.leaves_alone("and the one in the hall")


@pytest.mark.parametrize(
    "words",
    [
        "I wasn't talking to you!",
        "No, I’m not talking to you.",
        "Ich rede nicht mit dir.",
        "I wasn’t speaking to you",
    ],
)
def test_who_says_that_they_mean_somebody_else_gets_no_answer(words: str) -> None:
    for answers in (Answers(), Answers("addressed"), Answers("named", ("Olly",))):
        assert Story(answers).hearing.leaves_alone(words)


def test_for_a_while_after_that_only_what_is_surely_for_the_agent_is_answered() -> None:
    story = Story(Answers("addressed", ("Olly",)))
    story.agent_says("Do you want me to call them?")
    assert story.hearing.leaves_alone("I'm not talking to you.")
    assert story.hearing.leaves_alone("He would like that.")
    assert not story.hearing.leaves_alone(REQUEST)
    assert not story.hearing.leaves_alone("Olly, would he like that?")
    assert story.hearing.leaves_alone("I'm not talking to you.")
    story.clock.advance(NOT_YOU_S)
    assert not story.hearing.leaves_alone("what's the weather like tomorrow")


async def test_a_turn_that_is_left_alone_ends_without_the_agents_own_method() -> None:
    story, seen = Story(Answers("addressed")), list[str]()

    async def completed(turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        seen.append(new_message.text_content or "")

    heard = story.hearing.of_turn(completed)
    with pytest.raises(StopResponse):
        await heard(llm.ChatContext(), new_message=llm.ChatMessage(role="user", content=[TALK]))
    await heard(llm.ChatContext(), new_message=llm.ChatMessage(role="user", content=[REQUEST]))
    assert seen == [REQUEST]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("Be quiet while you work.", False),
        ("Olly, could you please be quiet while you’re working?", False),
        ("Sei bitte leise, während du arbeitest.", False),
        ("Okay, you can make sounds again.", True),
        ("Du darfst wieder Töne machen", True),
        ("Be quiet.", None),
        ("Stop beeping!", None),
        ("Tell Tom to be quiet while you work", None),
        ("Please.", None),
        ("please " * 50 + "be quiet while you work", None),
    ],
)
def test_somebody_asks_for_no_sounds_or_for_sounds(words: str, wanted: bool | None) -> None:
    assert sounds_wanted(words, ["Olly"]) is wanted


@pytest.mark.parametrize("has_sounds", [True, False])
async def test_what_is_about_the_sounds_switches_them_and_is_for_no_model(has_sounds: bool) -> None:
    said, asked = list[str](), list[str]()

    async def completed(turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        asked.append(new_message.text_content or "")

    switches = Switches(load_settings({"CAAL_CUES": "on" if has_sounds else "off"}))
    session: Any = Session()
    session.say = lambda words, **_: said.append(words)
    hearing = Hearing(AGENT, ALWAYS, VirtualClock(), switches)
    hearing.begin(session)
    turn = hearing.of_turn(completed)
    for words, are_on in (("be quiet while you work", False), ("make sounds again", True)):
        message = llm.ChatMessage(role="user", content=[words])
        if has_sounds:
            with pytest.raises(StopResponse):
                await turn(llm.ChatContext(), new_message=message)
            assert switches.cues is are_on
        else:
            await turn(llm.ChatContext(), new_message=message)
    assert said == ([sentence("sounds_off"), sentence("sounds_on")] if has_sounds else [])
    assert len(asked) == (0 if has_sounds else 2)


class Beep:
    """A wake word that is a frame of ones."""

    def hears(self, frame: rtc.AudioFrame) -> bool:
        return frame.data[0] == 1


async def listen(story: Story, *samples: int) -> None:
    """Have the agent hear frames; all of them reach speech to text."""
    passed: list[int] = []

    async def audio() -> AsyncGenerator[rtc.AudioFrame]:
        for sample in samples:
            yield rtc.AudioFrame(sample.to_bytes(2, "little") * 160, 16_000, 1, 160)

    async def stt_node(frames: Any, *_: Any) -> AsyncGenerator[SpeechEvent]:
        async for frame in frames:
            passed.append(frame.data[0])
        yield SpeechEvent(SpeechEventType.END_OF_SPEECH)

    async for _ in story.hearing.of_node(stt_node)(audio(), None):
        pass
    assert passed == list(samples)


async def test_only_what_comes_behind_the_wake_word_is_answered_and_what_follows_that() -> None:
    story = Story(Answers("woken", wake_word="beep"), Beep())
    await listen(story, 0, 0)
    assert story.hearing.leaves_alone("turn on the light")
    await listen(story, 0, 1, 0)
    assert not story.hearing.leaves_alone("turn on the light")
    story.agent_says("It is on.")
    assert not story.hearing.leaves_alone("and the other one")
    story.clock.advance(IN_TALK_S + 1)
    assert story.hearing.leaves_alone("turn on the light")


async def test_a_wake_word_does_not_last() -> None:
    story = Story(Answers("woken", wake_word="beep"), Beep())
    await listen(story, 1)
    story.clock.advance(WOKEN_S + 1)
    assert story.hearing.leaves_alone("turn on the light")


async def test_a_wake_word_ends_that_nobody_talks_to_the_agent() -> None:
    story = Story(Answers("woken", wake_word="beep"), Beep())
    assert story.hearing.leaves_alone("I'm not talking to you")
    story.agent_says("All right.")
    assert story.hearing.leaves_alone("turn on the light")
    await listen(story, 1)
    assert not story.hearing.leaves_alone("turn on the light")


async def test_who_has_spoken_waits_for_an_answer_until_a_turn_comes_of_it() -> None:
    story = Story()
    assert not story.hearing.is_hearing
    story.session.person("speaking")
    assert story.hearing.is_hearing
    story.session.person("listening")
    assert story.hearing.is_hearing, "the words are not known yet"
    await story.hears("what time is it")
    assert story.hearing.is_hearing, "they are no turn yet"

    async def completed(turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None: ...

    message = llm.ChatMessage(role="user", content=["what time is it"])
    await story.hearing.of_turn(completed)(llm.ChatContext(), message)
    assert not story.hearing.is_hearing


async def test_words_of_which_no_turn_comes_are_not_waited_for_for_long() -> None:
    story = Story()
    story.session.person_speaks()
    await story.hears("hm")
    story.clock.advance(TURN_S)
    assert not story.hearing.is_hearing
