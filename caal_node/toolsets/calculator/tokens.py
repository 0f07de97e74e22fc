"""Arithmetic in words and signs, as one row of tokens: "15 percent of 80", "(3 + 4) / 2"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from caal_node.grounding.spoken_numbers import numbers
from caal_node.toolsets.calculator.exact import CannotReckon

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
