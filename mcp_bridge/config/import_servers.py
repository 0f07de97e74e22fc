"""Converts the servers of other programs' files into entries of ours, and adds them to a file."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import yaml

from mcp_bridge.config.document import Document, FileValue, as_object, openings, parse_json
from mcp_bridge.config.servers_file import (
    MAX_FILE_BYTES,
    FoundEntry,
    entries_in,
    groups_in,
    project_folder,
    read_json,
    read_text,
    read_top,
)
from mcp_bridge.config.spellings import (
    GEMINI,
    NAMES,
    Format,
    each_text,
    formats_in,
    group_of,
    is_server,
)
from mcp_bridge.core.errors import ConfigError
from mcp_bridge.core.files import replace_file
from mcp_bridge.core.server_config import ServerConfig

_PARTS: Final = ("config", "transport", "requestOptions")
"""Objects whose members belong to the entry itself."""


def read_found(path: Path, environ: Mapping[str, str] | None = None) -> tuple[FoundEntry, ...]:
    """Gives the servers of another program's file that can be copied. It reads the disk.

    Raises:
        ConfigError: the file cannot be read.
        FileNotFoundError: it is not there.
    """
    top = _read_any(read_text(path, str(path)), str(path))
    forms = formats_in(top, project_folder(None))
    found: list[FoundEntry] = []
    if all(form.group != ("mcpServers",) for form in forms) and (groups_in(top) or not forms):
        found += entries_in(top, environ=environ)
    for form in forms:
        found += entries_in(_converted(top, form), environ=environ)
    return tuple(one for one in found if is_server(one.entry))


def _read_any(text: str, file: str) -> FileValue:
    """Raises: ConfigError, where the text is not what the file's name says."""
    try:
        match Path(file).suffix.lower():
            case ".yaml" | ".yml":
                value: Any = yaml.safe_load(text) or {}
            case ".toml":
                value = tomllib.loads(text)
            case _:
                return read_json(text, file)
        written = ""
        for part in json.JSONEncoder(default=str, skipkeys=True).iterencode(value):
            written += part
            if len(written) > MAX_FILE_BYTES:  # aliases (`*x`) can stand for millions of values
                raise ConfigError("is too long with its aliases; shorten it", file=file)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        said = error.problem or "it cannot be read"
        raise ConfigError(f"{said}; fix the YAML here", file=file, line=line) from None
    except tomllib.TOMLDecodeError as error:  # it names the line
        raise ConfigError(f"{error}; fix the TOML there", file=file) from None
    except RecursionError:
        raise ConfigError("nested too deeply; flatten it", file=file) from None
    except (ValueError, yaml.YAMLError) as error:  # such as a date in month 13
        raise ConfigError(f"{error}; fix it", file=file) from None
    return read_json(written, file)


def _converted(top: FileValue, form: Format) -> FileValue:
    """Gives the servers that a file has in one format as a file with `mcpServers` has them."""
    group = group_of(form, top)
    if isinstance(group, list):
        servers: Any = [_convert(entry, form) for entry in _listed(group)]
    else:
        servers = {name: _convert(entry, form) for name, entry in as_object(group).items()}
    settings = as_object(top.members().get("mcp"))
    if form is GEMINI:
        excluded, allowed = _listed(settings.get("excluded")), _listed(settings.get("allowed"))
        for name, entry in as_object(servers).items():
            if isinstance(entry, dict) and (name in excluded or (allowed and name not in allowed)):
                entry["disabled"] = True
    value = {"mcpServers": servers, "inputs": settings.get("inputs")}
    return FileValue(top.file, Document(value, {(): 0}, written={("mcpServers",): form.group}))


def _convert(entry: Any, form: Format) -> Any:
    """Gives one entry as a file with `mcpServers` spells it; what is no entry stays as it is."""
    if not isinstance(entry, dict):
        return entry
    found: dict[str, Any] = {}
    named: dict[str, str] = {}
    for key, value in _members(cast("dict[str, Any]", entry)):
        ours, meant = NAMES.get(key, key), value
        if key in ("env_keys", "env_vars") and isinstance(value, list):
            for one in _listed(value):
                name = str(as_object(one).get("name") or one)
                named[name] = f"${{{name}}}"
            continue
        if key == "bearer_token_env_var":
            ours, meant = "token", f"${{{value}}}"
        elif key == "env_http_headers":
            ours, meant = "headers", {k: f"${{{v}}}" for k, v in as_object(value).items()}
        elif key == "startup_timeout_ms" and isinstance(value, int | float):
            meant = value / 1000
        elif key == "type" and value == "remote":  # opencode's word for any but stdio
            continue
        if isinstance(meant, dict) and isinstance(found.get(ours), dict):
            found[ours] = {**found[ours], **meant}
        else:
            found.setdefault(ours, meant)
    if named:
        found["env"] = {**named, **as_object(found.get("env"))}
    if isinstance(found.get("command"), list):
        first, *rest = _listed(found["command"]) or [""]
        args: Any = found.get("args", [])
        found |= {"command": first, "args": [*rest, *args] if isinstance(args, list) else args}
    if form is GEMINI and "url" in found and "type" not in found:
        found["type"] = "sse"
    return each_text(found, lambda text: form.variable.sub(r"${\1}", text))


def _listed(value: Any) -> list[Any]:
    """Gives the value where it is a list, and an empty one where it is none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _members(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the members of an entry and of its parts, without null."""
    for key, value in entry.items():
        if key == "command" and isinstance(value, dict):  # Zed
            command = cast("dict[str, Any]", value)
            names = {"path": "command"}
            yield from _members({names.get(k, k): v for k, v in command.items()})
        elif key in _PARTS and isinstance(value, dict):
            yield from _members(cast("dict[str, Any]", value))
        elif value is not None:
            yield key, value


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
    words = list(map(str, _listed(args)))
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
        ConfigError: the file cannot be read, is in another program's format, or has one of the
            names already.
        OSError: it cannot be written.
    """
    try:
        text = read_text(path, str(path))
    except FileNotFoundError:
        text = "{}\n"
    before = {one.config.name: one for one in entries_in(read_top(text, str(path)))}
    for name in servers:
        if name in before:
            raise ConfigError("is there already; rename one", file=str(path), key=name)
    added = _with_servers(text, path, servers)
    after = {one.config.name: one.entry for one in entries_in(read_top(added, str(path)))}
    kept = all(after.get(name) == one.entry for name, one in before.items())
    if not kept or after.keys() != before.keys() | servers.keys():
        raise ConfigError("cannot be added to safely; add the servers by hand", file=str(path))
    replace_file(path.resolve(), added.encode())


def _with_servers(text: str, path: Path, servers: Mapping[str, Mapping[str, Any]]) -> str:
    """Gives the text with the servers at the beginning of the others."""
    top = FileValue(str(path), parse_json(text))
    group = next(iter(groups_in(top)), top)
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
