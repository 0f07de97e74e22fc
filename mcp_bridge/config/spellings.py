"""How other programs spell a server's entry, and the same in our words.

    ours                other programs
    command, args       a list in `command` (opencode), `{"path": ..., "args": ...}` (Zed), `cmd`
    env                 environment (opencode), envs (Goose); env_keys, env_vars: names alone
    env_file            envFile (VS Code)
    url                 serverUrl (Windsurf), httpUrl (Gemini), uri (Goose), baseUrl
    headers, token      http_headers, env_http_headers, bearer_token_env_var (Codex), requestOptions
    transport           type: local and remote (opencode), streamable_http (Goose)
    enabled             disabled, isActive, active
    timeout             milliseconds: more than an hour as seconds; tool_timeout_sec (Codex)
    only_tools          includeTools (Gemini), enabled_tools (Codex), available_tools, tools
    without_tools       excludeTools, disabled_tools, disabledTools (Windsurf)

Variables that mean a place (`${workspaceFolder}`) are filled in here, those of the environment
become `${NAME}` (`$NAME` of Gemini, `{env:NAME}` of opencode, `${{ secrets.NAME }}` of Continue).
A key that nobody knows is passed over with a remark.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from mcp_bridge.config.document import Document, FileValue, Path, as_object
from mcp_bridge.config.entry_model import KNOWN_KEYS, MAX_TIMEOUT_S, is_foreign
from mcp_bridge.core.errors import ConfigError

Program: TypeAlias = Literal["gemini", "opencode", ""]
"""Whose way of writing variables a file has; "" for those that agree with ours."""

_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cmd": "command",
        "environment": "env",
        "envs": "env",
        "envFile": "env_file",
        "serverUrl": "url",
        "httpUrl": "url",
        "uri": "url",
        "baseUrl": "url",
        "http_headers": "headers",
        "isActive": "enabled",
        "active": "enabled",
        "startup_timeout_sec": "connect_timeout",
        "startup_timeout_ms": "connect_timeout",
        "tool_timeout_sec": "timeout",
        "includeTools": "only_tools",
        "enabled_tools": "only_tools",
        "available_tools": "only_tools",
        "tools": "only_tools",
        "excludeTools": "without_tools",
        "disabled_tools": "without_tools",
        "disabledTools": "without_tools",
    }
)
_PARTS: Final = ("config", "transport", "requestOptions")
"""Objects whose members stand for the entry's own."""
_OF_VARIABLES: Final = ("env_keys", "env_vars", "env_http_headers", "bearer_token_env_var")
"""Keys that name variables of the environment."""
_TYPES: Final = {"local": "stdio", "remote": None}
_BUILT_IN: Final = ("builtin", "platform", "frontend", "inline_python")
"""Extensions of Goose that are no MCP servers of their own."""
_HARMLESS: Final = frozenset(
    (
        *("alwaysAllow", "autoApprove", "bundled", "default_tools_approval_mode", "description"),
        *("dev", "display_name", "fromGalleryId", "gallery", "homepage", "icon", "iconPath", "id"),
        *("metadata", "note", "provider", "remoteConfigured", "required", "settings", "source"),
        *("tags", "title", "trust", "version", "watchPaths"),
    )
)
"""What other programs keep in an entry for themselves, and what changes nothing about a server."""
_SSE_URL: Final = re.compile(r"[^?#]*/sse/?(?:[?#].*)?")
_PLACE: Final = re.compile(
    r"(?<!\$)\$\{(workspaceFolderBasename|workspaceFolder|workspaceRoot|userHome|pathSeparator|/)\}"
)
_SECRET: Final = re.compile(r"\$\{\{\s*(?:secrets\.|inputs\.)?([A-Za-z_]\w*)\s*\}\}")
_VARIABLE: Final[Mapping[Program, re.Pattern[str]]] = {
    "gemini": re.compile(r"\$([A-Za-z_]\w*)"),
    "opencode": re.compile(r"\{env:([A-Za-z_]\w*)\}"),
}
_INPUT: Final = re.compile(r"\$\{input:([^}$]+)\}")
_TEXTS: Final = ("command", "args", "env", "env_file", "cwd", "url", "headers", "token")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an entry's meaning takes from the file that it stands in."""

    folder: FilePath
    """The workspace that the file belongs to."""
    is_project: bool = False
    """Whether the servers of this file are started in `folder`."""
    program: Program = ""
    inputs: tuple[Mapping[str, Any], ...] = ()
    """What the file asks for, as VS Code writes it; entries may have `inputs` of their own."""


