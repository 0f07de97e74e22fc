"""Brings words about time into one form: small letters, numbers in digits, units written out."""

from __future__ import annotations

import re
from typing import Final

from caal_node.grounding.spoken_numbers import Number, numbers

TEXT_CHARS: Final = 200
"""Characters of one text that are read. People say a time in a few words."""

_ORDINALS: Final = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *("seventeenth", "eighteenth", "nineteenth", "twentieth"),
)
_ORDINAL_OF: Final = {
    **{word: at for at, word in enumerate(_ORDINALS, 1)},
    "thirtieth": 30,
    **{f"twenty {word}": 20 + at for at, word in enumerate(_ORDINALS[:9], 1)},
    "thirty first": 31,
}
_ORDINAL: Final = re.compile(
    rf"\b({'|'.join(sorted(_ORDINAL_OF, key=len, reverse=True)).replace(' ', '[ -]')})\b(?! half)"
)
_UNIT: Final = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_REWRITTEN: Final = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"[‘’]", "'"),
        (r"[\s ]+", " "),
        (r"\b([ap])\.? ?m\b\.?", r"\1m"),
        (r"\bo'? ?clock\b", "o'clock"),
        (r"\b(\d{1,2})\.([0-5]\d)\b(?! ?(?:h|m|s|d|w))", r"\1:\2"),
        (r"\b(\d{1,2})h ?([0-5]\d)(?:m|mins?)?\b", r"\1 hours \2 minutes"),
        (r"(\d) ?-?(?:h|hrs?)\b", r"\1 hours"),
        (r"(\d) ?-?(?:m|mins?)\b", r"\1 minutes"),
        (r"(\d) ?-?(?:s|secs?)\b", r"\1 seconds"),
        (rf"(\w)-({_UNIT})\b", r"\1 \2"),
        (
            r"(?<!and )(?<!and a )\b(half|quarter)[ -](second|minute|hour|day|year)\b",
            r"\1 of an \2",
        ),
        (r"\bhalf of an? ", "half an "),
        (r"\ba couple(?: of)? ", "2 "),
        (rf"(?<!half )(?<!of )\ban? ({_UNIT})\b(?! and an? (?:half|quarter))", r"1 \1"),
        (
            r"\bhalf (?=(?:\d|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b)",
            "half past ",
        ),
        (r"\b(\w+) oh (\w+)\b", r"\1 0 \2"),
    )
)
_ONE_OF_TIME: Final = re.compile(
    r"(?:\b(?:at|by|from|to|past|until|till|between|and|before|after|around|about|for|in)\s)$"
)


def plain_words(text: str) -> str:
    """Return the first TEXT_CHARS of `text` in the one form that the other modules read.

    "Half an hour" stays as it is, "half hour" becomes it; "7 p.m." becomes "7 pm", "third" "3rd".
    """
    text = " ".join(text[:TEXT_CHARS].lower().split())
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    text = _ORDINAL.sub(lambda match: f"{_ORDINAL_OF[match[1].replace('-', ' ')]}th", text)
    for number in reversed(numbers(text)):
        if _is_said_in_words(text, number):
            text = f"{text[: number.start]}{number.value:g}{text[number.end :]}"
    return text


def _is_said_in_words(text: str, number: Number) -> bool:
    if not number.is_word or number.ordinal or text.startswith(" quarters", number.end):
        return False
    if not number.is_bare_one:
        return True
    behind = re.match(rf"(?: {_UNIT}|o'clock| [ap]m| \d\d)\b", text[number.end :])
    before = _ONE_OF_TIME.search(text, 0, number.start)
    return behind is not None or (before is not None and text[number.end :][:2] != " o")
