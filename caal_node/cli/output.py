"""Where commands print: fitted and styled on a terminal; whole lines without styles in a pipe."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from caal_node.redaction.log_filter import RedactingFilter
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings

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
