"""Checks the arguments of a call, and makes of its result one JSON value of bounded size.

Formats: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NoReturn, TypeAlias, cast

from mcp_types import CallToolResult, ContentBlock, TextContent

from mcp_bridge.core.errors import BadArguments
from mcp_bridge.core.sanitize import may_hide, visible_text, visible_value
from mcp_bridge.core.server_config import MAX_RESULT_CHARS
from mcp_bridge.core.tools import JsonValue, ToolCallResult
from mcp_bridge.protocol.json_spans import drop_partial_escape

MAX_ARGUMENT_BYTES: Final = 1024 * 1024
"""The arguments of one call, as JSON. The SDK's own servers take up to 4 MiB; a model writes some
100 bytes."""
_MARK_KEY: Final = "mcp_bridge/cut"
Redact: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class TruncationMark:
    """What a cut answer was before it was cut."""

    is_error: bool
    size: int
    """About how many characters its text had."""
    margin: int
    """The characters at the text's end that nobody may see: half of a secret may stand there."""
    written: bool
    """Whether the text is JSON, cut."""

    def meta(self) -> dict[str, Any]:
        """Gives the `_meta` of the cut answer."""
        return {_MARK_KEY: asdict(self)}

    @staticmethod
    def read(meta: Mapping[str, Any] | None) -> TruncationMark | None:
        """Reads the mark from a result's `_meta`; None where the answer was not cut."""
        match (meta or {}).get(_MARK_KEY):
            case {
                "is_error": bool() as is_error,
                "size": int() as size,
                "margin": int() as margin,
                "written": bool() as written,
            }:
                return TruncationMark(is_error, size, margin, written)
            case _:
                return None


def _as_it_is(text: str) -> str:
    return text


def check_arguments(name: str, arguments: Mapping[str, Any]) -> None:
    """Checks that a call can be sent; else it would break the connection, and every other call.

    Raises: BadArguments.
    """
    try:
        written = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArguments(name, f"are not JSON ({type(error).__name__})") from None
    if len(written) > MAX_ARGUMENT_BYTES:
        raise BadArguments(name, f"are {len(written)} bytes; at most {MAX_ARGUMENT_BYTES} may be")


def normalise(
    result: CallToolResult, max_chars: int = MAX_RESULT_CHARS, redact: Redact = _as_it_is
) -> ToolCallResult:
    """Gives structured content, else text read as JSON where it is an object or a list, else text.

    Several blocks that are all such JSON become a list of them. What is longer than `max_chars`
    as text becomes a text, cut, with a note of the whole length. `redact` takes the server's
    secrets out, and characters that nobody sees are left out.
    """
    mark = TruncationMark.read(result.meta)
    is_error = mark.is_error if mark else result.is_error
    structured = result.structured_content
    if structured is not None and not is_error:
        written = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
        redacted = redact(written)
        if len(redacted) <= max_chars:
            value = structured if redacted == written else _json_or_text(redacted)
            return ToolCallResult(visible_value(value) if may_hide(redacted) else value)
        cut = _cut(drop_partial_escape(redacted[:max_chars]), len(redacted))
        return ToolCallResult(cut, truncated=True)
    texts = [redact(_text(block)) for block in result.content]
    joined = "\n".join(texts)
    if mark:
        # The secrets are out, but for one that is cut apart at the very end.
        kept = joined[: max(0, min(max_chars, len(joined) - mark.margin))]
        kept = drop_partial_escape(kept) if mark.written else kept
        return ToolCallResult(_cut(kept, mark.size), is_error, truncated=True)
    if len(joined) > max_chars:
        cut = _cut(joined[:max_chars], len(joined))
        return ToolCallResult(cut, is_error, truncated=True)
    value = _value(texts, joined)
    return ToolCallResult(visible_value(value) if may_hide(joined) else value, is_error)


def _json_or_text(text: str) -> JsonValue:
    """Reads JSON, which is none any more where a number was a secret and was taken out."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _cut(kept: str, size: int) -> str:
    return visible_text(f"{kept}\n[cut here: {len(kept)} of about {size} characters]")


def _value(texts: list[str], joined: str) -> JsonValue:
    try:
        values = [_json(text) for text in texts]
    except (ValueError, RecursionError):
        return joined
    match values:
        case []:
            return ""
        case [value]:
            return value
        case _:
            return values


def _json(text: str) -> JsonValue:
    """Reads an object or a list. A bare number or word stays a text: we must not round `1e5`.

    Raises: ValueError, for anything else.
    """
    if not text.lstrip().startswith(("{", "[")):
        raise ValueError("neither an object nor a list")
    value = json.loads(text, parse_constant=_no_constant)
    # A lone surrogate (`\ud800`) parses, but cannot be sent anywhere.
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _text(block: ContentBlock) -> str:
    if isinstance(block, TextContent):
        return block.text
    return block_text(block.model_dump(by_alias=True))


def text_holder(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives the part of a content block that holds its text or data: a resource, or the block."""
    inner = block.get("resource")
    return cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else block


def block_text(block: Mapping[str, Any], data_chars: int = 0) -> str:
    """Gives a content block's text, or the words that stand in the place of what is no text.

    Args:
        data_chars: How long the block's Base64 is, where it was left out.
    """
    holder = text_holder(block)
    if isinstance(text := holder.get("text"), str):
        return text
    kind = "file" if holder is not block else str(block.get("type", "content"))
    if kind == "resource_link":
        return f"[link {block.get('name') or ''}: {str(block.get('uri', ''))[:500]}]"
    chars = data_chars or len(holder.get("data", holder.get("blob", "")))
    mime = f" {mime[:60]}" if (mime := holder.get("mimeType")) else ""
    return f"[{kind}{mime}, {chars * 3 // 4 / 1000:.1f} kB, not shown]"
