"""One server's entry in the file: which keys it may hold, and of what kinds their values are.

The models give both the check at run time and the JSON schema for editors. `spellings.py` has put
an entry into these words before, and passed over what nobody knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NoReturn, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from mcp_bridge.config.document import FileValue, kind_of
from mcp_bridge.core.server_config import Allowance, NewTools, TransportName
from mcp_bridge.security.policy import origin_of, plain_text

MAX_TIMEOUT_S: Final = 3600.0
"""An hour. Larger numbers are milliseconds written where seconds are read."""
TRANSPORTS: Final[Mapping[str, TransportName]] = MappingProxyType(
    {
        "stdio": "stdio",
        "local": "stdio",
        "http": "http",
        "streamable-http": "http",
        "streamable_http": "http",
        "streamablehttp": "http",
        "sse": "sse",
        "ws": "websocket",
        "websocket": "websocket",
    }
)
LOCAL_KEYS: Final = ("command", "args", "env", "env_file", "cwd", "requires_path")
REMOTE_KEYS: Final = ("url", "headers", "token", "authorization_servers")
FOREIGN_KEYS: Final = frozenset(
    {"description", "note", "icon", "gallery", "version", "autoApprove", "alwaysAllow"}
)
REMARK_PATTERN: Final = "^//"
FOREIGN_PATTERN: Final = "^[$_]"


def is_remark(key: str) -> bool:
    """Tells whether a key is a remark whatever it holds: people take servers out in this way."""
    return key.startswith("//")


def is_foreign(key: str) -> bool:
    """Tells whether a key is a remark, or belongs to another program."""
    return key in FOREIGN_KEYS or key.startswith(("//", "$", "_"))


def _refuse(message: str) -> NoReturn:
    raise PydanticCustomError("refused", "{message}", {"message": message})


def _check_text(text: str) -> str:
    if "\0" in text:
        _refuse("holds a NUL character; remove it")
    return text


def _check_transport(written: str) -> str:
    if written.lower() not in TRANSPORTS:
        _refuse(f"{written[:40]!r} is not known; use stdio, http, sse or ws")
    return written


def _check_origin(url: str) -> str:
    try:
        scheme, host, port = origin_of(url)
    except ValueError:
        scheme = host = ""
        port = 0
    if not host or scheme not in ("http", "https") or urlsplit(url).path.strip("/") or not port:
        _refuse("is no origin; write one such as https://login.home")
    if plain_text(url) is not None:
        _refuse("goes over the network unencrypted; use https://")
    return url


def _check_globs(patterns: list[str]) -> list[str]:
    if any("**" in pattern for pattern in patterns):
        _refuse('"**" walks through whole folders; name the levels with "*"')
    return patterns


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _without_foreign_keys(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: v for key, v in cast("dict[str, Any]", value).items() if not is_foreign(key)}


def _without_foreign_tools(value: object) -> object:
    """A tool may have any name; what is no list under a foreign key is not a tool's."""
    if not isinstance(value, dict):
        return value
    tools = cast("dict[str, Any]", value)
    return {
        tool: tools[tool]
        for tool in tools
        if not is_remark(tool) and (isinstance(tools[tool], list) or not is_foreign(tool))
    }


_CONFIG: Final = ConfigDict(strict=True, extra="forbid", frozen=True, regex_engine="python-re")
_TRANSPORT_SCHEMA: Final = {"enum": [*TRANSPORTS, "streamableHttp"]}
"""The last one is as some programs write it; the reader ignores case."""

