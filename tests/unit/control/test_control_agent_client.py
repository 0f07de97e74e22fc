"""Which room is meant, and how long its agent is asked."""

from __future__ import annotations

import asyncio

import pytest

from caal_node.control.messages import AgentAnswer, ModelReport, ReloadReport, ReloadRequest
from caal_node.control.room_agents import (
    CHANGE_S,
    AgentBusy,
    AgentFailed,
    NoAnswer,
    RoomUnknown,
    SeveralRooms,
    ask_agent,
    choose_room,
)
from caal_node.control.rpc import AnswerChunk, RequestFailed, RpcAnswer, RpcRequest, StillRunning
from tests.stand_ins import virtual_loop
from tests.stand_ins.fake_rooms import REPORT, FakeRooms

REQUEST = ReloadRequest()


def choice(agents: dict[str, list[str]], name: str | None = None) -> str:
    return virtual_loop.run(choose_room(FakeRooms(agents), name))


async def reload(rooms: FakeRooms, room: str = "a") -> AgentAnswer:
    return await ask_agent(rooms, room, REQUEST, ReloadReport, CHANGE_S)


def test_the_named_room_is_meant() -> None:
    assert choice({"a": ["x"], "b": ["y"]}, "b") == "b"


def test_the_only_live_room_is_meant() -> None:
    assert choice({"a": []}) == "a"


def test_among_several_the_only_one_with_an_agent_is_meant() -> None:
    assert choice({"a": [], "b": ["y"], "c": []}) == "b"


def test_two_rooms_with_an_agent_leave_a_choice_and_are_named() -> None:
    with pytest.raises(SeveralRooms, match="a, b"):
        choice({"a": ["x"], "b": ["y"]})


def test_several_rooms_without_an_agent_are_none() -> None:
    with pytest.raises(RoomUnknown, match="no agent"):
        choice({"a": [], "b": []})


def test_more_rooms_than_are_looked_at_leave_a_choice() -> None:
    with pytest.raises(SeveralRooms, match="Several rooms"):
        choice({"r0": ["x"]} | {f"r{n}": [] for n in range(1, 30)})


@pytest.mark.parametrize("name", [None, "z"])
def test_no_room_is_unknown(name: str | None) -> None:
    with pytest.raises(RoomUnknown):
        choice({"a": ["x"]} if name else {}, name)


def test_a_reload_is_asked_for_until_it_is_done_with_the_agent_that_answers() -> None:
    rooms = FakeRooms({"a": ["other", "ours"]}, [None, StillRunning(), StillRunning(), REPORT])
    assert virtual_loop.run(reload(rooms)) == REPORT
    assert rooms.asked == [("a", "ours", REQUEST)]
    assert rooms.called == ["other", *["ours"] * 4]


def test_an_agent_that_begins_to_listen_late_is_still_heard() -> None:
    rooms = FakeRooms({"a": ["x"]}, [None, None, None, REPORT])
    assert virtual_loop.run(reload(rooms)) == REPORT


def test_agents_that_never_listen_are_given_up_after_a_while() -> None:
    async def story() -> None:
        with pytest.raises(NoAnswer, match="answers to control"):
            await reload(FakeRooms({"a": ["x"]}, [None]))
        assert 5 <= asyncio.get_running_loop().time() < 6

    virtual_loop.run(story())


def test_an_agent_that_dies_in_the_middle_is_given_up() -> None:
    with pytest.raises(NoAnswer):
        virtual_loop.run(reload(FakeRooms({"a": ["x"]}, [StillRunning(), None])))


def test_a_room_without_an_agent_has_no_answer() -> None:
    with pytest.raises(NoAnswer, match="no agent"):
        virtual_loop.run(reload(FakeRooms({"a": []})))


def test_a_reload_that_never_ends_is_given_up_at_the_deadline() -> None:
    class Slow(FakeRooms):
        async def ask(self, room: str, identity: str, request: RpcRequest) -> RpcAnswer:
            await asyncio.sleep(1)  # as the agent itself lets an asker wait
            return StillRunning()

    async def story() -> None:
        with pytest.raises(NoAnswer, match="within 60 seconds"):
            await reload(Slow({"a": ["x"]}))
        assert asyncio.get_running_loop().time() == pytest.approx(60)

    virtual_loop.run(story())


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (RequestFailed(reason="timeout"), AgentFailed, "could not do it: timeout. See its log."),
        (RequestFailed(reason="error", detail="no."), AgentFailed, "could not do it: no."),
        (RequestFailed(reason="busy", detail="try again"), AgentBusy, "try again"),
        (RequestFailed(reason="unknown"), NoAnswer, "has started anew"),
        (ModelReport(model="m", api="ollama"), AgentFailed, "another version"),
        (AnswerChunk(number=0, of=1, data="?"), AgentFailed, "another version"),
        (AnswerChunk(number=0, of=10**9, data=""), AgentFailed, "another version"),
    ],
    ids=repr,
)
def test_an_agent_that_could_not_do_it_says_why(
    answer: AgentAnswer | RpcAnswer, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        virtual_loop.run(reload(FakeRooms({"a": ["x"]}, [answer])))
