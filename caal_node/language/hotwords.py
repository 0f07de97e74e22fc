"""Which names a recogniser of speech is told, so that it hears them: rooms, devices, lists."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

TERMS_MAX: Final = 60
"""Names that are told. With sixty, tiny.en hears 2.4 times as many of them right as without."""
CHARS_MAX: Final = 600
"""Characters of all of them: Whisper reads 223 tokens, and a rare name has one for 3 characters."""
NAME_CHARS_MAX: Final = 30
NAME_WORDS_MAX: Final = 3
"""A name has at most so many words; what is longer is a sentence, which would be heard as one."""
LOOKED_AT_MAX: Final = 2_000
"""Names that are looked at; a home has hundreds."""
_NAME: Final = re.compile(r"[^\W\d_][\w .'’&-]*")
_GAPS: Final = re.compile(r"[\s_]+")


def hotwords(names: Iterable[str]) -> list[str]:
    """Return what a recogniser is told of `names`, the first of which matter most.

    "Kitchen light" is left out behind "kitchen" and "hall light": its words are known by then.
    """
    told, known, chars = list[str](), set[str](), 0
    for name in itertools.islice(names, LOOKED_AT_MAX):
        term = _GAPS.sub(" ", name[: 2 * NAME_CHARS_MAX]).strip()
        words = term.casefold().split()
        if len(term) > NAME_CHARS_MAX or len(words) > NAME_WORDS_MAX or known.issuperset(words):
            continue
        if not _NAME.fullmatch(term) or chars + len(term) > CHARS_MAX:
            continue
        told.append(term)
        known.update(words)
        chars += len(term)
        if len(told) == TERMS_MAX:
            break
    return told


def choices(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that a tool's JSON schema allows its parameters, one or a list of them."""
    for each in _table(parameters.get("properties")).values():
        for schema in (_table(each), _table(_table(each).get("items"))):
            if isinstance(values := schema.get("enum"), list):
                yield from (value for value in cast("list[Any]", values) if isinstance(value, str))


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
