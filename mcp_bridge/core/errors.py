"""All errors that mcp_bridge raises, in one tree.

    BridgeError
    ├── ConfigError         the file of servers is wrong; the message names file, line, key and fix
    ├── UnknownTool         the name is not in the table
    ├── BadArguments        the arguments cannot be sent as they are
    ├── ServerUnavailable   the server could not be reached, or went away during the call
    │   └── ServerStarting  its package runner may still be downloading it; it comes by itself
    ├── CallTimeout         no answer within the deadline; the server was told to stop
    ├── ServerError         the server answered with an error of the protocol, or with nonsense
    └── EmbeddingUnavailable    texts cannot be embedded now; searches go by their words alone

A tool that fails by itself raises nothing: its result has `is_error`. Messages are one line, name
the server or the key, and hold no argument, no result and no secret of the configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast


class BridgeError(Exception):
    """The root of the tree."""


class ConfigError(BridgeError):
    """The file of servers is wrong: `FILE:LINE: KEY: what is wrong; how to fix it`."""

    def __init__(self, message: str, *, file: str = "", line: int = 0, key: str = "") -> None:
        parts = (f"{file}:{line}" if file and line else file, key, message)
        said = ": ".join(part for part in parts if part)
        # Keys come from the file and may hold anything; a complaint is one line.
        super().__init__("".join(char if char.isprintable() else "?" for char in said))
        self.file = file
        self.line = line
        """The line, counted from 1; 0 where there is no file, or no line of it is meant."""
        self.key = key
        """The dotted path from the top of the file, for example `mcpServers.time.args`."""


class UnknownTool(BridgeError):
    """No server offers a tool of that name."""

    def __init__(self, name: str, nearest: Sequence[str] = ()) -> None:
        hint = f"; the nearest are {', '.join(nearest)}" if nearest else ""
        super().__init__(f"there is no tool named {name[:80]!r}{hint}")
        self.name = name
        self.nearest = tuple(nearest)
        """Names that do exist, best first."""


class BadArguments(BridgeError):
    """The arguments are not JSON, or too large. Nothing was sent."""

    def __init__(self, tool: str, reason: str) -> None:
        super().__init__(f"the arguments of {tool} {reason}")
        self.tool = tool


class _ServerFailure(BridgeError):
    """One server failed; `reason` is one line without the server's name."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"{server}: {reason}")
        self.server = server
        self.reason = reason


class ServerUnavailable(_ServerFailure):
    """The server is down. Whether a call that was under way took effect is not known."""


class ServerStarting(ServerUnavailable):
    """The server is started for the first time, and may have to be downloaded before."""


class CallTimeout(_ServerFailure):
    """The deadline passed. The server was asked to stop; it may have finished all the same."""


class ServerError(_ServerFailure):
    """The server refused the request, or its answer does not follow the protocol."""


class EmbeddingUnavailable(BridgeError):
    """Texts cannot be embedded now. The message is one line and says how to fix it."""


def why_not_permitted(error: BaseException) -> str:
    """Gives what the system, or a rule of this process, says against a connection; else "".

    Clients put that error behind their own.
    """
    waiting: list[BaseException | None] = [error]
    for _ in range(16):  # a chain may be a ring
        if not waiting or (each := waiting.pop()) is None:
            continue
        if isinstance(each, PermissionError):
            return each.strerror or "permission denied"
        waiting += [each.__context__, each.__cause__]
        if isinstance(each, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", each).exceptions
    return ""
