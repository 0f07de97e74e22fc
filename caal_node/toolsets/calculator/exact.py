"""Exact values, and the few operations that cannot be: roots, pi, and powers that are no integer.

Everything is a fraction. What is not exact is one to fifty digits, and says so. No operation gives
a value of more than `BITS_MAX` bits, so that none takes long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Final

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
