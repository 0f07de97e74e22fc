"""The lines of notes that are no parameters: `Example:`, `Speak:`, `Takes:`, and their mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, cast

from n8n.core.json_values import DECODER, well_formed
from n8n.core.workflow_tool import Example
from n8n.notes.parameter_text import are_described, from_prose
from n8n.notes.words import alternatives, kind_of, meant, pattern, words

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
