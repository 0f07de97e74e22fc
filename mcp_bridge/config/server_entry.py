"""One server's entry in the file: which keys it may hold, and what they mean.

    command, args, env, cwd         a process to start, spoken to over stdin and stdout
    url, headers, token, transport  a server elsewhere; `token` is sent as a bearer token
    enabled (disabled)              whether to use it at all
    auto_enable, enable_if          when to use it; requires_path gives it the room's path
    timeout, connect_timeout        seconds for a call, and until the server is ready
    share                           whether rooms in one process may use one session of it
    allow                           what its owner vouches for: eval, env, command, ... (security/)
    examples                        {tool: [{"say": "...", "arguments": {...}}]}

`${NAME}` in any text of the first two lines is taken from the environment (`variables.py`). Keys
that other programs keep in such files (`autoApprove`, `icon`, ...) are passed over; a key that
nobody knows is an error, since it is most often a slip of the pen.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from mcp_bridge.config.activation import ActivationContext, off_because
from mcp_bridge.config.file_value import FileValue
from mcp_bridge.config.variables import VariableExpander
from mcp_bridge.core.server_config import (
    ALLOWANCES,
    NOTHING,
    Allowance,
    Example,
    ServerConfig,
    TransportName,
)
from mcp_bridge.security.policy import objections

TRANSPORTS: Final[Mapping[str, TransportName]] = MappingProxyType(
    {
        "stdio": "stdio",
        "http": "http",
        "streamable-http": "http",
        "streamable_http": "http",
        "streamablehttp": "http",
        "sse": "sse",
        "ws": "websocket",
        "websocket": "websocket",
    }
)
_SOCKETS: Final = ("ws", "wss")
LOCAL: Final = ("command", "args", "env", "cwd", "requires_path")
REMOTE: Final = ("url", "headers", "token")
_SHARED: Final = (
    "name", "transport", "type", "enabled", "disabled", "auto_enable", "enable_if", "timeout",
    "connect_timeout", "share", "allow", "examples",
)  # fmt: skip
KNOWN: Final = (*LOCAL, *REMOTE, *_SHARED)
PASSED_OVER: Final = frozenset(
    {"description", "note", "icon", "gallery", "version", "autoApprove", "alwaysAllow"}
)
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

_Read: TypeAlias = Callable[[FileValue], str]


def passed_over(key: str) -> bool:
    """Whether a key is a remark, or belongs to another program."""
    return key in PASSED_OVER or key.startswith(("//", "$", "_"))


def is_remark(key: str) -> bool:
    """Whether it is one whatever it holds: that is how people take a server out for a while."""
    return key.startswith("//")


def is_server(value: Any) -> bool:
    """Whether this looks like a server's entry, right or wrong, and not like a group of servers."""
    if not isinstance(value, dict):
        return False
    entry = cast("dict[str, Any]", value)
    held = (entry.get(key) for key in ("command", "url"))
    return any(one is not None and not isinstance(one, dict) for one in held)


def read_entry(place: FileValue, name: str, context: ActivationContext) -> ServerConfig:
    """What the entry means now.

    Raises: ConfigError.
    """
    # null is how generated files write "not set".
    entry = {key: value for key, value in place.members().items() if value is not None}
    for key in entry:
        if key not in KNOWN and not passed_over(key):
            near = difflib.get_close_matches(key, KNOWN, 1)
            mend = f'did you mean "{near[0]}"?' if near else f"use one of {', '.join(KNOWN)}"
            (place / key).refuse(f"unknown key; {mend}")
    transport = _transport(place, entry)
    local = transport == "stdio"
    for key in REMOTE if local else LOCAL:
        if key in entry:
            has, takes = ("command", "url") if local else ("url", "command")
            (place / key).refuse(f'belongs to a server with "{takes}"; this one has "{has}"')
    off = off_because(place, entry, context)
    variables = VariableExpander(context.environ)

    def read(at: FileValue) -> str:
        # A server that is off must not fail for a variable that is not set.
        return at.text() if off else variables.filled_in(at)

    args = tuple(read(item) for item in (place / "args").items()) if "args" in entry else ()
    given_path = context.path if context.path and entry.get("requires_path") else ""
    if given_path:
        args = (*args, given_path)
    url = "" if local else read(place / "url").strip()
    if not local:
        transport = _over(place, entry, transport, url, filled_in=not (off and "${" in url))

    config = ServerConfig(
        name=name,
        transport=transport,
        command=read(place / "command").strip() if local else "",
        args=args,
        env=_texts(place / "env", read) if "env" in entry else NOTHING,
        cwd=read(place / "cwd") if "cwd" in entry else None,
        url=url,
        headers=NOTHING if local else _headers(place, entry, read),
        enabled=not off,
        off_because=off,
        timeout_s=(place / "timeout").seconds() if "timeout" in entry else None,
        connect_timeout_s=(
            (place / "connect_timeout").seconds() if "connect_timeout" in entry else None
        ),
        share=(place / "share").flag() if "share" in entry else False,
        examples=_examples(place / "examples") if "examples" in entry else NOTHING,
        secrets=tuple(variables.secrets),
        sealed=tuple(variables.sealed),
        allow=_allowed(place / "allow") if "allow" in entry else frozenset(),
        given_path=given_path,
    )
    if not off:
        for finding in objections(config):
            at = place
            for step in finding.key.split(".", 1):
                at = at / step
            at.refuse(str(finding))
    return config


