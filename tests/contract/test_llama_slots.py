"""Each room has a slot of llama.cpp's server, where the server keeps what is in its slots."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from caal_node.core.errors import ModelError
from caal_node.core.items import SystemItem, UserItem
from caal_node.models.backends.base import BackendRequest
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.backends.openai_server import lease_slot
from caal_node.models.llm import LLM
from caal_node.models.question import Question
from tests.stand_ins.stand_in_model import Asked, Hang, Refuse, Reply, StandInModel

QUESTION = Question((SystemItem("Be short."), UserItem("Hello.")))


def hello(_: Asked) -> Reply:
    return ["Hello."]


def forget(number: int, tokens: int) -> None:
    """A slot that does not tell what it keeps, as in older builds."""


def server_of(slots: int, answer: Callable[[Asked], Reply] = hello) -> StandInModel:
    server = StandInModel(answer=answer, llama=True)
    server.slots = dict.fromkeys(range(slots))
    return server


@asynccontextmanager
async def room(server: StandInModel, backend: OpenAIBackend | None = None) -> AsyncGenerator[LLM]:
    """A room whose model has been warmed up."""
    backend = backend or OpenAIBackend(server.model, base_url=server.openai_url)
    model = LLM(backend=backend, native_tools=True)
    try:
        await model.warm(QUESTION)
        yield model
    finally:
        await model.aclose()


async def slot_of(server: StandInModel, model: LLM) -> int | None:
    """The slot that the model's next request names."""
    async for _ in model.backend.ask(BackendRequest(QUESTION.items)):
        pass
    return server.chats[-1].json.get("id_slot")


async def test_rooms_have_a_slot_each_and_leave_it() -> None:
    async with server_of(3) as server, room(server) as first:
        async with room(server) as second:
            slots = [await slot_of(server, model) for model in (first, second)]
            assert slots == [0, 1]
            # The warm-up went there already, as it reads what the turns begin with.
            assert [asked.json["id_slot"] for asked in server.chats] == [0, 1, 0, 1]
        async with room(server) as third:
            assert await slot_of(server, third) == 1


async def test_an_empty_slot_goes_before_one_that_another_machine_may_use() -> None:
    async with server_of(3) as server:
        server.slots[0] = 700
        async with room(server) as model:
            assert await slot_of(server, model) == 1
            assert server.slots[0] == 700


async def test_a_slot_is_tried_without_a_word_in_any_that_keeps_something() -> None:
    async with server_of(3) as server, room(server) as first, room(server):
        fills = [a.json["id_slot"] for a in server.requests if a.path == "/completion"]
        # The first room sees by the empty slot 2 whether slots keep what is in them, the second
        # by slot 0; each then begins with a prompt of one token in its own.
        assert fills == [2, 0, 1]
        assert await slot_of(server, first) == 0


@pytest.mark.parametrize("slots", [2, 4])
async def test_no_slot_is_named_where_idle_ones_are_emptied(slots: int) -> None:
    async with server_of(slots) as server:
        server.empties_slots = True
        async with room(server) as first, room(server) as second:
            assert [await slot_of(server, model) for model in (first, second)] == [None, None]


async def test_one_slot_is_left_to_the_server() -> None:
    async with server_of(1) as server, room(server) as model:
        assert await slot_of(server, model) is None
        assert not [asked for asked in server.requests if asked.path == "/completion"]


async def test_other_servers_are_not_asked_for_slots() -> None:
    async with StandInModel(answer=lambda _: ["Hello."]) as server:
        server.owner = "vllm"
        async with room(server) as model:
            assert await slot_of(server, model) is None
        assert "/slots" not in [asked.path for asked in server.requests]


async def test_a_server_that_does_not_tell_what_its_slots_keep_chooses_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with server_of(4) as server:
        monkeypatch.setattr(server, "_use_slot", forget)
        async with room(server) as model:
            assert await slot_of(server, model) is None


async def test_what_the_author_names_is_left_alone() -> None:
    async with server_of(4) as server:
        backend = OpenAIBackend(server.model, base_url=server.openai_url, extra={"id_slot": 3})
        async with room(server, backend) as model:
            assert await slot_of(server, model) == 3
        assert "/slots" not in [asked.path for asked in server.requests]


async def test_a_server_that_refuses_the_field_is_asked_without_it() -> None:
    def refusing(asked: Asked) -> Reply:
        if "id_slot" in asked.json:
            return [Refuse(400, "Unrecognized request argument supplied: id_slot")]
        return ["Hello."]

    async with server_of(2, refusing) as server, room(server) as model:
        assert await slot_of(server, model) is None


async def test_a_server_that_does_not_answer_any_more_is_asked_without_a_slot() -> None:
    """Started anew with fewer slots, it waits for the one that is named, for ever."""
    hangs = False

    def answer(_: Asked) -> Reply:
        return [Hang()] if hangs else ["Hello."]

    async with server_of(2, answer) as server:
        backend = OpenAIBackend(
            server.model, base_url=server.openai_url, deadlines=TransportDeadlines(first=0.2)
        )
        async with room(server, backend) as model:
            hangs = True
            with pytest.raises(ModelError):
                await slot_of(server, model)
            hangs = False
            assert await slot_of(server, model) is None


def test_where_every_slot_is_taken_the_one_used_least_recently_is_shared(tmp_path: Path) -> None:
    leases = [lease_slot(tmp_path, (0, 1, 2)) for _ in range(3)]
    assert [lease.number for lease in leases] == [0, 1, 2]
    for age, number in enumerate((0, 2, 1)):  # 1 is the oldest
        os.utime(tmp_path / f"{number}.lock", (1_000 - age, 1_000 - age))
    shared = lease_slot(tmp_path, (0, 1, 2))
    assert shared.number == 1
    shared.release()  # nothing is held, so nothing is let go
    assert lease_slot(tmp_path, (0, 1)).number == 1
    for lease in leases:
        lease.release()
    assert lease_slot(tmp_path, (0, 1, 2)).number == 0


async def test_a_folder_that_cannot_be_written_to_costs_the_slot_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("CAAL_STATE", str(blocked))
    async with server_of(2) as server, room(server) as model:
        assert await slot_of(server, model) is None
