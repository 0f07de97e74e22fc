"""The tools that may be called, and which of them a model means by a name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

MAX_NAME_CHARS = 128
"""Longer text is no name. Names that models are offered have at most 64 characters."""
_TAIL = re.compile(r"(?:<[|｜]|\[|\().*$|[:.#]\d{1,9}(?:\.\d{1,9}){0,3}$", re.DOTALL)
"""What is no part of a name behind it: a marker, a bracket, or the call's number, 0 or 1.0."""
_GAP = re.compile(r"\w_\s|\s_\w|(?:\A|\s)–\s")
"""What stands where a marker was left out between the two halves of a name."""
_ONE_WORD = re.compile(r"[^\w\s<>{}\[\]]*+\w[^\s<>{}\[\]]*+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_FILLER = frozenset(
    ("a", "an", "the", "of", "for", "to", "in", "on", "and", "or", "by", "with", "this", "is")
)
_WRAPPING = "\"'`“”‘’ \t\r\nĠ▁Ċ"
_MAX_CACHED = 8
"""Tables of tools whose index is kept: few are in use at the same time."""
_NEAREST = 5
"""How many valid names an error lists: enough to choose from, short enough to read."""


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """What one must know of a tool to understand its calls."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """The JSON schema of its arguments."""
    properties: Mapping[str, Any]
    """The schema of each parameter."""
    required: tuple[str, ...]


def properties_of(tool: ToolSignature | None) -> Mapping[str, Any]:
    """Return a tool's parameters; none when the tool is not known."""
    return tool.properties if tool is not None else {}


def signature_of(entry: Mapping[str, Any]) -> ToolSignature | None:
    """Return what an OpenAI-style schema says of a tool; None if it is no such schema."""
    function = mapping(entry.get("function", entry))
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return None
    schema = mapping(function.get("parameters"))
    required = schema.get("required")
    keys = cast("list[Any]", required) if isinstance(required, list) else []
    return ToolSignature(
        name=name,
        description=str(function.get("description") or ""),
        schema=schema,
        properties=mapping(schema.get("properties")),
        required=tuple(key for key in keys if isinstance(key, str)),
    )


