"""Tool names: what a model may say for a workflow's name."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

MAX_NAME_CHARS = 64
"""The longest name that OpenAI-style APIs take."""
HASH_CHARS = 6
"""16 million values: enough to keep the few names apart that collide."""

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]+")
_UNDIVIDED_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE"})


@dataclass(frozen=True, slots=True)
class NameCandidate:
    """A tool that wants a name."""

    key: str
    """Its identity, which never changes: workflow id and node id."""
    wanted: str
    age: str
    """Older tools sort first. The oldest of those that want one name gets it."""


def sanitise(text: str) -> str:
    """`Ünïcode tööl! (v2)` becomes `Unicode_tool_v2`; an empty string if no letter is left."""
    plain = unicodedata.normalize("NFKD", text.translate(_UNDIVIDED_LETTERS))
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return _FORBIDDEN.sub("_", plain).strip("_-")


def assign_names(
    candidates: Iterable[NameCandidate], before: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Give each key an allowed name, no two alike, whatever the order of the candidates.

    `before` holds the names of the last time. A key keeps its name as long as that is still one of
    the two that it could have, so that nothing is renamed because something else came or went.
    """
    ordered = sorted(candidates, key=lambda c: (c.age, c.key))
    plain = {c.key: _plain(c) for c in ordered}
    names: dict[str, str] = {}
    taken: set[str] = set()

    def give(key: str, name: str) -> bool:
        if key in names or _folded(name) in taken:
            return False
        names[key] = name
        taken.add(_folded(name))
        return True

    for key, name in plain.items():
        old = (before or {}).get(key)
        if old in (name, _hashed(name, key)):
            give(key, old)
    for key, name in plain.items():
        give(key, name)
    for key, name in plain.items():
        if key not in names:
            next(filter(lambda hashed: give(key, hashed), _hashed_names(name, key)))
    return names


def _plain(candidate: NameCandidate) -> str:
    name = sanitise(candidate.wanted)
    if not name:
        return _hashed("workflow", candidate.key)
    return name if len(name) <= MAX_NAME_CHARS else _hashed(name, candidate.key)


def _hashed_names(name: str, key: str) -> Iterator[str]:
    return (_hashed(name, key + "'" * times) for times in count())


def _hashed(name: str, key: str) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()[:HASH_CHARS]
    return f"{name[: MAX_NAME_CHARS - HASH_CHARS - 1].rstrip('_-')}_{digest}"


def _folded(name: str) -> str:
    # `My-Weather` and `my_weather` are different names to a program and one name to a model.
    return name.casefold().replace("-", "_")
