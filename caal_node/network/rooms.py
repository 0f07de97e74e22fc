"""Judges the address of a LiveKit server before a room is entered.

LiveKit's client is not Python's: its connections pass no socket of ours. It has one entrance,
`Room.connect`, whose address comes from the settings or from the LiveKit server that sends the job.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its rooms open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from functools import wraps
from typing import Any, Final

from livekit import rtc

from caal_node.core.errors import NetworkRefused
from caal_node.network.guard import policies, refusal
from caal_node.network.targets import outside

logger = logging.getLogger("caal_node.network")

_plain_connect: Final = rtc.Room.connect


@wraps(_plain_connect)
async def _judged_connect(self: rtc.Room, url: str, *args: Any, **options: Any) -> None:
    for policy in policies():
        try:
            why = await asyncio.to_thread(outside, policy, url)
        except OSError as error:
            if isinstance(error, NetworkRefused):
                raise
            why = "its name leads nowhere"
        if why is not None:
            logger.error(
                "CAAL_NETWORK=%s refuses the room of a LiveKit server: %s; add it there, or mend "
                "LIVEKIT_URL",
                policy.shown,
                why,
            )
            raise refusal(policy)
    await _plain_connect(self, url, *args, **options)


def keep_rooms_inside() -> None:
    """Have every room that this process enters judged, where its network is limited."""
    if policies():
        rtc.Room.connect = _judged_connect  # type: ignore[method-assign]
