"""Reckons an expression by reading it: no text is ever run as a program.

sum      = product (("+" | "-") product)*        80 + 19 % is 80 and 19 percent of it
product  = power (("*" | "/" | "mod" | "of" | "off") power)*
power    = ("-" | "sqrt" | "cbrt") power | value ("!" | "%")* ("^" power)?
value    = number | "pi" | "(" sum ")"
"""

from __future__ import annotations

import re
from typing import Final

from caal_node.toolsets.calculator.exact import (
    PI,
    CannotReckon,
    Value,
    bounded,
    divided,
    factorial,
    power,
    remainder,
    root,
)
from caal_node.toolsets.calculator.tokens import ExpressionToken, check_length, tokens

DEPTH_MAX: Final = 40
"""Brackets in brackets; nobody says more than three."""
_SHARE_OF: Final = re.compile(
    r"^(?:what|which) (?:percent(?:age)?|per ?cent|%) of (?P<whole>.+?) (?:is|are) "
    r"(?P<part>.+?)\??$"
    r"|^(?P<part2>.+?) (?:is|are) (?:what|how many) (?:percent(?:age)?|per ?cent|%) of"
    r" (?P<whole2>.+?)\??$"
    r"|^(?:what(?:'s| is) )?(?P<part3>.+?) as an? (?:percent(?:age)?|per ?cent|%) of"
    r" (?P<whole3>.+?)\??$"
)
_BETWEEN: Final = re.compile(
    r"(?:please )?(?:split|divide) (.+?) (?:by|between|among|into) (.+)", re.DOTALL
)
_FROM: Final = re.compile(r"(?:please )?subtract (.+?) from (.+)", re.DOTALL)


def reckon(text: str) -> Value:
    """Return the value of an expression in words or signs.

    Raises:
        CannotReckon: it is none, or has no value; the text says why.
    """
    check_length(text)
    plain = " ".join(text.lower().split())
    if (match := _SHARE_OF.match(plain)) is not None:
        part = match["part"] or match["part2"] or match["part3"]
        whole = match["whole"] or match["whole2"] or match["whole3"]
        share = divided(reckon(part), reckon(whole))
        return Value(share.number * 100, share.is_exact, is_percent=True)
    if (match := _BETWEEN.match(plain)) is not None:
        plain = f"({match[1]}) / ({match[2].removesuffix(' people')})"
    elif (match := _FROM.match(plain)) is not None:
        plain = f"({match[2]}) - ({match[1]})"
    return _Reader(tokens(plain)).value()


class _Reader:
    """Reads one row of tokens."""

    def __init__(self, row: list[ExpressionToken]) -> None:
        self._row = row
        self._at = 0
        self._depth = 0

    def value(self) -> Value:
        if not self._row:
            raise CannotReckon("there is nothing to calculate")
        made = self._sum()
        if self._at < len(self._row):
            raise CannotReckon(f"{self._row[self._at].text!r} stands where it means nothing")
        return made

    def _next(self, *texts: str) -> str:
        """Take the next token where it is one of `texts`, and return it, or ""."""
        if self._at < len(self._row) and self._row[self._at].text in texts:
            self._at += 1
            return self._row[self._at - 1].text
        return ""

    def _sum(self) -> Value:
        made = self._product()
        while sign := self._next("+", "-"):
            more = self._product()
            if more.is_percent and not made.is_percent:
                more = bounded(made.number * more.number / 100, made, more)
            way = 1 if sign == "+" else -1
            both = made.is_percent and more.is_percent
            total = bounded(made.number + way * more.number, made, more)
            made = Value(total.number, total.is_exact, both)
        return made

    def _product(self) -> Value:
        made = self._power()
        while sign := self._next("*", "/", "mod", "of", "off"):
            more = self._power()
            if sign == "off":
                left = 1 - made.number / 100
                made = bounded(left * more.number, made, more)
            elif sign == "/":
                made = divided(made.share, more.share)
            elif sign == "mod":
                made = remainder(made.share, more.share)
            else:
                made = bounded(made.share.number * more.share.number, made, more)
        return made

    def _power(self) -> Value:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise CannotReckon("that has too many brackets")
        try:
            if self._next("-"):
                turned = self._power()
                return Value(-turned.number, turned.is_exact, turned.is_percent)
            if self._next("+"):
                return self._power()
            if name := self._next("sqrt", "cbrt"):
                return root(self._power().share, 2 if name == "sqrt" else 3)
            made = self._single()
            while sign := self._next("!", "%"):
                if sign == "!":
                    made = factorial(made.share)
                else:
                    made = Value(made.number, made.is_exact, is_percent=True)
            return power(made.share, self._power().share) if self._next("^") else made
        finally:
            self._depth -= 1

    def _single(self) -> Value:
        if self._next("("):
            made = self._sum()
            if not self._next(")"):
                raise CannotReckon("a bracket is left open")
            return made
        if self._next("pi"):
            return PI
        if self._at < len(self._row) and (number := self._row[self._at].number) is not None:
            self._at += 1
            return Value(number)
        said = self._row[self._at].text if self._at < len(self._row) else "the end"
        raise CannotReckon(f"a number is missing before {said!r}")
