"""The outline of a large result: how many items there are, which fields, their ids, the first one.

A list that is cut after its first items would hide the rest. With the ids the model can still ask
for any one of them, and say how many there are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from caal_node.context.one_line_json import MIN_CHARS, to_line

_IDS: Final = ("id", "uid", "uuid", "key", "name", "title", "path", "url")
"""Fields that tell one record from another, the best first."""
_ID_CHARS: Final = 120
"""Characters of one id."""
_SHARES: Final = (0.8, 0.6, 0.4)
"""Parts of the room that are tried in turn for a text that JSON writes longer than it is."""
_ROOM_MIN: Final = 200
"""Characters that an outline without ids needs."""


def outline(value: Any, max_chars: int) -> Any:
    """Return `value` if it fits in `max_chars` characters of JSON, else its outline, which does.

    The same value always gives the same outline.
    """
    if len(json.dumps(value, ensure_ascii=False, default=str)) <= max_chars:
        return value
    room = max(_ROOM_MIN, max_chars)
    if isinstance(value, list):
        return _list(cast("list[Any]", value), room)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        share = max(_ROOM_MIN, room // max(1, len(members)))
        outlined = {str(key): outline(member, share) for key, member in members.items()}
        if len(json.dumps(outlined, ensure_ascii=False, default=str)) <= room:
            return outlined
    return _line(cast("object", value), room)


def _list(items: list[Any], room: int) -> Any:
    first = items[0]
    outlined: dict[str, Any] = {"count": len(items)}
    if isinstance(first, Mapping):
        fields = list(dict.fromkeys(str(key) for item in items[:50] for key in _keys(item)))
        outlined["fields"] = fields[:24]
        if key := next((key for key in _IDS if key in fields), None):
            left = room // 2
            outlined[f"{key}s"] = _fitting([item.get(key) for item in items if _keys(item)], left)
    outlined["first"] = _line(cast("object", first), max(_ROOM_MIN, room // 4))
    if len(json.dumps(outlined, ensure_ascii=False, default=str)) <= room:
        return outlined
    return _line(items, room)


def _line(value: object, room: int) -> str:
    """Return the value as text. JSON writes that longer, as each quote in it is two characters."""
    outlined = to_line(value, max_chars=room)
    for share in _SHARES:
        if len(json.dumps(outlined, ensure_ascii=False)) <= room:
            break
        outlined = to_line(value, max_chars=max(MIN_CHARS, int(room * share)))
        # Control characters are six each there, and say nothing in a preview.
        outlined = "".join(char if char.isprintable() else " " for char in outlined)
    return outlined


def _keys(item: Any) -> Sequence[str]:
    return list(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else ()


def _fitting(ids: list[Any], room: int) -> list[Any]:
    shown: list[Any] = []
    for one in ids:
        text = str(one)[:_ID_CHARS]
        room -= len(text) + 4
        if room < 0:
            return [*shown, f"({len(ids) - len(shown)} more)"]
        shown.append(one if isinstance(one, int) else text)
    return shown
