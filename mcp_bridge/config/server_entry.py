"""What one server's entry means now: its settings, and whether the server is used.

`entry_model.py` lists the keys. A server is used always, never, with a path, or where something
matches:

    "auto_enable": "always"       (when nothing is said)
    "auto_enable": "never"
    "auto_enable": "with_path"    a path is given for the room
    "auto_enable": "if_match", "enable_if": {"file_exists": [".git", "*.csv"], "env_set": "DSN"}

Of several files one must be there, of several variables all must be set and not empty, and of the
two kinds both must hold. A relative file is looked for in the room's path, or else in the working
folder. `requires_path` keeps a server off without a path, and gives it the path as its last
argument.
"""

from __future__ import annotations

import glob
import io
import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import TypeAdapter, ValidationError

from mcp_bridge.config.document import FileValue, as_object
from mcp_bridge.config.entry_model import (
    LOCAL_KEYS,
    REMOTE_KEYS,
    TRANSPORTS,
    EnableCondition,
    InputEntry,
    ServerEntry,
)
from mcp_bridge.core.files import expand_home, open_regular, read_capped, read_rest, replace_file
from mcp_bridge.core.sanitize import looks_secret
from mcp_bridge.core.server_config import (
    EMPTY,
    AskedInput,
    Example,
    ServerConfig,
    TransportName,
    with_scheme,
)
from mcp_bridge.security import ownership
from mcp_bridge.security.policy import in_one_sentence, objections

