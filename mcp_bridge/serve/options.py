"""The options of `mcp-bridge serve`, with the clients' token, and which of them are refused."""

from __future__ import annotations

import hashlib
import hmac
import os
import ssl
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp_bridge.core.errors import ConfigError
from mcp_bridge.core.files import open_regular, read_rest
from mcp_bridge.core.server_config import ALLOWANCES, EMPTY, ServerConfig, is_loopback

DEFAULT_PORT: Final = 8890
MIB: Final = 1024 * 1024
TOKEN_VARIABLE: Final = "MCP_BRIDGE_TOKEN"  # noqa: S105 - the name of the variable
_MIN_TOKEN_CHARS: Final = 16
"""This is 64 bits, where it is random hexadecimal digits."""
_MAX_TOKEN_FILE_BYTES: Final = 4096
_MAKE_ONE: Final = "make one with: openssl rand -hex 32"


class Token:
    """Keeps a digest: comparing digests takes the same time whatever was sent, and however long."""

    def __init__(self, token: str) -> None:
        self._digest: Final = _digest(token)

    def __repr__(self) -> str:
        return "Token(***)"

    def matches(self, given: str) -> bool:
        return hmac.compare_digest(self._digest, _digest(given))


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The PEM files of a certificate and its key."""

    cert: Path
    """The certificate, followed by those that signed it."""
    key: Path | None = None
    """None where the key is in the same file."""


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """The bounds of a bridge: bytes, counts and seconds."""

    max_connections: int = 32
    """Each connection has a process of its own."""
    max_per_client: int = 16
    """Connections from one address. Behind a proxy all clients have one address."""
    max_message_bytes: int = 4 * MIB
    """The cap of one message from a client; the SDK's HTTP server takes as much."""
    max_line_bytes: int = 16 * MIB
    """The cap of one message from the process; an error takes the place of a longer one."""
    max_calls: int = 256
    """The calls of one connection that have no answer yet."""
    open_timeout_s: float = 10.0
    """The time for TLS and the handshake."""
    ping_interval_s: float = 20.0
    ping_timeout_s: float = 20.0
    stall_s: float = 15.0
    """The time for the process to take its input, or the client its answers, where buffers are
    full. It is shorter than the ping's: a client that is not being read cannot be heard
    answering."""
    idle_s: float = 3600.0
    """The time without a message in either direction; 0 is for ever. Clients let go after 30
    minutes."""
    drain_s: float = 10.0
    """The time for calls under way when the bridge is told to stop."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What one bridge serves, where, and to whom."""

    command: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0 lets the system choose one."""
    token: Token | None = None
    tls: TlsFiles | None = None
    allow_origins: frozenset[str] = frozenset()
    """Web pages that may connect, as in `https://app.example.com`; programs send no Origin."""
    allow_hosts: frozenset[str] = frozenset()
    """Names, without a port, under which clients reach the bridge."""
    insecure: bool = False
    """Whether to listen for other machines without a token or without TLS."""
    env: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    """Variables that are added to the few that the process inherits."""
    cwd: str | None = None
    limits: ServeLimits = ServeLimits()

    def server(self) -> ServerConfig:
        return ServerConfig(
            name="server",
            command=self.command[0],
            args=self.command[1:],
            env=self.env,
            cwd=self.cwd,
            # Whoever starts the bridge wrote the command themselves; a file may come from others.
            allow=frozenset(ALLOWANCES),
        )

    @property
    def is_local(self) -> bool:
        return is_loopback(f"ws://[{self.host}]" if ":" in self.host else f"ws://{self.host}")

    def missing(self) -> tuple[str, ...]:
        """Names what a bridge that other machines reach should have, and this one has not."""
        lacks = {"a token (--token-file)": not self.token, "TLS (--tls-cert)": not self.tls}
        return tuple(what for what, missing in lacks.items() if missing)

    def check(self) -> None:
        """Raises: ConfigError, which says how to fix it."""
        if not self.command:
            raise ConfigError("no command; write it behind --, as in: mcp-bridge serve -- uvx NAME")
        if not self.is_local and not self.insecure and (missing := self.missing()):
            raise ConfigError(
                f"--host {self.host} is reached from other machines and needs "
                f"{' and '.join(missing)}; or say --insecure, where a proxy or the network sees "
                "to that"
            )
        for origin in self.allow_origins:
            if "://" not in origin or origin.endswith("/"):
                raise ConfigError(
                    f"--allow-origin {origin!r}: write scheme and host, as in https://example.com"
                )
        for host in self.allow_hosts:
            if "/" in host or host.rpartition(":")[2].isdigit():
                raise ConfigError(f"--allow-host {host!r}: write the name alone, without a port")


def tls_context(files: TlsFiles | None) -> ssl.SSLContext | None:
    """Makes the context of TLS from the files; None without files.

    Raises: ConfigError.
    """
    if files is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        for file in filter(None, (files.cert, files.key)):
            open_regular(file).close()  # OpenSSL would wait for a FIFO's other end
        # A key with a pass phrase must not make a service wait at a prompt.
        context.load_cert_chain(files.cert, files.key, password=_no_pass_phrase)
    except ssl.SSLError as error:
        said = error.reason or "not readable"
        raise ConfigError(
            f"--tls-cert {files.cert}: {said.lower().replace('_', ' ')}; give a PEM certificate, "
            "and with --tls-key its own key"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"--tls-cert, --tls-key: {error.strerror}; fix their paths or modes"
        ) from None
    return context


def _no_pass_phrase() -> str:
    raise ConfigError("--tls-key: it has a pass phrase; give a key without one")


def find_token(file: Path | None, environ: Mapping[str, str]) -> Token | None:
    """Reads the token from the file, else from the environment; None where neither is set.

    Raises: ConfigError.
    """
    if file is not None:
        return Token(_checked_token(_read_token(file), str(file)))
    if (written := environ.get(TOKEN_VARIABLE)) is not None:
        return Token(_checked_token(written, TOKEN_VARIABLE))
    return None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _read_token(file: Path) -> str:
    try:
        with open_regular(file) as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if mode & stat.S_IRWXO and sys.platform != "win32":
                raise ConfigError(
                    f"--token-file {file}: every user of this machine can open it; "
                    f"run: chmod o= {file}"
                )
            return read_rest(opened, _MAX_TOKEN_FILE_BYTES).decode()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"--token-file {file}: {reason}; fix its path or mode") from None
    except ValueError:
        raise ConfigError(f"--token-file {file}: is no text, or a long one; {_MAKE_ONE}") from None


def _checked_token(written: str, where: str) -> str:
    token = written.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{where}: a token is one word of plain characters; {_MAKE_ONE}")
    if len(token) < _MIN_TOKEN_CHARS:
        raise ConfigError(f"{where}: shorter than {_MIN_TOKEN_CHARS} characters; {_MAKE_ONE}")
    return token
