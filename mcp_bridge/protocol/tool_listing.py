"""Lists all tools of one server, page by page, within caps.

The SDK sees none of them but those that want headers. Each is read by itself here,
leniently in what does not matter, so that whatever is wrong with one costs that one alone.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Any, Final, cast

from mcp import Client
from mcp_types import ListToolsResult
from mcp_types.methods import parse_server_result

from mcp_bridge.core.computing import computed
from mcp_bridge.core.sanitize import (
    clean_text,
    is_visible,
    may_hide,
    one_line,
    visible_text,
    visible_value,
)
from mcp_bridge.core.server_config import Limits, ServerConfig
from mcp_bridge.core.tools import HINTS, ToolDefinition, ToolInfo, make_digests
from mcp_bridge.protocol.json_spans import end_of_string, end_of_value, items, skip_space

# Checks the schemas of tools: what may be followed in them, and what may be shown.
#
# A `$ref` to anywhere but the schema itself could make a validator fetch an address or read a file.
# Our validators have no way to do so; a schema that asks for it is not offered all the same, as no
# model could fill it in.

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords whose values are data: what looks like a keyword in there is none."""
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
"""Keywords whose keys are names, and whose values are schemas."""
_EXACT: Final = _DATA | {"required", "pattern", "dependentRequired"}
"""Keywords with texts that a call must repeat as they are."""
_WORDS: Final = frozenset({"description", "title", "$comment", "markdownDescription"})
MAX_DEPTH: Final = 32
"""The allowed levels of schemas in one another. Real ones have up to eight."""


class UnfitSchema(ValueError):
    """The schema cannot be offered; the message says why, on one line."""


