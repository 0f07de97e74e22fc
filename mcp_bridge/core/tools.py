"""What callers see of a manager: its tools and their results, its servers' states, its events."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from mcp_bridge.core.server_config import Example, TransportName

_HELD_BYTES: Final = 2_047
"""For more at once, hashlib gives up the interpreter's lock and takes it back before another thread
has woken. In a thread that makes many digests this kept the event loop waiting for up to 70 ms, as
the 5 ms after which a thread has to give way began anew each time."""

READ_ONLY_HINT: Final = "readOnlyHint"
HINTS: Final = ("destructiveHint", "idempotentHint", "openWorldHint", READ_ONLY_HINT)
"""The annotations of a tool that say yes or no (MCP 2025-11-25, ToolAnnotations)."""

JsonValue: TypeAlias = Any
"""None, bool, int, float, str, list or dict, all the way down."""


@dataclass(frozen=True)
class ToolDefinition:
    """One tool as its server describes it, within caps. A digest is made once: it may take 1 ms."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool | None = None
    hints: tuple[str, ...] = ()
    """The names of the annotations that the server says are true, in alphabetical order."""

    @cached_property
    def digest(self) -> str:
        """The digest of everything that a model or a host reads of it."""
        return _digest(self)

    @cached_property
    def words_digest(self) -> str:
        """The digest of what it says, whatever it is called and however that is spaced."""
        words = " ".join(unicodedata.normalize("NFKC", self.description).casefold().split())
        return _digest(replace(self, name="", description=words))


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """One tool of one server, as callers know it."""

    name: str
    """What `call_tool` takes: `server__tool`, `^[A-Za-z0-9_-]{1,64}$`, unique in the manager."""
    server: str
    tool: str
    """The tool's name at its server."""
    description: str
    """The description without control and direction characters; it may be cut."""
    input_schema: Mapping[str, Any]
    """The JSON schema of an object."""
    read_only: bool | None = None
    """What the server claims; None where it says nothing. The claim may be a lie: let it add
    caution (False), and never allow a call because of it. True is only good for letting readers of
    one server run side by side, as a liar harms its own order alone."""
    examples: tuple[Example, ...] = ()
    """Examples from the configuration."""
    hints: tuple[str, ...] = ()
    """The annotations that the server says are true, such as `destructiveHint`. They are claims:
    let them add caution, and never allow a call because of them."""


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """What a tool answered."""

    value: JsonValue
    """Structured content where there is some; else text, read as JSON where it is an object or a
    list. Pictures, sound and files are described in a short note."""
    is_error: bool = False
    """Whether the tool says that it failed; `value` then says why."""
    truncated: bool = False
    """Whether `value` is a text that was cut, with a note at its end."""


def make_digests(tools: Sequence[ToolDefinition]) -> None:
    """Makes the digests of these tools, so that whoever asks for one later has it at once.

    It takes as long as their schemas are: up to 1 ms each.
    """
    for tool in tools:
        _ = tool.digest, tool.words_digest


def _digest(tool: ToolDefinition) -> str:
    values = {field.name: getattr(tool, field.name) for field in fields(tool)}
    # A tool without other hints keeps the digest that it was accepted with before there were any.
    hints = [hint for hint in values.pop("hints") if hint != READ_ONLY_HINT]
    text = json.dumps(
        [values | ({"hints": hints} if hints else {})], sort_keys=True, separators=(",", ":")
    )
    data = text.encode()
    digest = hashlib.sha256()
    for start in range(0, len(data), _HELD_BYTES):
        digest.update(data[start : start + _HELD_BYTES])
    return digest.hexdigest()


# What a manager tells: its events, the state of its servers, and what a reload changed.

State: TypeAlias = Literal["ready", "idle", "starting", "down", "off"]
"""starting: nobody has heard of it yet; its notes say so where that may take minutes. idle: the
tools are known from the catalogue, or from before the connection was closed because nobody used it;
the server is connected when one of them is called. off: its notes say why."""


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A server tells how far a call of ours has come. Texts are the server's own words, cleaned."""

    name: str
    """The tool's exposed name."""
    server: str
    done: float
    """This grows with every event of a call, in units of the server's choice."""
    total: float | None
    """The whole in the same units; None where the server does not know."""
    message: str


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A server's tools changed while nobody waited for a reload, or a late server turned out to be
    down or to have no tools."""

    server: str
    added: tuple[str, ...]
    """Exposed names, as in the two fields below."""
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    failed: Mapping[str, str]
    """The servers that are down now, and why."""


BridgeEvent: TypeAlias = CallProgressed | ToolsChanged

EventSink: TypeAlias = Callable[[BridgeEvent], None]
"""A host's function, called on the event loop; it must not block."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one configured server is doing."""

    name: str
    state: State
    transport: TransportName
    tools: int
    connect_ms: int | None
    """How long the last connection took; None where there was none."""
    error: str | None
    """What is wrong and how to fix it, on one line."""
    notes: tuple[str, ...]
    """What was left out of its tools, and why; for a server that is off, why it is off."""
    protocol: str | None = None
    """The protocol version of the last connection, for example `2026-07-28`."""
    held: int = 0
    """How many of its tools wait for a person to accept them, and are not offered."""
    added: int = 0
    """How many it has added that are offered, and that nobody has accepted yet."""
    shared: bool = False
    """Whether other managers of this process may use the same session."""


@dataclass(frozen=True, slots=True)
class CallRoute:
    """The way that the calls of one server take now."""

    transport: TransportName
    protocol: str | None
    """The protocol version of the last connection."""
    session_id: str | None
    """The HTTP session's id at the server; None where there is none."""


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a reload changed: exposed names of tools, and failed servers with their reasons."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    failed: Mapping[str, str]
