"""The JSON schema of the file of servers, for editors: completion, and slips underlined.

`python -m mcp_bridge.config.schema` prints it; `mcp_bridge/mcp_servers.schema.json` is that, and a
test holds the two together. It says what an editor can say. The reader says more: which variable
is not set, which name stands twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mcp_bridge.config.activation import CONDITIONS, WHENS
from mcp_bridge.config.file_value import MAX_TIMEOUT_S
from mcp_bridge.config.server_entry import KNOWN, LOCAL, PASSED_OVER, REMOTE, TRANSPORTS
from mcp_bridge.core.server_config import ALLOWANCES

FILE: Final = Path(__file__).parents[1] / "mcp_servers.schema.json"
_REMARK: Final = "^//"
_KEPT: Final = "^[$_]"
_LIKE_SERVER: Final = {"$ref": "#/$defs/like_server"}
_NONE: Final = {"maxItems": 0, "maxProperties": 0}
_TEXT: Final = {"type": "string"}
_FILLED: Final = {"type": "string", "pattern": "\\S"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_TRANSPORTS: Final = [*TRANSPORTS, "streamableHttp"]
"""The last one as some programs write it; the reader does not mind capitals."""
_SECONDS: Final = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_TIMEOUT_S}
_ONE_OR_MORE: Final = {
    "anyOf": [_FILLED, {"type": "array", "items": _FILLED, "minItems": 1}],
}
_VARIABLES: Final = (
    " ${NAME} is taken from the environment (${env:NAME} is the same), ${NAME:-text} falls back to "
    "text, $${ stands for ${ itself."
)

_KEYS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "name": ("What the server is called; only where servers are a list.", _FILLED),
    "command": (f"The program to start.{_VARIABLES}", _FILLED),
    "args": (f"Its arguments.{_VARIABLES}", {"type": "array", "items": _TEXT}),
    "env": (f"Added to the few variables that it inherits.{_VARIABLES}", _TEXTS),
    "cwd": (f"The folder to start it in.{_VARIABLES}", _TEXT),
    "requires_path": (
        "The room's path is its last argument; without one it stays off.",
        {"type": "boolean"},
    ),
    "url": (f"Where the server is: http://, https://, ws:// or wss://.{_VARIABLES}", _FILLED),
    "headers": (f"Sent with each request.{_VARIABLES}", _TEXTS),
    "token": (f"Sent as a bearer token.{_VARIABLES}", _FILLED),
    "transport": ("How it is spoken to; mostly clear from the rest.", {"enum": _TRANSPORTS}),
    "type": ("The same as transport.", {"enum": _TRANSPORTS}),
    "enabled": ("Whether it is used at all.", {"type": "boolean"}),
    "disabled": ("The opposite of enabled, as other programs write it.", {"type": "boolean"}),
    "auto_enable": ("When it is used.", {"enum": [*WHENS]}),
    "enable_if": (
        "For if_match: one of the files is there, and all of the variables are set.",
        {
            "type": "object",
            "properties": dict.fromkeys(CONDITIONS, _ONE_OR_MORE),
            "additionalProperties": False,
            "minProperties": 1,
        },
    ),
    "timeout": ("Seconds for one call.", _SECONDS),
    "connect_timeout": ("Seconds until it is ready.", _SECONDS),
    "share": (
        "Whether rooms in one process use one session of it; for servers that keep nothing "
        "between two calls.",
        {"type": "boolean"},
    ),
    "allow": (
        "What you vouch for although it could run or send what nobody has read.",
        {"type": "array", "items": {"enum": [*ALLOWANCES]}},
    ),
    "examples": (
        "Tool -> what people say for it, with the call's arguments.",
        {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"say": _FILLED, "arguments": {"type": "object"}},
                    "required": ["say"],
                    "patternProperties": {_REMARK: {}, _KEPT: {}},
                    "additionalProperties": False,
                },
            },
        },
    ),
}


def schema() -> Mapping[str, Any]:
    """Draft 2020-12. `null` stands for "not set" wherever a key may be left out."""
    listed: Mapping[str, Any] = {
        "type": "array",
        "items": {"allOf": [{"$ref": "#/$defs/server"}, {"required": ["name"]}]},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "MCP servers",
        "type": "object",
        "if": {"required": ["mcpServers"]},
        "then": _group("mcpServers", {"$ref": "#/$defs/named"}, servers=_NONE),
        "else": {
            "if": {
                "properties": {"servers": {"type": ["array", "object"], "not": _LIKE_SERVER}},
                "required": ["servers"],
            },
            "then": _group("servers", {"anyOf": [listed, {"$ref": "#/$defs/named"}]}),
            "else": {"$ref": "#/$defs/named"},
        },
        "$defs": {"named": _named(), "like_server": _like_server(), "server": _server()},
    }


def _group(key: str, holds: Mapping[str, Any], **beside: Mapping[str, Any]) -> Mapping[str, Any]:
    """The servers in a group of their own, and none beside it."""
    return {
        "properties": {key: holds, **beside},
        "patternProperties": {_REMARK: {}},
        "additionalProperties": {"not": _LIKE_SERVER},
    }


def _named() -> Mapping[str, Any]:
    """Servers by their names; what other programs keep beside them is left alone."""
    server = {"$ref": "#/$defs/server"}
    kept = {"if": _LIKE_SERVER, "then": server}
    return {
        "type": "object",
        "properties": dict.fromkeys(sorted(PASSED_OVER), kept),
        "patternProperties": {_REMARK: {}, _KEPT: kept},
        "additionalProperties": server,
    }


def _like_server() -> Mapping[str, Any]:
    """What the reader takes for a server's entry, whether right or wrong."""
    held = {"not": {"type": ["null", "object"]}}
    return {
        "type": "object",
        "anyOf": [{"required": [key], "properties": {key: held}} for key in ("command", "url")],
    }


def _server() -> Mapping[str, Any]:
    given = {"not": {"type": "null"}}
    absent = {"type": "null"}
    local = dict.fromkeys(REMOTE, absent)
    remote = dict.fromkeys(LOCAL, absent)
    return {
        "type": "object",
        "properties": {
            **{
                key: {"description": words, "anyOf": [kind, {"type": "null"}]}
                for key, (words, kind) in _KEYS.items()
            },
            **{key: {} for key in sorted(PASSED_OVER)},
        },
        "patternProperties": {_REMARK: {}, _KEPT: {}},
        "additionalProperties": False,
        "oneOf": [
            {"required": ["command"], "properties": {**local, "command": given}},
            {"required": ["url"], "properties": {**remote, "url": given}},
        ],
    }


def written() -> str:
    """The file's text."""
    return json.dumps(schema(), indent=2) + "\n"


assert set(_KEYS) == set(KNOWN)  # a key that the reader learns is to be told here


if __name__ == "__main__":
    print(written(), end="")