_SOCKET_SCHEMES: Final = ("ws", "wss")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MAX_ENV_FILE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class FileContext:
    """What an entry's meaning depends on besides the entry."""

    environ: Mapping[str, str]
    folder: Path
    """The workspace that the file belongs to; a relative `env_file` is looked for there."""
    is_project: bool = False
    """Whether the servers of this file are started in `folder`."""
    room_path: str | None = None
    """A folder that the room's servers work in."""
    inputs: tuple[Mapping[str, Any], ...] = ()
    """What the file asks for, as VS Code writes it; entries may have `inputs` of their own."""
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What a person has answered to the inputs, by id."""


def asked_inputs(
    place: FileValue, entry: ServerEntry, answers: Mapping[str, str]
) -> tuple[AskedInput, ...]:
    """Gives the inputs that an entry refers to, and that nobody has answered yet."""
    known = {one.id: one for one in entry.inputs or ()}
    return tuple(
        AskedInput(
            id=name,
            description=one.description or name if (one := known.get(name)) else name,
            secret=one is None or one.password,
            default=(one.default or "") if one else "",
            options=_options(one.options) if one else (),
        )
        for name in inputs_in(place.members())
        if not answers.get(name)
    )


def _options(given: list[Any]) -> tuple[str, ...]:
    """Gives the values to pick from, which may have labels beside them."""
    values = [as_object(one).get("value") or one for one in given]
    return tuple(value for value in values if isinstance(value, str))


def read_entry(
    place: FileValue, entry: ServerEntry, name: str, context: FileContext
) -> ServerConfig:
    """Gives the settings that an entry means now. This reads the disk.

    Raises: ConfigError.
    """
    transport = _transport(place, entry)
    local = transport == "stdio"
    for key in REMOTE_KEYS if local else LOCAL_KEYS:
        if key in entry.model_fields_set:
            has, takes = ("command", "url") if local else ("url", "command")
            (place / key).refuse(f'belongs to a server with "{takes}"; this one has "{has}"')
    off = _reason_off(place, entry, context)
    variables = VariableExpander(
        context.environ, {one.id: one for one in entry.inputs or ()}, context.answers
    )

    def read(text: FileValue) -> str:
        # A server that is off must not fail for a variable that is not set.
        return text.value if off else variables.expand(text)

    given_path = (context.room_path or "") if entry.requires_path else ""
    args = tuple(read(place / "args" / index) for index in range(len(entry.args or ())))
    url = "" if local else read(place / "url").strip()
    if not local:
        if "${" not in url:  # else the variable may hold the scheme; this one is off
            url = with_scheme(url, socket=transport == "websocket")
        transport = _remote_transport(
            place, entry, transport, url, filled_in=not (off and "${" in url)
        )
    config = ServerConfig(
        name=name,
        transport=transport,
        command=read(place / "command").strip() if local else "",
        args=(*args, given_path) if given_path else args,
        env=MappingProxyType(
            (
                _read_env_file(place / "env_file", read(place / "env_file"), context.folder)
                if entry.env_file and not off
                else {}
            )
            | {key: read(place / "env" / key) for key in entry.env or ()}
        ),
        cwd=read(place / "cwd") if entry.cwd is not None else None,
        url=url,
        headers=EMPTY if local else _headers(place, entry, read),
        authorization_servers=tuple(entry.authorization_servers or ()),
        enabled=not off,
        off_because=off,
        timeout_s=entry.timeout,
        connect_timeout_s=entry.connect_timeout,
        share=bool(entry.share),
        examples=MappingProxyType(
            {
                tool: tuple(Example(one.say, MappingProxyType(one.arguments)) for one in examples)
                for tool, examples in (entry.examples or {}).items()
            }
        ),
        secrets=tuple(variables.secrets),
        sealed=tuple(variables.sealed),
        allow=frozenset(entry.allow or ()),
        new_tools=entry.new_tools,
        given_path=given_path,
        only_tools=frozenset(entry.only_tools) if entry.only_tools else None,
        without_tools=frozenset(entry.without_tools or ()),
    )
    if not off and (findings := list(objections(config))):
        at = place
        for step in findings[0].key.split(".", 1):
            at = at / step
        at.refuse(in_one_sentence(findings))
    return config


def _transport(place: FileValue, entry: ServerEntry) -> TransportName:
    if entry.command and entry.url:
        place.refuse('has both "command" and "url"; keep one')
    if not entry.command and not entry.url:
        place.refuse('has neither "command" nor "url"; add one')
    has = "command" if entry.command else "url"
    for key, written in (("transport", entry.transport), ("type", entry.type)):
        if written is not None:
            transport = TRANSPORTS[written.lower()]
            if (transport == "stdio") != (has == "command"):
                (place / key).refuse(f'{written!r} does not go with "{has}"; remove it')
            return transport
    return "stdio" if entry.command else "http"


def _remote_transport(
    place: FileValue,
    entry: ServerEntry,
    transport: TransportName,
    url: str,
    *,
    filled_in: bool,
) -> TransportName:
    """Looks whether the address is a WebSocket's; what is written beside it must fit."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https", *_SOCKET_SCHEMES) and bool(parts.hostname)
        usable = usable and not any(char.isspace() for char in url)
        _ = parts.port  # raises where the port is no number
    except ValueError:
        usable = False
    if filled_in and not usable:
        (place / "url").refuse("is no http:// or https:// address, nor ws:// or wss://; write one")
    socket = url.lower().startswith(tuple(f"{scheme}:" for scheme in _SOCKET_SCHEMES))
    written = "transport" if entry.transport else "type" if entry.type else None
    if written is None:
        return "websocket" if socket else transport
    if filled_in and socket != (transport == "websocket"):
        (place / written).refuse("does not go with that url; remove it")
    return transport


def _headers(place: FileValue, entry: ServerEntry, read: Any) -> Mapping[str, str]:
    headers = {name: read(place / "headers" / name) for name in entry.headers or ()}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _is_one_line(value):
            (place / "headers" / name).refuse("is no HTTP header; use plain words on one line")
    if entry.token is not None:
        if any(name.lower() == "authorization" for name in headers):
            (place / "token").refuse('meets the header "Authorization"; keep one of the two')
        token = read(place / "token").strip()
        if not token or not _is_one_line(token):
            (place / "token").refuse("is empty or not on one line; write the bare token")
        headers["Authorization"] = f"Bearer {token}"
    return MappingProxyType(headers)


