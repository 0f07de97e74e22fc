"""Reads the file of servers, in any of three spellings.

    {"time": {"command": ..., "args": [...], "env": {...}}, "docs": {"url": ...}}
    {"mcpServers": {"time": {...}, "docs": {...}}}
    {"servers": [{"name": "time", "command": ...}, {"name": "docs", "url": ..., "token": ...}]}

The second is what Claude Desktop and Cursor write; `servers` may be an object too, as VS Code has
it. A server beside `mcpServers` or `servers` is an error: those programs would not see it, and it
must not vanish here without a word. `server_entry.py` tells what an entry may hold.

A key that begins with `//` is a remark, whatever it holds. Keys that other programs keep (`note`,
`$schema`, `_x`, ...) are passed over where their values are no servers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from mcp_bridge.config.entry_model import is_foreign, is_remark
from mcp_bridge.config.json_file import FileValue, JsonSyntaxError, kind_of, parse_json
from mcp_bridge.config.server_entry import ActivationContext, is_server, read_entry
from mcp_bridge.core.errors import ConfigError
from mcp_bridge.core.files import open_regular, read_rest
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
    """Gives the servers of a file, in its order; those that are off have `enabled=False`.

    What a server is enabled by is looked up now; load the file again to look again.

    Args:
        environ: Where `${NAME}` is looked up; None is this process's environment.
        missing_ok: Whether a file that is not there stands for no servers.
        room_path: The folder that a room works in, for `with_path` and `requires_path`.

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
    """Does the same as `load_servers`, from the text itself. `file` is what errors call it."""
    try:
        document = parse_json(text)
    except JsonSyntaxError as error:
        raise ConfigError(str(error), file=file, line=error.line) from None
    context = ActivationContext(os.environ if environ is None else environ, room_path)
    seen: dict[str, int] = {}
    servers: list[ServerConfig] = []
    for name, place in _entries(FileValue(file, document)):
        line = document.line(place.path)
        if name in seen:
            place.refuse(f"the server {name!r} stands in line {seen[name]} already; rename one")
        seen[name] = line
        servers.append(read_entry(place, name, context))
    return tuple(servers)


def _read(path: Path, file: str) -> str:
    try:
        with open_regular(path) as opened:
            _check_owner(opened.fileno(), path, file)
            return read_rest(opened, MAX_FILE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError("is not UTF-8; save it as UTF-8", file=file, line=line) from None
    except ValueError:
        said = f"is over {MAX_FILE_BYTES} bytes; is it the right file?"
        raise ConfigError(said, file=file) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"cannot be read ({reason}); mend its path or mode", file=file) from None


def _check_owner(handle: int, path: Path, file: str) -> None:
    if not ownership.is_checked():
        logger.info("%s: who may write it is not checked on Windows", file)
    elif (said := ownership.fault(handle, path)) is not None:
        raise ConfigError(said, file=file)


def _entries(top: FileValue) -> Iterator[tuple[str, FileValue]]:
    """Yields name and place of every server, whichever spelling the file has."""
    members = top.members()
    servers = members.get("servers")
    if "mcpServers" in members:
        _check_beside(top, "mcpServers")
        if servers and isinstance(servers, dict | list):
            (top / "servers").refuse('stands beside "mcpServers"; move its servers in there')
        yield from _named_entries(top / "mcpServers")
    elif isinstance(servers, list):
        _check_beside(top, "servers")
        yield from _listed_entries(top / "servers")
    elif isinstance(servers, dict) and not is_server(servers):
        _check_beside(top, "servers")
        yield from _named_entries(top / "servers")
    else:
        yield from _named_entries(top)


def _check_beside(top: FileValue, group: str) -> None:
    """Raises: ConfigError, where a server stands beside the group that holds the servers."""
    for name, value in top.members().items():
        if name != group and not is_remark(name) and is_server(value):
            (top / name).refuse(f'is a server beside "{group}"; move it in there')


def _named_entries(group: FileValue) -> Iterator[tuple[str, FileValue]]:
    for name, value in group.members().items():
        if is_remark(name) or (is_foreign(name) and not is_server(value)):
            continue
        if not name.strip():
            (group / name).refuse("the server has no name; write one")
        yield name, group / name


def _listed_entries(group: FileValue) -> Iterator[tuple[str, FileValue]]:
    for item in group.items():
        if "name" not in item.members():
            item.refuse('lacks "name"; add one')
        name = (item / "name").value
        if not isinstance(name, str):
            (item / "name").refuse(f"is {kind_of(name)}; write a text in double quotes")
        if not name.strip():
            (item / "name").refuse("is empty; write it, or remove the entry")
        yield name, item
