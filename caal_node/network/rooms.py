"""Keeps LiveKit's client for rooms inside: its connections pass no socket of Python.

It has one entrance, `Room.connect`, whose address comes from the settings or from the LiveKit
server that sends the job. The server also names further servers to ask (STUN and TURN), and one of
one's own names Google's and Twilio's where its configuration has none. Where the caller names some
itself, those of the server are not used, so one is named here that leads nowhere.

Media goes to the addresses that the LiveKit server gives for itself. They are not seen.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its rooms open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from typing import Final
from urllib.parse import urlsplit

from livekit import rtc

from caal_node.core.errors import NetworkRefused
from caal_node.network.guard import enforce, names_kept_here, policies, refusal
from caal_node.network.policy import NetworkPolicy, address_of, canonical_name

# Judges where an address leads before something connects that Python's sockets do not show.
#
# LiveKit's client for rooms is such a thing: it is a library of its own, and asks the resolver
# itself.


def outside(policy: NetworkPolicy, url: str) -> str | None:
    """Return in a few words where `url` leads outside of `policy`, or None where it does not.

    It waits for the resolver, so call it in a thread. A name has to lead inside with each of its
    addresses, since nobody knows which of them will be taken.

    Raises:
        OSError: The name leads nowhere.
    """
    host = urlsplit(url).hostname or ""
    if policy.is_open:
        return None
    if (address := address_of(host)) is not None:
        return None if policy.allows(address) else f"{host} is outside"
    if not policy.allows_lookup(host, names_kept_here()):
        return f"the name {host} may not be looked up"
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except NetworkRefused:  # another policy of this process
        return f"the name {host} may not be looked up"
    for *_, place in found:
        leads_to = address_of(str(place[0]))
        if leads_to is None or not policy.allows(leads_to, (canonical_name(host),)):
            return f"{host} leads to {place[0]}, which is outside"
    return None


logger = logging.getLogger("caal_node.network")

NOWHERE: Final = "stun:127.0.0.1:9"
"""The port for what is to be thrown away (RFC 863). Without any address LiveKit's client fails."""
_plain_connect: Final = rtc.Room.connect


@wraps(_plain_connect)
async def _judged_connect(
    self: rtc.Room, url: str, token: str, options: rtc.RoomOptions | None = None
) -> None:
    options = options or rtc.RoomOptions()
    if bounds := policies():
        await _judge(bounds, url, "LIVEKIT_URL")
        config = options.rtc_config or rtc.RtcConfiguration()
        for server in config.ice_servers:
            for each in server.urls:
                await _judge(bounds, _as_url(each), "ice_servers")
        # A list that is empty would be the LiveKit server's own.
        servers = config.ice_servers or [rtc.IceServer(urls=[NOWHERE])]
        options = replace(options, rtc_config=replace(config, ice_servers=servers))
    await _plain_connect(self, url, token, options)


async def _judge(bounds: Sequence[NetworkPolicy], url: str, given_by: str) -> None:
    """Raises: NetworkRefused: `url` leads outside, or nobody knows where."""
    for policy in bounds:
        try:
            why = await asyncio.to_thread(outside, policy, url)
        except NetworkRefused:
            raise
        except OSError:
            why = "its name leads nowhere"
        if why is not None:
            logger.error(
                "CAAL_NETWORK=%s refuses a room of LiveKit: %s; add it there, or fix %s",
                policy.shown,
                why,
                given_by,
            )
            raise refusal(policy)


def _as_url(ice_url: str) -> str:
    """Return `stun:host:port?transport=udp` in a form in which a URL's host is found."""
    scheme, _, rest = ice_url.partition(":")
    return f"{scheme}://{rest.removeprefix('//')}"


def enforce_with_rooms(policy: NetworkPolicy) -> None:
    """Keep this process to `policy`, as `enforce` does, and judge every room that it enters.

    Raises:
        ConfigError: It cannot be kept here; the message says why, and what to do.
    """
    enforce(policy)
    if policies():
        rtc.Room.connect = _judged_connect  # type: ignore[method-assign]
