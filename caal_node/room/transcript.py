"""The conversation's events as a text stream of the room: topic `caal.tools`, a JSON a message."""

from __future__ import annotations

import dataclasses
from typing import Final

from livekit import rtc

from caal_node.core.events import Event, ToolCallStarted, to_json
from caal_node.room.connection import connected
from caal_node.room.outbox import Outbox, Ready, Send

TOPIC: Final = "caal.tools"


class Transcript:
    """A listener of events. Everyone in the room reads it, so arguments are left out.

    `show_arguments` opens them. Results are in no event at all.
    """

    def __init__(
        self, send: Send, *, show_arguments: bool = False, ready: Ready | None = None
    ) -> None:
        self._outbox = Outbox(send, name="transcript", ready=ready)
        self._show_arguments = show_arguments

    @classmethod
    def of_room(cls, room: rtc.Room, *, show_arguments: bool = False) -> Transcript:
        async def send(text: str) -> None:
            # Uncompressed: clients from before compression read it too, and it is short.
            await room.local_participant.send_text(text, topic=TOPIC, compress=False)

        return cls(send, show_arguments=show_arguments, ready=lambda: connected(room))

    def __call__(self, event: Event) -> None:
        if isinstance(event, ToolCallStarted) and not self._show_arguments:
            event = dataclasses.replace(event, arguments=None)
        self._outbox.put(to_json(event))

    async def aclose(self) -> None:
        """Send what is still queued, then end."""
        await self._outbox.aclose()
