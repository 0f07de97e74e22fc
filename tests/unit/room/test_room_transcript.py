"""Messages, transcript and attributes: in order, bounded, and never in the way."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from caal_node.core.events import (
    CuePlayed,
    QuestionAsked,
    QuestionField,
    SetTimer,
    Spoken,
    TimersChanged,
    ToolCallEnded,
    ToolCallStarted,
    ToolSourceChanged,
    UserSaid,
)
from caal_node.room.front_end import (
    AGAIN_S,
    DRAIN_DEADLINE_S,
    LAST_S,
    PAGE,
    SEND_DEADLINE_S,
    SET_DEADLINE_S,
    Attributes,
    Transcript,
)
from tests.stand_ins import virtual_loop

STARTED = ToolCallStarted("c1", "pay", "mcp", "bank", {"iban": "DE00"})
ENDED = ToolCallEnded("c1", "pay", "mcp", "ok", 12)


class Room:
    """Takes messages when it is let; fails on those in `bad`."""

    def __init__(self, *, bad: tuple[str, ...] = ()) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.got: list[str] = []
        self.busy = asyncio.Event()
        self.bad = bad

    async def send(self, text: str) -> None:
        self.busy.set()
        await self.open.wait()
        if json.loads(text).get("text") in self.bad:
            raise RuntimeError(text)
        self.got.append(text)

    @property
    def words(self) -> list[str]:
        return [json.loads(text)["text"] for text in self.got]


async def test_messages_arrive_in_order_and_closing_drains() -> None:
    room = Room()
    room.open.clear()
    transcript = Transcript(room.send)
    for number in range(50):
        transcript(UserSaid(str(number)))
    assert room.words == []
    room.open.set()
    await transcript.aclose()
    assert room.words == [str(number) for number in range(50)]


async def test_a_message_that_fails_does_not_stop_the_next() -> None:
    room = Room(bad=("b",))
    transcript = Transcript(room.send)
    for text in "abc":
        transcript(UserSaid(text))
    await transcript.aclose()
    assert room.words == ["a", "c"]


async def test_a_full_queue_keeps_a_whole_beginning_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room()
    room.open.clear()
    transcript = Transcript(room.send, size=3)
    transcript(UserSaid("0"))
    await room.busy.wait()
    for number in range(1, 9):
        transcript(UserSaid(str(number)))
    room.open.set()
    await transcript.aclose()
    assert room.words == ["0", "1", "2", "3"]
    assert len([r for r in caplog.records if "dropped" in r.message]) == 1


async def test_closing_does_not_wait_for_a_room_that_takes_nothing() -> None:
    room = Room()
    room.open.clear()
    transcript = Transcript(room.send, size=1)
    transcript(UserSaid("a"))
    await room.busy.wait()
    transcript(UserSaid("b"))
    await transcript.aclose(deadline_s=0)
    await transcript.aclose()
    transcript(UserSaid("late"))
    assert room.words == []
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "caal-transcript"]


def test_events_before_the_room_is_connected_are_sent_once_it_is() -> None:
    async def story() -> None:
        room, connected = Room(), asyncio.Event()
        transcript = Transcript(room.send, ready=connected.wait)
        transcript(UserSaid("hello"))
        await asyncio.sleep(3 * SEND_DEADLINE_S)
        assert room.words == []
        connected.set()
        await transcript.aclose()
        assert room.words == ["hello"]

    virtual_loop.run(story())


def test_closing_does_not_wait_for_a_room_that_is_never_connected() -> None:
    async def story() -> None:
        room = Room()
        transcript = Transcript(room.send, ready=asyncio.Event().wait)
        transcript(UserSaid("hello"))
        await transcript.aclose()
        assert room.words == []
        assert asyncio.get_running_loop().time() == DRAIN_DEADLINE_S

    virtual_loop.run(story())


async def test_closing_that_is_cancelled_still_ends_the_task() -> None:
    room = Room()
    room.open.clear()
    transcript = Transcript(room.send)
    transcript(UserSaid("a"))
    await room.busy.wait()
    closing = asyncio.create_task(transcript.aclose(deadline_s=60))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "caal-transcript"]


async def test_the_transcript_leaves_arguments_out() -> None:
    room = Room()
    transcript = Transcript(room.send)
    down = ToolSourceChanged("bank", "down", "no answer from DE00.example")
    for event in (UserSaid("pay"), STARTED, CuePlayed("tool"), ENDED, Spoken("Paid."), down):
        transcript(event)
    await transcript.aclose()
    messages = [json.loads(text) for text in room.got]
    assert [m["type"] for m in messages] == [
        "user",
        "tool_call_started",
        "cue",
        "tool_call_ended",
        "speech",
        "tool_source",
    ]
    assert (messages[-1]["source"], messages[-1]["reason"]) == ("bank", "")
    assert messages[1]["arguments"] is None
    assert "DE00" not in "".join(room.got)
    assert STARTED.arguments == {"iban": "DE00"}


async def test_a_setting_opens_arguments() -> None:
    room = Room()
    transcript = Transcript(room.send, show_arguments=True)
    transcript(STARTED)
    await transcript.aclose()
    assert json.loads(room.got[0])["arguments"] == {"iban": "DE00"}


async def test_others_see_that_a_question_is_open_and_neither_its_contents_nor_timers() -> None:
    field = QuestionField("iban", "text", "DE00", "", required=True)
    asked = QuestionAsked("c1", "pay", "q1", "To DE00?", (field,))
    timers = TimersChanged(1.0, (SetTimer(1, "reminder", "pay DE00", 2.0, ringing=False),))
    for shows, types in ((False, ["question_asked"]), (True, ["question_asked", "timers_changed"])):
        room = Room()
        transcript = Transcript(room.send, show_arguments=shows)
        transcript(asked)
        transcript(timers)
        await transcript.aclose()
        assert [json.loads(text)["type"] for text in room.got] == types
        assert ("DE00" in "".join(room.got)) is shows
        assert json.loads(room.got[0])["question_id"] == "q1"


class PageRoom:
    """A room with one page, as far as texts are sent in it."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, list[str]]] = []
        self.local_participant = self
        self.person: Any = SimpleNamespace(identity="ada", attributes={PAGE: "1"})

    def isconnected(self) -> bool:
        return True

    async def send_text(
        self, text: str, *, topic: str, destination_identities: list[str], compress: bool
    ) -> None:
        self.sent.append((text, topic, destination_identities))


