"""One parameter of a workflow, and the words in which authors describe it.

The words behind a parameter's name say its type, need, default, bounds and choices. They come in
any order, between any brackets, and in every language of words.toml; what is none of these
describes the parameter.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

from n8n.core.json_values import parse_json
from n8n.core.workflow_tool import ParameterOrigin

# The words with a meaning in notes, in every language of words.toml.
#
# Kinds of words begin a line (`parameters`, `examples`, `speaks`, `takes`, `accepts`), describe a
# parameter (`required`, `optional`, `default`, `minimum`, `maximum`, `range`, `to`, `one_of`, `or`,
# `types.*`), head a column of a table (`columns.*`), or stand in a value (`none`, `yes`, `no`,
# `and`, `field`, `up_to`, `results`, `units.*`).

LIKENESS: Final = 0.8
"""How alike a word and the one it is taken for are at least: `Parametres` and `parameters` are 0.9,
`documents` and `arguments` 0.67."""


def _kinds(language: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for key, value in language.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", words) for inner, words in value.items())  # pyright: ignore[reportUnknownVariableType] -- our own file
        else:
            yield key, value


def _load() -> Mapping[str, tuple[str, ...]]:
    text = (resources.files("n8n.notes") / "words.toml").read_text("utf-8")
    merged: dict[str, dict[str, None]] = {}
    for language in tomllib.loads(text).values():
        for kind, words in _kinds(language):
            merged.setdefault(kind, {}).update(dict.fromkeys(words))
    return {kind: tuple(words) for kind, words in merged.items()}


_WORDS: Final = _load()


def words(*kinds: str) -> tuple[str, ...]:
    """Return the words of these kinds in all languages; `types.*` stands for all kinds of types."""
    return tuple(word for each in kinds for kind in _matching(each) for word in _WORDS[kind])


def kind_of(word: str, *kinds: str) -> str | None:
    """Return the first of these kinds that has the word, whatever its case."""
    word = " ".join(word.lower().split())
    return next((k for each in kinds for k in _matching(each) if word in _WORDS[k]), None)


def pattern(*kinds: str) -> str:
    """Return a regular expression for any word of these kinds, for use without regard to case."""
    return alternatives(words(*kinds))


def alternatives(texts: Iterable[str]) -> str:
    """Return a regular expression for any of the texts; where two fit, the longer one is taken."""
    longest_first = sorted(set(texts), key=lambda text: (-len(text), text))
    return "(?:" + "|".join(re.escape(text).replace(r"\ ", r"\s+") for text in longest_first) + ")"


def meant(word: str, *kinds: str) -> str | None:
    """Return the word of these kinds that `word` is a misspelling of; None for any other word.

    A misspelling begins as the word does, so that few words have to be compared.
    """
    word, all_known = word.lower(), words(*kinds)
    if word in all_known:
        return None
    known = [
        each
        for each in all_known
        if len(each) >= 5 and each[0] == word[:1] and abs(len(each) - len(word)) <= 2
    ]
    likeness = {each: difflib.SequenceMatcher(None, word, each).ratio() for each in known}
    best = max(known, key=lambda each: likeness[each], default="")
    return best if likeness.get(best, 0.0) >= LIKENESS else None


def _matching(kind: str) -> list[str]:
    if kind.endswith("*"):
        return [known for known in _WORDS if known.startswith(kind[:-1])]
    return [kind]


MAX_NAME_CHARS: Final = 64
"""A longer word is no name of a parameter."""
SEPARATORS: Final = " \t,;:=-–—."
"""Characters that may stand around a word without a meaning of their own."""
_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "any": {},
}
"""The schemas of those kinds of types that are no JSON types themselves."""
_NUMBER: Final = r"-?\d{1,15}(?:\.\d{1,9})?"
_NEED: Final = re.compile(rf"({pattern('optional', 'required')})(?!\w)", re.I)
_TYPE: Final = re.compile(
    rf"\{{?(?P<word>{pattern('types.*')}(?:\[\])?)(?P<need>[!?=]?)\}}?(?![\w'’/|])", re.I
)
_CHOICES: Final = re.compile(r"[^\s|,;]{1,64}(?:\s?\|\s?[^\s|,;]{1,64}){1,19}")
_BETWEEN: Final = re.compile(
    rf"(?:{pattern('range')}\s+)?({_NUMBER})\s*(?:-|–|\.\.|{pattern('to')}\b)\s*({_NUMBER})"
    r"(?![\w.]*\w)",
    re.I,
)
_BOUND: Final = re.compile(
    rf"(?:({pattern('minimum')}|>=)|({pattern('maximum')}|<=))\.?\s*+(?:[:=]\s*+)?({_NUMBER})(?!\w)",
    re.I,
)
_DEFAULT: Final = re.compile(rf"{pattern('default')}\b\s*[:=]?\s*", re.I)
_VALUE: Final = re.compile(r"\"[^\"]{0,80}\"|'[^']{0,80}'|[^\s,;()\[\]]{1,80}")
_ONE_OF: Final = re.compile(rf"\b{pattern('one_of')}\b:?\s+([^;()]+)", re.I)
_MISSPELT: Final = ("required", "optional", "types.*")
"""The kinds of words for which a misspelt one is looked for."""
_AFTER_TYPE: Final = re.compile(
    r"\s*(?:$|[-,;:(\[|–—]|\d|"
    + pattern("required", "optional", "default", "minimum", "maximum", "range", "one_of")
    + r"(?!\w))",
    re.I,
)
"""What may follow the word of a type in a sentence; `text of the mail` begins with no type."""
_BRACKETED_NEED: Final = re.compile(rf"[(\[]\s*({pattern('optional', 'required')})\s*[)\]]", re.I)
_OR: Final = re.compile(rf"[|,/]|\b{pattern('or')}\b", re.I)


@dataclass(frozen=True, slots=True)
class Parameter:
    """What is known of one parameter."""

    schema: Mapping[str, Any]
    required: bool
    origin: ParameterOrigin
    doubts: tuple[str, ...] = ()
    """What of the author's words may be meant otherwise."""


