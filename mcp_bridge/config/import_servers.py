"""Copies servers from the files of other programs into a file of ours, which keeps its words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.config.document import DocumentSyntaxError, FileValue, as_object
from mcp_bridge.config.groups import groups, is_server
from mcp_bridge.config.json_file import openings, parse_json
from mcp_bridge.config.servers_file import FoundEntry, find_entries, read_text
from mcp_bridge.core.errors import ConfigError
from mcp_bridge.core.files import replace_file
from mcp_bridge.core.server_config import ServerConfig

_OURS: Final = ((), ("mcpServers",), ("servers",))
"""The places of servers that a file of ours may have."""


def read_found(path: Path, environ: Mapping[str, str] | None = None) -> tuple[FoundEntry, ...]:
    """Gives the servers of another program's file that can be copied. It reads the disk.

    Raises:
        ConfigError: the file cannot be read.
        FileNotFoundError: it is not there.
    """
    found = find_entries(read_text(path, str(path)), str(path), environ=environ)
    return tuple(one for one in found if is_server(one.entry))


def entry_to_copy(found: FoundEntry) -> dict[str, Any]:
    """Gives an entry as a file of ours has it, with the name left out."""
    entry = {key: value for key, value in found.entry.items() if key != "name"}
    if not found.config.enabled:
        entry.pop("disabled", None)
        entry["enabled"] = False
    return entry


def what_it_starts(entry: Mapping[str, Any]) -> str:
    """Says what an entry starts or reaches, on one line and without its keys."""
    command, args, url = entry.get("command"), entry.get("args"), entry.get("url")
    words = list(map(str, cast("list[Any]", args) if isinstance(args, list) else []))
    config = ServerConfig(
        name="",
        args=tuple(words),
        url=str(url or ""),
        env={str(k): str(v) for k, v in as_object(entry.get("env")).items()},
        headers={str(k): str(v) for k, v in as_object(entry.get("headers")).items()},
    )
    return config.redact(
        shlex.join([str(command), *words]) if command else str(url).partition("?")[0]
    )


def add_servers(path: Path, servers: Mapping[str, Mapping[str, Any]]) -> None:
    """Adds servers to a file, which may not be there yet, and leaves all else in it as it is.

    The file is written whole or not at all, for its user alone, as it may hold keys.

    Raises:
        ConfigError: the file cannot be read, has one of the names already, or is another program's.
        OSError: it cannot be written.
    """
    try:
        text = read_text(path, str(path))
    except FileNotFoundError:
        text = "{}\n"
    before = {one.config.name: one for one in find_entries(text, str(path))}
    for name in servers:
        if name in before:
            raise ConfigError("is there already; rename one", file=str(path), key=name)
    added = _with_servers(text, path, servers)
    after = {one.config.name: one.entry for one in find_entries(added, str(path))}
    kept = all(after.get(name) == one.entry for name, one in before.items())
    if not kept or after.keys() != before.keys() | servers.keys():
        raise ConfigError("cannot be added to safely; add the servers by hand", file=str(path))
    replace_file(path.resolve(), added.encode())


def _with_servers(text: str, path: Path, servers: Mapping[str, Mapping[str, Any]]) -> str:
    """Gives the text with the servers at the beginning of the others."""
    try:
        top = FileValue(str(path), parse_json(text))
    except DocumentSyntaxError:
        raise ConfigError("is no JSON; name another by CAAL_MCP_SERVERS", file=str(path)) from None
    found = groups(top)
    group = found[0] if found else top
    if group.path not in _OURS:
        said = "belongs to another program; name one of your own by CAAL_MCP_SERVERS"
        raise ConfigError(said, file=str(path))
    at = openings(text)[group.path] + 1
    if isinstance(group.value, list):
        inner = [_indented({"name": name, **entry}, 4) for name, entry in servers.items()]
        return _spliced(text, at, inner, bool(group.items()))
    pad = 2 * (len(group.path) + 1)
    inner = [
        f"{' ' * pad}{json.dumps(name, ensure_ascii=False)}: {_indented(entry, pad).lstrip()}"
        for name, entry in servers.items()
    ]
    return _spliced(text, at, inner, bool(group.members()))


def _spliced(text: str, at: int, inner: Sequence[str], more: bool) -> str:
    rest = text[at:]
    end = "," if more else ""
    newline = "" if rest.startswith("\n") else "\n"
    return "".join((text[:at], "\n", ",\n".join(inner), end, newline, rest))


def _indented(value: Any, spaces: int) -> str:
    lines = json.dumps(value, indent=2, ensure_ascii=False).splitlines()
    return "\n".join(f"{' ' * spaces}{line}" for line in lines)
