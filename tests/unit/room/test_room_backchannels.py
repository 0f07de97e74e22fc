"""Which words of speech to text reach the session while the agent speaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from livekit.agents import AgentStateChangedEvent, UserStateChangedEvent
from livekit.agents.stt import SpeechData, SpeechEvent, SpeechEventType
from livekit.rtc import EventEmitter

from caal_node.room.backchannels import BackchannelFilter

FINAL, INTERIM = SpeechEventType.FINAL_TRANSCRIPT, SpeechEventType.INTERIM_TRANSCRIPT
AGENT = object()


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
    """A filter in a session; `hears` returns what is left of the words of speech to text."""

    def __init__(self) -> None:
        self.session: Any = Session()
        self.filter = BackchannelFilter(AGENT)
        self.filter.begin(self.session)

    async def hears(self, *words: str, types: Sequence[SpeechEventType] = (FINAL,)) -> list[str]:
        async def stt_node(*_: Any) -> AsyncGenerator[SpeechEvent]:
            for each in words:
                for kind in types:
                    yield SpeechEvent(kind, alternatives=[SpeechData("en", each)])
            yield SpeechEvent(SpeechEventType.END_OF_SPEECH)

        heard = [event async for event in self.filter.around(stt_node)(None, None)]
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
    story.filter.note_sentence("Left or right?")
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
    story.filter.end()
    assert await story.hears("Okay.") == ["Okay."]
    story.session.person_speaks()
    assert await story.hears("Okay.") == ["Okay."]


async def test_a_node_may_be_awaited_or_none_as_in_livekit() -> None:
    story = Story()

    async def events() -> AsyncGenerator[SpeechEvent]:
        yield SpeechEvent(FINAL, alternatives=[SpeechData("en", "Okay.")])

    async def awaited(*_: Any) -> AsyncGenerator[SpeechEvent]:
        return events()

    heard = [each async for each in story.filter.around(awaited)(None, None)]
    assert [each.alternatives[0].text for each in heard] == ["Okay."]
    assert [each async for each in story.filter.around(lambda *_: None)(None, None)] == []