def type_schema(word: str) -> Mapping[str, Any] | None:
    """Return the schema of a type's word (`string[]` is an array of strings), None for others."""
    word = word[:MAX_NAME_CHARS].strip().strip("{}()").lower()
    if word.endswith("[]") and (item := type_schema(word[:-2])) is not None:
        return {"type": "array", "items": item}
    if (kind := kind_of(word, "types.*")) is None:
        return None
    kind = kind.removeprefix("types.")
    return _SCHEMAS.get(kind, {"type": kind})


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """Return a value as its author wrote it, of the schema's type if it can be."""
    text = text.strip().strip("\"'`")
    if schema.get("type") in (None, "string"):
        return text
    if schema.get("type") == "boolean" and (said := kind_of(text, "yes", "no")) is not None:
        return said == "yes"
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return text


@dataclass
class ParameterReader:
    """Collects what an author's words say of one parameter."""

    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    required: bool | None = None
    descriptions: list[str] = field(default_factory=list[str])
    choices: list[str] = field(default_factory=list[str])
    default: str | None = None
    doubts: list[str] = field(default_factory=list[str])

    def read_bracketed(self, text: str) -> None:
        """Read what stands in brackets: parts, each of which begins with the words it means."""
        for part in re.split(r"[,;]", self._take_choices(text)):
            self._describe(self.take_attributes(part, whole=True))

    def read_free(self, text: str, *, bare_type: bool) -> None:
        """Read words outside brackets. `bare_type`: any text may follow the word of a type."""
        for need in _BRACKETED_NEED.finditer(text):
            self.required = _says_required(need[1])
        text = _BRACKETED_NEED.sub("", self._take_choices(text))
        self._describe(self.take_attributes(text, whole=False, bare_type=bare_type))

    def parameter(self, origin: ParameterOrigin, required: bool = False) -> Parameter:
        """Return the parameter; `required` counts where no word has said its need."""
        if self.choices:
            self.schema.setdefault("type", "string")
            self.schema["enum"] = [typed(choice, self.schema) for choice in self.choices]
        if self.descriptions:
            self.schema["description"] = ", ".join(self.descriptions)
        if self.default is not None:
            self.schema["default"] = typed(self.default, self.schema)
        needed = required if self.required is None else self.required
        return Parameter(self.schema, needed, origin, tuple(self.doubts))

    def take_attributes(self, text: str, *, whole: bool, bare_type: bool = True) -> str:
        """Take the words with a meaning from the head of a text, and return the rest.

        `whole`: a default goes to the end of the text.
        """
        while text := text.lstrip(SEPARATORS[:-1]):
            if (need := _NEED.match(text)) is not None:
                self.required = _says_required(need[1])
                text = text[need.end() :]
            elif (default := _DEFAULT.match(text)) is not None and text[default.end() :].strip():
                text = self._take_default(text[default.end() :], whole=whole)
            elif (offer := _CHOICES.match(text)) is not None and not self.choices:
                self.choices = _split_choices(offer[0])
                text = text[offer.end() :]
            elif (rest := self._take_bounds(text)) is not None or (
                rest := self._take_type(text, bare_type=bare_type)
            ) is not None:
                text = rest
            else:
                break
        return text

    def _describe(self, text: str) -> None:
        if text := text.strip(SEPARATORS):
            self.descriptions.append(text)
            if text.isalpha() and (word := meant(text, *_MISSPELT)) is not None:
                self.doubts.append(f"is `{text}` to say `{word}`?")

    def _take_choices(self, text: str) -> str:
        if self.choices or (listed := _ONE_OF.search(text)) is None:
            return text
        self.choices = _split_choices(listed[1])
        return f"{text[: listed.start()]};{text[listed.end() :]}"

    def _take_default(self, text: str, *, whole: bool) -> str:
        if whole:
            self.default = text
            return ""
        if (value := _VALUE.match(text)) is None:
            return ""
        self.default = value[0].rstrip(".")
        return text[value.end() :]

    def _take_bounds(self, text: str) -> str | None:
        if (both := _BETWEEN.match(text)) is not None:
            self.schema.update(minimum=_number(both[1]), maximum=_number(both[2]))
            return text[both.end() :]
        if (one := _BOUND.match(text)) is not None:
            self.schema["minimum" if one[1] else "maximum"] = _number(one[3])
            return text[one.end() :]
        return None

    def _take_type(self, text: str, *, bare_type: bool) -> str | None:
        word = _TYPE.match(text)
        if word is None or "type" in self.schema or (known := type_schema(word["word"])) is None:
            return None
        rest = text[word.end() :]
        if not bare_type and not _AFTER_TYPE.match(rest):
            return None
        self.schema.update(known)
        if word["need"]:
            self.required = word["need"] == "!"
        return rest


def says_need(text: str) -> bool:
    """Return whether a text has `(required)` or `(optional)` in it."""
    return _BRACKETED_NEED.search(text) is not None


def _split_choices(text: str) -> list[str]:
    """Split `on|off` or `a, b or c`."""
    parts = _OR.split(text)
    return list(dict.fromkeys(p for p in (x.strip(" \"'`.") for x in parts) if p))


def _says_required(word: str) -> bool:
    return kind_of(word, "optional") is None


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
