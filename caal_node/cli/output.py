"""Where commands print and read: fitted and styled on a terminal; plain whole lines in a pipe."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from caal_node.core.counted import counted
from caal_node.core.events import (
    ClaimCorrected,
    ConfirmationEnded,
    CuePlayed,
    Event,
    FactCorrected,
    SourcesCited,
    SpeechFailed,
    Spoken,
    ToolCallEnded,
    ToolCallStarted,
    ToolProgress,
    ToolSourceChanged,
    ToolsTold,
    TurnEnded,
    UserSaid,
)
from caal_node.redaction.log_filter import RedactingFilter
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings

# The transcript prints a conversation's events for a person at a terminal.

_CUES = {
    "tool": "♪ tool",
    "agent": "♪ agent",
    "error": "♪ error",
    "tick": "♪ still working",
    "done": "♪ done",
    "ring": "♪ ring",
}


class TerminalTranscript:
    """A listener for events that prints one line for each."""

    def __init__(self, console: Console, *, echo_user: bool = False, results: bool = False) -> None:
        self._console = console
        self._results = results
        self._echo_user = echo_user

    def print_ready(self, tools: int) -> None:
        """Print how many tools there are."""
        how = "Type, and press Enter; /help lists the commands, Ctrl-D ends."
        self._console.print(f"[dim]{counted(tools, 'tool')}. {how}[/dim]")
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
            case ToolCallEnded(tool=tool, outcome=outcome, duration_ms=took) as ended:
                colour = "green" if outcome == "ok" else "red"
                more = ended.reason or (ended.result if self._results else "")
                why = f": {escape(more)}" if more else ""
                return f"[{colour}]{outcome:<8}[/] {escape(tool)} [dim]after {took} ms[/]{why}"
            case CuePlayed(kind):
                return f"[dim]cue      {_CUES[kind]}[/]"
            case Spoken(text):
                return f"[bold green]says[/]     {escape(text)}"
            case SpeechFailed(reason=reason):
                return f"[red]silent[/]   text to speech failed: {escape(reason)}"
            case ClaimCorrected(became=became):
                return f"[dim]claim    not said, as no tool did it; said instead: {became}[/]"
            case SourcesCited(sources=sources):
                read = ", ".join(dict.fromkeys(each.site for each in sources))
                return f"[dim]read     {escape(read)}[/dim]"
            case ToolsTold(by=by, tools=tools):
                how = "shown" if by == "words" else "found"
                return f"[dim]{how:<8} {escape(', '.join(tools))}[/dim]"
            case ToolSourceChanged(source=source, state="ready"):
                return f"[dim]{escape(source)} works again[/dim]"
            case ToolSourceChanged(source=source, reason=reason):
                return f"[yellow]no tools from {escape(f'{source}: {reason}')}[/yellow]"
            case FactCorrected(heard=heard):
                became = "corrected" if heard else "left out"
                return f"[dim]fact     {became}, as the results say otherwise[/]"
            case TurnEnded(rounds, requests, took):
                seconds = f"{took / 1000:.1f} s"
                counts = f"{counted(rounds, 'tool round')}, {counted(requests, 'request')}"
                return f"[dim]turn     {seconds}, {counts}[/]"
            case _:
                return None


PIPE_COLUMNS: Final = 4_096
"""No line of help is as long, so none is broken."""


def help_style() -> dict[str, Any]:
    """Return what makes typer print help and wrong usage without boxes and whole in a pipe.

    On a terminal its own style stays.
    """
    options: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
    if on_terminal():
        return {"context_settings": options}
    return {
        "context_settings": options | {"terminal_width": PIPE_COLUMNS},
        "rich_markup_mode": None,
    }


def on_terminal() -> bool:
    """Say whether a person reads what is printed, on both streams."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))


def console(*, stderr: bool = False) -> Console:
    """Return a console that breaks lines between words, and in a pipe none. It obeys NO_COLOR."""
    made = Console(stderr=stderr, highlight=False)
    made.soft_wrap = not made.is_terminal
    return made


def print_table(out: Console, shown: RenderableType) -> None:
    """Print a table, or a group with tables; in a pipe a row is a line, its cells between tabs.

    On a narrow terminal cells become taller, as what they name may have to be typed.
    """
    if isinstance(shown, Group):
        for part in shown.renderables:
            print_table(out, part)
    elif out.is_terminal:
        for column in shown.columns if isinstance(shown, Table) else ():
            column.overflow = "fold"
        out.print(shown)
    elif isinstance(shown, Table):
        header = [column.header for column in shown.columns]
        for row in (header, *zip(*(column.cells for column in shown.columns), strict=True)):
            print("\t".join(map(_plain, row)), file=out.file)  # rich would make spaces of tabs
    else:
        out.print(shown)


def _plain(cell: RenderableType) -> str:
    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return " ".join(text.plain.split())


class StderrHandler(logging.Handler):
    """Logs to what `sys.stderr` is at the time, as a prompt or a progress line replaces it."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except OSError:
            self.handleError(record)


def log_to_stderr(
    level: int, *, leave_out: Callable[[logging.LogRecord], bool] = lambda _: False
) -> None:
    """Log to standard error, from `level` on, what `leave_out` does not leave out."""
    handler = StderrHandler()
    handler.addFilter(lambda record: not leave_out(record))
    # What has the shape of a secret; an agent's own secrets are known once there is one.
    handler.addFilter(RedactingFilter(OutgoingRedaction(RedactionSettings())))
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)


# Typed lines are read beside the event loop, by a thread that nobody has to wait for.
#
# `sys.stdin.readline` in a pool's thread would keep Ctrl-C waiting for Enter, since a pool joins
# its threads; a daemon thread inside Python's own buffer aborts the interpreter at its end. So this
# one reads the descriptor itself.

_CHUNK_BYTES: Final = 4096
_BYTES_A_CHAR: Final = 4
"""A character has this many bytes at most in UTF-8."""


def standard_input() -> int | None:
    """Return its file descriptor; None where the program was started without one."""
    return None if sys.stdin is None else sys.stdin.fileno()


async def typed_lines(descriptor: int | None, *, max_chars: int) -> AsyncGenerator[str]:
    """Yield each line of `descriptor`, cut to `max_chars`; a line is read when it is asked for.

    A descriptor that is not there, or cannot be read any more, has no more lines.
    """
    if descriptor is None:
        return
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[str | None] = asyncio.Queue()
    wanted = threading.Semaphore(0)

    def read() -> None:
        lines = capped_lines(_chunks(descriptor), max_chars * _BYTES_A_CHAR)
        try:
            while wanted.acquire():
                line = next(lines, None)
                loop.call_soon_threadsafe(arrived.put_nowait, line)
                if line is None:
                    return
        except RuntimeError:
            return  # the loop was closed while a line was awaited

    threading.Thread(target=read, name="typed-lines", daemon=True).start()
    while True:
        wanted.release()
        if (line := await arrived.get()) is None:
            return
        yield line[:max_chars]


def _chunks(descriptor: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            yield chunk
    except OSError:
        return  # the terminal was closed (EIO), or the descriptor (EBADF)


def capped_lines(chunks: Iterable[bytes], max_bytes: int) -> Iterator[str]:
    """Yield the lines of a byte stream without their ends, and drop what is past `max_bytes`.

    At most `max_bytes` and a chunk are held, however long a line is.
    """
    line = bytearray()
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line += part[: max_bytes - len(line)]
            yield line.decode(errors="replace")
            line.clear()
        line += rest[: max_bytes - len(line)]
    if line:
        yield line.decode(errors="replace")
