"""Parameters as authors write them: `@param` lines, lists under a heading, a sentence of them.

One item has a name, and after it words for type, need, default, bounds and choices in any order and
between any brackets; what is none of these describes it. `city (required, string)`,
`**city**: string - which city`, `[days=1] {integer} 1-7`, `unit? c|f` are all read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from n8n.parameters import MAX_NAME_CHARS, Parameter, choices, type_schema, typed
from n8n.tool import Origin

MAX_LISTED: Final = 40
"""Parameters of one sentence."""
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
_NAME: Final = re.compile(
    r"""\s*(?:and\s+)?(?P<dress>[*_`"']{0,3})(?P<open>\[?)(?P<name>[A-Za-z]\w*|_\w+)"""
    r"""(?:=(?P<default>[^\]\s]{1,80}))?(?P<close>\]?)(?P<mark>(?:[*?!](?!\*))?)[*_`"']{0,3}(?![\w*])"""
)
_STARTS_ITEM: Final = re.compile(
    r"\s*(?:and\s+)?[*_`\"']{0,3}\[?\w+(?:=[^\]\s]+\]?)?[*_`\"'?!\]]{0,3}\s*"
    r"(?:$|[-–—(\[{:]|(?:required|mandatory|optional|must|default|string|text|str|integer|int|number"
    r"|float|boolean|bool|array|list|object|date|datetime)\b)",
    re.I,
)
"""A name, alone or with what may follow one: brackets, a colon, a dash, a need or a type."""
_GROUP: Final = re.compile(r"\(([^()]{0,400})\)?|\[([^\[\]]{0,400})\]?|\{([^{}]{0,40})\}")
_SAYS_NEED: Final = re.compile(r"[(\[]\s*(required|mandatory|optional)\s*[)\]]", re.I)
_EDGES: Final = " \t,;:=-–—."
_NOT_NAMES: Final = frozenset(("none", "nothing", "and"))
_OPENING, _CLOSING = "([{", ")]}"


@dataclass
class _Item:
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
            if rest := self.words(part, whole=True).strip(_EDGES):
                self.told.append(rest)

    def free(self, text: str, *, bare_type: bool) -> None:
        """Words outside brackets. `bare_type`: any text may follow the word of a type."""
        for need in _SAYS_NEED.finditer(text):
            self.required = _NEEDS[need[1].lower()]
        text = _SAYS_NEED.sub("", self._one_of(text))
        if rest := self.words(text, whole=False, bare_type=bare_type).strip(_EDGES):
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
        while text := text.lstrip(_EDGES[:-1]):
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


def from_param_line(line: str) -> dict[str, Parameter]:
    """`@param days integer required How many days`, in any of the usual orders, and JSDoc's.

    At most one parameter; none when there is no name.
    """
    _, _, text = line.partition("@")
    text = text.partition(" ")[2].strip()
    first = re.match(r"\{[^{}]{0,40}\}", text)
    head = first[0] if first else ""
    return dict([found] if (found := _item(text[len(head) :], "param", head)) else [])


def from_list_line(line: str, origin: Origin, *, required: bool = False) -> dict[str, Parameter]:
    """One line of a list under a heading: `- city (string, required): which city`."""
    found = _item(line, origin, required=required)
    return dict([found] if found else [])


def from_words(text: str, origin: Origin, *, required: bool = False) -> Parameter:
    """What stands for a parameter that has its name already: `string, required - which city`."""
    item = _Item()
    _describe(item, text, bare_type=False)
    return item.parameter(origin, required)


def from_prose(text: str, *, required: bool = False) -> tuple[dict[str, Parameter], str]:
    """`city (required, string), days (optional, integer 1-7). More text.`

    The parameters, and what follows the sentence.
    """
    end = _sentence_end(text)
    found: dict[str, Parameter] = {}
    for part in list(_parts(text[:end]))[:MAX_LISTED]:
        if (item := _item(part, "prose", required=required)) is None:
            break
        found[item[0]] = item[1]
    return found, text[end:].lstrip(". ").strip()


def _item(
    text: str, origin: Origin, head: str = "", *, required: bool = False
) -> tuple[str, Parameter] | None:
    named = _NAME.match(text)
    if named is None or len(named["name"]) > MAX_NAME_CHARS or named["name"].lower() in _NOT_NAMES:
        return None
    item = _Item()
    if named["mark"] and named["mark"] not in named["dress"]:
        item.required = named["mark"] != "?"
    if named["open"] and named["close"]:
        item.required = False
    item.default = named["default"]
    rest = text[named.end() :]
    if named["close"] and not named["open"]:
        rest = named["close"] + rest
    if head:
        item.group(head.strip("{}"))
    _describe(item, rest, bare_type=origin == "param")
    return named["name"], item.parameter(origin, required)


def _describe(item: _Item, text: str, *, bare_type: bool) -> None:
    text = text.strip()
    while (group := _GROUP.match(text.lstrip(" :-–—"))) is not None:
        item.group(next(g for g in group.groups() if g is not None))
        text = text.lstrip(" :-–—")[group.end() :]
    before, bracket, after = text.partition("(")
    if bracket and not _Item().words(before, whole=False, bare_type=bare_type).strip(_EDGES):
        # `string (required): which city`: only meaning stands before the brackets.
        item.free(before, bare_type=bare_type)
        _describe(item, bracket + after, bare_type=bare_type)
    elif text:
        item.free(text, bare_type=bare_type)


def _parts(text: str) -> Iterator[str]:
    """The items of a sentence: between semicolons where there are any, else between commas."""
    cuts = [i for i in _outside(text) if text[i] == ";"] or [
        i for i in _outside(text) if text[i] == ","
    ]
    parts = [text[a + 1 : b] for a, b in zip([-1, *cuts], [*cuts, len(text)], strict=True)]
    held = ""
    for part in parts:
        for piece in re.split(r"(?<=[\w)\]`*])\s+and\s+(?=[`*\"']*\w+[`*\"']*\s*(?:$|[(:]))", part):
            meaning = _Item()
            left = meaning.words(piece, whole=True).strip(_EDGES)
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
    item = _Item()
    item.words(rest, whole=True)
    return bool(colon) and "type" not in item.schema


def _outside(text: str) -> Iterator[int]:
    """The places that are in no brackets."""
    depth = 0
    for i, char in enumerate(text):
        depth = max(0, depth + (char in _OPENING) - (char in _CLOSING))
        if depth == 0:
            yield i


def _sentence_end(text: str) -> int:
    for i in _outside(text):
        ends = text[i] == "." and not text[i + 1 : i + 2].strip()
        if ends and text[max(0, i - 3) : i + 1].lower() not in ("e.g.", "i.e."):
            return i
    return len(text)


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
