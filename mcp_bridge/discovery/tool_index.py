"""Ranks tools by the words of a request: BM25F over four fields of a tool.

The weights were chosen on `tests/bench`'s spoken requests over household tools and then measured,
unchanged, on the functions of BFCL (`tests/bench/discovery.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.discovery.bm25 import BM25Index, FieldWeight, split_terms
from mcp_bridge.discovery.vocabulary import Vocabulary

_FIELDS: Final = (
    FieldWeight(3.0, 0.2),  # the name: few words, each chosen
    FieldWeight(1.0, 0.75),  # the description, and what people say for it
    FieldWeight(1.0, 0.75),  # the parameters' names
    FieldWeight(1.0, 0.9),  # the parameters' descriptions and choices: long where a tool takes much
)
_SATURATION: Final = 2.0
"""The usual 1.2 is for prose; a term that comes back in name, description and parameters says more
than one that comes back in one text."""
_PIECE_WEIGHT: Final = 0.5
"""The weight of a word that is known only as a piece of names (`geo` of `geolocation`)."""
_MEANT_WEIGHT: Final = 0.8
"""The weight of what an everyday word may mean, beside words that were said. From 0.5 to 1.2 it is
much the same."""
_PIECE_MIN_CHARS: Final = 3
_MAX_PIECES: Final = 8
_MAX_NAMES_A_PIECE: Final = 16
"""Bounds on looking for pieces: words of a request, and names for each word."""
_MAX_LEVELS: Final = 6
_MAX_PROPERTIES: Final = 500
"""So many levels and properties of one schema are read."""


class ToolIndex:
    """Scores tools by words. It is immutable. Building takes 0.2 ms a tool, so use a thread."""

    def __init__(self, tools: Sequence[ToolInfo], vocabulary: Vocabulary | None = None) -> None:
        self.tools: Final = tuple(tools)
        self._vocabulary: Final = vocabulary or Vocabulary()
        texts = [_field_texts(tool) for tool in self.tools]
        self._index: Final = BM25Index(texts, _FIELDS, saturation=_SATURATION)
        names = {term for name, *_ in texts for term in split_terms(name)}
        self._terms_of_names: Final = "\n".join(sorted(names))
        self.most_by_one_term: Final = self._index.most_by_one_term

    def scores(self, request: str) -> NDArray[np.float64]:
        """Gives one score for each tool, in the order given; 0.0 where nothing matches."""
        scores = np.zeros(len(self.tools))
        pieces = 0
        for term in dict.fromkeys(split_terms(request)):
            known = self._index.add_term(scores, term)
            if not known and len(term) >= _PIECE_MIN_CHARS and pieces < _MAX_PIECES:
                pieces += 1
                for whole in self._name_terms_with(term):
                    self._index.add_term(scores, whole, _PIECE_WEIGHT)
        for terms in self._vocabulary.meant(request):
            self._index.add_best(scores, terms, _MEANT_WEIGHT)
        return scores

    def _name_terms_with(self, piece: str) -> Iterator[str]:
        """Yields terms of names that contain `piece`."""
        at = self._terms_of_names.find(piece)
        for _ in range(_MAX_NAMES_A_PIECE):
            if at < 0:
                return
            start = self._terms_of_names.rfind("\n", 0, at) + 1
            end = self._terms_of_names.find("\n", at)
            yield self._terms_of_names[start : end if end >= 0 else None]
            at = self._terms_of_names.find(piece, end) if end >= 0 else -1


def _field_texts(tool: ToolInfo) -> tuple[str, str, str, str]:
    """Gives the texts of the four fields, in the order of `_FIELDS`."""
    names: list[str] = []
    words: list[str] = []
    for name, schema in _properties(tool.input_schema, _MAX_LEVELS):
        if len(names) == _MAX_PROPERTIES:
            break
        names.append(name)
        words += _words(schema)
    said = (example.say for example in tool.examples)
    # The exposed name holds the server's; where it had to be cut, the tool's own is whole.
    name = tool.name if tool.name.endswith(tool.tool) else f"{tool.name} {tool.tool}"
    return name, " ".join((tool.description, *said)), " ".join(names), " ".join(words)


def _properties(schema: object, levels: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields names and schemas of the properties, also of objects inside objects and lists."""
    if not isinstance(schema, Mapping) or levels == 0:
        return
    node = cast("Mapping[str, Any]", schema)
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in cast("Mapping[str, object]", properties).items():
            if isinstance(inner, Mapping):
                yield name, cast("Mapping[str, Any]", inner)
                yield from _properties(cast("object", inner), levels - 1)
    yield from _properties(node.get("items"), levels - 1)


def _words(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields a property's description and its choices."""
    if isinstance(said := schema.get("description"), str):
        yield said
    for holder in (schema, cast("object", schema.get("items"))):
        if isinstance(holder, Mapping):
            choices = cast("Mapping[str, object]", holder).get("enum")
            if isinstance(choices, list):
                texts: Iterable[object] = cast("list[object]", choices)
                yield from (choice for choice in texts if isinstance(choice, str))
