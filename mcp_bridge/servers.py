"""What is known of one server before it is started or called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

TransportName: TypeAlias = Literal["stdio", "http", "sse"]

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_MIN_SECRET_CHARS: Final = 6
"""Shorter values (`1`, `true`, `en`) are no secrets; hiding them would garble every message."""


@dataclass(frozen=True, slots=True)
class Example:
    """Words a person could say, and the arguments of the call they mean."""

    say: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server. What may hold a secret is kept out of `repr`."""

    name: str
    transport: TransportName = "stdio"
    command: str = ""
    """The program, for stdio."""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Added to the few variables a child inherits (HOME, PATH, ...)."""
    cwd: str | None = None
    url: str = field(default="", repr=False)
    """http:// or https://, for http and sse."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    enabled: bool = True
    off_because: str = ""
    """Why it is not enabled, where that is known."""
    timeout_s: float | None = None
    """Deadline of one call; None leaves it to the manager."""
    connect_timeout_s: float | None = None
    examples: Mapping[str, tuple[Example, ...]] = field(
        default_factory=dict[str, tuple[Example, ...]], repr=False
    )
    """By the tool's name at the server."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Further values to keep out of messages: what came from the environment."""

    def redact(self, text: str) -> str:
        """`text` without this server's secrets: they are found by value, not by key."""
        values = {*self.secrets, *self.env.values(), *self.headers.values()}
        values |= {value.removeprefix("Bearer ") for value in self.headers.values()}
        for value in sorted(values, key=len, reverse=True):
            if len(value) >= _MIN_SECRET_CHARS:
                text = text.replace(value, "***")
        return text
