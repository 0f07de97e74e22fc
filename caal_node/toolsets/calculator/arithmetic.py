"""Exact values, their words, and the expressions that are reckoned with them.

An expression is reckoned by reading it: no text is ever run as a program.

sum      = product (("+" | "-") product)*        80 + 19 % is 80 and 19 percent of it
product  = power (("*" | "/" | "mod" | "of" | "off") power)*
power    = ("-" | "sqrt" | "cbrt") power | value ("!" | "%")* ("^" power)?
value    = number | "pi" | "(" sum ")"
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Final

from caal_node.grounding.spoken_numbers import numbers

# Exact values, and the few operations that cannot be: roots, pi, and powers that are no integer.
#
# Everything is a fraction. What is not exact is one to fifty digits, and says so. No operation
# gives a value of more than `BITS_MAX` bits, so that none takes long.

BITS_MAX: Final = 8_192
"""Bits of a numerator or denominator: 2,400 digits, which is more than anybody listens to."""
DIGITS: Final = 50
FACTORIAL_MAX: Final = 500
_CONTEXT: Final = Context(prec=DIGITS, Emax=10_000, Emin=-10_000)
_EXPONENT_MAX: Final = 10_000


class CannotReckon(ValueError):
    """There is no such value, or it is too large. The text is written for the model."""


@dataclass(frozen=True, slots=True)
class Value:
    """A number, and whether it is exact."""

    number: Fraction
    is_exact: bool = True
    is_percent: bool = False
    """Whether it was said as so many percent: the number is 15 for "15 percent"."""

    @property
    def share(self) -> Value:
        """Return 0.15 for 15 percent, and any other value as it is."""
        if not self.is_percent:
            return self
        return Value(self.number / 100, self.is_exact)


PI: Final = Value(Fraction("3.14159265358979323846264338327950288419716939937510"), is_exact=False)


def bounded(number: Fraction, *operands: Value) -> Value:
    """Return a value that was made of exact operations on `operands`.

    Raises:
        CannotReckon: it has too many digits.
    """
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > BITS_MAX:
        raise CannotReckon("the numbers get too large")
    return Value(number, all(each.is_exact for each in operands))


def divided(left: Value, right: Value) -> Value:
    """Divide.

    Raises:
        CannotReckon: `right` is zero.
    """
    if not right.number:
        raise CannotReckon("nothing can be divided by zero")
    return bounded(left.number / right.number, left, right)


def remainder(left: Value, right: Value) -> Value:
    """Return what is left of a division, with the sign of `right`.

    Raises:
        CannotReckon: `right` is zero.
    """
    if not right.number:
        raise CannotReckon("nothing can be divided by zero")
    return bounded(left.number % right.number, left, right)


def power(base: Value, exponent: Value) -> Value:
    """Raise to a power.

    Raises:
        CannotReckon: there is no such number, or it is too large.
    """
    number, times = base.number, exponent.number
    if times.denominator == 1:
        if not number and times < 0:
            raise CannotReckon("nothing can be divided by zero")
        size = max(number.numerator.bit_length(), number.denominator.bit_length())
        if number not in (0, 1, -1) and size * abs(times) > BITS_MAX:
            raise CannotReckon("the numbers get too large")
        if number in (1, -1, 0):
            times = Fraction(times.numerator % 2 + 2 if times else 0)
        return bounded(number ** int(times), base, exponent)
    if number < 0:
        raise CannotReckon("a negative number has no such power")
    if times in (Fraction(1, 2), Fraction(1, 3)):
        return root(base, times.denominator)
    if not number:
        return Value(Fraction(0), base.is_exact and exponent.is_exact)
    if abs(times) > _EXPONENT_MAX or abs(times * _log2(number)) > BITS_MAX:
        raise CannotReckon("the numbers get too large")
    made = _CONTEXT.power(_decimal(number), _decimal(times))
    return Value(_fraction(made), is_exact=False)


def root(of: Value, degree: int) -> Value:
    """Return the root of degree 2 or 3, exactly where it is a fraction.

    Raises:
        CannotReckon: a square root of a negative number.
    """
    number = of.number
    if number < 0:
        if degree % 2 == 0:
            raise CannotReckon("a negative number has no square root")
        turned = root(Value(-number, of.is_exact), degree)
        return Value(-turned.number, turned.is_exact)
    top, bottom = _whole_root(number.numerator, degree), _whole_root(number.denominator, degree)
    if top**degree == number.numerator and bottom**degree == number.denominator:
        return Value(Fraction(top, bottom), of.is_exact)
    made = _CONTEXT.power(_decimal(number), _CONTEXT.divide(Decimal(1), Decimal(degree)))
    return Value(_fraction(made), is_exact=False)


def factorial(of: Value) -> Value:
    """Return the factorial of a whole number.

    Raises:
        CannotReckon: it is no whole number, or too large.
    """
    number = of.number
    if number.denominator != 1 or number < 0:
        raise CannotReckon("only whole numbers have a factorial")
    if number > FACTORIAL_MAX:
        raise CannotReckon("the numbers get too large")
    return bounded(Fraction(math.factorial(int(number))), of)


def _whole_root(number: int, degree: int) -> int:
    """Return the largest whole number whose power is at most `number`."""
    if degree == 2:
        return math.isqrt(number)
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low


def _log2(number: Fraction) -> int:
    return abs(number.numerator.bit_length() - number.denominator.bit_length()) + 1


def _decimal(number: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))


def _fraction(number: Decimal) -> Fraction:
    if not number.is_finite():
        raise CannotReckon("the numbers get too large")
    return Fraction(number)


# Values as data and as words: exact where that is short, else to a few digits and said so.

SHOWN_DIGITS: Final = 12
"""Digits of data that are not exact."""
SPOKEN_DIGITS: Final = 6
"""Digits that a person hears of what is not exact."""
EXACT_DIGITS: Final = 15
"""A number of up to so many digits is said as it is."""
_WHOLE_DIGITS_MAX: Final = 60
"""Digits of a whole number as data."""


def shown(value: Value) -> str:
    """Return a value as digits, for data: "391", "0.1", "3.33333333333"."""
    exact = _exact(value.number, _WHOLE_DIGITS_MAX) if value.is_exact else None
    text = exact if exact is not None else _rounded(value.number, SHOWN_DIGITS)
    return f"{text}%" if value.is_percent else text


def is_shown_exactly(value: Value) -> bool:
    """Say whether `shown` is all of the value."""
    return value.is_exact and _exact(value.number, _WHOLE_DIGITS_MAX) is not None


def spoken(value: Value, exact_digits: int = EXACT_DIGITS, digits: int = SPOKEN_DIGITS) -> str:
    """Return a value in words and digits: "391", "about 3.33333", "15 percent".

    Args:
        exact_digits: Up to so many digits it is said as it is.
        digits: The digits that are said of one with more.
    """
    exact = _exact(value.number, exact_digits) if value.is_exact else None
    text = exact if exact is not None else f"about {_aloud(value.number, digits)}"
    return f"{text} percent" if value.is_percent else text


def _exact(number: Fraction, digits_max: int) -> str | None:
    """Return the decimal that a fraction is, or None where it has no end or too many digits."""
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1 or number.denominator.bit_length() > 4 * digits_max:
        return None
    # No fraction whose denominator has so few bits needs more places than that.
    made = Context(prec=5 * digits_max + number.numerator.bit_length()).divide(
        Decimal(number.numerator), Decimal(number.denominator)
    )
    text = f"{made:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if len(text.lstrip("-").replace(".", "").lstrip("0")) <= digits_max else None


def _rounded(number: Fraction, digits: int) -> str:
    made = _decimal_of(number, digits).normalize()
    size = made.adjusted()
    return f"{made:f}" if -7 < size < EXACT_DIGITS else f"{made:E}"


def _aloud(number: Fraction, digits: int) -> str:
    made = _decimal_of(number, digits).normalize()
    size = made.adjusted()
    if -7 < size < EXACT_DIGITS:
        return f"{made:f}"
    return f"{made.scaleb(-size).normalize():f} times 10 to the power of {size}"


def _decimal_of(number: Fraction, digits: int) -> Decimal:
    context = Context(prec=digits, rounding=ROUND_HALF_UP)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


# Arithmetic in words and signs, as one row of tokens: "15 percent of 80", "(3 + 4) / 2".

TEXT_CHARS: Final = 300
TOKENS_MAX: Final = 120
_DIGITS_MAX: Final = 60

_WAYS: Final = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"[‘’`]", "'"),
        (r"\*\*", "^"),
        (r"[×·∙✕]|\bmultiplied by\b|\btimes\b|\bmultiply by\b", "*"),
        (r"[÷∕]|\bdivided by\b|\bdivide by\b|\bover\b", "/"),
        (r"[−–]", "-"),
        (r"∛|\b(?:the )?cubed? root(?: of)?\b|\bcbrt(?: of)?\b", " cbrt "),
        (r"√|\b(?:the )?square root(?: of)?\b|\bsqrt(?: of)?\b|\broot of\b", " sqrt "),
        (r"\b(?:raised )?to the power(?: of)?\b|\braised to(?: the)?\b", "^"),
        (r"\bsquared\b|²", "^2"),
        (r"\bcubed\b|³", "^3"),
        (r"\bincreased by\b|\bplus\b|\badded to\b|\badd\b", "+"),
        (r"\b(?:decreased|reduced) by\b|\bminus\b|\bless\b|\btake away\b", "-"),
        (r"\bper ?cent\b|\bpercent(?:age)?\b|\bpct\b", "%"),
        (r"% ?off(?: of)?\b", " off "),
        (r"\bmodulo\b|\bmod\b", " mod "),
        (r"\bfactorial\b", "!"),
        (r"π", " pi "),
        (r"\bhalf(?: of)?\b(?! past)", " 1/2 of "),
        (r"\bdouble\b|\btwice\b", " 2 * "),
        (r"\btriple\b", " 3 * "),
    )
)
_PARTS: Final = {"third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
                 "eighth": 8, "ninth": 9, "tenth": 10}  # fmt: skip
_PART: Final = re.compile(rf"(?:\b(an?|\d+)[ -])({'|'.join(_PARTS)})s?(?: of)?\b")
_ASKING: Final = re.compile(
    r"^(?:(?:so|and|please|hey|ok|okay)\b,? )*(?:what(?:'s| is| are|s)?|how much(?: is| are)?|"
    r"calculate|compute|work out|solve|evaluate|tell me|find)?\b|"
    r"\b(?:the (?:result|sum|product) of|equals?|is|please)\b|[=?]|(?<![\d.])\.+$|(?<=\d)\.$"
)
_NUMBER: Final = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+")
_TOKEN: Final = re.compile(
    rf"\s*(?:(?P<number>{_NUMBER.pattern})|(?P<sign>[-+*/^()!%])|(?P<word>[a-z]+))"
)
_CURRENCY: Final = re.compile(
    r"[$€£¥]|\b(?:dollars?|euros?|pounds?|eur|usd|gbp|bucks?|quid|francs?)\b"
)
WORDS: Final = frozenset({"sqrt", "cbrt", "of", "off", "mod", "pi", "by", "x"})


@dataclass(frozen=True, slots=True)
class ExpressionToken:
    """A number, or one of the signs and `WORDS`."""

    text: str
    number: Fraction | None = None


def check_length(text: str) -> None:
    """Raise CannotReckon where a text is too long to be looked at."""
    if len(text) > TEXT_CHARS:
        raise CannotReckon(f"that is longer than {TEXT_CHARS} characters")


def tokens(text: str) -> list[ExpressionToken]:
    """Return the tokens of a text.

    Raises:
        CannotReckon: it is too long, or has a word that is no arithmetic.
    """
    check_length(text)
    plain = plain_arithmetic(text)
    found, at = list[ExpressionToken](), 0
    while at < len(plain.rstrip()):
        match = _TOKEN.match(plain, at)
        if match is None:
            raise CannotReckon(f"{plain[at:].split()[0][:20]!r} is no arithmetic")
        at = match.end()
        if (digits := match["number"]) is not None:
            if len(digits) > _DIGITS_MAX:
                raise CannotReckon("a number has too many digits")
            found.append(ExpressionToken(digits, Fraction(Decimal(digits.replace(",", "")))))
        elif (word := match["word"]) is None:
            found.append(ExpressionToken(match["sign"]))
        elif word in WORDS:
            found.append(ExpressionToken("*" if word in ("x", "by") else word))
        else:
            raise CannotReckon(f"{word[:20]!r} is no arithmetic")
        if len(found) > TOKENS_MAX:
            raise CannotReckon("that is too much for one calculation")
    return found


def plain_arithmetic(text: str) -> str:
    """Return a text with digits for number words and signs for the words of arithmetic."""
    plain = " ".join(text.lower().split())
    plain = _CURRENCY.sub(" ", _ASKING.sub(" ", plain))
    plain = with_digits(" ".join(plain.split()))
    plain = _PART.sub(lambda m: f" {m[1] if m[1].isdigit() else 1}/{_PARTS[m[2]]} of ", plain)
    for pattern, replacement in _WAYS:
        plain = pattern.sub(replacement, plain)
    return re.sub(r"\bof (?=[*/+^]|$)|\b(?:the|a|an|and)\b", " ", plain)


def with_digits(plain: str) -> str:
    """Return a text in lower case with digits in place of numbers in words."""
    for number in reversed(numbers(plain)):
        said = plain[number.start : number.end]
        if not number.ordinal and re.search(r"[a-z]{2}", said):
            digits = Decimal(repr(number.value))
            shown = f"{digits.normalize():f}"
            plain = f"{plain[: number.start]}{shown}{plain[number.end :]}"
    return plain


# Expressions: the grammar is above.

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
