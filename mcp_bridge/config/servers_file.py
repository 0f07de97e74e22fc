"""Reads a file of servers: ours, or one that another program keeps in the same way.

    {"time": {"command": ..., "args": [...], "env": {...}}, "docs": {"url": ...}}
    {"mcpServers": {"time": {...}, "docs": {...}}}      Claude, Cursor, Windsurf, LM Studio, ...
    {"servers": {"time": {...}, "docs": {...}}}         VS Code
    {"servers": [{"name": "time", "command": ...}, {"name": "docs", "url": ..., "token": ...}]}

A key that begins with `//` is a remark, whatever it holds; keys that other programs keep beside
their servers are passed over. A server beside a group would be seen by nobody who reads the group:
it is an error. A file in another format is refused: `caal-node mcp import` converts it.

What is wrong with one entry costs that one server: it is there with its `fault`, and down. Only a
file that cannot be read at all is an error.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.config.document import (
    DocumentSyntaxError,
    FileValue,
    as_object,
    kind_of,
    parse_json,
)
from mcp_bridge.config.entry_model import check_entry, is_foreign, is_remark
from mcp_bridge.config.server_entry import FileContext, InputAnswers, asked_inputs, read_entry
from mcp_bridge.config.spellings import formats_in, how_to_import, in_our_words, is_server
from mcp_bridge.core.errors import ConfigError
from mcp_bridge.core.files import open_regular, read_rest
from mcp_bridge.core.server_config import EMPTY, ServerConfig
from mcp_bridge.security import ownership

logger = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 1024 * 1024
"""1 MiB: a thousand servers with long examples. More is a wrong file."""


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """One server of a file: what it means now, and its entry in our words."""

    config: ServerConfig
    entry: Mapping[str, Any]
    """Places in it are filled in, variables are not; empty where it cannot be read at all."""


def load_servers(
    path: str | os.PathLike[str],
    *,
    environ: Mapping[str, str] | None = None,
    missing_ok: bool = False,
    room_path: str | None = None,
    answers: InputAnswers | None = None,
) -> tuple[ServerConfig, ...]:
    """Gives the servers of a file, in its order; those that are off have `enabled=False`, and
    those whose entry is wrong have a `fault`.

    What a server is enabled by is looked up now; load the file again to look again.

    Args:
        environ: Where `${NAME}` is looked up; None is this process's environment.
        missing_ok: Whether a file that is not there stands for no servers.
        room_path: The folder that a room works in, for `with_path` and `requires_path`.
        answers: What people answered to `${input:ID}`.

    Raises:
        ConfigError: the file cannot be read at all; names file, line and key, and says how to fix
            it.
    """
    file = os.fspath(path)
    try:
        text = read_text(Path(path), file)
    except FileNotFoundError:
        if missing_ok:
            return ()
        raise ConfigError("there is no such file; create it, or fix the path", file=file) from None
    given = answers.of(path) if answers else None
    found = parse_servers(text, file=file, environ=environ, room_path=room_path, answers=given)
    for config in found:
        for remark in config.remarks:
            logger.warning("%s", remark)
    return found


def parse_servers(
    text: str,
    *,
    file: str = "mcp_servers.json",
    environ: Mapping[str, str] | None = None,
    room_path: str | None = None,
    answers: Mapping[str, str] | None = None,
) -> tuple[ServerConfig, ...]:
    """Does the same as `load_servers`, from the text itself. `file` is what errors call it."""
    top = read_top(text, file, room_path)
    found = entries_in(top, environ=environ, room_path=room_path, answers=answers)
    return tuple(one.config for one in found)


def read_top(text: str, file: str, room_path: str | None = None) -> FileValue:
    """Raises: ConfigError, where the file cannot be read, or is in another program's format."""
    if Path(file).suffix.lower() in (".yaml", ".yml", ".toml"):
        raise ConfigError(f"is not JSON; {how_to_import(file)}", file=file)
    top = read_json(text, file)
    for form in formats_in(top, project_folder(room_path)):
        place = top
        for key in form.group:
            place = place / key
        place.refuse(f"has servers in the format of {form.program}; {how_to_import(file)}")
    return top


def read_json(text: str, file: str) -> FileValue:
    """Raises: ConfigError, where the text is not JSON or no object."""
    try:
        top = FileValue(file, parse_json(text))
    except DocumentSyntaxError as error:
        raise ConfigError(str(error), file=file, line=error.line) from None
    top.members()
    return top


