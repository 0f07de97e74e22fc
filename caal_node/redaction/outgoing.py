"""Redacts what goes out of a conversation for good: events, logs, traces, transcripts.

What is taken out here cannot be put back, unlike what a model on another machine does not read
(`placeholders.py`). A text loses the secrets that this process knows, what has the shape of one,
and the personal data and folders that the owner's settings name.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

from caal_node.redaction.secret_shapes import (
    REDACTED,
    called_secret,
    without_keys,
    without_secrets,
)
from caal_node.redaction.settings import PersonalKind, RedactionSettings, owner_pattern

# Finds personal data in text: mail addresses, telephone numbers, bank accounts, payment cards.
#
# What has check digits is checked: an IBAN by ISO 13616 (modulo 97), a card by ISO/IEC 7812 (Luhn).
# A telephone number has none (ITU-T E.164: up to 15 digits), so it must begin as one is written,
# with `+`, `00`, `0` or a bracket, or have the form 555-123-4567; dates and decimal numbers are
# left out.
#
# No pattern repeats without a bound, so the time grows with the length of the text alone.

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


# Finds absolute paths of files, and says what is left of one: `~/notes.txt`, `report.pdf`.
#
# A path is known by its root: folders in which people's files and a system's own lie. An address
# (`https://host/home/x`) and an API's route (`/api/tools`) are none. A name with spaces ends at the
# first one.

_PART: Final = r"[\w.+@%~=-]{0,254}[\w+@%~=-]"
"""A name of a folder or file. A full stop behind it is the sentence's."""
_POSIX: Final = re.compile(
    rf"(?<![\w./~\\-])(?P<home>/home/{_PART}|/Users/{_PART}|/root(?![\w.-]))?"
    r"(?(home)|/(?:etc|var|tmp|opt|srv|mnt|media|usr|private|Volumes|data|run|home|Users|workspace)"
    rf"(?![\w.-]))(?P<rest>(?:/{_PART}){{0,32}})"
)
_WINDOWS: Final = re.compile(
    rf"(?<![\w])[A-Za-z]:(?P<sep>\\\\?)(?P<home>Users(?P=sep){_PART}(?:(?P=sep)|(?![\w.\\-])))?"
    rf"(?P<rest>{_PART}(?:(?P=sep){_PART}){{0,32}})?"
)


def find_paths(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each path begins and ends, and what is shown of it."""
    if "/" in text:
        for found in _POSIX.finditer(text):
            if found["home"]:
                yield *found.span(), f"~{found['rest']}"
            elif found["rest"]:
                yield *found.span(), found["rest"].rpartition("/")[2]
    if ":\\" in text:
        for found in _WINDOWS.finditer(text):
            sep, rest = found["sep"], found["rest"] or ""
            if found["home"]:
                yield *found.span(), f"~{sep}{rest}" if rest else "~"
            elif sep in rest:
                yield *found.span(), rest.rpartition(sep)[2]


MAX_CHARS: Final = 65_536
"""Characters of one text that are looked through, some 4 ms. The rest is cut off: twice what a
call's arguments may have, and more than anybody reads of a log's line."""
MAX_DEPTH: Final = 32
"""Levels of a value. Arguments of tools have three or four."""
NAMES: Final = frozenset({"call_id", "tool", "tier", "source", "outcome", "kind", "names"})
"""Fields of events that are names, or lists of such, and hold nothing that anybody said."""
_Record = TypeVar("_Record")


class OutgoingRedaction:
    """Redacts texts and values. `by_value` takes out the secrets that are known by their value."""

    def __init__(
        self, settings: RedactionSettings, by_value: Callable[[str], str] = lambda text: text
    ) -> None:
        self._by_value: Final = by_value
        self._personal: Final = personal_finders(settings)
        self._paths: Final = settings.paths

    def text(self, text: str) -> str:
        """Return `text` redacted, and cut to MAX_CHARS."""
        if len(text) > MAX_CHARS:
            text = f"{text[:MAX_CHARS]}…"
        return self._without_places(without_secrets(self._by_value(text)))

    def _without_places(self, text: str) -> str:
        """Return `text` without personal data and folders."""
        for name, find in self._personal:
            text = replaced(text, ((*span, f"[{name}]") for span in find(text)))
        return replaced(text, find_paths(text)) if self._paths else text

    def words(self, text: str) -> str:
        """Return a part of a text without secrets. Personal data, several words, stays."""
        return without_keys(self._by_value(text))

    def value(self, value: Any) -> Any:
        """Return a JSON value redacted in its texts and keys."""
        return _value(value, self.text)

    def record(self, record: _Record) -> _Record:
        """Return a dataclass with its texts and tables redacted; itself where nothing was found."""
        texts: list[str] = []

        def note(text: str) -> str:
            texts.append(text)
            return text

        noted = _record(record, note)
        # Mostly there is no secret, and then one search of all texts together says so.
        whole = _APART.join(texts)
        if len(whole) > MAX_CHARS or without_secrets(self._by_value(whole)) != whole:
            return _record(record, self.text)
        return _record(noted, self._without_places) if self._personal or self._paths else noted


_APART: Final = "\n\0"
"""Keeps texts apart: nothing that is found in one of them ends or goes on behind it. No value of a
password has a line's end in it, and no word but a text's first one begins behind the other."""


def _value(value: Any, redact: Callable[[str], str], depth: int = 0) -> Any:
    if isinstance(value, str):
        return redact(value)
    if depth > MAX_DEPTH:
        return REDACTED
    if isinstance(value, Mapping):
        return {
            _value(key, redact): _named(key, each, redact, depth)
            for key, each in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple):
        return [_value(each, redact, depth + 1) for each in cast("Iterable[Any]", value)]
    return value


def _named(key: object, value: Any, redact: Callable[[str], str], depth: int) -> Any:
    if isinstance(key, str) and isinstance(value, str) and called_secret(key, value):
        return REDACTED
    return _value(value, redact, depth + 1)


def _record(record: _Record, redact: Callable[[str], str]) -> _Record:
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(cast("Any", record)):
        value: object = getattr(record, field.name)
        if field.name in NAMES or not value:
            continue
        if isinstance(value, str | Mapping):
            found: object = _value(value, redact)
        elif isinstance(value, tuple):  # of dataclasses, as the decisions about a call, or of texts
            found = tuple([_part(each, redact) for each in cast("tuple[Any, ...]", value)])
        else:
            continue
        if found != value:
            changed[field.name] = found
    return dataclasses.replace(cast("Any", record), **changed) if changed else record


def _part(part: Any, redact: Callable[[str], str]) -> Any:
    return _record(part, redact) if dataclasses.is_dataclass(part) else _value(part, redact)


def replaced(text: str, finds: Iterable[tuple[int, int, str]]) -> str:
    """Return `text` with each find's words in its place. Finds come in order, none overlaps."""
    parts: list[str] = []
    done = 0
    for start, end, words in finds:
        parts += (text[done:start], words)
        done = end
    return "".join((*parts, text[done:])) if parts else text