def _read_env_file(place: FileValue, written: str, folder: Path) -> dict[str, str]:
    """Reads a NAME=value on each line. It must be as safe from others as the file of servers."""
    path = folder / expand_home(written)
    try:
        with open_regular(path) as opened:
            if (fault := ownership.fault(opened.fileno(), path)) is not None:
                place.refuse(fault)
            text = read_rest(opened, _MAX_ENV_FILE_BYTES).decode("utf-8-sig")
    except OSError as error:
        place.refuse(f"{path.name} cannot be read ({error.strerror}); fix its path or mode")
    except ValueError:
        said = f"is over {_MAX_ENV_FILE_BYTES} bytes or no UTF-8; is it the right file?"
        place.refuse(f"{path.name} {said}")
    found = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return {name: value for name, value in found.items() if value is not None}


def _is_one_line(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _reason_off(place: FileValue, entry: ServerEntry, context: FileContext) -> str:
    """Says in a few words why the server of this entry is off; empty where it is on.

    A condition that does not go with the rest is refused though it counts for nothing.
    """
    condition = entry.enable_if
    if condition is None and entry.auto_enable == "if_match":
        place.refuse('lacks "enable_if"; add {"file_exists": ...} or {"env_set": ...}')
    if condition is not None and entry.auto_enable != "if_match":
        (place / "enable_if").refuse('goes with "auto_enable": "if_match"; add that')
    if condition is not None and not condition.model_fields_set:
        (place / "enable_if").refuse("is empty; add file_exists or env_set")
    if entry.enabled is False or entry.disabled:
        return "switched off in the file"
    if entry.auto_enable == "never":
        return "auto_enable is never"
    if (entry.requires_path or entry.auto_enable == "with_path") and not context.room_path:
        return "no path is given for the room"
    return _reason_unmatched(condition, context) if condition else ""


def _reason_unmatched(condition: EnableCondition, context: FileContext) -> str:
    for name in condition.env_set:
        if not context.environ.get(name):
            return f"{name} is not set"
    files = condition.file_exists
    if files and not any(_exists(file, context.room_path) for file in files):
        return f"there is no {files[0]}"
    return ""


def _exists(file: str, folder: str | None) -> bool:
    pattern = expand_home(file)
    base = expand_home(folder) if folder else os.curdir
    if not os.path.isabs(pattern):  # noqa: PTH117 - a pattern, not yet a path
        pattern = os.path.join(glob.escape(base), pattern)  # noqa: PTH118 - as above
    # A link that leads nowhere is there, too, for a pattern as for a name.
    return next(glob.iglob(pattern, include_hidden=True), None) is not None  # noqa: PTH207 - as above


# Fills in `${NAME}` in the texts of an entry, and keeps what a person answered for one.
#
#     ${NAME}, ${env:NAME}     the variable of the environment; the second is Cursor's and VS Code's
#     ${NAME:-text}            with a fallback, where it is not set or empty
#     ${input:ID}              what a person answered when they were asked for it (VS Code)
#     $${                      the two characters `${` themselves
#
# `spellings.py` has filled in `${workspaceFolder}` and the like before. Any other `${...}` is an
# error: sent as it stands, it would be a wrong password, and nobody would know why. A `$` without a
# brace behind it is a `$`.

TEXT_KEYS: Final = ("command", "args", "env", "env_file", "cwd", "url", "headers", "token")
"""The keys of an entry whose texts may hold variables."""

_ESCAPE: Final = "$${"
_INPUT: Final = re.compile(r"\$\{input:([^}$]+)\}")
_FORM: Final = re.compile(
    r"\$\$\{"
    r"|\$\{(?P<written>(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*))"
    r"(?::-(?P<fallback>(?:[^}$]|\$(?!\{))*))?\}"
    r"|\$\{input:(?P<input>[^}$]+)\}"
    r"|\$\{(?P<kind>[A-Za-z]{1,20}:)?(?P<closed>[^}]*\})?"
)
"""This matches the escape, a variable, an input, or anything else that begins like one. A fallback
holds no variable."""


def inputs_in(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Gives the ids of the inputs that an entry refers to."""
    found: list[str] = []
    for key in TEXT_KEYS:
        value = entry.get(key)
        held = [value, *as_object(value).values()]
        if isinstance(value, list):
            held = cast("list[Any]", value)
        found += [name for text in held if isinstance(text, str) for name in _INPUT.findall(text)]
    return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class VariableExpander:
    """Fills in one server's variables, and remembers what it filled in."""

    environ: Mapping[str, str]
    inputs: Mapping[str, InputEntry] = field(default_factory=dict[str, InputEntry])
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What a person has answered, by the input's id."""
    secrets: list[str] = field(default_factory=list[str])
    """Every value that was filled in: messages can do without them."""
    sealed: list[str] = field(default_factory=list[str])
    """Those of them that look like keys."""

    def expand(self, text: FileValue) -> str:
        """Gives a text of the file with its variables filled in.

        Raises: ConfigError, where a variable is not set, or a `${` means nothing here.
        """
        return _FORM.sub(lambda form: self._value(form, text), text.value)

    def _value(self, form: re.Match[str], text: FileValue) -> str:
        if form[0] == _ESCAPE:
            return "${"
        if form["input"] is not None:
            return self._input(form["input"], text)
        name = form["name"]
        if name is None:
            # What stands in the braces may be half of a password: it is not repeated.
            shown = f"${{{form['kind'] or ''}...{'}' if form['closed'] else ''}"
            text.refuse(
                f'"{shown}" means nothing here; write ${{NAME}} for a variable of the '
                'environment, or $${ for the two characters "${"'
            )
        found = self.environ.get(name) or form["fallback"]
        if found is None:
            written = form["written"]
            text.refuse(f"${{{written}}} is not set; set it, or write ${{{written}:-fallback}}")
        self.secrets.append(found)
        if looks_secret(name, found):
            self.sealed.append(found)
        return found

    def _input(self, name: str, text: FileValue) -> str:
        asked = self.inputs.get(name)
        found = self.answers.get(name) or (asked.default if asked else None)
        if not found:
            what = (asked.description if asked else "") or name
            text.refuse(
                f"waits for an answer to {what[:80]!r}; run: caal-node mcp inputs, or write "
                f"${{NAME}} in place of ${{input:{name}}} for a variable of the environment"
            )
        self.secrets.append(found)
        if asked is None or asked.password or looks_secret(name, found):
            self.sealed.append(found)
        return found


# What a person answered for `${input:ID}`, kept for good.

logger = logging.getLogger(__name__)

_MAX_BYTES: Final = 1024 * 1024
_ANSWERS: Final = TypeAdapter(dict[str, dict[str, str]])


class InputAnswers:
    """Answers by the file that asks and the id that it asks by, in one file for its user alone.

    It uses the disk, so call it in a thread.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(path)

    def of(self, file: str | os.PathLike[str]) -> Mapping[str, str]:
        """Gives the answers for one file of servers; none where they cannot be read."""
        try:
            return self._read().get(_key(file), {})
        except (OSError, ValidationError, ValueError):
            logger.warning("the answers in %s cannot be read; give them again", self.path)
            return {}

    def keep(self, file: str | os.PathLike[str], answers: Mapping[str, str]) -> None:
        """Adds answers to those of one file. Raises: OSError, where they cannot be written.

        A file that cannot be read as one of ours is set aside, for a person to look at.
        """
        try:
            kept = self._read()
        except ValueError:
            self.path.replace(self.path.with_suffix(".damaged"))
            kept = {}
        kept[_key(file)] = {**kept.get(_key(file), {}), **answers}
        replace_file(self.path, json.dumps(kept, indent=1).encode())

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            return _ANSWERS.validate_json(read_capped(self.path, _MAX_BYTES))
        except FileNotFoundError:
            return {}


def _key(file: str | os.PathLike[str]) -> str:
    return str(Path(file).resolve())
