"""Where in a file its servers stand, whichever program the file was written for.

    {"time": {...}, "docs": {...}}                  ours
    mcpServers                                      Claude, Cursor, Windsurf, Cline, LM Studio, ...
    servers                                         VS Code; a list with names is read as well
    mcp.servers, mcp                                VS Code's settings; opencode
    context_servers                                 Zed
    mcp_servers                                     Codex
    extensions                                      Goose

A server beside such a group would be seen by nobody who reads the group: it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.config.document import FileValue, as_object, kind_of
from mcp_bridge.config.entry_model import is_foreign, is_remark
from mcp_bridge.config.spellings import Program, Surroundings

_GROUPS: Final = (
    ("mcpServers",),
    ("amp.mcpServers",),
    ("context_servers",),
    ("mcp_servers",),
    ("servers",),
    ("mcp", "servers"),
    ("mcp",),
    ("extensions",),
)
_COMMANDS: Final = ("command", "url", "cmd", "uri", "serverUrl", "httpUrl")
_ENTRY_KEYS: Final = {*_COMMANDS, "type", "enabled", "disabled", "settings", "source"}


def is_server(value: Any) -> bool:
    """Tells whether this looks like a server's entry, right or wrong, and not like a group."""
    held = (as_object(value).get(key) for key in _COMMANDS)
    return any(one is not None and not isinstance(one, dict) for one in held)


def groups(top: FileValue, folder: str | None = None) -> tuple[FileValue, ...]:
    """Gives every group of servers in the file; none where the servers stand at its top.

    Args:
        folder: The project whose own servers count as well, in Claude Code's file of all projects.
    """
    places = [*_GROUPS, ("projects", folder or "", "mcpServers")]
    return tuple(place for keys in places if (place := _group(top, keys)) is not None)


def _group(top: FileValue, keys: tuple[str, ...]) -> FileValue | None:
    place = top
    for key in keys:
        if not isinstance(place.value, dict) or not place.holds(key):
            return None
        place = place / key
    value = place.value
    if keys == ("mcpServers",):
        return place
    if isinstance(value, list):
        return place if keys == ("servers",) else None
    if not isinstance(value, dict) or is_server(value):
        return None
    if keys == ("mcp",):  # the settings of other programs have an object of that name, too
        found = [as_object(one) for one in as_object(value).values() if isinstance(one, dict)]
        looks = [not _ENTRY_KEYS.isdisjoint(one) for one in found]
        return place if looks and all(looks) else None
    return place


def entries(top: FileValue, found: tuple[FileValue, ...]) -> Iterator[tuple[str, FileValue]]:
    """Yields name and place of every server. A place may hold anything."""
    for place in found or (top,):
        if isinstance(place.value, list):
            for number, item in enumerate(place.items(), 1):
                yield _listed_name(item) or f"server {number}", item
            continue
        for name, value in place.members().items():
            if not (is_remark(name) or (is_foreign(name) and not is_server(value))):
                yield name, place / name
    for name, value in top.members().items() if found else ():
        if not is_remark(name) and is_server(value):
            yield name, top / name


def check_name(name: str, place: FileValue, found: tuple[FileValue, ...]) -> None:
    """Raises: ConfigError, where the server has no name, or stands where it must not."""
    if len(place.path) == 1 and found:
        group = ".".join(map(str, found[0].path))
        place.refuse(f'is a server beside "{group}"; move it in there')
    if not name.strip():
        place.refuse("the server has no name; write one")
    if isinstance(place.path[-1], int) and not _listed_name(place):
        if "name" not in place.members():
            place.refuse('lacks "name"; add one')
        given = (place / "name").value
        empty = isinstance(given, str)
        said = "is empty; write it, or remove the entry" if empty else f"is {kind_of(given)}"
        (place / "name").refuse(said if empty else f"{said}; write a text in double quotes")


def _listed_name(item: FileValue) -> str:
    name = as_object(item.value).get("name")
    return name if isinstance(name, str) and name.strip() else ""


def left_out(top: FileValue, name: str) -> str:
    """Says why the file keeps a server out by its name, as Gemini's does; "" where it does not."""
    names = as_object(top.members().get("mcp"))
    excluded, allowed = names.get("excluded"), names.get("allowed")
    if isinstance(excluded, list) and name in excluded:
        return "the file's mcp.excluded names it"
    if isinstance(allowed, list) and allowed and name not in allowed:
        return "the file's mcp.allowed does not name it"
    return ""


def surroundings(
    top: FileValue, found: tuple[FileValue, ...], room_path: str | None
) -> Surroundings:
    """Tells what the entries of a file take from it."""
    file = Path(top.file).absolute()
    hidden = file.parent.name.startswith(".") and file.parent != Path.home()
    folder = file.parent.parent if hidden else file.parent
    is_project = bool(found) and (hidden or file.name == ".mcp.json") and folder != Path.home()
    program: Program = ""
    if {".gemini", ".qwen"} & set(file.parts):
        program = "gemini"
    elif [place.path for place in found] == [("mcp",)]:
        program = "opencode"
    return Surroundings(
        folder=Path(room_path) if room_path else folder,
        is_project=is_project,
        program=program,
        inputs=_inputs(top),
    )


def _inputs(top: FileValue) -> tuple[Mapping[str, Any], ...]:
    members = top.members()
    for given in (members.get("inputs"), as_object(members.get("mcp")).get("inputs")):
        if isinstance(given, list):
            return tuple(map(as_object, cast("list[Any]", given)))
    return ()
