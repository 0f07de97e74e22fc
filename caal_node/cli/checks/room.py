"""This check tries LiveKit with the configured keys, and looks at the control API's token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from caal_node.cli.checks.check import Finding, fail, fail_from, ok, warn
from caal_node.config.settings import Settings
from caal_node.control.rooms import ControlError, LiveKitRooms
from caal_node.core.addresses import is_loopback

MIN_SECRET_CHARS: Final = 32
"""256 bits are what the signatures of LiveKit's tokens (HS256) can use."""
LIVEKIT: Final = "livekit"
CONTROL: Final = "control"


async def check_livekit(settings: Settings) -> Sequence[Finding]:
    names = ("livekit_url", "livekit_api_key", "livekit_api_secret")
    missing = [name.upper() for name in names if getattr(settings, name) is None]
    if len(missing) == len(names):
        mend = (
            "Set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET; chat and console need none."
        )
        return [warn(LIVEKIT, "not set, so there are no rooms", mend)]
    if missing:
        found = f"not set: {', '.join(missing)}"
        return [fail(LIVEKIT, found, "Set all three, as the LiveKit server has them.")]
    try:
        async with LiveKitRooms.of(settings) as rooms:
            live = await rooms.live()
    except ControlError as error:
        return [fail_from(LIVEKIT, f"{settings.livekit_url}: {error}")]
    return [_server(settings, len(live)), _control_token(settings)]


def _server(settings: Settings, live: int) -> Finding:
    found = f"{settings.livekit_url}, {live} open rooms"
    secret = settings.livekit_api_secret
    here = is_loopback(urlsplit(settings.livekit_url or "").hostname or "")
    if secret is not None and len(secret.get_secret_value()) < MIN_SECRET_CHARS and not here:
        mend = "Make one for the server and for LIVEKIT_API_SECRET: openssl rand -hex 32."
        return warn(LIVEKIT, f"{found}; its secret can be guessed, and opens every room", mend)
    return ok(LIVEKIT, found)


def _control_token(settings: Settings) -> Finding:
    if settings.control_token is None:
        mend = "Set CAAL_CONTROL_TOKEN to a long random text to use caal-node control."
        return warn(CONTROL, "no CAAL_CONTROL_TOKEN, so tools cannot be reloaded in a room", mend)
    return ok(CONTROL, "token set")