def checked_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives the schema without hidden characters in its words; the same one where it has none.

    Raises: UnfitSchema.
    """
    if any(not reference.startswith("#") for reference in _references(schema)):
        raise UnfitSchema("refers to a schema elsewhere ($ref)")
    written = json.dumps(schema, ensure_ascii=False)
    return cast("Mapping[str, Any]", _visible(schema, 0)) if may_hide(written) else schema


def _references(schema: object) -> Iterator[str]:
    """Yields where the schema refers to. Raises: UnfitSchema, where it is nested too deep."""
    waiting: list[tuple[object, int, bool]] = [(schema, 0, False)]
    while waiting:
        part, depth, is_data = waiting.pop()
        if depth > MAX_DEPTH:
            raise UnfitSchema(f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(part, list):
            waiting += [
                (item, depth + 1, is_data)
                for item in cast("list[object]", part)
                if isinstance(item, dict | list)
            ]
        elif isinstance(part, dict):
            for key, value in cast("dict[str, object]", part).items():
                if isinstance(value, str):
                    if key in _REFERENCES and not is_data:
                        yield value
                elif key in _MAPS and isinstance(value, dict):
                    inner = cast("dict[str, object]", value).values()
                    waiting += [(each, depth + 1, is_data) for each in inner]
                elif isinstance(value, dict | list):
                    waiting.append((cast("object", value), depth + 1, is_data or key in _DATA))


def _visible(schema: object, depth: int, *, named: bool = False) -> object:
    """Gives a part of the schema with its words as they are seen.

    `named` says that the keys are names, not keywords.
    """
    if depth > MAX_DEPTH:
        raise UnfitSchema(f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(schema, list):
        return [_visible(item, depth + 1) for item in cast("list[Any]", schema)]
    if isinstance(schema, str):
        return visible_text(schema)
    if not isinstance(schema, dict):
        return schema
    found: dict[str, object] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if not is_visible(key) or (not named and key in _EXACT and visible_value(value) != value):
            raise UnfitSchema("has hidden characters in what a call must repeat")
        if not named and key in _EXACT:
            found[key] = value
        elif not named and key in _WORDS and isinstance(value, str):
            found[key] = visible_text(value)
        else:
            found[key] = _visible(value, depth + 1, named=not named and key in _MAPS)
    return found


# Makes the names that models call: `server__tool`, `^[A-Za-z0-9_-]{1,64}$`, the same every time.
#
# A name depends on the configured servers and on its own server's list alone, never on which other
# servers happen to be up; so a name cannot change its meaning while a conversation goes on. No two
# prefixes begin alike up to `__` (`a__` and `a__b__` would: `a` + `b__c` is `a__b` + `c`), hence
# tools of two servers never meet. Nothing is ever read back out of a name.

SEPARATOR: Final = "__"
NAME_MAX: Final = 64
"""The bound of OpenAI's and Ollama's function names, in characters."""
PREFIX_MAX: Final = 30
"""The characters of the server's part. It leaves 32 for the tool's, which says more to a model."""
_HASH_CHARS: Final = 6
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_-]+")


def server_prefixes(servers: Iterable[str]) -> dict[str, str]:
    """Gives for each server its part of the exposed names.

    A name that is allowed and meets no other stays as it is; where two meet, the longer one is
    changed, whatever the order.
    """
    taken: dict[str, str] = {}
    for server in sorted(set(servers), key=lambda name: (_clean(name) != name, len(name), name)):
        wanted = _clean(server)
        prefix = wanted if len(wanted) <= PREFIX_MAX else _hashed(wanted, server, PREFIX_MAX)
        salt = 0
        while any(_collide(prefix, other) for other in taken.values()):
            plain = re.sub("_+", "_", wanted).strip("_")
            prefix = _hashed(plain, f"{server}\0{salt}", PREFIX_MAX)
            salt += 1
        taken[server] = prefix
    return taken


def exposed_names(prefix: str, tools: Sequence[str]) -> dict[str, str]:
    """Gives for each of one server's tools its exposed name, in the server's order."""
    room = NAME_MAX - len(prefix) - len(SEPARATOR)
    names: dict[str, str] = {}
    taken: set[str] = set()
    # Names that can stay as they are come first: they are the ones people write down.
    for tool in sorted(dict.fromkeys(tools), key=lambda tool: _clean(tool) != tool):
        wanted = _clean(tool)
        part = wanted if len(wanted) <= room else _hashed(wanted, tool, room)
        salt = 0
        while part in taken:
            part = _hashed(wanted, f"{tool}\0{salt}", room)
            salt += 1
        names[tool] = part
        taken.add(part)
    return {tool: f"{prefix}{SEPARATOR}{names[tool]}" for tool in dict.fromkeys(tools)}


def _collide(one: str, other: str) -> bool:
    one, other = one + SEPARATOR, other + SEPARATOR
    return one.startswith(other) or other.startswith(one)


def _clean(name: str) -> str:
    return _NOT_ALLOWED.sub("_", name) or "_"


def _hashed(wanted: str, whole: str, room: int) -> str:
    digest = hashlib.sha256(whole.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{wanted[: room - 1 - _HASH_CHARS]}_{digest}"


# Takes a page of tools apart while it is still bytes, so that no tool costs a server the others.
#
# Parsers judge a page as a whole: one schema that is nested too deep, or a list of several
# megabytes, takes away every tool, or the event loop's time. So each tool becomes a text in the
# result's `_meta` before anything parses the page, and they are read one by one in a thread. The
# SDK is left with the tools whose arguments it has to repeat in headers.

MAX_TOOL_BYTES: Final = 256 * 1024
"""A tool with more text is left out, and so is what is longer than `MAX_PAGE_BYTES` together."""
MAX_PAGE_BYTES: Final = 2 * 1024 * 1024
"""1,000 tools of 2 kB. Larger servers send more pages."""
MAX_TOOL_PARTS: Final = 4_000
"""Objects and lists of one tool; Python's own housekeeping goes over each, with the loop held."""
MAX_PAGE_PARTS: Final = 50_000
"""1,000 tools with 50 each."""
TOO_LONG_KEY: Final = "mcp_bridge/too_long"
"""It marks what is left of a tool that is too long: its name."""
_TEXTS_KEY: Final = "mcp_bridge/tools"
_HEADER_WORD: Final = "x-mcp-header"
"""Tools with it are the SDK's to look at: it repeats some of their arguments in HTTP headers."""
_MAX_HEADER_BYTES: Final = 16 * 1024
_MAX_HEADER_TOOLS: Final = 64
_SMALL_BYTES: Final = 4 * 1024
_LOOKED_AT_BYTES: Final = 64 * 1024
"""A cursor may be as long, and the name of a tool that is too long is looked for so far."""
_VERSIONS: Final = ("2026-07-28", "2025-11-25")


