"""Numbers that a model did not write out: `2*60`, `1:30`, `5 to 10` where JSON wants one number.

json-repair reads a value up to where it stops being a number and drops the rest: "in 2*60
minutes" would ring after two. So such a value is looked at before anything is repaired.
"""

from __future__ import annotations

import re
from math import prod
from typing import Final

_DIGITS: Final = r"\d{1,9}(?:\.\d{1,6})?"
_SUM: Final = re.compile(rf"{_DIGITS}(?:\s{{0,4}}[*+]\s{{0,4}}{_DIGITS}){{1,5}}")
"""Only products and sums: with `-` and `/` people write ranges, dates and fractions, too."""
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_ITEM: Final = rf"\s*(?:[-+.\w]+|{_STRING})\s*,"
_BEGINS: Final = rf"(?:[:=]|\[(?:{_ITEM})*+)\s*"
"""What a value stands behind: a key, or a list's bracket and the items before it."""
_VALUE: Final = re.compile(rf"{_BEGINS}(?P<value>[-+]?\.?\d[^,}}\]\n\"]*)|{_STRING}", re.DOTALL)
_COMMENT: Final = re.compile(r"\s(?://|#|/\*).*", re.DOTALL)
_WHOLE: Final = re.compile(r"[-+]?[\w./-]+[\s;)]*")
"""One number or one word, which json-repair takes as it stands, and what it may leave behind."""


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
