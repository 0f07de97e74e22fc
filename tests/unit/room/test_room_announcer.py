"""An announcement comes over nobody's words, and only where somebody hears it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from livekit import rtc

from caal_node.core.events import CueKind
from caal_node.room.announcer import PATIENCE_S, QUIET_S, SETTLE_S, SessionAnnouncer
from tests.stand_ins.virtual_loop import run

STANDARD = rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD
AGENT = rtc.ParticipantKind.PARTICIPANT_KIND_AGENT
CUE_S = 0.9


class Speech:
    def __init__(self, playout_s: float) -> None:
        self.interrupted = False
        self._playout_s = playout_s
        self._over = False

    async def wait_for_playout(self) -> None:
        await asyncio.sleep(self._playout_s)
        self._over = True

    def done(self) -> bool:
        return self._over

    def interrupt(self) -> None:
        self.interrupted = self._over = True


class Session:
    """What the announcer sees of a LiveKit session, and when each thing was done in it."""

    def __init__(self) -> None:
        self.user_state = "listening"
        self.agent_state = "listening"
        self.current_speech: object | None = None
        self.did: list[tuple[float, str]] = []
        self.speeches: list[Speech] = []
        self.closing = False
        self.playout_s = 2.0

    def say(self, words: str) -> Speech:
        if self.closing:
            raise RuntimeError("AgentSession is closing, cannot use say()")
        self._note(words)
        self.speeches.append(Speech(self.playout_s))
        return self.speeches[-1]

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


def begun(session: Session, room: Room | None) -> SessionAnnouncer:
    announcer = SessionAnnouncer()
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
