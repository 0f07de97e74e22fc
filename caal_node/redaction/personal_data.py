"""Finds personal data in text: mail addresses, telephone numbers, bank accounts, payment cards.

What has check digits is checked: an IBAN by ISO 13616 (modulo 97), a card by ISO/IEC 7812 (Luhn). A
telephone number has none (ITU-T E.164: up to 15 digits), so it must begin as one is written, with
`+`, `00`, `0` or a bracket, or have the form 555-123-4567; dates and decimal numbers are left out.

No pattern repeats without a bound, so the time grows with the length of the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from caal_node.redaction.settings import PersonalKind, RedactionSettings, owner_pattern

Find: TypeAlias = Callable[[str], Iterator[tuple[int, int]]]
"""It yields where finds of one kind begin and end."""

_MAIL_BEFORE: Final = re.compile(r"[\w.%+-]{1,64}$")
_MAIL_AFTER: Final = re.compile(r"@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])")
_MAIL_NAME_CHARS: Final = 64
"""Characters in front of the `@` (RFC 5321, section 4.5.3.1.1)."""
_PHONE: Final = re.compile(
    r"(?<![\w.,/+-])(?:(?:\+|00|0|\(0?)\d[\d ()/.\u00a0-]{4,24}\d|\d{3}[ .-]\d{3}[ .-]\d{4})"
    r"(?![\w])"
)
_DATE: Final = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{2,4}(?:\D.*)?|0\d{0,2}[.,]\d+", re.DOTALL)
_PHONE_DIGITS: Final = range(7, 16)
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_CARD: Final = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w])")


def personal_finders(settings: RedactionSettings) -> tuple[tuple[str, Find], ...]:
    """Return the kinds that `settings` switch on, by name; an earlier one wins over a later one."""
    # A card and an account hold digits that would pass for a telephone number.
    order: Sequence[PersonalKind] = ("email", "iban", "card", "phone")
    own = ((name, owner_pattern(text).find) for name, text in settings.patterns.items())
    return (*own, *((kind, _KINDS[kind]) for kind in order if kind in settings.personal))


def _emails(text: str) -> Iterator[tuple[int, int]]:
    at, done = text.find("@"), 0
    while at >= 0:
        after = _MAIL_AFTER.match(text, at)
        start = max(done, at - _MAIL_NAME_CHARS)
        before = _MAIL_BEFORE.search(text[start:at]) if after else None
        if after is not None and before is not None:
            done = after.end()
            yield start + before.start(), done
        at = text.find("@", at + 1)


def _phones(text: str) -> Iterator[tuple[int, int]]:
    for found in _PHONE.finditer(text):
        digits = sum(map(str.isdigit, found[0]))
        if digits in _PHONE_DIGITS and not _DATE.fullmatch(found[0]):
            yield found.span()


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    for found in _IBAN.finditer(text):
        end = found.end()
        # Capitals may follow it as words of their own.
        while end > found.start() and not _is_iban(text[found.start() : end]):
            end = text.rfind(" ", found.start(), end)
        if end > found.start():
            yield found.start(), end


def _is_iban(written: str) -> bool:
    number = written.replace(" ", "")
    if not 15 <= len(number) <= 34:
        return False
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for found in _CARD.finditer(text):
        digits = [int(char) for char in found[0] if char.isdigit()]
        doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
        if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and any(digits):
            yield found.span()


_KINDS: Final[Mapping[PersonalKind, Find]] = {
    "email": _emails,
    "phone": _phones,
    "iban": _ibans,
    "card": _cards,
}
