"""An announcement comes over nobody's words, and only where somebody hears it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from livekit import rtc
from livekit.agents import AgentTask, llm

from caal_node.core.events import Announced, CueKind, Priority
from caal_node.room.announcer import (
    ANSWER_S,
    LISTEN_S,
    LOW_PATIENCE_S,
    LOW_QUIET_S,
    PATIENCE_S,
    PLAYOUT_S,
    QUIET_S,
    SETTLE_S,
    WORDS_S,
    SessionAnnouncer,
)
from tests.stand_ins.virtual_loop import run

STANDARD = rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD
AGENT = rtc.ParticipantKind.PARTICIPANT_KIND_AGENT
CUE_S = 0.9


class Speech:
    """One that is heard from its beginning, unless speech synthesis fails."""

    def __init__(self, session: Session, words: str) -> None:
        self.interrupted = False
        self.chat_items: list[llm.ChatItem] = []
        self._session = session
        self._words = words
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._play())

    async def _play(self) -> None:
        self._session.current_speech = self
        await asyncio.sleep(self._session.latency_s)
        if not self._session.voiceless:
            self._session.become("speaking")
            await asyncio.sleep(self._session.playout_s)
        self._end()

    async def wait_for_playout(self) -> None:
        await self._over.wait()

    def done(self) -> bool:
        return self._over.is_set()

    def interrupt(self) -> None:
        self.interrupted = True
        self._task.cancel()
        self._end()

    def _end(self) -> None:
        if self._session.agent_state == "speaking":
            self.chat_items.append(llm.ChatMessage(role="assistant", content=[self._words]))
        self._session.current_speech = None
        self._session.become("listening")
        self._over.set()


class Session:
    """What the announcer sees of a LiveKit session, and when each thing was done in it."""

    def __init__(self) -> None:
        self.user_state = "listening"
        self.agent_state = "listening"
        self.current_speech: Any = None
        self.current_agent: object | None = None
        self.history = llm.ChatContext.empty()
        self.latency_s = 0.0
        """Seconds until the first sound of a speech."""
        self.voiceless = False
        """Whether speech synthesis fails."""
        self._handlers: dict[str, list[Callable[[Any], None]]] = {}
        self.did: list[tuple[float, str]] = []
        self.speeches: list[Speech] = []
        self.closing = False
        self.playout_s = 2.0

    def say(self, words: str) -> Speech:
        if self.closing:
            raise RuntimeError("AgentSession is closing, cannot use say()")
        self._note(words)
        self.speeches.append(Speech(self, words))
        return self.speeches[-1]

    def on(self, event: str, handler: Callable[[Any], None]) -> None:
        self._handlers.setdefault(event, []).append(handler)

    def off(self, event: str, handler: Callable[[Any], None]) -> None:
        self._handlers[event].remove(handler)

    def become(self, state: str) -> None:
        self.agent_state = state
        for handler in (*self._handlers.get("agent_state_changed", ()),):
            handler(SimpleNamespace(new_state=state))

    def hear(self, words: str) -> llm.ChatMessage:
        """The person has said something, to which the model is going to be asked for a reply."""
        message = llm.ChatMessage(role="user", content=[words])
        self.history.items.append(message)
        for handler in (*self._handlers.get("conversation_item_added", ()),):
            handler(SimpleNamespace(item=message))
        return message

    @property
    def listeners(self) -> int:
        return sum(map(len, self._handlers.values()))

    async def interrupt(self) -> None:
        if self.current_speech is not None:
            self.current_speech.interrupt()

    def generate_reply(self, *, user_input: str) -> None:
        if self.closing:
            raise RuntimeError("AgentSession is closing, cannot use generate_reply()")
        self._note(f"asked: {user_input}")

    def play(self, kind: CueKind) -> float:
        self._note(kind)
        return CUE_S

    def _note(self, what: str) -> None:
        self.did.append((round(asyncio.get_running_loop().time(), 1), what))


class Room:
    name = "kitchen"

    def __init__(self, *people: int) -> None:
        self.connected = True
        self.remote_participants = {str(at): _person(kind) for at, kind in enumerate(people)}
        self._handlers: dict[str, list[Callable[[Any], None]]] = {}

    def isconnected(self) -> bool:
        return self.connected

    def on(self, event: str, handler: Callable[[Any], None]) -> None:
        self._handlers.setdefault(event, []).append(handler)

    def off(self, event: str, handler: Callable[[Any], None]) -> None:
        self._handlers[event].remove(handler)

    def join(self, kind: int = STANDARD) -> None:
        person = _person(kind)
        self.remote_participants["new"] = person
        for handler in self._handlers.get("participant_connected", []):
            handler(person)


def _person(kind: int) -> Any:
    return SimpleNamespace(kind=kind)


def begun(session: Session, room: Room | None, hearing: Any = None) -> SessionAnnouncer:
    announcer = SessionAnnouncer(hearing)
    announcer.begin(cast("Any", session), cast("Any", room), session.play)
    return announcer


def test_the_cue_comes_before_the_words() -> None:
    session = Session()

    async def scene() -> None:
        announcer = begun(session, Room(STANDARD))
        assert announcer.place == "kitchen"
        assert await announcer.announce("Done.", cue="ring")

    run(scene())
    (cue_at, cue), (said_at, words) = session.did
    assert (cue, words) == ("ring", "Done.")
    assert cue_at == pytest.approx(QUIET_S, abs=0.2)
    assert said_at >= cue_at + CUE_S


@pytest.mark.parametrize(
    ("what", "busy", "idle"),
    [
        ("user_state", "speaking", "listening"),
        ("agent_state", "speaking", "listening"),
        ("agent_state", "thinking", "listening"),
        ("current_speech", object(), None),
    ],
)
def test_it_waits_until_nobody_speaks(what: str, busy: object, idle: object) -> None:
    session = Session()
    setattr(session, what, busy)

    async def scene() -> None:
        announcer = begun(session, Room(STANDARD))
        asyncio.get_running_loop().call_later(5, setattr, session, what, idle)
        assert await announcer.announce("Done.", cue="ring")

    run(scene())
    assert session.did[0][0] >= 5 + QUIET_S


def test_it_waits_for_the_answer_to_what_somebody_has_just_said() -> None:
    session, hearing = Session(), SimpleNamespace(is_hearing=True)

    async def scene() -> None:
        announcer = begun(session, Room(STANDARD), hearing)
        asyncio.get_running_loop().call_later(5, setattr, hearing, "is_hearing", False)
        assert await announcer.announce("Done.", cue="ring")

    run(scene())
    assert session.did[0][0] >= 5 + QUIET_S


def test_a_pause_between_two_words_is_no_silence() -> None:
    session = Session()
    session.user_state = "speaking"

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        for at, state in ((2.0, "listening"), (2.0 + QUIET_S / 2, "speaking"), (6.0, "listening")):
            loop.call_later(at, setattr, session, "user_state", state)
        assert await begun(session, Room(STANDARD)).announce("Done.", cue="ring")

    run(scene())
    assert session.did[0][0] >= 6.0 + QUIET_S


def test_the_words_wait_for_somebody_who_begins_to_speak_at_the_cue() -> None:
    session = Session()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(QUIET_S + 0.5, setattr, session, "user_state", "speaking")
        loop.call_later(7.0, setattr, session, "user_state", "listening")
        assert await begun(session, Room(STANDARD)).announce("Done.", cue="ring")

    run(scene())
    assert [what for _, what in session.did] == ["ring", "Done."]
    assert session.did[1][0] >= 7.0 + QUIET_S


def test_a_radio_does_not_keep_it_quiet_for_ever() -> None:
    session = Session()
    session.user_state = "speaking"

    async def scene() -> None:
        assert await begun(session, Room(STANDARD)).announce("Done.", cue="ring")

    run(scene())
    assert session.did[0][0] == pytest.approx(PATIENCE_S, abs=0.2)


@pytest.mark.parametrize("people", [(), (AGENT,)])
def test_an_empty_room_is_told_nothing(people: tuple[int, ...]) -> None:
    session = Session()

    async def scene() -> None:
        assert not await begun(session, Room(*people)).announce("Done.", cue="ring")

    run(scene())
    assert session.did == []


def test_outside_of_a_session_nobody_hears_it() -> None:
    async def scene() -> None:
        announcer = begun(Session(), Room(STANDARD))
        announcer.end()
        assert announcer.place == ""
        assert not await announcer.announce("Done.")

    run(scene())


def test_a_session_that_closes_is_nobody_who_hears_it() -> None:
    session = Session()
    session.closing = True

    async def scene() -> None:
        assert not await begun(session, None).announce("Done.")

    run(scene())


def test_one_announcement_follows_the_other() -> None:
    session = Session()

    async def scene() -> None:
        announcer = begun(session, None)
        async with asyncio.TaskGroup() as group:
            for words in ("One.", "Two."):
                group.create_task(announcer.announce(words, cue="ring"))

    run(scene())
    assert [what for _, what in session.did] == ["ring", "One.", "ring", "Two."]
    assert session.did[2][0] >= session.did[1][0] + session.playout_s


@pytest.mark.parametrize("room", [None, Room(), Room(STANDARD)])
def test_a_request_begins_a_turn_once_nobody_speaks(room: Room | None) -> None:
    session = Session()
    session.user_state = "speaking"

    async def scene() -> None:
        asyncio.get_running_loop().call_later(5, setattr, session, "user_state", "listening")
        assert await begun(session, room).ask("Lights off.")

    run(scene())
    ((at, what),) = session.did
    assert what == "asked: Lights off."
    assert at >= 5 + QUIET_S


@pytest.mark.parametrize("closing", [True, False])
def test_a_request_is_not_made_where_no_session_runs(closing: bool) -> None:
    session = Session()
    session.closing = closing

    async def scene() -> None:
        announcer = begun(session, None)
        if not closing:
            asyncio.get_running_loop().call_later(QUIET_S / 2, announcer.end)
        assert not await announcer.ask("Lights off.")
        announcer.end()
        assert not await announcer.ask("Lights off.")

    run(scene())
    assert session.did == []


def test_without_words_only_the_cue_is_heard() -> None:
    session = Session()

    async def scene() -> None:
        assert await begun(session, None).announce("", cue="ring")

    run(scene())
    assert [what for _, what in session.did] == ["ring"]


def test_a_cancelled_announcement_stops_its_words() -> None:
    session = Session()
    session.playout_s = 20.0

    async def scene() -> None:
        task = asyncio.create_task(begun(session, None).announce("Done."))
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(scene())
    assert session.speeches[0].interrupted


def test_who_is_there_and_who_comes_is_told_of() -> None:
    async def scene() -> None:
        room = Room()
        announcer = begun(Session(), room)
        told = list[float]()
        end = announcer.on_arrival(lambda: told.append(asyncio.get_running_loop().time()))
        watch = asyncio.create_task(announcer.watch_arrivals())
        await asyncio.sleep(3)
        assert told == []
        room.join(AGENT)
        await asyncio.sleep(3)
        assert told == []
        room.join()
        await asyncio.sleep(3)
        assert told == [6 + SETTLE_S]
        end()
        room.join()
        await asyncio.sleep(3)
        assert len(told) == 1
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)

    run(scene())


def test_somebody_who_was_there_first_counts_as_come() -> None:
    async def scene() -> None:
        announcer = begun(Session(), Room(STANDARD))
        told = asyncio.Event()
        announcer.on_arrival(told.set)
        watch = asyncio.create_task(announcer.watch_arrivals())
        async with asyncio.timeout(5):
            await told.wait()
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)

    run(scene())


def later(delay_s: float, do: Callable[..., object], *with_: object) -> None:
    asyncio.get_running_loop().call_later(delay_s, do, *with_)


def test_what_is_urgent_comes_first_and_of_the_same_priority_what_came_first() -> None:
    session = Session()
    session.user_state = "speaking"
    wanted: tuple[tuple[str, Priority], ...] = (
        ("low", "low"),
        ("one", "normal"),
        ("two", "normal"),
        ("fire", "urgent"),
        ("smoke", "urgent"),
    )

    async def scene() -> None:
        announcer = begun(session, None)
        later(5, setattr, session, "user_state", "listening")
        async with asyncio.TaskGroup() as group:
            for words, priority in wanted:
                group.create_task(announcer.say(words, priority))

    run(scene())
    assert [what for _, what in session.did] == ["fire", "smoke", "one", "two", "low"]


def test_what_is_urgent_interrupts_the_agent_and_waits_for_the_person() -> None:
    session = Session()
    session.user_state = "speaking"

    async def scene() -> None:
        announcer = begun(session, None)
        session.playout_s = 50.0
        answer = Speech(session, "A long answer.")
        await asyncio.sleep(0.1)
        session.playout_s = 2.0
        later(4, setattr, session, "user_state", "listening")
        assert await announcer.say("Fire.", "urgent") == Announced("said")
        assert answer.interrupted

    run(scene())
    ((at, _),) = session.did
    assert at == pytest.approx(4 + QUIET_S, abs=0.3)


def test_what_has_time_waits_for_a_longer_pause() -> None:
    session = Session()

    async def scene() -> None:
        later(LOW_QUIET_S - 1, setattr, session, "user_state", "speaking")
        later(LOW_QUIET_S + 1, setattr, session, "user_state", "listening")
        assert await begun(session, None).say("News.", "low") == Announced("said")

    run(scene())
    assert session.did[0][0] >= LOW_QUIET_S + 1 + LOW_QUIET_S


def test_what_has_time_is_not_said_where_no_pause_comes() -> None:
    session = Session()
    session.user_state = "speaking"

    async def scene() -> None:
        told = await begun(session, None).say("News.", "low")
        assert told == Announced("not_said", "no_pause")
        assert asyncio.get_running_loop().time() == pytest.approx(LOW_PATIENCE_S, abs=0.3)

    run(scene())
    assert session.did == []


def test_what_has_time_holds_up_nothing_else() -> None:
    session = Session()

    async def scene() -> None:
        announcer = begun(session, None)
        async with asyncio.TaskGroup() as group:
            group.create_task(announcer.say("News.", "low"))
            await asyncio.sleep(LOW_QUIET_S - 1.5)
            group.create_task(announcer.say("Dinner."))

    run(scene())
    assert [what for _, what in session.did] == ["Dinner.", "News."]
    assert session.did[1][0] >= session.did[0][0] + session.playout_s + LOW_QUIET_S


@pytest.mark.parametrize("cue", ["ring", None])
def test_a_failed_speech_synthesis_is_told(cue: CueKind | None) -> None:
    session = Session()
    session.voiceless = True

    async def scene() -> None:
        announcer = begun(session, Room(STANDARD))
        assert await announcer.announce("Done.", cue=cue)  # they were there
        assert await announcer.say("Done.") == Announced("not_said", "speech_failed")
        told = await announcer.say("Well?", answer_to="caller")
        assert told == Announced("not_said", "speech_failed")

    run(scene())
    assert session.listeners == 0


def test_words_that_never_begin_are_not_said() -> None:
    session = Session()
    session.playout_s = 10 * PLAYOUT_S

    async def scene() -> None:
        announcer = begun(session, None)
        later(QUIET_S + 1, setattr, session, "agent_state", "listening")
        assert await announcer.say("Done.") == Announced("not_said", "no_pause")
        session.become("listening")
        assert await announcer.say("Done.") == Announced("said")  # some of it

    run(scene())


def test_the_next_words_answer_a_question_and_nothing_before_or_after_them() -> None:
    session = Session()

    async def scene() -> None:
        announcer = begun(session, None)
        before = session.hear("Hello.")
        asked = asyncio.create_task(announcer.say("Tea?", answer_to="caller"))
        await asyncio.sleep(QUIET_S / 2)
        early = session.hear("What time is it?")
        await asyncio.sleep(QUIET_S + session.playout_s + 1)
        assert not asked.done()
        assert not announcer.is_answer(session.history)
        answer = llm.ChatMessage(role="user", content=["Yes, "])
        # LiveKit may ask for a reply before and after the words are in the history.
        assert announcer.is_answer(llm.ChatContext([*session.history.items, answer]))
        answer = session.hear(" Yes, please. ")
        assert announcer.is_answer(session.history)
        assert await asked == Announced("answered", answer="Yes, please.")
        assert announcer.is_answer(session.history)
        session.hear("What time is it?")
        assert not announcer.is_answer(session.history)
        assert not announcer.is_answer(llm.ChatContext([before]))
        assert not announcer.is_answer(llm.ChatContext([early]))
        assert not announcer.is_answer(llm.ChatContext.empty())

    run(scene())
    assert session.listeners == 0


def test_words_over_a_question_answer_it_and_those_before_its_first_sound_do_not() -> None:
    session = Session()
    session.playout_s = 20.0

    async def scene() -> None:
        announcer = begun(session, None)
        asked = asyncio.create_task(announcer.say("Tea or coffee?", answer_to="caller"))
        await asyncio.sleep(QUIET_S + 1)
        session.speeches[0].interrupt()  # as LiveKit does where somebody speaks
        session.hear("Tea!")
        assert await asked == Announced("answered", answer="Tea!")
        session.latency_s = 5.0
        asked = asyncio.create_task(announcer.say("Tea or coffee?", answer_to="caller"))
        await asyncio.sleep(QUIET_S + 1)
        session.speeches[1].interrupt()
        session.hear("What time is it?")
        assert not announcer.is_answer(session.history)
        assert await asked == Announced("not_said", "interrupted")

    run(scene())


@pytest.mark.parametrize(
    ("speaks_at", "until", "waited"),
    [
        (None, 0.0, ANSWER_S),
        (ANSWER_S - 1, ANSWER_S + 3, ANSWER_S + 3 + WORDS_S),
        (1.0, 1000.0, LISTEN_S),
    ],
)
def test_an_answer_is_awaited_as_long_as_somebody_may_give_one(
    speaks_at: float | None, until: float, waited: float
) -> None:
    session = Session()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        asked = asyncio.create_task(begun(session, None).say("Tea?", answer_to="caller"))
        await asyncio.sleep(QUIET_S + session.playout_s)
        over = loop.time()
        if speaks_at is not None:
            later(speaks_at, setattr, session, "user_state", "speaking")
            later(until, setattr, session, "user_state", "listening")
        assert await asked == Announced("silence")
        assert loop.time() - over == pytest.approx(waited, abs=0.4)

    run(scene())
    assert session.listeners == 0


def test_a_question_is_not_asked_beside_one_of_a_tool() -> None:
    session = Session()

    class Asks(AgentTask[None]):
        pass

    async def scene() -> None:
        session.current_agent = Asks(instructions="")
        announcer = begun(session, None)
        told = await asyncio.gather(
            announcer.say("Tea?", "urgent", "caller"), announcer.say("Fire.", "urgent")
        )
        assert told == [Announced("not_said", "no_pause"), Announced("said")]

    run(scene())


def test_what_is_urgent_ends_a_question() -> None:
    session = Session()

    async def scene() -> None:
        announcer = begun(session, None)
        asked = asyncio.create_task(announcer.say("Tea?", answer_to="caller"))
        await asyncio.sleep(QUIET_S + session.playout_s + 1)
        assert await announcer.say("Fire.", "urgent") == Announced("said")
        assert await asked == Announced("not_said", "interrupted")
        session.hear("Where?")
        assert not announcer.is_answer(session.history)

    run(scene())
    assert [what for _, what in session.did] == ["Tea?", "Fire."]


@pytest.mark.parametrize("after_s", [0.5, QUIET_S + 1, QUIET_S + 8])
def test_a_cancelled_question_is_over_and_the_next_is_asked(after_s: float) -> None:
    session = Session()
    session.playout_s = 4.0

    async def scene() -> None:
        announcer = begun(session, None)
        asked = asyncio.create_task(announcer.say("Tea?", answer_to="caller"))
        await asyncio.sleep(after_s)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        assert session.listeners == 0
        session.hear("Yes.")
        assert not announcer.is_answer(session.history)
        assert await announcer.say("Dinner.") == Announced("said")

    run(scene())
    assert all(speech.done() for speech in session.speeches)


def test_a_question_is_over_with_its_session() -> None:
    session = Session()

    async def scene() -> None:
        announcer = begun(session, None)
        asked = asyncio.create_task(announcer.say("Tea?", answer_to="caller"))
        later(QUIET_S + session.playout_s + 1, announcer.end)
        assert await asked == Announced("silence")
        assert await announcer.say("Dinner.") == Announced("not_said", "session_ended")

    run(scene())


def test_nobody_is_asked_in_an_empty_room() -> None:
    async def scene() -> None:
        announcer = begun(Session(), Room())
        told = await announcer.say("Tea?", answer_to="caller")
        assert told == Announced("not_said", "nobody_there")

    run(scene())
