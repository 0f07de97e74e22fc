"""How files with `mcpServers` or `servers` spell an entry, and the same in our words.

Whatever the program: variables that mean a place (`${workspaceFolder}`) are filled in, a timeout of
more than an hour is milliseconds, a number in `env` is a text, an address that ends with /sse is
spoken to so, and a key that nobody knows is passed over with a remark.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from mcp_bridge.config.document import Document, FileValue, as_object
from mcp_bridge.config.entry_model import KNOWN_KEYS, MAX_TIMEOUT_S, is_foreign
from mcp_bridge.config.server_entry import TEXT_KEYS, FileContext, inputs_in
from mcp_bridge.core.errors import ConfigError

# Where other programs keep their servers, and in which formats.
#
# Files with an `mcpServers` or a `servers` object are read as they are. The formats listed here are
# not: `import_servers.py` converts them, and `servers_file.py` refuses them.


@dataclass(frozen=True, slots=True)
class Format:
    """A way of keeping servers that is another program's."""

    program: str
    group: tuple[str, ...]
    """The key that holds the servers, or the keys that lead to it."""
    variable: re.Pattern[str] = re.compile(r"\$\{\{\s*(?:secrets\.|inputs\.)?([A-Za-z_]\w*)\s*\}\}")
    """How it writes a variable of the environment. The default is Continue's, which is no text of
    any other program."""


FORMATS: Final = (
    Format("Amp", ("amp.mcpServers",)),
    Format("Zed", ("context_servers",)),
    Format("Codex", ("mcp_servers",)),
    Format("VS Code's settings", ("mcp", "servers")),
    Format("opencode", ("mcp",), re.compile(r"\{env:([A-Za-z_]\w*)\}")),
    Format("Goose", ("extensions",)),
)
CONTINUE: Final = Format("Continue", ("mcpServers",))
GEMINI: Final = Format("Gemini CLI", ("mcpServers",), re.compile(r"\$([A-Za-z_]\w*)"))
"""Its `$NAME` is a variable, its `url` is SSE, and its `mcp.excluded` switches servers off."""
NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cmd": "command",  # Goose
        "envs": "env",
        "uri": "url",
        "available_tools": "only_tools",
        "environment": "env",  # opencode
        "http_headers": "headers",  # Codex
        "startup_timeout_sec": "connect_timeout",
        "startup_timeout_ms": "connect_timeout",
        "tool_timeout_sec": "timeout",
    }
)
"""What these programs call a key of ours."""

_FILES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "vscode": ("project/.vscode/mcp.json", "vscode/mcp.json", "vscode/settings.json"),
        "claude-code": ("project/.mcp.json", "home/.claude.json"),
        "claude-desktop": ("programs/Claude/claude_desktop_config.json",),
        "cursor": (
            *("project/.cursor/mcp.json", "home/.cursor/mcp.json"),
            *("cursor/mcp.json", "cursor/settings.json"),
        ),
        "cline": ("editors/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",),
        "roo": (
            "project/.roo/mcp.json",
            "editors/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ),
        "zed": ("project/.zed/settings.json", "zed/settings.json"),
        "goose": ("goose/config.yaml",),
        "opencode": (
            *("project/opencode.json", "project/opencode.jsonc"),
            *("config/opencode/opencode.json", "config/opencode/opencode.jsonc"),
        ),
        "continue": ("project/.continue/mcpServers/*.y*ml", "home/.continue/config.yaml"),
        "codex": ("project/.codex/config.toml", "codex/config.toml"),
        "windsurf": ("home/.codeium/windsurf/mcp_config.json", "home/.codeium/mcp_config.json"),
        "lm-studio": ("home/.lmstudio/mcp.json",),
        "gemini": ("project/.gemini/settings.json", "home/.gemini/settings.json"),
        "qwen": ("project/.qwen/settings.json", "home/.qwen/settings.json"),
        "amazon-q": ("project/.amazonq/mcp.json", "home/.aws/amazonq/mcp.json"),
        "junie": ("project/.junie/mcp/mcp.json", "home/.junie/mcp/mcp.json"),
        "copilot": ("home/.copilot/mcp-config.json",),
        "kiro": ("project/.kiro/settings/mcp.json", "home/.kiro/settings/mcp.json"),
        "ollama": ("home/.ollama/mcp-servers.json",),
    }
)
"""The files of each program. They begin with a name for a folder, which `_folders` gives."""

