"""This check tries LiveKit with the configured keys, and looks at the control API's token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from caal_node.cli.checks.check import Finding, fail, fail_from, ok, warn
from caal_node.config.settings import Settings
from caal_node.control.rooms import ControlError, LiveKitRefused, LiveKitRooms
from caal_node.core.addresses import is_loopback
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError

MIN_SECRET_CHARS: Final = 32
"""256 bits are what the signatures of LiveKit's tokens (HS256) can use."""
LIVEKIT: Final = "livekit"
CONTROL: Final = "control"
SESSION_HOST: Final = "session host"
NAMES: Final = ("livekit_url", "livekit_api_key", "livekit_api_secret")
_SET: Final = (
    "Set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET, as the LiveKit server has them."
)
_NONE_NEEDED: Final = "chat and console need no LiveKit server."


async def check_livekit(settings: Settings) -> Sequence[Finding]:
    missing = _missing(settings)
    if not settings.has_rooms:
        return [ok(LIVEKIT, "not set, so there are no rooms", _NONE_NEEDED)]
    if missing:
        return [fail(LIVEKIT, _not_set(missing), _SET)]
    try:
        async with LiveKitRooms.of(settings) as rooms:
            live = await rooms.live()
    except ControlError as error:
        unreached = fail_from(LIVEKIT, f"{settings.livekit_url}: {error}")
        return [unreached, *_session_host(settings)]
    return [_server(settings, len(live)), _control_token(settings), *_session_host(settings)]


def require_livekit(settings: Settings) -> None:
    """Raises: ConfigError: the address or a key is not set; its text is doctor's."""
    if missing := _missing(settings):
        there = "no LiveKit server is set" if len(missing) == len(NAMES) else _not_set(missing)
        raise ConfigError(f"{there}. {_SET} {_NONE_NEEDED}")


async def livekit_away(settings: Settings) -> str | None:
    """Return why the LiveKit server cannot be reached, in one line with the fix; None if it can.

    Raises:
        ConfigError: it is there, and refuses the keys.
    """
    try:
        async with LiveKitRooms.of(settings) as rooms:
            await rooms.live()
    except LiveKitRefused as error:
        raise ConfigError(f"{LIVEKIT}: {settings.livekit_url}: {error}") from error
    except ControlError as error:
        return f"{LIVEKIT}: {settings.livekit_url}: {error}"
    return None


def _missing(settings: Settings) -> list[str]:
    return [name.upper() for name in NAMES if getattr(settings, name) is None]


def _not_set(missing: Sequence[str]) -> str:
    return f"not set: {', '.join(missing)}"


def _server(settings: Settings, live: int) -> Finding:
    found = f"{settings.livekit_url}, {counted(live, 'open room')}"
    secret = settings.livekit_api_secret
    here = is_loopback(urlsplit(settings.livekit_url or "").hostname or "")
    if secret is not None and len(secret.get_secret_value()) < MIN_SECRET_CHARS and not here:
        fix = "Make one for the server and for LIVEKIT_API_SECRET: openssl rand -hex 32."
        return warn(LIVEKIT, f"{found}; its secret can be guessed, and opens every room", fix)
    return ok(LIVEKIT, found)


def _session_host(settings: Settings) -> list[Finding]:
    if settings.room_sees != "everything":
        return []
    found = "CAAL_ROOM_SEES=everything: everyone in a room reads and drives its whole session"
    return [warn(SESSION_HOST, found, "Set it to names where you do not debug.")]


def _control_token(settings: Settings) -> Finding:
    if settings.control_token is None:
        fix = "To use caal-node control, set CAAL_CONTROL_TOKEN: openssl rand -hex 32"
        return warn(CONTROL, "no CAAL_CONTROL_TOKEN, so tools cannot be reloaded in a room", fix)
    return ok(CONTROL, "token set")