_Text: TypeAlias = Annotated[StrictStr, AfterValidator(_check_text)]
_FilledText: TypeAlias = Annotated[StrictStr, Field(pattern=r"\S"), AfterValidator(_check_text)]
_Transport: TypeAlias = Annotated[
    _Text, AfterValidator(_check_transport), WithJsonSchema(_TRANSPORT_SCHEMA)
]
_Seconds: TypeAlias = Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S)]
_Several: TypeAlias = Annotated[list[_FilledText], Field(min_length=1)]
_OneOrMore: TypeAlias = Annotated[
    _Several, BeforeValidator(_as_list, json_schema_input_type=_FilledText | _Several)
]
_Origin: TypeAlias = Annotated[_FilledText, AfterValidator(_check_origin)]
_Globs: TypeAlias = Annotated[_OneOrMore, AfterValidator(_check_globs)]


def _allow_foreign_keys(schema: dict[str, Any]) -> None:
    schema["patternProperties"] = {REMARK_PATTERN: {}, FOREIGN_PATTERN: {}}


class EnableCondition(BaseModel):
    """The condition of `"auto_enable": "if_match"`. Both kinds must hold."""

    model_config = _CONFIG | ConfigDict(json_schema_extra={"minProperties": 1})

    file_exists: _Globs = []
    """Patterns of files, of which one must be there."""
    env_set: _OneOrMore = []
    """Variables, which must all be set and not be empty."""


class ExampleEntry(BaseModel):
    """What a person would say, and the arguments of the call that is meant."""

    model_config = _CONFIG | ConfigDict(json_schema_extra=_allow_foreign_keys)

    say: _FilledText
    arguments: dict[str, Any] = {}


class InputEntry(BaseModel):
    """A value that a person is asked for once, as VS Code has them."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    id: _FilledText = Field(description="The value stands where ${input:ID} is written.")
    type: _Text = "promptString"
    description: _Text = ""
    password: bool = False
    default: _Text | None = None
    options: list[Any] = []


_Examples: TypeAlias = Annotated[
    dict[str, list[Annotated[ExampleEntry, BeforeValidator(_without_foreign_keys)]]],
    BeforeValidator(_without_foreign_tools),
]

_VARIABLES: Final = (
    " ${NAME} is taken from the environment (${env:NAME} is the same), ${NAME:-text} falls back to "
    "text, ${input:ID} is asked for once, ${workspaceFolder} is the file's folder, $${ stands for "
    "${ itself."
)


class ServerEntry(BaseModel):
    """One server's entry. null stands for "not set" wherever a key may be left out."""

    model_config = _CONFIG

    name: _FilledText | None = Field(
        None, description="What the server is called; only where servers are a list."
    )
    command: _FilledText | None = Field(None, description=f"The program to start.{_VARIABLES}")
    args: list[_Text] | None = Field(None, description=f"Its arguments.{_VARIABLES}")
    env: dict[str, _Text] | None = Field(
        None, description=f"Added to the few variables that it inherits.{_VARIABLES}"
    )
    env_file: _FilledText | None = Field(
        None, description=f"A file of further ones, a NAME=value on each line.{_VARIABLES}"
    )
    cwd: _Text | None = Field(None, description=f"The folder to start it in.{_VARIABLES}")
    requires_path: bool | None = Field(
        None, description="The room's path is its last argument; without one it stays off."
    )
    url: _FilledText | None = Field(
        None,
        description=(
            "Where the server is: http://, https://, ws:// or wss://. Without any of these it is "
            f"https://, and on this machine http://.{_VARIABLES}"
        ),
    )
    headers: dict[str, _Text] | None = Field(
        None, description=f"Sent with each request.{_VARIABLES}"
    )
    token: _FilledText | None = Field(None, description=f"Sent as a bearer token.{_VARIABLES}")
    authorization_servers: list[_Origin] | None = Field(
        None,
        description=(
            "Where its sign-in may be, besides its own address and public https:// ones: "
            "origins such as https://login.home."
        ),
    )
    transport: _Transport | None = Field(
        None, description="How it is spoken to; mostly clear from the rest."
    )
    type: _Transport | None = Field(None, description="The same as transport.")
    enabled: bool | None = Field(None, description="Whether it is used at all.")
    disabled: bool | None = Field(
        None, description="The opposite of enabled, as other programs write it."
    )
    auto_enable: Literal["always", "never", "with_path", "if_match"] | None = Field(
        None, description="When it is used."
    )
    enable_if: EnableCondition | None = Field(
        None,
        description="For if_match: one of the files is there, and all of the variables are set.",
    )
    timeout: _Seconds | None = Field(None, description="Seconds for one call.")
    connect_timeout: _Seconds | None = Field(None, description="Seconds until it is ready.")
    share: bool | None = Field(
        None,
        description=(
            "Whether rooms in one process use one session of it; for servers that keep nothing "
            "between two calls."
        ),
    )
    allow: list[Allowance] | None = Field(
        None,
        description="What you vouch for although it could run or send what nobody has read.",
    )
    new_tools: NewTools | None = Field(
        None,
        description=(
            "Tools that it adds after it was first seen: offer (and tell of them), or hold until "
            "`caal-node tools --accept NAME`."
        ),
    )
    only_tools: _Several | None = Field(
        None, description="The server's own names of those of its tools that are offered."
    )
    without_tools: _Several | None = Field(
        None, description="The server's own names of tools that are not offered."
    )
    inputs: list[InputEntry] | None = Field(
        None, description="What ${input:ID} asks for. `caal-node mcp inputs` asks."
    )
    examples: _Examples | None = Field(
        None, description="Tool -> what people say for it, with the call's arguments."
    )


