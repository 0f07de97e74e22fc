r"""What is taken out of texts that leave the conversation: the table `[redaction]` of caal.toml.

[redaction]
personal = ["email", "phone"]
patterns = {customer = 'KD-\d{6}'}
paths = true
local_models = true
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from caal_node.core.given_table import GivenTable, json_object

# Finds what an owner's regular expression describes, in time that grows with the text alone.
#
# Python's own engine may take for ever on a text that somebody else wrote, so patterns go to Rust's
# (`mcp_bridge.security.patterns`), which says whether a text matches and not where. So a pattern is
# tried on whole words: what it finds begins where a word or a sign begins, and ends where one ends.

MAX_PATTERN_CHARS: Final = 240
"""Characters of a pattern; the engine takes sixteen more, which go around it."""
MAX_FOUND_CHARS: Final = 128
"""Characters of one find. Names, addresses and numbers of customers are shorter."""
MAX_FOUND_WORDS: Final = 24
"""Words and signs of one find: `+49 (0) 170 / 123 45 67` has twelve."""
MAX_TRIES: Final = 4_000
"""Tries of one pattern on one text: 5 ms. Only a text that is made for it has more places that
begin like a find and are none; what is left of such a text counts as found."""
_WORD: Final = re.compile(r"\w+|[^\w\s]")
_FORM: Final = "^(?:{})"


@dataclass(frozen=True, slots=True)
class OwnerPattern:
    """One pattern, ready to be looked for."""

    is_in: Callable[[str], bool]
    begins: Callable[[str], bool]
    """Whether a text begins with a find."""
    is_all: Callable[[str], bool]
    """Whether a text is a find from its beginning to its end."""

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where each find begins and ends, the first and then the longest one first."""
        if not self.is_in(text):
            return
        words = [found.span() for found in _WORD.finditer(text)]
        tries, at = 0, 0
        while at < len(words):
            start = words[at][0]
            tries += 1
            if tries > MAX_TRIES:
                yield start, len(text)
                return
            if not self.begins(text[start : start + MAX_FOUND_CHARS]):
                at += 1
                continue
            last = min(at + MAX_FOUND_WORDS, len(words)) - 1
            while last >= at and words[last][1] - start > MAX_FOUND_CHARS:
                last -= 1
            while last >= at and not self.is_all(text[start : words[last][1]]):
                last, tries = last - 1, tries + 1
            if last >= at:
                yield start, words[last][1]
            at = max(last, at) + 1


@lru_cache(maxsize=128)
def owner_pattern(text: str) -> OwnerPattern:
    """Compile a pattern.

    Raises:
        ValueError: It cannot be looked for in bounded time, or it finds nothing or everywhere.
    """
    # Here, as the bridge takes a second to import, and most settings have no patterns.
    from mcp_bridge.security.patterns import compiled

    if not 0 < len(text) <= MAX_PATTERN_CHARS:
        raise ValueError(f"write a pattern of 1 to {MAX_PATTERN_CHARS} characters")
    forms = [compiled(form) for form in (text, _FORM.format(text), _FORM.format(text) + "$")]
    plain, begins, is_all = forms
    if plain is None or begins is None or is_all is None:
        raise ValueError(
            "this is no pattern that can be looked for in bounded time; write one without "
            "look-ahead, look-behind, back references, flags and huge repetitions"
        )
    if plain.is_in(""):
        raise ValueError("it finds nothing at all, too; have it ask for at least one character")
    return OwnerPattern(plain.is_in, begins.is_in, is_all.is_in)


PersonalKind: TypeAlias = Literal["email", "phone", "iban", "card"]
"""Kinds of personal data that are known: addresses for mail, telephone numbers, international
numbers of bank accounts, numbers of payment cards."""
MAX_PATTERNS: Final = 32
"""Each costs a search of every text: some 2 us in 6,000 characters that do not hold it."""
MAX_NAME_CHARS: Final = 24
"""Characters of a pattern's name, which stands in the text in place of what it found."""
_NAME: Final = re.compile(rf"[a-z][a-z0-9_-]{{0,{MAX_NAME_CHARS - 1}}}")
_ENDINGS: Final = {"secret", "path", "email", "phone", "iban", "card"}


def _pattern(text: str) -> str:
    owner_pattern(text)
    return text


def _named(patterns: Mapping[str, str]) -> Mapping[str, str]:
    for name in patterns:
        if not _NAME.fullmatch(name) or name in _ENDINGS:
            raise ValueError(
                f"{name!r} cannot name a pattern; write up to {MAX_NAME_CHARS} small letters and "
                f"digits, and none of {', '.join(sorted(_ENDINGS))}"
            )
    return patterns


class RedactionSettings(GivenTable):
    """What is redacted, beside the secrets that this process knows by their value.

    Those, and what looks like a secret, are taken out of what cloud models read and of events,
    logs, traces and transcripts in any case.
    """

    personal: tuple[PersonalKind, ...] = ()
    """Kinds that are found without a pattern of the owner's."""
    patterns: Annotated[
        Mapping[str, Annotated[str, AfterValidator(_pattern)]],
        AfterValidator(_named),
        Field(max_length=MAX_PATTERNS),
    ] = {}
    """Regular expressions of further personal data by name, such as `customer`."""
    paths: bool = False
    """Whether folders of files are left out: `~/notes.txt` and `notes.txt` stay of whole paths."""
    local_models: bool = False
    """Whether models on this machine and in its own network read redacted texts, too."""
    secret_shapes: bool = True
    """Whether results of tools lose what looks like a key, whichever model reads them. A tool that
    hands out keys for other tools needs it off."""


def _table(value: Any) -> Any:
    return json_object(value, '{"personal": ["email"]}')


Redactions: TypeAlias = Annotated[RedactionSettings, BeforeValidator(_table)]
