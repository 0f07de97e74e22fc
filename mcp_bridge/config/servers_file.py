"""Reads the file of servers, in any of three spellings.

    {"time": {"command": ..., "args": [...], "env": {...}}, "docs": {"url": ...}}
    {"mcpServers": {"time": {...}, "docs": {...}}}
    {"servers": [{"name": "time", "command": ...}, {"name": "docs", "url": ..., "token": ...}]}

The second is what Claude Desktop and Cursor write; `servers` may be an object too, as VS Code has
it. A server beside `mcpServers` or `servers` is an error: those programs would not see it, and it
must not vanish here without a word. What an entry may hold is told in `entries.py`.

A key that begins with `//` is a remark, whatever it holds. Keys that other programs keep (`note`,
`$schema`, `_x`, ...) are passed over where their values are no servers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from mcp_bridge.config.activation import ActivationContext
from mcp_bridge.config.file_value import FileValue
from mcp_bridge.config.json_positions import JsonSyntaxError, parse_json
from mcp_bridge.config.server_entry import is_remark, is_server, passed_over, read_entry
from mcp_bridge.core.errors import ConfigError
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.security import ownership

logger = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 1024 * 1024
"""1 MiB: a thousand servers with long examples. More is a wrong file."""


def load_servers(
    path: str | os.PathLike[str],
    *,
    environ: Mapping[str, str] | None = None,
    missing_ok: bool = False,
    room_path: str | None = None,
) -> tuple[ServerConfig, ...]:
    """The servers of a file, in its order; those that are off have `enabled=False`.

    Args:
        environ: Where `${NAME}` is looked up; None is this process's environment.
        missing_ok: Whether a file that is not there stands for no servers.
        room_path: The folder that a room works in, for `with_path` and `requires_path`.

    What a server is enabled by is looked up now; load the file again to look again.

    Raises:
        ConfigError: names file, line and key, and says how to mend it.
    """
    file = os.fspath(path)
    try:
        text = _read(Path(path), file)
    except FileNotFoundError:
        if missing_ok:
            return ()
        raise ConfigError("there is no such file; create it, or mend the path", file=file) from None
    return parse_servers(text, file=file, environ=environ, room_path=room_path)


def parse_servers(
    text: str,
    *,
    file: str = "mcp_servers.json",
    environ: Mapping[str, str] | None = None,
    room_path: str | None = None,
) -> tuple[ServerConfig, ...]:
    """As `load_servers`, from the text itself. `file` is what errors call it."""
    try:
        document = parse_json(text)
    except JsonSyntaxError as error:
        raise ConfigError(str(error), file=file, line=error.line) from None
    context = ActivationContext(os.environ if environ is None else environ, room_path)
    seen: dict[str, int] = {}
    servers: list[ServerConfig] = []
    for name, place in _entries(FileValue(file, document, ())):
        line = document.line(place.path)
        if name in seen:
            place.refuse(f"the server {name!r} stands in line {seen[name]} already; rename one")
        seen[name] = line
        servers.append(read_entry(place, name, context))
    return tuple(servers)


def _read(path: Path, file: str) -> str:
    try:
        with path.open("rb") as stream:
            _check_owner(stream.fileno(), file)
            data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise ConfigError(f"is over {MAX_FILE_BYTES} bytes; is it the right file?", file=file)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError("is not UTF-8; save it as UTF-8", file=file, line=line) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"cannot be read ({reason}); mend its path or mode", file=file) from None


def _check_owner(handle: int, file: str) -> None:
    if ownership.is_checked():
        said = ownership.fault(os.fstat(handle), file, os.geteuid())
        if said is not None:
            raise ConfigError(said, file=file)
    else:
        logger.info("%s: who may write it is not checked on Windows", file)


def _entries(top: FileValue) -> Iterator[tuple[str, FileValue]]:
    """Name and place of every server, whichever spelling the file has."""
    members = top.members()
    servers = members.get("servers")
    if "mcpServers" in members:
        _check_beside(top, "mcpServers")
        if servers and isinstance(servers, dict | list):
            (top / "servers").refuse('stands beside "mcpServers"; move its servers in there')
        yield from _named(top / "mcpServers")
    elif isinstance(servers, list):
        _check_beside(top, "servers")
        yield from _listed(top / "servers")
    elif isinstance(servers, dict) and not is_server(servers):
        _check_beside(top, "servers")
        yield from _named(top / "servers")
    else:
        yield from _named(top)


def _check_beside(top: FileValue, group: str) -> None:
    """Raises: ConfigError, where a server stands beside the group that holds the servers."""
    for name, value in top.members().items():
        if name != group and not is_remark(name) and is_server(value):
            (top / name).refuse(f'is a server beside "{group}"; move it in there')


def _named(place: FileValue) -> Iterator[tuple[str, FileValue]]:
    for name, value in place.members().items():
        if is_remark(name) or (passed_over(name) and not is_server(value)):
            continue
        if not name.strip():
            (place / name).refuse("the server has no name; write one")
        yield name, place / name


def _listed(place: FileValue) -> Iterator[tuple[str, FileValue]]:
    for item in place.items():
        if "name" not in item.members():
            item.refuse('lacks "name"; add one')
        yield (item / "name").filled(), item
