"""The settings of one server, before it is started or called, and the limits of one manager."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from mcp_bridge.core.sanitize import (
    looks_secret,
    redact,
    secrets_in_args,
    secrets_in_env,
    secrets_in_headers,
    secrets_in_url,
)

# Turns the address of a server as people write it into a URL that a client can use.


def is_loopback(url: str) -> bool:
    """Tells whether `url` is on this machine, by its name alone: nothing is looked up."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def with_scheme(address: str, *, socket: bool = False) -> str:
    """Gives the URL of an address without a scheme: http:// on this machine, https:// elsewhere.

    That is ws:// and wss:// for a `socket`. What has a scheme stays as it is, and so does what is
    no address; whoever uses it says so.
    """
    text = address.strip()
    host = text.partition("/")[0]
    if not host or "://" in text or host.rstrip(":").lower() in ("http", "https", "ws", "wss"):
        return text
    plain, encrypted = ("ws", "wss") if socket else ("http", "https")
    try:
        return f"{plain if is_loopback(f'{plain}://{text}') else encrypted}://{text}"
    except ValueError:
        return text


TransportName: TypeAlias = Literal["stdio", "http", "sse", "websocket"]
Allowance: TypeAlias = Literal["command", "eval", "env", "metacharacters", "http"]
NewTools: TypeAlias = Literal["offer", "hold"]
"""What becomes of a tool that a known server adds: it is offered and told of, or waits."""
ALLOWANCES: Final[tuple[Allowance, ...]] = get_args(Allowance)
"""What `allow` in a server's entry may hold: the owner of the file vouches for it."""

_TOKENS_KEPT: Final = 4
"""The token in use, and those before it, which a server may still repeat."""
EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Example:
    """Words that a person could say, and the arguments of the call that they mean."""

    say: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AskedInput:
    """A value of an entry that a person is asked for once, and has not given yet."""

    id: str
    description: str
    secret: bool
    default: str = ""
    options: tuple[str, ...] = ()
    """What may be answered; empty where anything may."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The settings of one server. Fields that may hold a secret are kept out of `repr`."""

    name: str
    transport: TransportName = "stdio"
    command: str = ""
    """The program to start, for stdio."""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables that are added to the few that a child inherits (HOME, PATH, ...)."""
    cwd: str | None = None
    url: str = field(default="", repr=False)
    """http:// or https:// for http and sse; ws:// or wss:// for websocket. Who leaves it out gets
    the encrypted one, and on this machine the other."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    authorization_servers: tuple[str, ...] = ()
    """Origins that its sign-in may be at, besides its own and public ones."""
    enabled: bool = True
    off_because: str = ""
    """Why the server is not enabled, where that is known."""
    fault: str = ""
    """What is wrong with its entry, with file, line, key and fix: such a server is down."""
    remarks: tuple[str, ...] = ()
    """What its entry holds that was passed over, each with its place and fix."""
    asks: tuple[AskedInput, ...] = ()
    only_tools: frozenset[str] | None = None
    """The server's own names of its tools that are offered; None offers all."""
    without_tools: frozenset[str] = frozenset()
    """The server's own names of tools that are not offered."""
    timeout_s: float | None = None
    """The deadline of one call; None leaves it to the manager."""
    connect_timeout_s: float | None = None
    offline: bool = False
    """Whether the program is told, by variables that package runners read, to fetch nothing."""
    share: bool = False
    """Whether several managers of one process may use one session. `SessionPool` says when that is
    safe."""
    examples: Mapping[str, tuple[Example, ...]] = field(
        default_factory=dict[str, tuple[Example, ...]], repr=False
    )
    """Examples by the tool's name at the server."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Further values to keep out of messages: everything that came from the environment."""
    allow: frozenset[Allowance] = frozenset()
    """What the file's owner vouches for, although the security checks object to it."""
    new_tools: NewTools | None = None
    """None leaves it to `Pins`."""
    given_path: str = ""
    """The room's path, where it is the last of `args`."""
    sealed: tuple[str, ...] = field(default=(), repr=False)
    """Those of `secrets` that look like keys: no result may hold them either."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", with_scheme(self.url, socket=self.transport == "websocket"))

    def digest(self) -> str:
        """Gives a digest of what starts or reaches the server. Rooms with the same may share it."""
        names = ("transport", "command", "args", "env", "cwd", "url", "headers")
        values = {name: getattr(self, name) for name in names}
        values = {**values, "env": dict(self.env), "headers": dict(self.headers)}
        if self.only_tools is not None or self.without_tools:
            values["tools"] = [sorted(self.only_tools or ()), sorted(self.without_tools)]
        if self.fault:
            values["fault"] = self.fault
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def offers(self, tool: str) -> bool:
        """Tells whether its entry lets one of its tools be offered."""
        listed = self.only_tools is None or tool in self.only_tools
        return listed and tool not in self.without_tools

    def redact(self, text: str) -> str:
        """Removes this server's secrets from `text`, for messages and logs.

        Every value of its environment and headers counts as one, since a message can do without.
        """
        given = (*self.secrets, *self.env.values(), *secrets_in_headers(self.headers))
        return redact(text, (*given, *self.keys()))

    def keys(self) -> tuple[str, ...]:
        """Gives what looks like a key in the settings. No result may hold it either."""
        headers = {name: value for name, value in self.headers.items() if looks_secret(name, value)}
        return (
            *self.sealed,
            *secrets_in_env(self.env),
            *secrets_in_headers(headers),
            *secrets_in_url(self.url),
            *secrets_in_args(self.args),
        )


class ServerSecrets:
    """The secrets of one server: the keys of its configuration, and the tokens that it was sent.

    Cut a text afterwards: a cut secret would not be known for one.
    """

    def __init__(self, config: ServerConfig) -> None:
        self._config: Final = config
        self._keys: Final = config.keys()
        self._sent: tuple[str, ...] = ()

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Notes the token in the headers of a request: a sign-in's token is nowhere else."""
        if (sent := headers.get("authorization")) is None:
            return
        token = sent.partition(" ")[2] or sent
        if token not in self._sent:
            self._sent = (*self._sent, token)[-_TOKENS_KEPT:]

    def redact_result(self, text: str) -> str:
        """Removes keys from what a model reads and people hear.

        Plain values (a folder, a time zone) stay in a result.
        """
        return redact(text, (*self._keys, *self._sent))

    def redact_message(self, text: str) -> str:
        """Removes every value that the server was given from a message or a line of a log."""
        return redact(self._config.redact(text), self._sent)