async def test_a_page_alone_reads_arguments_and_results_and_no_other_person_s() -> None:
    room = PageRoom()
    page = Transcript.of_page(cast("Any", room), lambda: room.person)
    page(STARTED)
    await page.aclose()
    (text, topic, identities), *more = room.sent
    assert (topic, identities, more) == (PAGE, ["ada"], [])
    assert json.loads(text)["arguments"] == {"iban": "DE00"}


@pytest.mark.parametrize("person", [None, SimpleNamespace(identity="guest", attributes={})])
async def test_who_has_no_page_is_sent_nothing_of_their_own(person: Any) -> None:
    room = PageRoom()
    room.person = person
    page = Transcript.of_page(cast("Any", room), lambda: room.person)
    page(STARTED)
    await page.aclose()
    assert room.sent == []


class Face:
    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []
        self.changed = asyncio.Event()
        self.fails = 0

    async def set_attributes(self, values: dict[str, str]) -> None:
        self.changed.set()
        if self.fails:
            self.fails -= 1
            raise RuntimeError
        self.shown.append(values)

    async def settled(self) -> None:
        async with asyncio.timeout(10):
            await self.changed.wait()
        self.changed.clear()


async def test_attributes_say_when_the_model_is_warm() -> None:
    face = Face()
    attributes = Attributes(face.set_attributes)
    attributes(STARTED)
    await face.settled()
    attributes(ENDED)
    await face.settled()
    attributes.warmed()
    await face.settled()
    await attributes.aclose()
    assert [shown["caal.state"] for shown in face.shown] == ["tool", "warming", "idle"]


async def test_attributes_show_the_running_call_and_then_idle() -> None:
    face = Face()
    attributes = Attributes(face.set_attributes)
    attributes.warmed()
    attributes(STARTED)
    await face.settled()
    attributes(ENDED)
    await face.settled()
    await attributes.aclose()
    assert face.shown == [
        {"caal.state": "tool", "caal.tool": "pay"},
        {"caal.state": "idle", "caal.tool": ""},
    ]


