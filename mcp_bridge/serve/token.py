"""The token that clients send: it is read from a file or the environment, and compared."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcp_bridge.core.errors import ConfigError

TOKEN_VARIABLE: Final = "MCP_BRIDGE_TOKEN"  # noqa: S105 - the name of the variable
_MIN_CHARS: Final = 16
"""This is 64 bits, where it is random hexadecimal digits."""
_MAX_FILE_BYTES: Final = 4096
_MAKE_ONE: Final = "make one with: openssl rand -hex 32"


class Token:
    """Keeps a digest: comparing digests takes the same time whatever was sent, and however long."""

    def __init__(self, token: str) -> None:
        self._digest: Final = _digest(token)

    def __repr__(self) -> str:
        return "Token(***)"

    def matches(self, given: str) -> bool:
        return hmac.compare_digest(self._digest, _digest(given))


def find_token(file: Path | None, environ: Mapping[str, str]) -> Token | None:
    """Reads the token from the file, else from the environment; None where neither is set.

    Raises: ConfigError.
    """
    if file is not None:
        return Token(_checked(_read(file), str(file)))
    if (written := environ.get(TOKEN_VARIABLE)) is not None:
        return Token(_checked(written, TOKEN_VARIABLE))
    return None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if mode & stat.S_IRWXO and sys.platform != "win32":
                raise ConfigError(
                    f"--token-file {file}: every user of this machine can open it; "
                    f"run: chmod o= {file}"
                )
            return opened.read(_MAX_FILE_BYTES).decode()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"--token-file {file}: {reason}; mend its path or mode") from None
    except UnicodeDecodeError:
        raise ConfigError(f"--token-file {file}: is no text; {_MAKE_ONE}") from None


def _checked(written: str, where: str) -> str:
    token = written.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{where}: a token is one word of plain characters; {_MAKE_ONE}")
    if len(token) < _MIN_CHARS:
        raise ConfigError(f"{where}: shorter than {_MIN_CHARS} characters; {_MAKE_ONE}")
    return token