_OFTEN_OTHERWISE: Final = ("mcp", "extensions")
"""Settings of many programs have these keys, and a server may have such a name."""
_COMMANDS: Final = ("command", "url", "cmd", "uri", "serverUrl", "httpUrl")
_ENTRY_KEYS: Final = {*_COMMANDS, "type", "enabled", "disabled"}


def is_server(value: Any) -> bool:
    """Tells whether this looks like a server's entry, right or wrong, and not like a group."""
    held = (as_object(value).get(key) for key in _COMMANDS)
    return any(one is not None and not isinstance(one, dict) for one in held)


def formats_in(top: FileValue, folder: str) -> tuple[Format, ...]:
    """Gives the formats of other programs that a file has servers in, mostly none or one.

    Args:
        folder: The project whose servers count in Claude Code's file of all projects.
    """
    file = Path(top.file)
    if file.suffix.lower() in (".yaml", ".yml") and top.holds("mcpServers"):
        return (CONTINUE,)
    if {".gemini", ".qwen"} & set(file.absolute().parts) and top.holds("mcpServers"):
        return (GEMINI,)
    project = Format("Claude Code's projects", ("projects", folder, "mcpServers"))
    found = [form for form in FORMATS if _is_group(form, top)]
    return (*found, project) if group_of(project, top) else tuple(found)


def group_of(form: Format, top: FileValue) -> Any:
    """Gives the value that holds the servers; None where the file has none."""
    value = top.value
    for key in form.group:
        value = as_object(value).get(key)
    return value


def _is_group(form: Format, top: FileValue) -> bool:
    group = group_of(form, top)
    read_as_it_is = top.holds("mcpServers") or top.holds("servers")
    if not isinstance(group, dict) or is_server(group) or (read_as_it_is and not group):
        return False
    if form.group[-1] not in _OFTEN_OTHERWISE:
        return True
    held = [as_object(one) for one in as_object(group).values() if isinstance(one, dict)]
    looks = bool(held) and all(not _ENTRY_KEYS.isdisjoint(one) for one in held)
    return looks and not read_as_it_is


def how_to_import(file: str) -> str:
    """Says how the servers of a file of another program are copied into one of ours."""
    command = f"caal-node mcp import {shlex.quote(file)} --all --to mcp_servers.json"
    return f"run: {command}, and name that file by CAAL_MCP_SERVERS"


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that a program of this name may keep servers in; it need not be there."""

    program: str
    path: Path


def known_files(
    home: Path, project: Path, environ: Mapping[str, str], platform: str
) -> tuple[KnownFile, ...]:
    """Gives every place to look at, each once, those of the project first.

    Args:
        platform: As `sys.platform` has it.
    """
    folders = _folders(home, environ, platform) | {"project": [project]}
    places = [(name, *file.split("/", 1)) for name, files in _FILES.items() for file in files]
    found: dict[Path, KnownFile] = {}
    for program, root, file in sorted(places, key=lambda place: place[1] != "project"):
        for folder in folders[root]:
            paths = sorted(folder.glob(file)) if "*" in file else [folder / file]
            for path in paths:
                found.setdefault(path, KnownFile(program, path))
    return tuple(found.values())


def _folders(home: Path, environ: Mapping[str, str], platform: str) -> dict[str, list[Path]]:
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    programs, zed, goose = config, config / "zed", config / "goose"
    if platform == "darwin":
        programs = home / "Library" / "Application Support"
    elif platform == "win32":
        programs = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        zed, goose = programs / "Zed", programs / "Block" / "goose" / "config"
    codex = environ.get("CODEX_HOME")
    vscode = [programs / name / "User" for name in ("Code", "Code - Insiders", "VSCodium")]
    cursor = [programs / "Cursor" / "User"]
    return {
        "home": [home],
        "config": [config],
        "programs": [programs],
        "vscode": vscode,
        "cursor": cursor,
        "editors": [*vscode, *cursor],
        "zed": [zed],
        "goose": [goose],
        "codex": [*([Path(codex)] if codex else []), home / ".codex"],
    }


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
        if isinstance(group := place.path[-1], str) and _is_misspelt_group(group):
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


def _is_misspelt_group(name: str) -> bool:
    """Say whether a name is `mcpServers` in another spelling, which would be taken for a server."""
    return re.sub(r"[^a-z]", "", name.lower()) in ("mcpservers", "mcpserver")
