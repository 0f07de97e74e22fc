"""One parameter of a workflow, and the words in which authors describe it.

The words behind a parameter's name say its type, need, default, bounds and choices. They come in
any order and between any brackets; what is none of these describes the parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from n8n.core.json_values import parse_json
from n8n.core.workflow_tool import ParameterOrigin

MAX_NAME_CHARS: Final = 64
"""A longer word is no name of a parameter."""
SEPARATORS: Final = " \t,;:=-–—."
"""Characters that may stand around a word without a meaning of their own."""
_TYPE_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("string", "str", "text"),
    "number": ("number", "float", "double", "decimal"),
    "integer": ("integer", "int"),
    "boolean": ("boolean", "bool"),
    "object": ("object", "json", "dict"),
    "array": ("array", "list"),
    "null": ("null",),
}
_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    **{word: {"type": kind} for kind, words in _TYPE_WORDS.items() for word in words},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "any": {},
}
_NUMBER: Final = r"-?\d{1,15}(?:\.\d{1,9})?"
_NEED: Final = re.compile(r"(required|mandatory|must|optional|req\b\.?|opt\b\.?)(?!\w)", re.I)
_TYPE: Final = re.compile(r"\{?(?P<word>[A-Za-z]{2,8}(?:\[\])?)(?P<need>[!?=]?)\}?(?![\w'’/|])")
_CHOICES: Final = re.compile(r"[^\s|,;]{1,64}(?:\s?\|\s?[^\s|,;]{1,64}){1,19}")
_BETWEEN: Final = re.compile(
    rf"(?:between\s+|from\s+)?({_NUMBER})\s*(?:-|–|\.\.|to\b|and\b)\s*({_NUMBER})(?![\w.]*\w)"
)
_BOUND: Final = re.compile(
    rf"(min(?:imum)?|max(?:imum)?|at least|at most|>=|<=)\s*[:=]?\s*({_NUMBER})(?!\w)", re.I
)
_DEFAULT: Final = re.compile(
    r"(?:default(?:s|ing)?|or else)\b(?:\s+to\b|\s+is\b)?\s*[:=]?\s*", re.I
)
_VALUE: Final = re.compile(r"\"[^\"]{0,80}\"|'[^']{0,80}'|[^\s,;()\[\]]{1,80}")
_ONE_OF: Final = re.compile(r"\b(?:one of|either|enum|values)\b:?\s+([^;()]+)", re.I)
_AFTER_TYPE: Final = re.compile(
    r"\s*(?:$|[-,;:(\[|–—]|required|mandatory|must\b|optional|default|between|min|max|one of|\d)",
    re.I,
)
"""What may follow the word of a type in a sentence; `text of the mail` begins with no type."""
_BRACKETED_NEED: Final = re.compile(r"[(\[]\s*(required|mandatory|optional)\s*[)\]]", re.I)


@dataclass(frozen=True, slots=True)
class Parameter:
    """What is known of one parameter."""

    schema: Mapping[str, Any]
    required: bool
    origin: ParameterOrigin


def type_schema(word: str) -> Mapping[str, Any] | None:
    """Return the schema of a type's word (`string[]` is an array of strings), None for others."""
    word = word[:MAX_NAME_CHARS].strip().strip("{}()").lower()
    if word.endswith("[]") and (item := type_schema(word[:-2])) is not None:
        return {"type": "array", "items": item}
    return _TYPES.get(word)


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """Return a value as its author wrote it, of the schema's type if it can be."""
    text = text.strip().strip("\"'`")
    if schema.get("type") in (None, "string"):
        return text
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
        return Parameter(self.schema, required if self.required is None else self.required, origin)

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
            is_low = one[1].lower().startswith(("min", ">", "at least"))
            self.schema["minimum" if is_low else "maximum"] = _number(one[2])
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


def _split_choices(text: str) -> list[str]:
    """Split `on|off` or `a, b or c`."""
    parts = re.split(r"[|,/]|\bor\b", text)
    return list(dict.fromkeys(p for p in (x.strip(" \"'`.") for x in parts) if p))


def _says_required(word: str) -> bool:
    return not word.lower().startswith("opt")


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