KNOWN_KEYS: Final = tuple(ServerEntry.model_fields)


def check_entry(place: FileValue) -> ServerEntry:
    """Checks the keys of an entry and the kinds of its values.

    Raises: ConfigError, for the first fault, with its place and how to fix it.
    """
    try:
        return ServerEntry.model_validate(place.members())
    except ValidationError as invalid:
        error = invalid.errors(include_url=False)[0]
        at = place
        for step in error["loc"]:
            if at.holds(step):  # else it is the only one of a list
                at = at / step
        at.refuse(_words(error, at.path[len(place.path) :]))


def _words(error: ErrorDetails, path: tuple[str | int, ...]) -> str:
    """Says what is wrong and how to fix it."""
    given = error["input"]
    match error["type"]:
        case "refused":
            return error["msg"]
        case "extra_forbidden":
            model = EnableCondition if path[0] == "enable_if" else ExampleEntry
            return f"unknown key; use {' or '.join(model.model_fields)}"
        case "missing":
            key = error["loc"][-1]
            return f'lacks "{key}"; add {"one" if key == "id" else "what a person would say"}'
        case "literal_error" if isinstance(given, str):
            known = error.get("ctx", {})["expected"].replace("'", "").replace(" or ", ", ")
            wrong = "allows nothing" if path[0] == "allow" else "is not known"
            return f"{given[:40]!r} {wrong}; use {known}"
        case "string_type" if path == ("command",) and isinstance(given, list | dict):
            return f'is {kind_of(given)}; write the program as a text, and the rest in "args"'
        case "string_type" | "literal_error" | "string_unicode":
            return f"is {kind_of(given)}; write a text in double quotes"
        case "bool_type":
            return f"is {kind_of(given)}; write true or false"
        case "list_type":
            return f"is {kind_of(given)}; write a list in brackets"
        case "string_pattern_mismatch" | "too_short":
            return "is empty; write it, or remove the entry"
        case "less_than_equal":
            return f"is over {MAX_TIMEOUT_S:.0f} seconds; write seconds, not milliseconds"
        case "float_type" | "greater_than" | "finite_number":
            return "is no number of seconds; write one above 0, for example 20"
        case _:
            return f"is {kind_of(given)}; write an object in braces"


# The JSON schema of the file of servers, for editors: completion, and slips underlined.
#
# `python -m mcp_bridge.config.entry_model` prints it; `mcp_bridge/mcp_servers.schema.json` is that,
# and a test holds the two together. It says what an editor can say. The reader says more: which
# variable is not set, which name stands twice.

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
