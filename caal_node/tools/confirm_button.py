"""A front end's button that answers whether a call may run: a text stream of the room.

It sends `{"call_id": ..., "arguments_hash": ..., "yes": true}` on `caal.confirm`, with the id and
the hash of the event `confirmation_asked`. LiveKit vouches for who has sent it.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its rooms open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, Final, cast

from livekit import rtc

logger = logging.getLogger("caal_node.tools")

TOPIC: Final = "caal.confirm"
"""The topic of the room's text streams by which a front end's button answers."""
PRESS_CHARS: Final = 1_024
"""Characters of a button's message, of which a well-formed one has about 200."""
PRESS_S: Final = 5.0
"""Seconds for one button's message to arrive."""


class ConfirmButton:
    """Takes a front end's messages for one question, from `open` to `close`.

    A room's topic has one taker at a time, so it is opened once its question is really asked.

    Args:
        room: None where the session has none; there is no button then.
        person: The identity of the only participant who may answer.
        call_id: The call's.
        arguments_hash: What the button has to give back, so that it answers this question alone.
        press: It is called with the answer.
    """

    def __init__(
        self,
        room: rtc.Room | None,
        person: str,
        call_id: str,
        arguments_hash: str,
        press: Callable[[bool], None],
    ) -> None:
        self._room: Final = room
        self._person: Final = person
        self._expected: Final = {"call_id": call_id, "arguments_hash": arguments_hash}
        self._press: Final = press
        self._reading: Final[set[asyncio.Task[None]]] = set()
        self._registered = False

    def open(self) -> None:
        """Take messages from now on."""
        if self._room is None or not self._person:
            return
        try:
            self._room.register_text_stream_handler(TOPIC, self._on_stream)
            self._registered = True
        except ValueError:
            logger.warning("the topic %s has a handler of the owner's; no button is taken", TOPIC)

    def close(self) -> None:
        """Take none any more."""
        if self._registered and self._room is not None:
            self._room.unregister_text_stream_handler(TOPIC)
            self._registered = False
        for task in self._reading:
            task.cancel()

    def _on_stream(self, reader: rtc.TextStreamReader, identity: str) -> None:
        if identity != self._person:
            logger.warning("a button was pressed by somebody who is not asked; it counts nothing")
            return
        task = asyncio.create_task(self._read(reader), name="caal-confirm")
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, reader: rtc.TextStreamReader) -> None:
        text = ""
        try:
            async with asyncio.timeout(PRESS_S):
                async for chunk in reader:
                    text += chunk
                    if len(text) > PRESS_CHARS:
                        break
        except TimeoutError:
            pass
        pressed = pressed_of(text, **self._expected)
        if pressed is None:
            logger.warning("a button's message does not fit the question; it counts nothing")
        else:
            self._press(pressed)


def pressed_of(text: str, call_id: str, arguments_hash: str) -> bool | None:
    """Return what a button's message says to that call; None where it is not about it."""
    try:
        message: object = json.loads(text) if len(text) <= PRESS_CHARS else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    fields = cast("dict[str, Any]", message)
    fits = fields.get("call_id") == call_id and fields.get("arguments_hash") == arguments_hash
    agreed = fields.get("yes")
    return agreed if fits and isinstance(agreed, bool) else None