@dataclass(frozen=True, slots=True)
class SpelledEntry:
    """An entry in our words, which still knows its lines."""

    place: FileValue
    remarks: tuple[str, ...]
    """What was passed over, each with its place and mend."""
    off: str
    """Why this is no server for us; empty where it is one."""


def in_our_words(place: FileValue, around: Surroundings) -> SpelledEntry:
    """Raises: ConfigError, where the entry is no object, or something stands twice in it."""
    for again in place.repeated():
        line = place.document.twice[again.path]
        again.refuse(f"stands in line {line} already; rename or remove one")
    return _Translation(place, around).result()


def inputs_in(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Gives the ids of the inputs that an entry in our words refers to."""
    found: list[str] = []
    for key in _TEXTS:
        _each_text(entry.get(key), lambda text: found.extend(_INPUT.findall(text)))
    return tuple(dict.fromkeys(found))


class _Translation:
    def __init__(self, place: FileValue, around: Surroundings) -> None:
        self._place: Final = place
        self._around: Final = around
        self._entry: Final[dict[str, Any]] = {}
        self._written: Final[dict[Path, Path]] = {}
        self._remarks: Final[list[str]] = []
        self._unknown: Final[list[str]] = []
        self._off = ""

    def result(self) -> SpelledEntry:
        self._take(self._place.members(), ())
        self._split_command()
        self._settle_transport()
        self._settle_texts()
        self._settle_numbers()
        self._settle_tools()
        if self._around.is_project and "command" in self._entry:
            cwd = self._entry.get("cwd")
            if cwd is None or (isinstance(cwd, str) and not cwd.startswith(("/", "~", "$", "\\"))):
                self._entry["cwd"] = str(self._around.folder / (cwd or ""))
        self._keep_inputs()
        self._check_command()
        value: Any = self._entry
        for step in reversed(self._place.path):
            value = {step: value}
        document = self._place.document
        at = self._place.path
        written = {(*at, *ours): (*at, *theirs) for ours, theirs in self._written.items()}
        ours = Document(value, document.lines, document.twice, written)
        return SpelledEntry(FileValue(self._place.file, ours, at), tuple(self._remarks), self._off)

    def _take(self, members: Mapping[str, Any], path: Path) -> None:
        for key, value in members.items():
            here = (*path, key)
            if value is None or key in _HARMLESS or is_foreign(key):
                continue
            if key in _PARTS and isinstance(value, dict):
                self._take(cast("dict[str, Any]", value), here)
            elif key in _OF_VARIABLES:
                self._take_variables(key, value, here)
            elif (ours := _ALIASES.get(key, key)) in KNOWN_KEYS:
                self._put(ours, value, here)
                if key == "httpUrl":
                    self._entry.setdefault("type", "http")
                elif key == "startup_timeout_ms" and isinstance(value, int | float):
                    self._entry[ours] = value / 1000
            else:
                self._unknown.append(key)
                self._remark(here, f"is not known here, and is passed over{_proposal(key)}")

    def _put(self, ours: str, value: Any, path: Path) -> None:
        if ours in self._entry and isinstance(value, dict) and isinstance(self._entry[ours], dict):
            self._entry[ours] |= value
        elif ours in self._entry:
            self._remark(path, f'says "{ours}" once more, and is passed over; keep one of the two')
        else:
            self._entry[ours] = {**as_object(value)} if isinstance(value, dict) else value
            if path != (ours,):
                self._written[(ours,)] = path

    def _take_variables(self, key: str, value: Any, path: Path) -> None:
        """Takes in names of variables, whose values are the environment's."""
        if key == "bearer_token_env_var" and isinstance(value, str):
            self._put("token", _variable(value), path)
        elif key == "env_http_headers" and isinstance(value, dict):
            headers = cast("dict[str, Any]", value)
            self._put("headers", {k: _variable(str(v)) for k, v in headers.items()}, path)
        elif isinstance(value, list):
            named = [as_object(one).get("name") or one for one in cast("list[Any]", value)]
            env = self._entry.setdefault("env", {})
            for name in named:
                if isinstance(env, dict) and isinstance(name, str):
                    cast("dict[str, Any]", env).setdefault(name, _variable(name))
                    self._written.setdefault(("env", name), path)
        else:
            self._remark(path, "names no variables, and is passed over; write their names")

    def _split_command(self) -> None:
        command = self._entry.get("command")
        at = self._written.get(("command",), ("command",))
        if isinstance(command, dict):
            whole = cast("dict[str, Any]", self._entry.pop("command"))
            for key in ("path", "args", "env"):
                if whole.get(key) is not None:
                    self._put("command" if key == "path" else key, whole[key], (*at, key))
        elif isinstance(command, list):
            first, *rest = cast("list[Any]", command) or [""]
            args: Any = self._entry.get("args")
            if args is not None and not isinstance(args, list):
                return
            self._entry["command"] = first
            self._entry["args"] = [*rest, *cast("list[Any]", args or [])]
            self._written[("command",)] = (*at, 0)
            for index in range(len(rest)):
                self._written[("args", index)] = (*at, index + 1)
            for index in range(len(cast("list[Any]", args or []))):
                self._written[("args", len(rest) + index)] = ("args", index)

    def _settle_transport(self) -> None:
        for key in ("type", "transport"):
            written = self._entry.get(key)
            if isinstance(written, str) and written in _BUILT_IN:
                self._off = f"{written}: it is a part of another program, and no server by itself"
                del self._entry[key]
            elif isinstance(written, str) and written in _TYPES:
                del self._entry[key]
                if _TYPES[written]:
                    self._entry[key] = _TYPES[written]
        url = self._entry.get("url")
        if isinstance(url, str) and not self._entry.keys() & {"type", "transport"}:
            plain = self._around.program == "gemini"  # its `url` is SSE, and `httpUrl` is not
            if plain or _SSE_URL.fullmatch(url.strip()):
                self._entry["type"] = "sse"

    def _settle_texts(self) -> None:
        env = self._entry.get("env")
        if isinstance(env, dict):
            given = cast("dict[str, Any]", env)
            self._entry["env"] = {k: _text(v) for k, v in given.items() if v is not None}
            if "url" in self._entry and "command" not in self._entry:
                if given:
                    self._remark(("env",), "is for servers that are started, and is passed over")
                del self._entry["env"]
        for key in _TEXTS:
            if key in self._entry:
                self._entry[key] = _each_text(self._entry[key], self._in_our_variables)

    def _in_our_variables(self, text: str) -> str:
        folder = str(self._around.folder)
        places = {
            "workspaceFolder": folder,
            "workspaceRoot": folder,
            "workspaceFolderBasename": self._around.folder.name,
            "userHome": str(FilePath.home()),
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        text = _PLACE.sub(lambda found: places[found[1]].replace("${", "$${"), text)
        text = _SECRET.sub(lambda found: _variable(found[1]), text)
        if (form := _VARIABLE.get(self._around.program)) is not None:
            text = form.sub(lambda found: _variable(found[1]), text)
        return text

    def _settle_numbers(self) -> None:
        for key in ("timeout", "connect_timeout"):
            given = self._entry.get(key)
            if isinstance(given, int | float) and MAX_TIMEOUT_S < given <= MAX_TIMEOUT_S * 1000:
                self._entry[key] = given / 1000

    def _settle_tools(self) -> None:
        for key in ("only_tools", "without_tools"):
            if self._entry.get(key) in ([], ["*"]):
                del self._entry[key]

    def _keep_inputs(self) -> None:
        """Gives the entry those of the file's inputs that it refers to."""
        known = {one.get("id"): one for one in self._around.inputs}
        if asked := [known[name] for name in inputs_in(self._entry) if name in known]:
            self._entry.setdefault("inputs", asked)

    def _check_command(self) -> None:
        if self._entry.keys() & {"command", "url"} or self._off:
            return
        is_off = self._entry.get("enabled") is False or self._entry.get("disabled") is True
        if is_off:
            self._off = "switched off in the file"
        elif "settings" in self._place.members():
            self._off = "it comes with an extension of Zed, and is no server by itself"
        else:
            near = [key for key in self._unknown if _nearest(key) in ("command", "url")]
            mend = f'rename "{near[0]}" to "{_nearest(near[0])}"' if near else "add one"
            self._place.refuse(f'has neither "command" nor "url"; {mend}')

    def _remark(self, path: Path, said: str) -> None:
        at = self._place
        for step in self._written.get(path, path):
            at = at / step
        complaint = ConfigError(said, file=at.file, line=at.line, key=at.key())
        self._remarks.append(str(complaint))


def _nearest(key: str) -> str:
    return next(iter(difflib.get_close_matches(key, KNOWN_KEYS, 1, cutoff=0.75)), "")


def _proposal(key: str) -> str:
    return f'; did you mean "{near}"?' if (near := _nearest(key)) else ""


def _variable(name: str) -> str:
    return f"${{{name}}}"


def _text(value: Any) -> Any:
    """Writes a number or a truth value as the text that every environment has of it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _each_text(value: Any, change: Callable[[str], Any]) -> Any:
    """Gives the value with `change` made to each text in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(one, change) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _each_text(one, change) for key, one in members.items()}
    return value
