"""The demo's room: events are read in order, and a bad message costs only itself."""

from __future__ import annotations

import asyncio

from caal_node.cli.demo.scenes import MESSAGE_S, EventReader, read_events
from caal_node.core.events import Event, Spoken, to_json
from tests.stand_ins import virtual_loop


class Message:
    def __init__(self, text: str, takes_s: float = 0.0) -> None:
        self._text = text
        self._takes_s = takes_s

    async def read_all(self) -> str:
        await asyncio.sleep(self._takes_s)
        return self._text


class Broken:
    async def read_all(self) -> str:
        raise RuntimeError("the stream was cut")


def test_events_keep_their_order_and_bad_messages_are_left_out() -> None:
    async def story() -> None:
        messages: asyncio.Queue[EventReader] = asyncio.Queue()
        events: asyncio.Queue[Event] = asyncio.Queue()
        reading = asyncio.create_task(read_events(messages, events))
        for message in (
            Message(to_json(Spoken("one")), takes_s=1),
            Broken(),
            Message("no JSON"),
            Message(to_json(Spoken("never")), takes_s=2 * MESSAGE_S),
            Message(to_json(Spoken("two"))),
        ):
            messages.put_nowait(message)
        assert [await events.get(), await events.get()] == [Spoken("one"), Spoken("two")]
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    virtual_loop.run(story())
