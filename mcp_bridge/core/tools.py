"""What callers see of a tool and of its result."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

from mcp_bridge.core.server_config import Example

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
