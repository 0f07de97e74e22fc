"""Values as data and as words: exact where that is short, else to a few digits and said so."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Final

from caal_node.toolsets.calculator.exact import Value

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
    made = _decimal(number, digits).normalize()
    size = made.adjusted()
    return f"{made:f}" if -7 < size < EXACT_DIGITS else f"{made:E}"


def _aloud(number: Fraction, digits: int) -> str:
    made = _decimal(number, digits).normalize()
    size = made.adjusted()
    if -7 < size < EXACT_DIGITS:
        return f"{made:f}"
    return f"{made.scaleb(-size).normalize():f} times 10 to the power of {size}"


def _decimal(number: Fraction, digits: int) -> Decimal:
    context = Context(prec=digits, rounding=ROUND_HALF_UP)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))
