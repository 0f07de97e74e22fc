"""From the content of an MCP result to one JSON value of bounded size.

Formats: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from mcp_bridge.core.limits import MAX_RESULT_CHARS
from mcp_bridge.core.tools import JsonValue, ToolCallResult
from mcp_bridge.protocol.answer_truncation import TruncationMark, link_note, media_note
from mcp_bridge.protocol.json_prefixes import whole_escapes
from mcp_bridge.security.hidden_text import may_hide, shown, shown_value

Redact: TypeAlias = Callable[[str], str]


def _as_it_is(text: str) -> str:
    return text


def normalise(
    result: CallToolResult, max_chars: int = MAX_RESULT_CHARS, redact: Redact = _as_it_is
) -> ToolCallResult:
    """Structured content, else text read as JSON where it is an object or a list, else text.

    Several blocks that are all such JSON become a list of them. What is longer than `max_chars`
    as text becomes a text, cut, with a note of the whole length. `redact` takes the server's
    secrets out, and characters that nobody sees are left out.
    """
    mark = TruncationMark.of(result.meta)
    is_error = mark.is_error if mark else result.is_error
    structured = result.structured_content
    if structured is not None and not is_error:
        written = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
        clear = redact(written)
        if len(clear) <= max_chars:
            value = structured if clear == written else _json_or_text(clear)
            return ToolCallResult(shown_value(value) if may_hide(clear) else value)
        cut = _cut(whole_escapes(clear[:max_chars]), len(clear))
        return ToolCallResult(cut, truncated=True)
    texts = [redact(_text(block)) for block in result.content]
    joined = "\n".join(texts)
    if mark:
        # The secrets are out, but for one that is cut apart at the very end.
        kept = joined[: max(0, min(max_chars, len(joined) - mark.margin))]
        kept = whole_escapes(kept) if mark.written else kept
        return ToolCallResult(_cut(kept, mark.size), is_error, truncated=True)
    if len(joined) > max_chars:
        cut = _cut(joined[:max_chars], len(joined))
        return ToolCallResult(cut, is_error, truncated=True)
    value = _value(texts, joined)
    return ToolCallResult(shown_value(value) if may_hide(joined) else value, is_error)


def _json_or_text(text: str) -> JsonValue:
    """A number that was a secret leaves no JSON behind."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _cut(kept: str, size: int) -> str:
    return shown(f"{kept}\n[cut here: {len(kept)} of about {size} characters]")


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
    """Raises: ValueError, for anything but an object or a list.

    A bare number or word stays a text: `00491234` and `1e5` are not for us to round.
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
    match block:
        case TextContent():
            return block.text
        case ImageContent():
            return media_note("image", block.mime_type, len(block.data))
        case AudioContent():
            return media_note("audio", block.mime_type, len(block.data))
        case ResourceLink():
            return link_note(block.name, str(block.uri))
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return media_note("file", resource.mime_type, len(resource.blob))
        case EmbeddedResource():
            return "[file]"