class ToolIndex:
    """The tools that may be called. Without any, every name is allowed."""

    def __init__(self, schemas: Iterable[Mapping[str, Any]]) -> None:
        self.signatures = tuple(tool for tool in map(signature_of, schemas) if tool is not None)
        self.by_name = {tool.name: tool for tool in self.signatures}
        self._by_key: dict[str, ToolSignature | None] = {}
        """Tools by their normalised name; None where two tools share one."""
        self.tag_beginnings = tuple(f"<{name}" for name in self.by_name)
        """How tags with the tools' own names begin."""
        self._names_from: dict[str, tuple[str, ...]] = {}
        """Names by their first character."""
        for tool in self.signatures:
            key, first = normalised(tool.name), tool.name[0]
            self._by_key[key] = None if key in self._by_key else tool
            self._names_from[first] = (*self._names_from.get(first, ()), tool.name)

    @classmethod
    def from_schemas(cls, tools: Sequence[Mapping[str, Any]]) -> ToolIndex:
        """Return an index of OpenAI-style schemas. What is no such schema is left out.

        A tuple is taken to stay as it is, schemas included: the same ones have the same index, so
        that a conversation does not make one for each reply.
        """
        return _index_of(_Schemas(tools)) if isinstance(tools, tuple) else cls(tools)

    def names_from(self, char: str) -> tuple[str, ...]:
        """Return the tools' names that begin with `char`."""
        return self._names_from.get(char, ())

    @property
    def accepts_any_name(self) -> bool:
        """Whether every name is allowed, as no tools are known."""
        return not self.signatures

    def named(self, name: str) -> ToolSignature | None:
        """Return the tool of that name; case, separators, prefix and suffix may differ."""
        exact = self.by_name.get(name)
        if exact is not None or has_gap(name):
            return exact
        for candidate in _spellings(name):
            tool = self.by_name.get(candidate) or self._by_key.get(normalised(candidate))
            if tool is not None and _same_words(candidate, tool.name):
                return tool
        return None

    def find(self, name: str) -> ToolSignature | None:
        """Return the tool that `name` means: by its name, else the only one that the words of
        `name` describe."""
        return self.named(name) or self._described(name)

    def _described(self, name: str) -> ToolSignature | None:
        asked = set(_words(name))
        if not asked or len(name) > MAX_NAME_CHARS:
            return None
        fits: list[ToolSignature] = []
        for tool in self.signatures:
            own = set(_words(tool.name))
            if own == asked or (len(asked) > 1 and _ends_with(tool.name, name)):
                fits.append(tool)
            elif own and _words(name)[0] == _words(tool.name)[0]:
                # The same verb; every other word must stand in what the tool says of itself.
                said = own | set(_words(tool.description))
                for parameter in tool.properties:
                    said |= set(_words(parameter))
                if len(asked) > 1 and asked <= said:
                    fits.append(tool)
            elif len(asked) > 2 and asked <= set(_words(tool.description)):
                fits.append(tool)
        if len(fits) != 1 and len(self.signatures) == 1 and not fits:
            (only,) = self.signatures
            own_words = _words(only.name)
            if own_words and _words(name)[: len(own_words)] == own_words:
                return only
        return fits[0] if len(fits) == 1 else None

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return the names most like `name`, best first; with few tools, all of them."""
        asked = set(_words(name))

        def likeness(tool: ToolSignature) -> float:
            letters = difflib.SequenceMatcher(
                None, normalised(name[:MAX_NAME_CHARS]), normalised(tool.name)
            ).ratio()
            said = set(_words(tool.name)) | set(_words(tool.description))
            return letters + (len(asked & said) / len(asked) if asked else 0.0)

        ranked = sorted(self.signatures, key=likeness, reverse=True)
        return tuple(tool.name for tool in ranked[:_NEAREST])

    def by_arguments(self, keys: set[str]) -> ToolSignature | None:
        """Return the only tool that takes all of `keys` and needs no other."""
        fits = [
            tool
            for tool in self.signatures
            if keys and keys <= set(tool.properties) and set(tool.required) <= keys
        ]
        return fits[0] if len(fits) == 1 else None


class _Schemas:
    """Schemas as a key of a cache: equal to others if they are the same objects."""

    def __init__(self, schemas: tuple[Mapping[str, Any], ...]) -> None:
        self.schemas = schemas
        self._identity = tuple(map(id, schemas))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schemas) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


@lru_cache(maxsize=_MAX_CACHED)
def _index_of(tools: _Schemas) -> ToolIndex:
    return ToolIndex(tools.schemas)


def mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def normalised(name: str) -> str:
    """Return `name` without case and separators."""
    return "".join(char for char in name.casefold() if char.isalnum())


def _words(text: str) -> list[str]:
    """Return the words of a name or a description, in lower case, without filler."""
    return [word for word in (w.lower() for w in _WORD.findall(text)) if word not in _FILLER]


def _ends_with(own: str, name: str) -> bool:
    """Return whether `own` is `name` behind a namespace that the model left out."""
    asked = _words(name)
    return _words(own)[-len(asked) :] == asked


def _same_words(name: str, own: str) -> bool:
    """Return whether white space in `name` stands only between the words of `own`, unlike in
    "set tim er"."""
    if re.search(r"\s", name) is None:
        return True
    asked, meant = ([word.lower() for word in _WORD.findall(text)] for text in (name, own))
    return asked == meant


def has_gap(name: str) -> bool:
    """Return whether something was left out of the middle of `name`, so that it is none."""
    return _GAP.search(name) is not None


def plausible(name: str) -> bool:
    """Return whether text right behind a marker can be a name: it is short, and one word."""
    return len(name) <= MAX_NAME_CHARS and _ONE_WORD.fullmatch(name) is not None


def _spellings(name: str) -> list[str]:
    """Return what may be left of a name without its wrapping, suffix and namespace."""
    bare = name.strip(_WRAPPING)
    found = [bare]
    if bare.endswith(".call"):  # Llama 3's built-in tools: `brave_search.call(query="...")`.
        found.append(bare.removesuffix(".call"))
    cut = _TAIL.sub("", bare).strip(_WRAPPING)
    if cut and cut != bare:
        found.append(cut)
    for separator in (".", "/", ":"):
        if separator not in bare:
            continue
        for whole in dict.fromkeys((bare, cut)):
            # The name may hold the separator itself: `functions.model_1.0`.
            for space, _, last in (whole.rpartition(separator), whole.partition(separator)):
                if space and last and not last[0].isspace() and not re.search(r"\s", space):
                    found += [last, _TAIL.sub("", last)]
    return found
