"""What words say of looking something up in documents: what asks, what is a guess, what denies.

The patterns are in `prompts/looked_up.toml`. Words of another language ask where they end in a
question mark, and are guesses never.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from caal_node.core.prompt_files import read
from caal_node.grounding.request_words import answerable

QUESTION_CHARS: Final = 1_000
"""Characters of a person's words that are read: a minute of speech."""
REPLY_CHARS: Final = 1_000
"""Characters of a reply that are read. A guess shows early."""
_WORDS: Final[dict[str, Any]] = tomllib.loads(read("looked_up.toml"))["en"]
_SPACE: Final = re.compile(r"[\s,;]+")
_MARKS: Final = str.maketrans({"’": "'", "‘": "'", "*": None, "`": None, "_": " "})


def _any(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_ASKS: Final = _any(_WORDS["asks"])
_POLITE: Final = _any(_WORDS["polite"])
_BACK: Final = re.compile(_WORDS["back"])
_OWN: Final = re.compile(_WORDS["own"])
_GUESSES: Final = _any(_WORDS["guesses"])
_DENIES: Final = re.compile(_WORDS["denies"])


def asks(words: str) -> bool:
    """Say whether a person wants to know something, beyond small talk: "could you tell me ..."."""
    text = _behind_politeness(_plain(words, QUESTION_CHARS))
    if not text or answerable(text, "en") == "talk":
        return False
    return bool(_ASKS.match(text)) or _only_asks(words)


def asks_of_own(words: str) -> bool:
    """Say whether a person asks of something of theirs, which a model cannot know."""
    return asks(words) and bool(_OWN.search(_plain(words, QUESTION_CHARS)))


def refers_back(words: str) -> bool:
    """Say whether a person's words mean something that was said before: "and how much is it?"."""
    return bool(_BACK.search(_plain(words, QUESTION_CHARS)))


def is_guess(reply: str) -> bool:
    """Say whether a reply guesses, or says that it does not know."""
    return bool(_GUESSES.search(_plain(reply, REPLY_CHARS)))


def denies(reply: str) -> bool:
    """Say whether a reply says that a text does not tell what was asked."""
    return bool(_DENIES.search(_plain(reply, REPLY_CHARS)))


def _only_asks(words: str) -> bool:
    """Say whether words end in a question mark and do not ask that something be done."""
    said = words.rstrip("\"'”’ )")
    return said.endswith(("?", "？")) and not _POLITE.match(_plain(words, QUESTION_CHARS))


def _behind_politeness(text: str) -> str:
    while (found := _POLITE.match(text)) is not None:
        text = text[found.end() :].lstrip()
    return text


def _plain(text: str, most: int) -> str:
    return _SPACE.sub(" ", text[:most].translate(_MARKS)).strip().casefold()
