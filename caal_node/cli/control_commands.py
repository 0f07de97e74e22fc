"""`caal-node reload`, `model` and `say`: steer a live room by the control API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

import typer

from caal_node.cli.checks import one_line
from caal_node.client import ControlClient
from caal_node.config.settings import Settings
from caal_node.control.messages import ReloadResponse, ReloadsResponse
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError


async def reload_room(settings: Settings, address: str, room: str | None, say: str | None) -> int:
    """Reload a room's tools, or every room's, print what changed, and return the exit code.

    Raises:
        ConfigError: CAAL_CONTROL_TOKEN is not set.
        ControlApiError: it was not done.
    """
    async with _client(settings, address) as control:
        answer = await control.reload(room, message=say)
    rooms = answer.rooms if isinstance(answer, ReloadsResponse) else [answer]
    for each in rooms:
        done = isinstance(each, ReloadResponse)
        typer.echo(f"{each.room_name}: {_changes(each) if done else each.detail}")
    return 0 if all(isinstance(each, ReloadResponse) for each in rooms) else 1


async def change_model(settings: Settings, address: str, model: str, room: str | None) -> None:
    """Change a room's model, and print which one it asks now.

    Raises:
        ConfigError: CAAL_CONTROL_TOKEN is not set.
        ControlApiError: it was not done.
    """
    async with _client(settings, address) as control:
        answer = await control.change_model(model, room)
    typer.echo(f"{answer.room_name}: {answer.model} ({answer.api})")


async def say(
    settings: Settings,
    address: str,
    room: str,
    text: str,
    *,
    priority: str = "normal",
    ask: bool = False,
) -> int:
    """Have a room's agent say a sentence, print what became of it, and return the exit code.

    Args:
        priority: The API knows the names.
        ask: It is a question, whose answer is printed.

    Raises:
        ConfigError: CAAL_CONTROL_TOKEN is not set.
        ControlApiError: it was not done.
    """
    async with _client(settings, address) as control:
        told = await control.announce(
            text, room, priority=cast("Any", priority), answer="caller" if ask else "model"
        )
    became = one_line(told.answer or _BECAME[told.reason or told.status])
    typer.echo(f"{told.room_name}: {became}")
    return 0 if told.status in ("said", "answered") else 1


_BECAME: Final = {
    "said": "said",
    "silence": "said, but nobody answered",
    "nobody_there": "not said, as nobody is in the room",
    "no_pause": "not said, as there was no pause",
    "interrupted": "not said, as it was interrupted",
    "speech_failed": "not said, as text to speech failed; see the agent's log",
    "session_ended": "not said, as the session ended",
}


def _client(settings: Settings, address: str) -> ControlClient:
    if settings.control_token is None:
        raise ConfigError("CAAL_CONTROL_TOKEN: not set; write the one of caal-node control")
    return ControlClient(address, settings.control_token.get_secret_value())


def _changes(report: ReloadResponse) -> str:
    parts = [counted(report.tool_count, "tool")]
    for name, tools in (
        ("added", report.added),
        ("removed", report.removed),
        ("changed", report.changed),
        ("not listed", report.failed),
        ("new, not accepted yet", report.new),
    ):
        parts += [f"{name}: {_named(tools)}"] if tools else []
    return "; ".join([*parts, *report.faults])


def _named(names: Iterable[str]) -> str:
    return ", ".join(names)
