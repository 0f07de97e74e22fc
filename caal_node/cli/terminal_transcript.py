"""The transcript prints a conversation's events for a person at a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from caal_node.core.events import (
    CuePlayed,
    Event,
    Spoken,
    ToolCallEnded,
    ToolCallStarted,
    ToolProgress,
    TurnEnded,
    UserSaid,
)

_CUES = {"tool": "♪ tool", "agent": "♪ agent", "error": "♪ error", "tick": "♪ still working"}


class TerminalTranscript:
    """A listener for events that prints one line for each."""

    def __init__(self, console: Console, *, echo_user: bool = False) -> None:
        self._console = console
        self._echo_user = echo_user

    def print_ready(self, tools: int, failed: Mapping[str, str]) -> None:
        """Print how many tools there are, and the sources that have failed with the reason."""
        self._console.print(f"[dim]{tools} tools. Type, and press Enter; Ctrl-D ends.[/dim]")
        for source, reason in failed.items():
            self._console.print(f"[yellow]no tools from {escape(f'{source}: {reason}')}[/yellow]")

    def __call__(self, event: Event) -> None:
        if (line := self._format(event)) is not None:
            self._console.print(line)

    def _format(self, event: Event) -> str | None:
        match event:
            case UserSaid(text) if self._echo_user:
                return f"[bold cyan]heard[/]    {escape(text)}"
            case ToolCallStarted(tool=tool, tier=tier, source=source, arguments=arguments):
                given = "" if arguments is None else json.dumps(dict(arguments), ensure_ascii=False)
                origin = tier if source in (tier, "") else f"{tier}: {source}"
                named = f"{escape(tool)} [dim]({escape(origin)})[/]"
                return f"[magenta]tool[/]     {named} {escape(given)}"
            case ToolProgress(tool=tool, done=done, total=total, message=message):
                count = f"{done:g}" if total is None else f"{done:g} of {total:g}"
                return f"[dim]         {escape(tool)} {escape(f'{count} {message}'.rstrip())}[/dim]"
            case ToolCallEnded(tool=tool, outcome=outcome, duration_ms=took):
                colour = "green" if outcome == "ok" else "red"
                return f"[{colour}]{outcome:<8}[/] {escape(tool)} [dim]after {took} ms[/]"
            case CuePlayed(kind):
                return f"[dim]cue      {_CUES[kind]}[/]"
            case Spoken(text):
                return f"[bold green]says[/]     {escape(text)}"
            case TurnEnded(rounds, requests, took):
                seconds = f"{took / 1000:.1f} s"
                return f"[dim]turn     {seconds}, {rounds} tool rounds, {requests} requests[/]"
            case _:
                return None
