"""What is known of one server before it is started or called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from mcp_bridge.core.redaction import (
    in_args,
    in_env,
    in_headers,
    in_url,
    looks_secret,
    redact,
)

TransportName: TypeAlias = Literal["stdio", "http", "sse", "websocket"]
Allowance: TypeAlias = Literal["command", "eval", "env", "metacharacters", "http"]
ALLOWANCES: Final[tuple[Allowance, ...]] = get_args(Allowance)
"""What `allow` in a server's entry may hold: the owner of the file vouches for it."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


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
    """http:// or https://, for http and sse; ws:// or wss:// for websocket."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    enabled: bool = True
    off_because: str = ""
    """Why it is not enabled, where that is known."""
    timeout_s: float | None = None
    """Deadline of one call; None leaves it to the manager."""
    connect_timeout_s: float | None = None
    share: bool = False
    """Whether several managers of one process may use one session; `pool.py` says when that is
    safe."""
    examples: Mapping[str, tuple[Example, ...]] = field(
        default_factory=dict[str, tuple[Example, ...]], repr=False
    )
    """By the tool's name at the server."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Further values to keep out of messages: what came from the environment."""

    allow: frozenset[Allowance] = frozenset()
    """What the file's owner vouches for: `security/finding.py`."""
    given_path: str = ""
    """The room's path, where it is the last of `args`."""
    sealed: tuple[str, ...] = field(default=(), repr=False)
    """Those of `secrets` that look like keys: no result may hold them either."""

    def redact(self, text: str) -> str:
        """`text` without this server's secrets, for messages and logs.

        Every value of its environment and headers counts as one: a message can do without.
        """
        return redact(
            text, (*self.secrets, *self.env.values(), *in_headers(self.headers), *self._keys())
        )

    def redact_result(self, text: str) -> str:
        """`text` without what looks like a key. Plain values (a folder, a zone) are its matter."""
        return self.result_redactor()(text)

    def result_redactor(self) -> Callable[[str], str]:
        """`redact_result` for many results: what looks like a key is looked for once."""
        keys = (*self.sealed, *self._keys())
        return lambda text: redact(text, keys)

    def _keys(self) -> tuple[str, ...]:
        return (
            *in_env(self.env),
            *in_headers({k: v for k, v in self.headers.items() if looks_secret(k, v)}),
            *in_url(self.url),
            *in_args(self.args),
        )
