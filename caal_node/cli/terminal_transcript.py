"""The transcript prints a conversation's events for a person at a terminal."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from caal_node.core.events import (
    ClaimCorrected,
    ConfirmationEnded,
    CuePlayed,
    Event,
    FactCorrected,
    SourcesCited,
    Spoken,
    ToolCallEnded,
    ToolCallStarted,
    ToolProgress,
    ToolSourceChanged,
    TurnEnded,
    UserSaid,
)

_CUES = {
    "tool": "♪ tool",
    "agent": "♪ agent",
    "error": "♪ error",
    "tick": "♪ still working",
    "ring": "♪ ring",
}


class TerminalTranscript:
    """A listener for events that prints one line for each."""

    def __init__(self, console: Console, *, echo_user: bool = False) -> None:
        self._console = console
        self._echo_user = echo_user

    def print_ready(self, tools: int) -> None:
        """Print how many tools there are."""
        how = "Type, and press Enter; /help lists the commands, Ctrl-D ends."
        count = f"{tools} tool" if tools == 1 else f"{tools} tools"
        self._console.print(f"[dim]{count}. {how}[/dim]")
        if not tools:
            self._console.print("[dim]caal-node tools add shows tools that can be turned on.[/dim]")

    def print_note(self, words: str) -> None:
        """Print something about the conversation."""
        self._console.print(f"[dim]{escape(words)}[/dim]")

    @contextmanager
    def waiting(self, what: str) -> Generator[None]:
        """Show on a terminal that something goes on, and for how long, until it is over."""
        columns = SpinnerColumn(), TextColumn("[dim]{task.description}[/]"), TimeElapsedColumn()
        moves = self._console.is_terminal and not self._console.is_dumb_terminal
        with Progress(*columns, console=self._console, transient=True, disable=not moves) as bar:
            bar.add_task(escape(what), total=None)
            yield

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
            case ConfirmationEnded(tool=tool, answer=answer):
                return f"[dim]answer   {answer}, to {escape(tool)}[/dim]"
            case ToolCallEnded(tool=tool, outcome=outcome, duration_ms=took, reason=reason):
                colour = "green" if outcome == "ok" else "red"
                why = f": {escape(reason)}" if reason else ""
                return f"[{colour}]{outcome:<8}[/] {escape(tool)} [dim]after {took} ms[/]{why}"
            case CuePlayed(kind):
                return f"[dim]cue      {_CUES[kind]}[/]"
            case Spoken(text):
                return f"[bold green]says[/]     {escape(text)}"
            case ClaimCorrected(became=became):
                return f"[dim]claim    not heard, as no tool did it; in its place: {became}[/]"
            case SourcesCited(sources=sources):
                read = ", ".join(dict.fromkeys(each.site for each in sources))
                return f"[dim]read     {escape(read)}[/dim]"
            case ToolSourceChanged(source=source, state="ready"):
                return f"[dim]{escape(source)} works again[/dim]"
            case ToolSourceChanged(source=source, reason=reason):
                return f"[yellow]no tools from {escape(f'{source}: {reason}')}[/yellow]"
            case FactCorrected(heard=heard):
                became = "mended" if heard else "left out"
                return f"[dim]fact     {became}, as the results say otherwise[/]"
            case TurnEnded(rounds, requests, took):
                seconds = f"{took / 1000:.1f} s"
                return f"[dim]turn     {seconds}, {rounds} tool rounds, {requests} requests[/]"
            case _:
                return None
