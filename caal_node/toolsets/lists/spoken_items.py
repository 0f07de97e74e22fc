"""Things said in one breath: "milk, two eggs and mac and cheese" is three of them, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

WORDS_CHARS_MAX: Final = 4_000
"""Characters of what is said at once that are read."""
EDGED_CHARS_MAX: Final = 1_000
"""Characters of one thing with the words around it that are left out."""
ITEM_CHARS_MAX: Final = 200
"""Characters of one thing; a longer one is cut, as it is a whole speech that was misheard."""
ITEMS_MAX: Final = 50
"""Things of one call."""

_ONE_THING: Final = re.compile(
    r"\b(?:ben and jerry|bubble and squeak|cookies and cream|fish and chips"
    r"|bread and butter pudding|half and half|head and shoulders|mac(?:aroni)? and cheese"
    r"|m[uo]m and dad|oil and vinegar|peanut butter and jelly|rhubarb and custard"
    r"|salt and vinegar|sour cream and onion|spaghetti and meatballs|sweet and sour"
    r"|terms and conditions|and (?:a half|a quarter|three quarters))\b",
    re.I,
)
"""What holds an "and" and is no two things."""
_DOING: Final = frozenset(
    """arrange ask bake book borrow bring buy call cancel change check clean collect cook cut drop
    email empty feed fetch fill find finish fix fold go hang help install invite iron lock mail make
    measure meet message move mow order organise organize pack paint pay phone pick plan plant
    polish post practise prepare print prune put read register remind renew repair replace reply
    return ring schedule sell send service sew sign sort study sweep take talk tell text throw tidy
    thank try update vacuum visit walk wash water wrap write""".split()  # noqa: SIM905
)
"""Verbs with which something to do begins: "call Tom and Ann" is one thing to do."""
_BUYING: Final = re.compile(
    r"^(?:(?:please|we need|i need|need|to)\s+)*(?:(?:buy|get|grab|pick up)\s+)?(?:me |us )?", re.I
)
_EDGE: Final = re.compile(
    r"^(?:[-*+•]\s+|\d{1,3}[.)]\s+|\[[ xX]?\]\s*|and\s+|also\s+|plus\s+|some\s+|the\s+|to\s+)+"
    r"|(?:\s+(?:as well|too|please))+$|(?<![\s.!?\"“”])[\s.!?\"“”]++$|^[\s\"“”]+",
    re.I,
)
_COMMA: Final = re.compile(r"(?:(?<!\s)\s+)?(?:[;\n\r]|,(?!\d)|(?<!\d),)\s*")
_AND: Final = re.compile(r"(?<!\s)\s++(?:and(?: also)?|plus|&)\s+", re.I)
_HELD: Final = "\x00"
"""It stands for a blank within what is one thing; no text that is read has it."""


def items_in(words: str, *, to_buy: bool = False) -> tuple[str, ...]:
    """Return the things that `words` name, each once, at most ITEMS_MAX, without "some" and "the".

    An "and" parts two things, except within a known one ("fish and chips") and where it goes on
    with one thing to do ("call Tom and Ann"). For a list of things `to_buy`, "buy" in front is left
    out, and nothing is something to do.
    """
    text = re.sub(r"[ \t]+", " ", words[:WORDS_CHARS_MAX].replace(_HELD, " "))
    if to_buy:
        text = _BUYING.sub("", text.strip(), count=1)
    text = _ONE_THING.sub(lambda match: match[0].replace(" ", _HELD), text)
    pieces = [piece for piece in _COMMA.split(text) if piece.strip()]
    found: dict[str, str] = {}
    for at, piece in enumerate(pieces):
        parts = _AND.split(piece) if at == len(pieces) - 1 else [piece]
        for part in parts if to_buy else _joined(parts, piece):
            name = _plain(part)
            if any(map(str.isalnum, name)):
                found.setdefault(name.casefold(), name)
    return tuple(found.values())[:ITEMS_MAX]


def _joined(parts: Sequence[str], piece: str) -> Sequence[str]:
    """Return the whole piece where it begins with something to do and only goes on with it."""
    begins = [(_plain(part).split() or [""])[0].casefold() in _DOING for part in parts]
    return [piece] if begins[:1] == [True] and not all(begins) else parts


def _plain(part: str) -> str:
    text = part.strip()[:EDGED_CHARS_MAX].replace(_HELD, " ").strip()
    while (shorter := _EDGE.sub("", text).strip()) != text:
        text = shorter
    return " ".join(text.split())[:ITEM_CHARS_MAX].strip()


def spoken_list(names: Sequence[str], most: int = ITEMS_MAX) -> str:
    """Return names as they are said: "milk, eggs and bread"; past `most`: "and 5 more"."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