def entries_in(
    top: FileValue,
    *,
    environ: Mapping[str, str] | None = None,
    room_path: str | None = None,
    answers: Mapping[str, str] | None = None,
) -> Iterator[FoundEntry]:
    """Yields every server of a file, whose format has been looked at."""
    groups = groups_in(top)
    context = _context(top, groups, os.environ if environ is None else environ, room_path, answers)
    seen: dict[str, int] = {}
    for name, place in _entries(top, groups):
        config, ours = ServerConfig(name=name), EMPTY
        try:
            _check_name(name, place, groups)
            if (line := seen.get(name) or top.document.twice.get(place.path)) is not None:
                place.refuse(f"the server {name!r} stands in line {line} already; rename one")
            spelled, remarks = in_our_words(place, context)
            config, ours = replace(config, remarks=remarks), spelled.members()
            entry = check_entry(spelled)
            config = replace(config, asks=asked_inputs(spelled, entry, context.answers))
            meant = read_entry(spelled, entry, name, context)
            config = replace(meant, remarks=remarks, asks=config.asks)
        except ConfigError as error:
            name = _name_of_its_own(name, seen)
            transport = "http" if ours.get("url") else "stdio"
            config = _faulty(replace(config, name=name, transport=transport), error, place)
        seen.setdefault(name, place.line)
        yield FoundEntry(config, ours)


def groups_in(top: FileValue) -> tuple[FileValue, ...]:
    """Gives every group of servers in the file; none where the servers are at its top."""
    groups = [top / "mcpServers"] if top.holds("mcpServers") else []
    if top.holds("servers"):
        value: Any = (top / "servers").value
        if isinstance(value, list | dict) and not is_server(value):
            groups.append(top / "servers")
    return tuple(groups)


def project_folder(room_path: str | None) -> str:
    """Gives the folder whose servers count in Claude Code's file of all projects."""
    return room_path or os.getcwd()  # noqa: PTH109 - as its program writes it


def _context(
    top: FileValue,
    groups: Sequence[FileValue],
    environ: Mapping[str, str],
    room_path: str | None,
    answers: Mapping[str, str] | None,
) -> FileContext:
    file = Path(top.file).absolute()
    hidden = file.parent.name.startswith(".") and file.parent != Path.home()
    folder = file.parent.parent if hidden else file.parent
    is_project = bool(groups) and (hidden or file.name == ".mcp.json") and folder != Path.home()
    inputs = top.members().get("inputs")
    return FileContext(
        environ,
        folder=Path(room_path) if room_path else folder,
        is_project=is_project,
        room_path=room_path,
        inputs=tuple(map(as_object, cast("list[Any]", inputs if isinstance(inputs, list) else []))),
        answers=answers or EMPTY,
    )


def _entries(top: FileValue, groups: Sequence[FileValue]) -> Iterator[tuple[str, FileValue]]:
    """Yields name and place of every server. A place may hold anything."""
    for place in groups or (top,):
        if isinstance(place.value, list):
            for number, item in enumerate(place.items(), 1):
                yield _listed_name(item) or f"server {number}", item
            continue
        for name, value in place.members().items():
            if not (is_remark(name) or (is_foreign(name) and not is_server(value))):
                yield name, place / name
    for name, value in top.members().items() if groups else ():
        if not is_remark(name) and is_server(value):
            yield name, top / name


def _check_name(name: str, place: FileValue, groups: Sequence[FileValue]) -> None:
    """Raises: ConfigError, where the server has no name, or is where it must not be."""
    if len(place.path) == 1 and groups:
        place.refuse(f'is a server beside "{groups[0].key()}"; move it in there')
    if not name.strip():
        place.refuse("the server has no name; write one")
    if isinstance(place.path[-1], int) and not _listed_name(place):
        if "name" not in place.members():
            place.refuse('lacks "name"; add one')
        given = (place / "name").value
        if isinstance(given, str):
            (place / "name").refuse("is empty; write it, or remove the entry")
        (place / "name").refuse(f"is {kind_of(given)}; write a text in double quotes")


def _listed_name(item: FileValue) -> str:
    name = as_object(item.value).get("name")
    return name if isinstance(name, str) and name.strip() else ""


def _name_of_its_own(name: str, taken: Container[str]) -> str:
    """Gives the name, with a number behind it where another server has it or it is empty."""
    names = (f"{name} ({number})".lstrip() for number in count(2))
    return name if name.strip() and name not in taken else next(n for n in names if n not in taken)


def _faulty(config: ServerConfig, error: ConfigError, place: FileValue) -> ServerConfig:
    """Gives what an entry that is wrong stands for. One that is off as well stays off."""
    entry = as_object(place.value)
    if entry.get("enabled") is False or entry.get("disabled") is True:
        off = "switched off in the file"
        return replace(
            config, enabled=False, off_because=off, remarks=(*config.remarks, str(error))
        )
    return replace(config, fault=str(error))


def read_text(path: Path, file: str) -> str:
    """Raises: ConfigError; FileNotFoundError."""
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
        raise ConfigError(f"cannot be read ({reason}); fix its path or mode", file=file) from None


def _check_owner(handle: int, path: Path, file: str) -> None:
    if not ownership.is_checked():
        logger.info("%s: who may write it is not checked on Windows", file)
    elif (said := ownership.fault(handle, path)) is not None:
        raise ConfigError(said, file=file)
