"""Lists with their numbers, so that "the second one" can be looked up by whoever reads them."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from caal_node.context.omission_notes import noted_items
from caal_node.context.plain_values import JsonTexts

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def numbered(line: str) -> str:
    """A line of JSON with the items of its outermost lists on lines of their own, from 1 on."""
    value = JsonTexts().read(line)
    if isinstance(value, list):
        return "\n".join(_items(value))
    if not isinstance(value, dict):
        return line
    members = cast(dict[str, Any], value)
    lists = {
        name: cast(list[Any], each)
        for name, each in members.items()
        if each and isinstance(each, list)
    }
    others = {name: each for name, each in members.items() if name not in lists}
    lines = [_encode(others)] if others or not lists else []
    for name, each in lists.items():
        lines += [f"{name}:", *_items(each)]
    return "\n".join(lines)


def _items(values: list[Any]) -> list[str]:
    return [
        each if noted_items([each]) else f"{number}. {each if _is_words(each) else _encode(each)}"
        for number, each in enumerate(values, 1)
    ]


def _is_words(value: object) -> bool:
    return isinstance(value, str) and len(value.splitlines()) == 1
