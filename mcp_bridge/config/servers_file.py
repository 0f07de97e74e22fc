"""Reads a file of servers: ours, or one that another program keeps.

    {"time": {"command": ..., "args": [...], "env": {...}}, "docs": {"url": ...}}
    {"mcpServers": {"time": {...}, "docs": {...}}}
    {"servers": [{"name": "time", "command": ...}, {"name": "docs", "url": ..., "token": ...}]}

`groups.py` tells where in a file its servers may stand, `spellings.py` what other programs call
their keys, `server_entry.py` what an entry may hold. A key that begins with `//` is a remark,
whatever it holds; keys that other programs keep beside their servers are passed over.

What is wrong with one entry costs that one server: it is there with its `fault`, and down. Only a
file that cannot be read at all is an error.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from mcp_bridge.config.document import DocumentSyntaxError, FileValue, as_object
from mcp_bridge.config.groups import check_name, entries, groups, left_out, surroundings
from mcp_bridge.config.input_answers import InputAnswers
from mcp_bridge.config.other_files import parse_document
from mcp_bridge.config.server_entry import ActivationContext, asked_inputs, read_entry
from mcp_bridge.config.spellings import in_our_words
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
        ConfigError: the file cannot be read at all; names file, line and key, and says how to mend
            it.
    """
    file = os.fspath(path)
    try:
        text = read_text(Path(path), file)
    except FileNotFoundError:
        if missing_ok:
            return ()
        raise ConfigError("there is no such file; create it, or mend the path", file=file) from None
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
    found = find_entries(text, file, environ=environ, room_path=room_path, answers=answers)
    return tuple(one.config for one in found)


def find_entries(
    text: str,
    file: str,
    *,
    environ: Mapping[str, str] | None = None,
    room_path: str | None = None,
    answers: Mapping[str, str] | None = None,
) -> Iterator[FoundEntry]:
    """Yields every server of a file. Raises: ConfigError, where the file cannot be read at all."""
    try:
        document = parse_document(text, file)
    except DocumentSyntaxError as error:
        raise ConfigError(str(error), file=file, line=error.line) from None
    top = FileValue(file, document)
    top.members()
    groups_found = groups(top, room_path or os.getcwd())  # noqa: PTH109 - as its program writes it
    around = surroundings(top, groups_found, room_path)
    context = ActivationContext(
        os.environ if environ is None else environ, room_path, around.folder, answers or EMPTY
    )
    seen: dict[str, int] = {}
    for name, place in entries(top, groups_found):
        found = FoundEntry(ServerConfig(name=name), EMPTY)
        try:
            check_name(name, place, groups_found)
            if (line := seen.get(name) or document.twice.get(place.path)) is not None:
                place.refuse(f"the server {name!r} stands in line {line} already; rename one")
            spelled = in_our_words(place, around)
            spelled = replace(spelled, off=spelled.off or left_out(top, name))
            found = FoundEntry(
                replace(found.config, remarks=spelled.remarks), spelled.place.members()
            )
            asks = asked_inputs(spelled.place, context.answers)
            found = replace(found, config=replace(found.config, asks=asks))
            config = read_entry(spelled, name, context)
            found = replace(found, config=replace(config, remarks=spelled.remarks, asks=asks))
        except ConfigError as error:
            name = _name_of_its_own(name, seen)
            transport = "http" if found.entry.get("url") else "stdio"
            config = replace(found.config, name=name, transport=transport)
            found = replace(found, config=_faulty(config, error, place))
        seen.setdefault(name, place.line)
        yield found


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
        raise ConfigError(f"cannot be read ({reason}); mend its path or mode", file=file) from None


def _check_owner(handle: int, path: Path, file: str) -> None:
    if not ownership.is_checked():
        logger.info("%s: who may write it is not checked on Windows", file)
    elif (said := ownership.fault(handle, path)) is not None:
        raise ConfigError(said, file=file)
