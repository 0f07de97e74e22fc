"""The PIN that chosen calls need beside the yes: how it is heard, and how often it may be tried.

LiveKit has none. Its tasks for numbers (`GetDtmfTask`) have the model read the answer, and keep it
in the conversation; who may call a tool is left to the tool.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import re
import time
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caal_node.config.settings import PIN_MIN_DIGITS, Settings
from caal_node.core.errors import ConfigError
from caal_node.core.paths import wrong_pins
from caal_node.core.prompt_files import read
from caal_node.tools.spoken_question import read_answer
from mcp_bridge.core.files import make_private_folder

logger = logging.getLogger("caal_node.tools")

MAX_READ_CHARS: Final = 500
"""Characters that are read of an answer: half a minute of speech. A longer one is no PIN."""
FREE_TRIES: Final = 3
"""Wrong PINs before the first lock-out: speech to text mishears one now and then."""
FIRST_LOCK_S: Final = 60.0
"""Seconds of the first lock-out. Each further wrong PIN doubles them."""
LONGEST_LOCK_S: Final = 3_600.0
"""Seconds of the longest lock-out: 24 tries a day, and so 200 days for half of 10,000 PINs."""
_TOKEN: Final = re.compile(r"\d|[^\W\d_]+")
_DIGITS: Final[Mapping[str, str]] = {
    word: str(digit)
    for name, table in tomllib.loads(read("confirmation.toml")).items()
    if name != "say"
    for word, digit in table["digits"].items()
}


@dataclass(frozen=True, slots=True)
class CountedTry:
    """What counting a try has shown."""

    may_be_compared: bool
    """False where the PIN is locked, somebody else tries one at the same moment, or the try cannot
    be counted."""
    locked_s: float
    """Seconds for which the PIN is locked from now on, if the try is wrong."""


class PinTries:
    """Counts the tries since the last right PIN, in a file for all rooms, processes and restarts of
    this machine: else a new room would have new tries.

    Args:
        file: Its bytes are the tries, and its time is that of the last one.
        now: The seconds of the clock on the wall.
    """

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file: Final = file
        self._now: Final = now

    async def locked_s(self) -> float:
        """Return for how many seconds the PIN cannot be tried."""
        return await asyncio.to_thread(self._locked_s)

    async def count(self) -> CountedTry:
        """Count a try, before it is compared."""
        return await asyncio.to_thread(self._count)

    async def forget(self) -> None:
        """Begin anew, as the PIN was right."""
        try:
            await asyncio.to_thread(self._file.unlink, missing_ok=True)
        except OSError as error:
            logger.error("the wrong PINs stay counted: %s", error)

    def _locked_s(self) -> float:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return 0.0
        except OSError as error:
            logger.error("no PIN is taken, as the wrong ones cannot be counted: %s", error)
            return LONGEST_LOCK_S
        over = found.st_size - FREE_TRIES
        if over < 0:
            return 0.0
        lock_s = min(FIRST_LOCK_S * 2.0 ** min(over, 10), LONGEST_LOCK_S)
        return min(max(found.st_mtime + lock_s - self._now(), 0.0), lock_s)

    def _count(self) -> CountedTry:
        try:
            # First, as a try of another room from here on gives this one a later place.
            before = self._file.stat().st_size if self._file.exists() else 0
            if locked_s := self._locked_s():
                return CountedTry(False, locked_s)
            make_private_folder(self._file.parent)
            with open(self._file, "ab", opener=_private) as file:
                file.write(b".")
                file.flush()
                place = file.tell()
            os.utime(self._file, (self._now(), self._now()))
        except OSError as error:
            logger.error("a PIN is not taken, as it cannot be counted: %s", error)
            return CountedTry(False, LONGEST_LOCK_S)
        return CountedTry(place == before + 1, self._locked_s())


class Pin:
    """The owner's PIN: digits, of which other words are no part ("it's one two three four"), or a
    phrase, which has to be said as a whole and alone."""

    def __init__(self, pin: str, tries: PinTries) -> None:
        tokens = _tokens(pin)
        self._is_phrase: Final = not all(map(str.isdigit, tokens))
        self._words: Final = frozenset(tokens)
        self._hash: Final = _hash(tokens)
        self.tries: Final = tries

    @classmethod
    def of(cls, settings: Settings) -> Pin | None:
        """Return the PIN of the settings; None where they have none.

        Raises:
            ConfigError: It cannot be told from a yes or a no, or is too short.
        """
        if settings.pin is None:
            return None
        pin = settings.pin.get_secret_value()
        if read_answer(pin, "") != "unclear":
            raise ConfigError("CAAL_PIN: it would be taken for a yes or a no. Choose another one.")
        tokens = _tokens(pin)
        if all(map(str.isdigit, tokens)) and len(tokens) < PIN_MIN_DIGITS:
            raise ConfigError(f"CAAL_PIN: write at least {PIN_MIN_DIGITS} digits.")
        return cls(pin, PinTries(wrong_pins()))

    def is_tried(self, words: str) -> bool:
        """Say whether `words` may be meant as a PIN, right or wrong."""
        return bool(self._said(words))

    def may_be_in(self, words: str) -> bool:
        """Say whether `words` have a digit or a word of the PIN in them."""
        return any(each.isdigit() or each in self._words for each in _tokens(words))

    def fits(self, words: str) -> bool:
        """Say whether `words` are the PIN, in the same time for every wrong one."""
        return hmac.compare_digest(_hash(self._said(words)), self._hash)

    def _said(self, words: str) -> list[str]:
        tokens = _tokens(words) if len(words) <= MAX_READ_CHARS else []
        return tokens if self._is_phrase else [each for each in tokens if each.isdigit()]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _tokens(text: str) -> list[str]:
    """Return the digits of a text one by one, said or written, and its other words."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    found: list[str] = _TOKEN.findall(plain)
    return [str(int(each)) if each.isdecimal() else _DIGITS.get(each, each) for each in found]


def _hash(tokens: list[str]) -> bytes:
    return hashlib.sha256("".join(tokens).encode()).digest()
