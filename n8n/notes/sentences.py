"""The items of a sentence that lists parameters, and where the sentence ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from n8n.notes.attributes import EDGES, Attributes

_STARTS_ITEM: Final = re.compile(
    r"\s*(?:and\s+)?[*_`\"']{0,3}\[?\w+(?:=[^\]\s]+\]?)?[*_`\"'?!\]]{0,3}\s*"
    r"(?:$|[-–—(\[{:]|(?:required|mandatory|optional|must|default|string|text|str|integer|int|number"
    r"|float|boolean|bool|array|list|object|date|datetime)\b)",
    re.I,
)
"""A name, alone or with what may follow one: brackets, a colon, a dash, a need or a type."""
_OPENING, _CLOSING = "([{", ")]}"


def parts_of(text: str) -> Iterator[str]:
    """The items of a sentence: between semicolons where there are any, else between commas."""
    cuts = [i for i in _outside(text) if text[i] == ";"] or [
        i for i in _outside(text) if text[i] == ","
    ]
    parts = [text[a + 1 : b] for a, b in zip([-1, *cuts], [*cuts, len(text)], strict=True)]
    held = ""
    for part in parts:
        for piece in re.split(r"(?<=[\w)\]`*])\s+and\s+(?=[`*\"']*\w+[`*\"']*\s*(?:$|[(:]))", part):
            meaning = Attributes()
            left = meaning.words(piece, whole=True).strip(EDGES)
            says = meaning.required is not None or meaning.default or _lacks_type(held)
            if held and not left and says:
                held = f"{held}, {piece.strip()}"  # `city: string, required` is one item
                continue
            if held and not _STARTS_ITEM.match(piece):
                held = f"{held},{piece}"  # a comma inside a description
                continue
            if held:
                yield held
            held = piece
    if held.strip():
        yield held


def _lacks_type(held: str) -> bool:
    """Whether `city: required` may be waiting for its type behind the comma."""
    _, colon, rest = held.partition(":")
    item = Attributes()
    item.words(rest, whole=True)
    return bool(colon) and "type" not in item.schema


def _outside(text: str) -> Iterator[int]:
    """The places that are in no brackets."""
    depth = 0
    for i, char in enumerate(text):
        depth = max(0, depth + (char in _OPENING) - (char in _CLOSING))
        if depth == 0:
            yield i


def sentence_end(text: str) -> int:
    for i in _outside(text):
        ends = text[i] == "." and not text[i + 1 : i + 2].strip()
        if ends and text[max(0, i - 3) : i + 1].lower() not in ("e.g.", "i.e."):
            return i
    return len(text)