async def test_a_state_that_a_newer_one_replaced_is_not_sent() -> None:
    face = Face()
    attributes = Attributes(face.set_attributes)
    attributes.warmed()
    attributes(STARTED)
    attributes(ENDED)
    attributes(ToolCallStarted("c2", "look", "n8n", "n8n", None))
    await face.settled()
    assert face.shown == [{"caal.state": "tool", "caal.tool": "look"}]
    await attributes.aclose()


async def test_attributes_go_on_after_a_failure() -> None:
    face = Face()
    face.fails = 1
    attributes = Attributes(face.set_attributes)
    attributes.warmed()
    attributes(STARTED)
    await face.settled()
    attributes(ENDED)
    await face.settled()
    await attributes.aclose()
    assert face.shown == [{"caal.state": "idle", "caal.tool": ""}]


def test_attributes_that_were_not_set_are_set_later_though_nothing_changes() -> None:
    async def story() -> None:
        face = Face()
        face.fails = 3
        attributes = Attributes(face.set_attributes)
        attributes.warmed()
        for _ in range(4):
            await face.settled()
        await attributes.aclose()
        assert face.shown == [{"caal.state": "idle", "caal.tool": ""}]
        assert asyncio.get_running_loop().time() == 1 + 2 + 4

    virtual_loop.run(story())


def test_a_new_state_does_not_wait_for_the_next_try_of_the_one_before() -> None:
    async def story() -> None:
        face = Face()
        face.fails = 5
        attributes = Attributes(face.set_attributes)
        attributes.warmed()
        for _ in range(5):
            await face.settled()
        failed_at = asyncio.get_running_loop().time()
        attributes(STARTED)
        await face.settled()
        assert face.shown == [{"caal.state": "tool", "caal.tool": "pay"}]
        assert asyncio.get_running_loop().time() == failed_at > 1 + 2 + 4
        await attributes.aclose()

    virtual_loop.run(story())


async def test_an_agent_is_warming_until_its_warm_up_is_over() -> None:
    face = Face()
    attributes = Attributes(face.set_attributes)
    await face.settled()
    assert face.shown == [{"caal.state": "warming", "caal.tool": ""}]
    await attributes.aclose()


async def test_nothing_is_set_before_the_room_is_connected_or_if_it_never_is() -> None:
    face, connected = Face(), asyncio.Event()

    async def ready() -> None:
        await connected.wait()

    never = Attributes(face.set_attributes, ready)
    await asyncio.sleep(0)
    await never.aclose()
    assert face.shown == []
    attributes = Attributes(face.set_attributes, ready)
    await asyncio.sleep(0)
    attributes.warmed()
    connected.set()
    await face.settled()
    assert face.shown == [{"caal.state": "idle", "caal.tool": ""}]
    await attributes.aclose()


def test_a_state_that_was_set_though_its_answer_was_late_is_taken_back() -> None:
    async def story() -> None:
        shown: list[str] = []
        late = False

        async def set_attributes(values: dict[str, str]) -> None:
            shown.append(values["caal.state"])
            if late:
                await asyncio.sleep(2 * SET_DEADLINE_S)

        attributes = Attributes(set_attributes)
        attributes.warmed()
        await asyncio.sleep(0.1)
        late = True
        attributes(STARTED)
        await asyncio.sleep(SET_DEADLINE_S + 0.1)
        late = False
        attributes(ENDED)
        await asyncio.sleep(AGAIN_S)
        assert shown == ["idle", "tool", "idle"]
        await attributes.aclose()

    virtual_loop.run(story())


@pytest.mark.parametrize("answers", [True, False])
def test_an_agent_that_leaves_in_a_call_leaves_no_call_behind(answers: bool) -> None:
    async def story() -> None:
        shown: list[dict[str, str]] = []

        async def set_attributes(values: dict[str, str]) -> None:
            shown.append(values)
            if not answers:
                await asyncio.Event().wait()

        attributes = Attributes(set_attributes)
        attributes.warmed()
        attributes(STARTED)
        await asyncio.sleep(0.1)
        await attributes.aclose()
        assert shown == [
            {"caal.state": "tool", "caal.tool": "pay"},
            {"caal.state": "idle", "caal.tool": ""},
        ]
        assert asyncio.get_running_loop().time() <= 0.1 + LAST_S + 0.01

    virtual_loop.run(story())
