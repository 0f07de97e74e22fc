"""How files with `mcpServers` or `servers` spell an entry, and the same in our words.

Whatever the program: variables that mean a place (`${workspaceFolder}`) are filled in, a timeout of
more than an hour is milliseconds, a number in `env` is a text, an address that ends with /sse is
spoken to so, and a key that nobody knows is passed over with a remark.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from mcp_bridge.config.document import Document, FileValue
from mcp_bridge.config.entry_model import KNOWN_KEYS, MAX_TIMEOUT_S, is_foreign
from mcp_bridge.config.other_programs import NAMES
from mcp_bridge.config.server_entry import FileContext
from mcp_bridge.config.variables import TEXT_KEYS, inputs_in
from mcp_bridge.core.errors import ConfigError

_SPELLINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "envFile": "env_file",  # VS Code
        "serverUrl": "url",  # Windsurf
        "httpUrl": "url",  # Gemini CLI, whose snippets are copied into other files
        "includeTools": "only_tools",
        "excludeTools": "without_tools",
        "baseUrl": "url",  # Cherry Studio
        "isActive": "enabled",
        "active": "enabled",
        "tools": "only_tools",  # GitHub Copilot
        "enabled_tools": "only_tools",  # Codex; passed over, it would offer too many tools
        "disabled_tools": "without_tools",
        "disabledTools": "without_tools",  # Windsurf, Roo, Kiro
    }
)
_HARMLESS: Final = frozenset(
    (
        *("dev", "fromGalleryId", "homepage", "iconPath", "id", "metadata", "provider", "tags"),
        *("title", "trust", "watchPaths"),
    )
)
"""What programs keep in an entry for themselves, besides `FOREIGN_KEYS`."""
_SSE_URL: Final = re.compile(r"[^?#]*/sse/?(?:[?#].*)?")
_PLACE: Final = re.compile(
    r"(?<!\$)\$\{(workspaceFolderBasename|workspaceFolder|workspaceRoot|userHome|pathSeparator|/)\}"
)


def in_our_words(place: FileValue, context: FileContext) -> tuple[FileValue, tuple[str, ...]]:
    """Gives an entry in our words, which still knows its lines, and remarks on ignored keys, each
    with its place and what to write instead.

    Raises: ConfigError, where the entry is no object, has a key twice, or has neither `command`
        nor `url`.
    """
    for again in place.repeated():
        line = place.document.twice[again.path]
        again.refuse(f"stands in line {line} already; rename or remove one")
    entry: dict[str, Any] = {}
    theirs: dict[str, str] = {}
    remarks: list[str] = []
    unknown: list[str] = []

    def pass_over(key: str, said: str) -> None:
        at = place / key
        complaint = ConfigError(said, file=at.file, line=at.line, key=at.key())
        remarks.append(str(complaint))

    for key, value in place.members().items():
        ours = _SPELLINGS.get(key, key)
        if value is None or key in _HARMLESS or is_foreign(key):
            continue
        if ours not in KNOWN_KEYS:
            unknown.append(key)
            near = f'; did you mean "{nearest}"?' if (nearest := _nearest(key)) else ""
            pass_over(key, f"is not known here, and is passed over{near}")
        elif ours in entry:
            pass_over(key, f'says "{ours}" once more, and is passed over; keep one of the two')
        else:
            entry[ours] = value
            theirs[ours] = key
    if entry.keys().isdisjoint(("command", "url")):
        if isinstance(group := place.path[-1], str) and _is_group(group):
            place.refuse(f'is not what holds servers; rename "{group}" to "mcpServers"')
        near = next((key for key in unknown if _nearest(key) in ("command", "url")), "")
        fix = f'rename "{near}" to "{_nearest(near)}"' if near else "add one"
        place.refuse(f'has neither "command" nor "url"; {fix}')
    if "command" not in entry and isinstance(env := entry.get("env"), dict):
        del entry["env"]
        if env:
            pass_over("env", "is for servers that are started, and is passed over")
    _settle(entry, theirs, context)
    return _with_entry(place, entry, theirs), tuple(remarks)


def _settle(entry: dict[str, Any], theirs: Mapping[str, str], context: FileContext) -> None:
    """Changes values to what their programs mean by them."""
    url = entry.get("url")
    if isinstance(url, str) and entry.keys().isdisjoint(("type", "transport")):
        if theirs["url"] == "httpUrl":
            entry["type"] = "http"
        elif _SSE_URL.fullmatch(url.strip()):
            entry["type"] = "sse"
    if isinstance(env := entry.get("env"), dict):
        given = cast("dict[str, Any]", env)
        entry["env"] = {name: _text(value) for name, value in given.items() if value is not None}
    for key in entry.keys() & set(TEXT_KEYS):
        entry[key] = each_text(entry[key], lambda text: _with_places(text, context.folder))
    for key in ("timeout", "connect_timeout"):
        given = entry.get(key)
        if isinstance(given, int | float) and MAX_TIMEOUT_S < given <= MAX_TIMEOUT_S * 1000:
            entry[key] = given / 1000
    for key in ("only_tools", "without_tools"):
        if entry.get(key) in ([], ["*"]):
            del entry[key]
    cwd = entry.get("cwd", "")
    is_relative = isinstance(cwd, str) and not cwd.startswith(("/", "~", "$", "\\"))
    if context.is_project and "command" in entry and is_relative:
        entry["cwd"] = str(context.folder / cwd)
    known = {one.get("id"): one for one in context.inputs}
    if asked := [known[name] for name in inputs_in(entry) if name in known]:
        entry.setdefault("inputs", asked)


def _with_entry(place: FileValue, entry: Mapping[str, Any], theirs: Mapping[str, str]) -> FileValue:
    """Gives the place with another value, which the file has under the keys of `theirs`."""
    value: Any = entry
    for step in reversed(place.path):
        value = {step: value}
    old = place.document
    at = old.path_in_file(place.path)
    written = {(*place.path, ours): (*at, key) for ours, key in theirs.items() if ours != key}
    document = Document(value, old.lines, old.twice, {**old.written, **written})
    return FileValue(place.file, document, place.path)


def _with_places(text: str, folder: Path) -> str:
    places = {
        "workspaceFolder": str(folder),
        "workspaceRoot": str(folder),
        "workspaceFolderBasename": folder.name,
        "userHome": str(Path.home()),
        "pathSeparator": os.sep,
        "/": os.sep,
    }
    return _PLACE.sub(lambda found: places[found[1]].replace("${", "$${"), text)


def _nearest(key: str) -> str:
    if key in NAMES:
        return NAMES[key]
    return next(iter(difflib.get_close_matches(key, KNOWN_KEYS, 1, cutoff=0.75)), "")


def _text(value: Any) -> Any:
    """Writes a number or a truth value as the text that every environment has of it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Gives the value with `change` made to each text in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(one, change) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: each_text(one, change) for key, one in members.items()}
    return value


def _is_group(name: str) -> bool:
    """Say whether a name is `mcpServers` in another spelling, which would be taken for a server."""
    return re.sub(r"[^a-z]", "", name.lower()) in ("mcpservers", "mcpserver")