def may_be_page(message: bytes) -> bool:
    """Tells by a quick look whether a message may hold a list of tools."""
    return b'"tools"' in message


def unpacked_page(message: bytes) -> bytes | None:
    """Gives a page of tools with each tool as a text; None for any other message."""
    try:
        return _unpacked(message)
    except (ValueError, IndexError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # no JSON-RPC: whoever parses it next says so


def texts_of(page: ListToolsResult) -> list[str]:
    """Gives the JSON of each tool of a page."""
    texts = (page.meta or {}).get(_TEXTS_KEY)
    if isinstance(texts, list):
        return [text for text in cast("list[object]", texts) if isinstance(text, str)]
    return [tool.model_dump_json(by_alias=True, exclude_none=True) for tool in page.tools]


def _unpacked(message: bytes) -> bytes | None:
    page = _Page(message)
    identity: bytes | None = None
    top = _Walk(message, skip_space(message, 0))
    for key in top:
        start = top.at
        top.at = page.read(start) if key == "result" else end_of_value(message, start)
        if key == "id":
            identity = message[start : top.at]
    return None if identity is None else page.written(identity)


class _Walk:
    """Goes over the keys of the object that begins at `at`, once and as far as it is asked to.

    `at` is then where the key's value begins; whoever goes on has to move it to that value's end.
    """

    def __init__(self, text: bytes, at: int) -> None:
        if text[at : at + 1] != b"{":
            raise ValueError("no object")
        self.at = skip_space(text, at + 1)
        self._text: Final = text

    def __iter__(self) -> Iterator[str]:
        text = self._text
        while text[self.at] != ord("}"):
            key_end = end_of_string(text, self.at)
            key: str = json.loads(text[self.at : key_end])
            colon = skip_space(text, key_end)
            if text[colon] != ord(":"):
                raise ValueError("no colon")
            self.at = skip_space(text, colon + 1)
            yield key
            self.at = skip_space(text, self.at)
            if text[self.at] == ord(","):
                self.at = skip_space(text, self.at + 1)


class _Page:
    """The result of a request for tools, read in one pass."""

    def __init__(self, message: bytes) -> None:
        self._message: Final = message
        self._texts: list[bytes] | None = None
        self._beside: Final[dict[str, Any]] = {}
        self._for_headers: Final[list[str]] = []

    def read(self, at: int) -> int:
        """Reads the result that begins at `at`, and gives the place just past it."""
        message = self._message
        walk = _Walk(message, at)
        for key in walk:
            start = walk.at
            if key == "content":
                raise ValueError("an answer")
            if key == "tools" and message[start] == ord("["):
                walk.at = self._read_tools(start)
            else:
                walk.at = end_of_value(message, start)
                self._note(key, message[start : walk.at])
        return walk.at + 1

    def _read_tools(self, at: int) -> int:
        message = self._message
        self._texts = []
        left, parts_left = MAX_PAGE_BYTES, MAX_PAGE_PARTS
        past = at + 1
        for start, past in items(message, at):
            size = past - start
            parts = message.count(b"{", start, past) + message.count(b"[", start, past)
            fits = size <= min(left, MAX_TOOL_BYTES) and parts <= min(parts_left, MAX_TOOL_PARTS)
            text = message[start:past].decode() if fits else _name_alone(message, start)
            left, parts_left = left - len(text), parts_left - (parts if fits else 1)
            self._texts.append(json.dumps(text).encode())
            if size <= _MAX_HEADER_BYTES and needs_headers(text):
                self._for_headers.append(text)
            time.sleep(0)  # lets go of the interpreter: the loop need not wait its 5 ms for a turn
        return skip_space(message, past) + 1

    def _note(self, key: str, value: bytes) -> None:
        """Keeps what the result holds beside its tools, where it is of an ordinary size."""
        if key == "nextCursor" and len(value) <= _LOOKED_AT_BYTES:
            cursor = json.loads(value)
            # A number will do; whatever else is no cursor ends the list.
            if isinstance(cursor, str | int) and not isinstance(cursor, bool):
                self._beside[key] = str(cursor)
        elif key not in ("_meta", "nextCursor") and len(value) <= _SMALL_BYTES:
            self._beside[key] = json.loads(value)

    def written(self, identity: bytes) -> bytes | None:
        """Gives the message with each tool as a text; None where there are no tools."""
        if self._texts is None:
            return None
        taken = [tool for text in self._for_headers for tool in self._judged(text)]
        result = json.dumps({**self._beside, "tools": taken[:_MAX_HEADER_TOOLS]})[:-1].encode()
        meta = b'{"%b": [%b]}' % (_TEXTS_KEY.encode(), b",".join(self._texts))
        written = b'{"jsonrpc": "2.0", "id": %b, "result": %b, "_meta": %b}}'
        return written % (identity, result, meta)

    def _judged(self, text: str) -> Iterator[Any]:
        """Yields the tool as the SDK takes it, if it does."""
        given: Any = json.loads(text)
        tool = {"name": given["name"], "inputSchema": {"type": "object", **given["inputSchema"]}}
        if any(_fits(version, {**self._beside, "tools": [tool]}) for version in _VERSIONS):
            yield tool


def _name_alone(message: bytes, at: int) -> str:
    """Gives what `tool_listing.py` takes for a tool that is too long."""
    name: object = None
    walk = _Walk(message, at)
    for key in walk:
        start = walk.at
        if start > at + _LOOKED_AT_BYTES:
            break  # it is somewhere behind what makes the tool long
        walk.at = end_of_value(message, start)
        if key == "name" and walk.at - start <= _SMALL_BYTES:
            name = json.loads(message[start : walk.at])
            break
    return json.dumps({"name": name, TOO_LONG_KEY: True})


def _fits(version: str, result: Mapping[str, Any]) -> bool:
    try:
        parse_server_result("tools/list", version, result)
    except (ValueError, RecursionError):  # pydantic's errors are ValueErrors
        return False
    return True


def needs_headers(text: str) -> bool:
    """Tells whether a tool's text asks for headers, so that the SDK has judged it."""
    return _HEADER_WORD in text


_NAMED_TOOLS: Final = 20
"""So many of a list's entries that are left out are named; a person does not read more."""
_AT_ONCE_CHARS: Final = 32 * 1024
"""A page of so many characters is read in some 4 ms; a larger one in a thread."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """What a server offered when it was asked."""

    definitions: tuple[ToolDefinition, ...] = ()
    """The tools in the server's order."""
    notes: tuple[str, ...] = ()
    """What was left out, and why, on one line each."""
    output_schemas: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    """By the tools' names: what their structured answers have to fit."""


def exposed_tools(
    definitions: Sequence[ToolDefinition], config: ServerConfig, prefix: str
) -> tuple[ToolInfo, ...]:
    """Gives the same tools under the names that they are called by."""
    names = exposed_names(prefix, [tool.name for tool in definitions])
    return tuple(
        ToolInfo(
            name=names[tool.name],
            server=config.name,
            tool=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
            read_only=tool.read_only,
            hints=tool.hints,
            examples=config.examples.get(tool.name, ()),
        )
        for tool in definitions
    )


async def list_tools(
    client: Client, limits: Limits, redact: Callable[[str], str] = str
) -> ToolListing:
    """Asks for the tools. `redact` takes the server's own secrets out of what it says of them."""
    reading = _Reading(limits, redact)
    async for page in _pages(client, limits, reading.notes):
        texts = texts_of(page)
        judged = {tool.name for tool in page.tools}
        if sum(map(len, texts)) <= _AT_ONCE_CHARS:
            reading.take(texts, judged)
        else:
            await computed(reading.take, texts, judged)
        if reading.is_full:
            break
    return reading.listing()


class _Reading:
    """What has been read of one server's tools so far."""

    def __init__(self, limits: Limits, redact: Callable[[str], str]) -> None:
        self.notes: Final[list[str]] = []
        self.is_full = False
        self._limits: Final = limits
        self._redact: Final = redact
        self._found: Final[dict[str, ToolDefinition]] = {}
        self._output_schemas: Final[dict[str, Mapping[str, Any]]] = {}
        self._left_out: Final[list[str]] = []

    def take(self, texts: Sequence[str], judged: Collection[str]) -> None:
        """Reads the tools of one page, of which the SDK has taken `judged`.

        A tool that cannot be offered costs no other.
        """
        for text in texts:
            name = "a tool without a name"
            try:
                tool = cast("dict[str, Any]", json.loads(text))
                given: object = tool.get("name")
                if not isinstance(given, str):
                    raise _NoTool
                name = one_line(given, 80)
                if needs_headers(text) and given not in judged:
                    raise _NoTool
                self._add(given, tool)
            except UnfitSchema as unfit:
                self._left_out.append(f"the schema of {name} {unfit}; left out")
            except (_NoTool, AttributeError, ValueError, RecursionError):
                self._left_out.append(f"{name} is no tool as the protocol has them; left out")
            if self.is_full:
                return

    def _add(self, name: str, tool: dict[str, Any]) -> None:
        """Raises: UnfitSchema, _NoTool."""
        if len(self._found) == self._limits.max_tools:
            self.is_full = True
        elif tool.get(TOO_LONG_KEY):
            self._left_out.append(
                f"{one_line(name, 80)} is described at too great length; left out"
            )
        elif name in self._found:
            self._left_out.append(f"lists {one_line(name, 80)} twice; the first one counts")
        else:
            self._found[name] = definition = self._definition(name, tool)
            make_digests([definition])  # here, where a long page is in a thread
            output: object = tool.get("outputSchema")
            if isinstance(output, dict):
                self._output_schemas[name] = cast("dict[str, Any]", output)

    def _definition(self, name: str, tool: dict[str, Any]) -> ToolDefinition:
        """Raises: UnfitSchema, _NoTool."""
        described: object = tool.get("description") or ""
        schema: object = tool.get("inputSchema") or {}
        if not isinstance(described, str) or not isinstance(schema, dict):
            raise _NoTool
        takes: dict[str, Any] = {"type": "object", **cast("dict[str, Any]", schema)}
        if takes["type"] != "object":
            raise _NoTool
        written = json.dumps(takes, ensure_ascii=False)
        if len(written) > self._limits.max_schema_chars:
            raise UnfitSchema(f"has {len(written)} characters")
        if self._redact(written) != written:
            raise UnfitSchema("holds a secret that the server was given")
        return ToolDefinition(
            name=name,
            description=clean_text(self._redact(described), self._limits.max_description_chars),
            input_schema=checked_schema(takes),
            read_only=_read_only(tool.get("annotations")),
            hints=_hints(tool.get("annotations")),
        )

    def listing(self) -> ToolListing:
        if (more := len(self._left_out) - _NAMED_TOOLS) > 0:
            self._left_out[_NAMED_TOOLS:] = [f"{more} further ones are left out as well"]
        if self.is_full:
            most = self._limits.max_tools
            self.notes.append(f"offers more than {most} tools; the rest is left out")
        notes = (*self._left_out, *self.notes)
        return ToolListing(tuple(self._found.values()), notes, self._output_schemas)


class _NoTool(Exception):
    """What a server lists is no tool."""


async def _pages(
    client: Client, limits: Limits, notes: list[str]
) -> AsyncGenerator[ListToolsResult]:
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(limits.max_pages):
        page = await client.list_tools(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            notes.append("its list of tools goes in a circle; read once")
            return
        seen.add(cursor)
    notes.append(f"its list of tools has more than {limits.max_pages} pages; the rest is left out")


def _hints(annotations: object) -> tuple[str, ...]:
    says = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    return tuple(name for name in HINTS if says.get(name) is True)


def _read_only(annotations: object) -> bool | None:
    says = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    reads, destroys = says.get("readOnlyHint"), says.get("destructiveHint")
    if destroys is True and reads is True:
        return False  # it contradicts itself: the careful reading counts
    return reads if isinstance(reads, bool) else None
