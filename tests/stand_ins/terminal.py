"""A program on a real pseudo-terminal, and what a person sees on its screen.

with Terminal(["chat"], folder=tmp_path, OLLAMA_HOST=server.url) as terminal:
    await terminal.types_after_prompt("hello\r")
    await terminal.shows("You said hello")
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

import pexpect
import pyte

PATIENCE_S: Final = 30.0
"""For a start on a machine that is busy; a test that runs into it has failed."""
ROWS: Final = 60
COLUMNS: Final = 100
CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"
LEFT: Final = "\x1b[D"
UP: Final = "\x1b[A"
TAB: Final = "\t"
_FOREIGN: Final = ("CAAL_", "N8N_", "OLLAMA_", "LIVEKIT_", "PYTEST_")
_KEPT: Final = ("CAAL_STATE", "CAAL_CONFIG")
_STYLE: Final = ("NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS", "COLUMNS", "LINES")
"""These decide about escape codes, which a CI service sets and typer takes for a wish, and about
widths, which a terminal knows better."""
_TICK_S: Final = 0.05


def clean_environment(**env: str) -> dict[str, str]:
    """The environment of this process without settings of ours, and with `env`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or not (name.startswith(_FOREIGN) or name in _STYLE)
    }
    return {**kept, **env}


def _hears_ctrl_c() -> None:
    # A shell's background jobs ignore it, and so do the programs that they start.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """`caal-node`, or another `module`, with `args` in `folder`, as a person has it before them."""

    def __init__(
        self,
        args: list[str],
        *,
        folder: Path,
        module: str = "caal_node",
        columns: int = COLUMNS,
        **env: str,
    ) -> None:
        # Nobody here answers where the cursor is, so prompt_toolkit is not to ask.
        own = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "CAAL_STATE": str(folder)}
        self._child: pexpect.spawn[bytes] = pexpect.spawn(
            sys.executable,
            ["-m", module, *args],
            env=clean_environment(**own | env),  # pyright: ignore[reportArgumentType]
            cwd=str(folder),
            dimensions=(ROWS, columns),
            preexec_fn=_hears_ctrl_c,
        )
        self._screen = pyte.Screen(columns, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        """Everything that the program has written, escape codes included."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close(force=True)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without the empty ones below."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().split("\n")

    def types(self, keys: str) -> None:
        """Presses `keys`."""
        self._child.send(keys)

    async def shows(self, words: str) -> None:
        """Waits until the screen shows `words`."""
        await self._until(lambda: words in "\n".join(self.lines), f"{words!r} to be shown")

    async def asks(self, begun: str = "") -> None:
        """Waits for the prompt, with what is `begun` behind it."""
        await self._until(lambda: self.lines[-1] == f"> {begun}".rstrip(), f"'> {begun}'")

    async def exit_code(self) -> int:
        """Waits for the program's end."""
        await self._until(lambda: not self._read(), "the end")
        self._child.close()
        assert self._child.exitstatus is not None, f"killed by signal {self._child.signalstatus}"
        return self._child.exitstatus

    async def _until(self, met: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not met():
                    self._read()
                    await asyncio.sleep(_TICK_S)
        except TimeoutError:
            shown = "\n".join(self.lines)
            raise AssertionError(f"waited for {what}; the screen shows:\n{shown}") from None

    def _read(self) -> bool:
        """Takes in what was written; False where the program has ended."""
        try:
            data: Any = self._child.read_nonblocking(1 << 16, timeout=0)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.written += data
        self._stream.feed(data)
        return True
