"""What the words behind a parameter's name mean: type, need, default, bounds, choices.

They come in any order and between any brackets; what is none of these describes the parameter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from n8n.core.workflow_tool import Origin
from n8n.notes.parameter import Parameter, choices, type_schema, typed

EDGES: Final = " \t,;:=-–—."
"""What may stand around a word without a meaning of its own."""
_NEEDS: Final = {
    "required": True,
    "mandatory": True,
    "req": True,
    "must": True,
    "optional": False,
    "opt": False,
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
"""What may follow the word of a type in a sentence: `text of the mail` is no type."""
_SAYS_NEED: Final = re.compile(r"[(\[]\s*(required|mandatory|optional)\s*[)\]]", re.I)


@dataclass
class Attributes:
    """What is known of one parameter so far."""

    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    required: bool | None = None
    told: list[str] = field(default_factory=list[str])
    offered: list[str] = field(default_factory=list[str])
    default: str | None = None

    def group(self, text: str) -> None:
        """What stands in brackets: parts, each of which begins with the words it means."""
        text = self._one_of(text)
        for part in re.split(r"[,;]", text):
            if rest := self.words(part, whole=True).strip(EDGES):
                self.told.append(rest)

    def free(self, text: str, *, bare_type: bool) -> None:
        """Words outside brackets. `bare_type`: any text may follow the word of a type."""
        for need in _SAYS_NEED.finditer(text):
            self.required = _NEEDS[need[1].lower()]
        text = _SAYS_NEED.sub("", self._one_of(text))
        if rest := self.words(text, whole=False, bare_type=bare_type).strip(EDGES):
            self.told.append(rest)

    def parameter(self, origin: Origin, required: bool = False) -> Parameter:
        if self.offered:
            self.schema.setdefault("type", "string")
            self.schema["enum"] = [typed(choice, self.schema) for choice in self.offered]
        if self.told:
            self.schema["description"] = ", ".join(self.told)
        if self.default is not None:
            self.schema["default"] = typed(self.default, self.schema)
        need = required if self.required is None else self.required
        return Parameter(self.schema, need, origin)

    def _one_of(self, text: str) -> str:
        if self.offered or (listed := _ONE_OF.search(text)) is None:
            return text
        self.offered = choices(listed[1])
        return f"{text[: listed.start()]};{text[listed.end() :]}"

    def words(self, text: str, *, whole: bool, bare_type: bool = True) -> str:
        """Take what has a meaning from the head of a text; what is left describes."""
        while text := text.lstrip(EDGES[:-1]):
            if (need := _NEED.match(text)) is not None:
                self.required = _NEEDS[need[1].lower().rstrip(".")]
                text = text[need.end() :]
            elif (default := _DEFAULT.match(text)) is not None and text[default.end() :].strip():
                text = self._fallback(text[default.end() :], whole=whole)
            elif (offer := _CHOICES.match(text)) is not None and not self.offered:
                self.offered = choices(offer[0])
                text = text[offer.end() :]
            elif (rest := self._bounds(text)) is not None or (
                rest := self._type(text, bare_type=bare_type)
            ) is not None:
                text = rest
            else:
                break
        return text

    def _fallback(self, text: str, *, whole: bool) -> str:
        if whole:
            self.default = text
            return ""
        if (value := _VALUE.match(text)) is not None:
            self.default = value[0].rstrip(".")
        return text[value.end() :] if value else ""

    def _bounds(self, text: str) -> str | None:
        if (both := _BETWEEN.match(text)) is not None:
            self.schema.update(minimum=_number(both[1]), maximum=_number(both[2]))
            return text[both.end() :]
        if (one := _BOUND.match(text)) is not None:
            low = one[1].lower().startswith(("min", ">", "at least"))
            self.schema["minimum" if low else "maximum"] = _number(one[2])
            return text[one.end() :]
        return None

    def _type(self, text: str, *, bare_type: bool) -> str | None:
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


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
