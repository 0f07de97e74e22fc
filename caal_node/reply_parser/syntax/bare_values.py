"""Values that carry no type: the tool's parameters decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.format import Format
from caal_node.reply_parser.values import typed, untyped


def type_value(text: str, call: OpenCall, key: str, dialect: Format) -> Any:
    """A bare value, typed by its parameter's schema."""
    tool = call.tool
    schema = tool.properties.get(key) if tool else None
    if not isinstance(schema, Mapping):
        return untyped(text) if dialect.untyped_json else text
    value = typed(text, schema, root=tool.schema if tool else None)
    if dialect.unquote and isinstance(value, str):
        bare = value.strip()
        if len(bare) > 1 and bare[0] == bare[-1] == '"':
            decoded = untyped(bare)
            return decoded if isinstance(decoded, str) and decoded != bare else bare[1:-1]
    return value