def _allowed(place: FileValue) -> frozenset[Allowance]:
    found: set[Allowance] = set()
    for item in place.items():
        word = item.text()
        if word not in ALLOWANCES:
            item.refuse(f"{word[:40]!r} allows nothing; use {', '.join(ALLOWANCES)}")
        found.add(word)
    return frozenset(found)


def _transport(place: FileValue, entry: Mapping[str, Any]) -> TransportName:
    if "command" in entry and "url" in entry:
        place.refuse('has both "command" and "url"; keep one')
    if "command" not in entry and "url" not in entry:
        place.refuse('has neither "command" nor "url"; add one')
    has = "command" if "command" in entry else "url"
    (place / has).filled()
    for key in ("transport", "type"):
        if key in entry:
            written = (place / key).text()
            if (transport := TRANSPORTS.get(written.lower())) is None:
                (place / key).refuse(f"{written[:40]!r} is not known; use stdio, http, sse or ws")
            if (transport == "stdio") != (has == "command"):
                (place / key).refuse(f'{written!r} does not go with "{has}"; remove it')
            return transport
    return "stdio" if has == "command" else "http"


def _over(
    place: FileValue,
    entry: Mapping[str, Any],
    transport: TransportName,
    url: str,
    *,
    filled_in: bool,
) -> TransportName:
    """The address says whether it is a WebSocket; what is written beside it must fit."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https", *_SOCKETS) and bool(parts.hostname)
        _ = parts.port  # raises where the port is no number
    except ValueError:
        usable = False
    if filled_in and not usable:
        (place / "url").refuse("is no http:// or https:// address, nor ws:// or wss://; write one")
    socket = url.lower().startswith(tuple(f"{scheme}:" for scheme in _SOCKETS))
    written = next((key for key in ("transport", "type") if key in entry), None)
    if written is None:
        return "websocket" if socket else transport
    if filled_in and socket != (transport == "websocket"):
        (place / written).refuse("does not go with that url; remove it")
    return transport


def _headers(place: FileValue, entry: Mapping[str, Any], read: _Read) -> Mapping[str, str]:
    headers = dict(_texts(place / "headers", read)) if "headers" in entry else {}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _one_line(value):
            (place / "headers" / name).refuse("is no HTTP header; use plain words on one line")
    if "token" in entry:
        if any(name.lower() == "authorization" for name in headers):
            (place / "token").refuse('meets the header "Authorization"; keep one of the two')
        token = read(place / "token").strip()
        if not token or not _one_line(token):
            (place / "token").refuse("is empty or not on one line; write the bare token")
        headers["Authorization"] = f"Bearer {token}"
    return MappingProxyType(headers)


def _one_line(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _texts(place: FileValue, read: _Read) -> Mapping[str, str]:
    return MappingProxyType({key: read(place / key) for key in place.members()})


def _examples(place: FileValue) -> Mapping[str, tuple[Example, ...]]:
    tools = [
        tool
        for tool, value in place.members().items()
        if not is_remark(tool) and (isinstance(value, list) or not passed_over(tool))
    ]
    return MappingProxyType(
        {tool: tuple(_example(item) for item in (place / tool).items()) for tool in tools}
    )


def _example(place: FileValue) -> Example:
    entry = place.members()
    for key in entry:
        if key not in ("say", "arguments") and not passed_over(key):
            (place / key).refuse('unknown key; use "say" and "arguments"')
    if "say" not in entry:
        place.refuse('lacks "say"; add what a person would say')
    arguments = (place / "arguments").members() if "arguments" in entry else NOTHING
    return Example((place / "say").filled(), MappingProxyType(dict(arguments)))
