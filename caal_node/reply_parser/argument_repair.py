"""Arguments whose JSON is broken: what can be trusted in them.

Models write sums where JSON wants a number (`2*60`). json-repair reads a value up to where it stops
being a number and drops the rest: "in 2*60 minutes" would ring after two. So such a value is looked
at before anything is repaired.
"""

from __future__ import annotations

import json
import re
from collections import deque
from math import prod
from string import ascii_letters, digits
from typing import Any, Final, cast

import json_repair

from caal_node.reply_parser.tool_index import ToolSignature

_MAX_REPAIR_CHARS = 4_000
"""json-repair takes about 4 us a character; longer broken arguments are refused."""
_MAX_ESCAPE_COST = 300_000
"""Characters times backslashes. json-repair goes back over the string at escapes: 1,000 characters
with 330 of them take it 16 ms."""
_MAX_DEPTH = 64
"""Deeper nesting is no call of a tool."""
_DIGITS: Final = r"\d{1,9}(?:\.\d{1,6})?"
_SUM: Final = re.compile(rf"{_DIGITS}(?:\s{{0,4}}[*+]\s{{0,4}}{_DIGITS}){{1,5}}")
"""Only products and sums: with `-` and `/` people write ranges, dates and fractions, too."""
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_ITEM: Final = rf"\s*(?:[-+.\w]+|{_STRING})\s*,"
_BEGINS: Final = rf"(?:[:=]|\[(?:{_ITEM})*+)\s*"
"""What a value stands behind: a key, or a list's bracket and the items before it."""
_VALUE: Final = re.compile(rf"{_BEGINS}(?P<value>[-+]?\.?\d[^,}}\]\n\"]*)|{_STRING}", re.DOTALL)
_QUOTED: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?P<end>"|\\?\Z)', re.DOTALL)
"""A string, also one that never ends."""
_OF_WORDS: Final = f"{ascii_letters}{digits}+-."
"""What numbers, `true` and the like consist of: the last one may be half of itself."""
JSON: Final = json.JSONDecoder(strict=False)
"""Made once; `json.loads` makes one every time that it gets an option."""
_COMMENT: Final = re.compile(r"\s(?://|#|/\*).*", re.DOTALL)
_WHOLE: Final = re.compile(r"[-+]?[\w./-]+[\s;)]*")
"""One number or one word, which json-repair takes as it stands, and what it may leave behind."""


class BadArguments(ValueError):
    """The arguments cannot be used. `str()` gives one sentence for the model."""


def evaluate(text: str) -> int | float | None:
    """Return what a product or a sum of plain numbers comes to; None if `text` is none."""
    bare = text.strip()
    if _SUM.fullmatch(bare) is None:
        return None
    products = (prod(map(float, part.split("*")), start=1.0) for part in bare.split("+"))
    total = sum(products, 0.0)
    return int(total) if total.is_integer() else total


def quote_sums(text: str) -> str | None:
    """Return broken JSON with its sums in quotes, so that repairing leaves them to the schema.

    None: there is a number in it that continues as something else.
    """
    parts: list[str] = []
    done = 0
    for found in _VALUE.finditer(text):
        if found["value"] is None:
            continue
        value = _COMMENT.sub("", found["value"]).rstrip()
        if _SUM.fullmatch(value):
            parts += text[done : found.start("value")], f'"{value}"'
            done = found.start("value") + len(value)
        elif _WHOLE.fullmatch(value) is None:
            return None
    return "".join(parts) + text[done:]


def is_cut(text: str) -> bool:
    """Return whether `text` is valid JSON up to its end, and goes on there."""
    try:
        JSON.decode(text)
    except json.JSONDecodeError as error:
        end = len(text.rstrip().rstrip(_OF_WORDS))
        if error.msg.startswith("Invalid \\u"):
            end -= 1  # The backslash.
        return error.pos >= end or error.msg.startswith("Unterminated string")
    except RecursionError:
        pass
    return False


def lacks_one_quote(text: str) -> bool:
    """Return whether `text` is an object of which nothing but the last string's quote is missing:
    all its brackets are closed behind that string, which holds none of its own."""
    string, depth = _left_open(text)
    rest = string.rstrip()
    return depth > 0 and rest.endswith("}" * depth) and not re.search(r"[{}\\]", rest[:-depth])


def has_open_bracket(text: str) -> bool:
    """Return whether a bracket is open at the end of `text`, which need not be valid JSON."""
    string, depth = _left_open(text)
    return depth > 0 and not string  # In a string with a quote of its own none can be counted.


def _left_open(text: str) -> tuple[str, int]:
    """Return the string that is open at the end of `text`, if there is one, and how many brackets
    are."""
    last = deque(_QUOTED.finditer(text), maxlen=1)
    signs = _QUOTED.sub("", text)
    depth = sum(map(signs.count, "{[")) - sum(map(signs.count, "}]"))
    return "".join(each.group() for each in last if each["end"] != '"'), depth


def is_too_deep(text: str) -> bool:
    """Return whether brackets nest deeper than any call's arguments do."""
    depth = 0
    for bracket in re.findall(r"[{}\[\]()]", text):
        depth += 1 if bracket in "{[(" else -1
        if depth > _MAX_DEPTH:
            return True
    return False


def _takes_too_long(text: str) -> bool:
    """Return whether repairing `text` could take longer than an agent may stand still (20 ms)."""
    return len(text) > _MAX_REPAIR_CHARS or len(text) * text.count("\\") > _MAX_ESCAPE_COST


def repair_object(text: str, tool: ToolSignature | None) -> dict[str, Any]:
    """Repair broken JSON of an object, once a marker or a known name has said that it is a call.

    Raises:
        BadArguments: nothing trustworthy can be read from it.
    """
    problem = "The arguments are not valid JSON."
    if _takes_too_long(text) or not re.search(r"[:=]", text) or is_too_deep(text):
        raise BadArguments(problem)
    quoted = quote_sums(text)
    if quoted is None:
        raise BadArguments("A number in the arguments goes on as text; write one number.")
    try:
        repaired: Any = json_repair.loads(quoted)
    except Exception:  # It makes no promise of what it raises, and the text is a model's.
        raise BadArguments(problem) from None
    if not isinstance(repaired, dict) or not repaired:
        raise BadArguments(problem)
    found = cast("dict[str, Any]", repaired)
    if tool is not None and tool.properties and not set(found) <= set(tool.properties):
        raise BadArguments(problem)
    return found
