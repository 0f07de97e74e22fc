"""The lines of notes that are no parameters: `Example:`, `Speak:`, `Takes:`, and their mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from n8n.core.json_values import DECODER, well_formed
from n8n.core.workflow_tool import Example, ParameterOrigin
from n8n.notes.parameter import (
    MAX_NAME_CHARS,
    SEPARATORS,
    Parameter,
    ParameterReader,
    alternatives,
    kind_of,
    meant,
    pattern,
    says_need,
    words,
)

# Parameters as authors write them: `@param` lines, lists under a heading, a sentence of them.
#
# One item has a name, and after it the words that describe it: `city (required, string)`,
# `**city**: string - which city`, `[days=1] {integer} 1-7`, `unit? c|f` are all read. In a table
# the cells of a row are those words.

MAX_LISTED: Final = 40
"""The most parameters that one sentence may list."""
MAX_PARTS: Final = 400
"""Commas, or semicolons, at which such a sentence is cut, ten for each of them."""
_NAME: Final = re.compile(
    rf"""\s*(?:{pattern("and")}\s+)?"""
    r"""(?P<dress>[*_`"']{0,3})(?P<open>\[?)(?P<name>[A-Za-z]\w*|_\w+)"""
    r"""(?:=(?P<default>[^\]\s]{1,80}))?(?P<close>\]?)(?P<mark>(?:[*?!](?!\*))?)[*_`"']{0,3}(?![\w*])"""
)
_GROUP: Final = re.compile(r"\(([^()]{0,400})\)?|\[([^\[\]]{0,400})\]?|\{([^{}]{0,40})\}")
_NOT_NAMES: Final = frozenset(words("none", "and"))
_IS_DESCRIBED: Final = re.compile(r"\s*[(\[{:]")
"""What follows a name that is one, such as `no (integer)`; elsewhere `no` says that there is none.
"""
_STARTS_ITEM: Final = re.compile(
    rf"\s*(?:{pattern('and')}\s+)?[*_`\"']{{0,3}}\[?\w+(?:=[^\]\s]+\]?)?[*_`\"'?!\]]{{0,3}}\s*"
    rf"(?:$|[-–—(\[{{:]|{pattern('required', 'optional', 'default', 'types.*')}(?!\w))",
    re.I,
)
"""A name, alone or with what may follow one: brackets, a colon, a dash, a need or a type."""
_AND: Final = re.compile(
    rf"(?<=[\w)\]`*])\s+{pattern('and')}\s+(?=[`*\"']*\w+[`*\"']*\s*(?:$|[(:]))", re.I
)
_OPENING, _CLOSING = "([{", ")]}"


def from_param_line(line: str) -> dict[str, Parameter]:
    """Read `@param days integer required How many days`, in any of the usual orders and JSDoc's.

    At most one parameter is in it; none if there is no name.
    """
    _, _, text = line.partition("@")
    text = text.partition(" ")[2].strip()
    first = re.match(r"\{[^{}]{0,40}\}", text)
    type_text = first[0] if first else ""
    return dict([found] if (found := _item(text[len(type_text) :], "param", type_text)) else [])


def from_list_line(
    line: str, origin: ParameterOrigin, *, required: bool = False
) -> dict[str, Parameter]:
    """Read one line of a list under a heading: `city (string, required): which city`."""
    found = _item(line, origin, required=required)
    return dict([found] if found else [])


def from_words(text: str, origin: ParameterOrigin, *, required: bool = False) -> Parameter:
    """Read what describes a parameter whose name is known: `string, required - which city`."""
    reader = ParameterReader()
    _describe(reader, text, bare_type=False)
    return reader.parameter(origin, required)


def from_prose(text: str, *, required: bool = False) -> tuple[dict[str, Parameter], str]:
    """Read `city (required, string), days (optional, integer 1-7). More text.`

    Returns the parameters, and what follows the sentence.
    """
    end = _sentence_end(text)
    found: dict[str, Parameter] = {}
    for part in list(_items_of(text[:end]))[:MAX_LISTED]:
        if (item := _item(part, "prose", required=required)) is None:
            break
        found[item[0]] = item[1]
    return found, text[end:].lstrip(". ").strip()


def from_row(
    name: str, attributes: Sequence[str], *, needed: bool | None, default: str | None
) -> dict[str, Parameter]:
    """Read a row of a table: the cell with the name, and the others but for need and default."""
    if (found := _named(name, is_described=True)) is None:
        return {}
    own_name, reader, rest = found
    for text in (rest, *attributes):
        _describe(reader, text, bare_type=False)
    reader.required = reader.required if needed is None else needed
    reader.default = default or reader.default
    return {own_name: reader.parameter("prose")}


def are_described(found: Mapping[str, Parameter], text: str) -> bool:
    """Return whether the text that these were read from says more of one than its name.

    So `Needs: city (required)` is told from `Needs: patience`.
    """
    told = any(p.required or p.schema.keys() - {"description"} for p in found.values())
    return told or (bool(found) and says_need(text))


def _named(text: str, *, is_described: bool = False) -> tuple[str, ParameterReader, str] | None:
    """Read a name and what its marks say; returns it, the reader, and the rest of the text."""
    named = _NAME.match(text)
    if named is None or len(named["name"]) > MAX_NAME_CHARS:
        return None
    is_described = is_described or _IS_DESCRIBED.match(text, named.end()) is not None
    if named["name"].lower() in _NOT_NAMES and not is_described:
        return None
    reader = ParameterReader(default=named["default"])
    if named["mark"] and named["mark"] not in named["dress"]:
        reader.required = named["mark"] != "?"
    if named["open"] and named["close"]:
        reader.required = False
    rest = text[named.end() :]
    if named["close"] and not named["open"]:
        rest = named["close"] + rest
    return named["name"], reader, rest


def _item(
    text: str, origin: ParameterOrigin, type_text: str = "", *, required: bool = False
) -> tuple[str, Parameter] | None:
    if (found := _named(text)) is None:
        return None
    name, reader, rest = found
    if type_text:
        reader.read_bracketed(type_text.strip("{}"))
    _describe(reader, rest, bare_type=origin == "param")
    return name, reader.parameter(origin, required)


def _describe(reader: ParameterReader, text: str, *, bare_type: bool) -> None:
    while True:
        text = text.strip()
        while (group := _GROUP.match(text.lstrip(" :-–—"))) is not None:
            reader.read_bracketed(next(g for g in group.groups() if g is not None))
            text = text.lstrip(" :-–—")[group.end() :]
        before, bracket, after = text.partition("(")
        left = ParameterReader().take_attributes(before, whole=False, bare_type=bare_type)
        if not bracket or left.strip(SEPARATORS):
            break
        # `string (required): which city`: only attributes stand before the brackets.
        reader.read_free(before, bare_type=bare_type)
        text = bracket + after
    if text:
        reader.read_free(text, bare_type=bare_type)


def _items_of(text: str) -> Iterator[str]:
    """Split a sentence at its semicolons if there are any, else at its commas."""
    cuts = [i for i in _outside_brackets(text) if text[i] == ";"] or [
        i for i in _outside_brackets(text) if text[i] == ","
    ]
    cuts = cuts[:MAX_PARTS]
    parts = [text[a + 1 : b] for a, b in zip([-1, *cuts], [*cuts, len(text)], strict=True)]
    item = ""
    for part in (piece for whole in parts for piece in _AND.split(whole)):
        attributes = ParameterReader()
        left = attributes.take_attributes(part, whole=True).strip(SEPARATORS)
        says_more = attributes.required is not None or attributes.default or _lacks_type(item)
        if item and not left and says_more:
            item = f"{item}, {part.strip()}"  # `city: string, required` is one item
        elif item and not _STARTS_ITEM.match(part):
            item = f"{item},{part}"  # a comma inside a description
        else:
            if item:
                yield item
            item = part
    if item.strip():
        yield item


def _lacks_type(item: str) -> bool:
    """Whether `city: required` may be waiting for its type behind the comma."""
    _, colon, rest = item.partition(":")
    attributes = ParameterReader()
    attributes.take_attributes(rest, whole=True)
    return bool(colon) and "type" not in attributes.schema


def _outside_brackets(text: str) -> Iterator[int]:
    """Yield the positions that are in no brackets."""
    depth = 0
    for i, char in enumerate(text):
        depth = max(0, depth + (char in _OPENING) - (char in _CLOSING))
        if depth == 0:
            yield i


def _sentence_end(text: str) -> int:
    for i in _outside_brackets(text):
        ends = text[i] == "." and not text[i + 1 : i + 2].strip()
        if ends and text[max(0, i - 3) : i + 1].lower() not in ("e.g.", "i.e."):
            return i
    return len(text)


MAX_TAKES_S: Final = 600
"""The longest that `Takes:` may ask for; nobody waits in a conversation for longer."""
_NUMBER: Final = r"\d{1,4}(?:[.,]\d{1,2})?"
_TIME: Final = re.compile(
    rf"(?:{pattern('up_to')}\s+|[~<≤]\s*)?(?:{_NUMBER}\s*+(?:-|–|{pattern('to')})\s*+)?({_NUMBER})"
    rf"\s*+(?:({pattern('units.*')})\s*+)?(?:\.\s*+)?(?:$|[,;(])",
    re.I,
)
_UNITS_S: Final = {"units.seconds": 1, "units.minutes": 60, "units.hours": 3600}
_FIELD: Final = re.compile(
    rf"(?:{pattern('field')}\s++(?=[`\"'A-Za-z_]))*+[`\"']?([A-Za-z_]\w*+)[`\"']?"
    rf"(?:\s++{pattern('field')})*+\s*+\.?",
    re.I,
)
_PLAIN_FIELD: Final = re.compile(r"[`\"']?\w+[`\"']?\s*\.?")
_ARROW: Final = re.compile(r"(?:->|=>|→)\s*")
MAX_ARROWS: Final = 8
"""Arrows of one example behind which arguments are looked for."""
_DRESS: Final = r"[\s#>*_-]*"
_COLON: Final = r"[*_`]*\s*:[*_`]*\s*"
_CAPITALS: Final = alternatives(w.capitalize() for w in words("speaks", "takes", "accepts"))
_EXAMPLE_CAPITALS: Final = alternatives(w.capitalize() for w in words("examples"))
NEXT: Final = re.compile(
    rf"(?<=[.!?;])\s+(?={_CAPITALS}\s*:|{_EXAMPLE_CAPITALS}\s*:.{{0,300}}?(?:->|=>|→))"
)
"""Where a sentence of a line is such a directive, though it begins no line of its own."""
_AFTER_EXAMPLE: Final = re.compile(
    rf"(?:\s*+[.;])?(?:\s*+$|\s++(?={_CAPITALS}|{_EXAMPLE_CAPITALS}))"
)
_HEADED: Final = re.compile(
    rf"(?:^{_DRESS}|(?<=[.!?;])\s+)(?:{pattern('required', 'optional')}[\s-]+)?"
    rf"(?P<word>[^\W\d_]{{4,24}})(?:{_COLON}|[\s*_]*$)",
    re.I,
)
MAX_HEADED: Final = 20
"""Words before a colon in one line that may be misspelt headings."""
FITTING_CHARS: Final = 300
"""How much behind such a word is looked at to tell whether it is a heading."""


def directive(kind: str) -> re.Pattern[str]:
    """Return a regular expression for a line of that kind: its `word`, and the `text` behind it."""
    return re.compile(rf"^{_DRESS}(?P<word>{pattern(kind)}){_COLON}(?P<text>.*)$", re.I)


def read_time(text: str) -> float | None:
    """Read `40 s`, `up to 2 minutes` or `bis zu 1,5 min` in seconds; None for what is no time."""
    if (found := _TIME.match(text)) is None:
        return None
    unit = kind_of(found[2] or "s", "units.*") or "units.seconds"
    return float(found[1].replace(",", ".")) * _UNITS_S[unit] or None


def read_field(text: str) -> tuple[str, bool] | None:
    """Read a field's name, and say whether it stands there alone: `the message field` does not."""
    found = _FIELD.fullmatch(text.strip())
    return (found[1], _PLAIN_FIELD.fullmatch(text.strip()) is not None) if found else None


def read_example(text: str) -> tuple[Example | None, str]:
    """Read `what's the weather in Paris -> {"city": "Paris"}`; None for what is no example.

    Returns what follows the arguments as well. An arrow without arguments behind it is one of the
    words.
    """
    arrows = list(islice(_ARROW.finditer(text), MAX_ARROWS))
    if not arrows:
        return _example(text, {}), ""
    for arrow in arrows:
        if (read := _arguments(text[arrow.end() :])) is not None:
            arguments, after = read
            return _example(text[: arrow.start()], arguments), after
    return None, ""


def _arguments(text: str) -> tuple[Any, str] | None:
    """Read the JSON that `text` begins with, and what follows it; None where it is no example."""
    if not text.rstrip(" ."):
        return {}, ""
    try:
        arguments, end = DECODER.raw_decode(text)
        arguments = well_formed(text, arguments)
    except (ValueError, RecursionError):
        return None
    if (ends := _AFTER_EXAMPLE.match(text, end)) is None:
        return None
    return arguments, text[ends.end() :]


def _example(said: str, arguments: Any) -> Example | None:
    said = said.strip().strip("\"'“”‘’").strip()
    if not said or not isinstance(arguments, dict):
        return None
    return Example(said, cast(Mapping[str, Any], arguments))


def mended(line: str, following: str) -> tuple[str, list[str]]:
    """Return a line whose misspelt headings are as they are meant, and a remark on each.

    A heading is misspelt where what follows is what would follow the right one: `following` is the
    next line, with the first item of a list.
    """
    remarks: list[str] = []
    end, whole = 0, ""
    for headed in list(_HEADED.finditer(line))[:MAX_HEADED]:
        kinds = ("parameters", "examples", "speaks", "takes")
        if (word := meant(headed["word"], *kinds)) is None:
            continue
        if fits(kind_of(word, *kinds), line[headed.end() :][:FITTING_CHARS], following):
            whole += line[end : headed.start("word")] + word.capitalize()
            end = headed.end("word")
            remarks.append(f"`{headed['word']}:` is read as `{word.capitalize()}:`")
    return whole + line[end:], remarks


def fits(kind: str | None, text: str, following: str) -> bool:
    """Return whether what follows a word is what follows one of that kind.

    `text` is the rest of its line, `following` the next line.
    """
    if not text.strip():
        return kind in ("parameters", "examples") and following.lstrip()[:1] in tuple("-*•|1`")
    match kind:
        case "parameters":
            return are_described(from_prose(text)[0], text)
        case "examples":
            return _ARROW.search(text) is not None
        case "takes":
            return read_time(text) is not None
        case _:
            name, is_alone = read_field(text) or ("", False)
            return is_alone and kind_of(name, "types.*") is None