# What one manager allows: seconds, characters and counts.

MAX_RESULT_CHARS: Final = 65_536
"""About 16,000 tokens: more than a small local model's whole window."""

_READY_S: Final = 60.0
"""The most that a server's own `connect_timeout` makes everybody wait where nobody has said how
long: an entry may have an hour, and the other servers' tools are there."""
_WORD_S: Final = 0.5
"""So much later a server that fails at its last moment has said so."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one manager and of each of its servers."""

    connect_timeout_s: float = 10.0
    """From starting the process, or the first byte, to the end of the handshake; listing the tools
    may take as long again."""
    first_start_s: float = 300.0
    """The same for the first start of a package runner (npx, uvx, docker), unless its entry says
    otherwise: it may have to download the server, and an image is some hundred megabytes."""
    call_timeout_s: float = 20.0
    """How long a server may be silent: from `call_tool` to its result, a reconnect included, or to
    a sign of progress, from which the time counts anew."""
    call_cap_s: float = 120.0
    """How long a whole call may take, whatever progress the server reports. Nobody stays on the
    line for longer."""
    answer_s: float = 45.0
    """How long a person has for a server's question: to hear it, to think and to speak."""
    idle_s: float = 30 * 60.0
    """A connection that nobody uses for so long is closed; its tools stay, and the next call
    connects again."""
    retry_first_s: float = 0.5
    """The bound of the first wait before a lost connection is made again by itself. It doubles each
    time, and each wait is any time below the bound."""
    retry_longest_s: float = 60.0
    retries: int = 8
    """Retries in a row without being asked: some three minutes, for a server that is being
    restarted. After them the next call or reload tries."""
    failures: int = 5
    """After so many failures in a row, calls are refused at once for `rest_s`, or less where the
    last one failed quickly, until one that is let through succeeds."""
    rest_s: float = 30.0
    max_result_chars: int = MAX_RESULT_CHARS
    max_tools: int = 2_000
    """For each server. Further tools are left out, and reported."""
    max_pages: int = 100
    """Pages of one server's list, for a server that pages for ever."""
    max_description_chars: int = 1_024
    max_schema_chars: int = 65_536
    """A tool whose input schema is larger is left out, and reported."""
    max_waiting: int = 64
    """Calls of one server at a time; further ones are refused at once."""

    def usual_wait_s(self, own_connect_timeouts_s: Iterable[float | None]) -> float:
        """Gives the seconds after which servers ordinarily are ready or have failed.

        Each has a `connect_timeout` of its own, or None. That a first start may take minutes does
        not count.
        """
        usual_s = self.connect_timeout_s
        longest_s = max((own or usual_s for own in own_connect_timeouts_s), default=usual_s)
        return min(2 * longest_s, max(2 * usual_s, _READY_S)) + _WORD_S
