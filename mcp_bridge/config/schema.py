"""The JSON schema of the file of servers, for editors: completion, and slips underlined.

`python -m mcp_bridge.config.schema` prints it; `mcp_bridge/mcp_servers.schema.json` is that, and a
test holds the two together. It says what an editor can say. The reader says more: which variable is
not set, which name stands twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mcp_bridge.config.entry_model import (
    FOREIGN_KEYS,
    FOREIGN_PATTERN,
    LOCAL_KEYS,
    REMARK_PATTERN,
    REMOTE_KEYS,
    ServerEntry,
)

FILE: Final = Path(__file__).parents[1] / "mcp_servers.schema.json"
_LIKE_SERVER: Final = {"$ref": "#/$defs/like_server"}
_SERVER: Final = {"$ref": "#/$defs/ServerEntry"}
_NAMED: Final = {"$ref": "#/$defs/named"}
_NONE: Final = {"maxItems": 0, "maxProperties": 0}


def schema() -> Mapping[str, Any]:
    """Gives the schema in Draft 2020-12."""
    listed = {"type": "array", "items": {"allOf": [_SERVER, {"required": ["name"]}]}}
    entry = ServerEntry.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "MCP servers",
        "type": "object",
        "if": {"required": ["mcpServers"]},
        "then": _group("mcpServers", _NAMED, servers=_NONE),
        "else": {
            "if": {
                "properties": {"servers": {"type": ["array", "object"], "not": _LIKE_SERVER}},
                "required": ["servers"],
            },
            "then": _group("servers", {"anyOf": [listed, _NAMED]}),
            "else": _NAMED,
        },
        "$defs": {
            "named": _named_servers(),
            "like_server": _like_server(),
            **entry.pop("$defs"),
            "ServerEntry": {**entry, **_local_or_remote(entry["properties"])},
        },
    }


def _group(key: str, holds: Mapping[str, Any], **beside: Mapping[str, Any]) -> Mapping[str, Any]:
    """Describes servers in a group of their own, with no server beside the group."""
    return {
        "properties": {key: holds, **beside},
        "patternProperties": {REMARK_PATTERN: {}},
        "additionalProperties": {"not": _LIKE_SERVER},
    }


def _named_servers() -> Mapping[str, Any]:
    """Describes servers by their names; what other programs keep beside them is left alone."""
    kept = {"if": _LIKE_SERVER, "then": _SERVER}
    return {
        "type": "object",
        "properties": dict.fromkeys(sorted(FOREIGN_KEYS), kept),
        "patternProperties": {REMARK_PATTERN: {}, FOREIGN_PATTERN: kept},
        "additionalProperties": _SERVER,
    }


def _like_server() -> Mapping[str, Any]:
    """Describes what the reader takes for a server's entry, whether right or wrong."""
    held = {"not": {"type": ["null", "object"]}}
    return {
        "type": "object",
        "anyOf": [{"required": [key], "properties": {key: held}} for key in ("command", "url")],
    }


def _local_or_remote(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds to the entry's own schema the foreign keys, and which keys exclude each other."""
    given = {"not": {"type": "null"}}
    local = {key: {"type": "null"} for key in REMOTE_KEYS}
    remote = {key: {"type": "null"} for key in LOCAL_KEYS}
    return {
        "properties": {**properties, **{key: {} for key in sorted(FOREIGN_KEYS)}},
        "patternProperties": {REMARK_PATTERN: {}, FOREIGN_PATTERN: {}},
        "oneOf": [
            {"required": ["command"], "properties": {**local, "command": given}},
            {"required": ["url"], "properties": {**remote, "url": given}},
        ],
    }


def written() -> str:
    """Gives the text of the schema's file."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(written(), end="")
