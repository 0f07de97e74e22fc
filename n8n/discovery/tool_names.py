"""Tool names: what a model may say for a workflow's name."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_NAME_CHARS = 64
"""The longest name that OpenAI-style APIs take."""
HASH_CHARS = 6
"""16 million values: enough to keep the few names apart that collide."""

_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]+")
_LETTERS_WITHOUT_PARTS = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that wants a name."""

    key: str
    """What it is, for good: workflow id and node id."""
    wanted: str
    age: str
    """Sorts older first. The oldest of those that want one name gets it."""


def sanitise(text: str) -> str:
    """`Ünïcode tööl! (v2)` -> `Unicode_tool_v2`; an empty string when no letter is left."""
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS_WITHOUT_PARTS))
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return _OUTSIDE.sub("_", plain).strip("_-")


def assign(
    candidates: Iterable[Candidate], before: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A name for each key: allowed, no two alike, the same whatever the order of the candidates.

    `before` holds the names of the last time. A key keeps its name as long as that is still one of
    the two that it could have, so that nothing is renamed because something else came or went.
    """
    ordered = sorted(candidates, key=lambda c: (c.age, c.key))
    plain = {c.key: _plain(c) for c in ordered}
    names: dict[str, str] = {}
    taken: set[str] = set()

    def give(key: str, name: str) -> None:
        names[key] = name
        taken.add(_folded(name))

    for c in ordered:
        old = (before or {}).get(c.key)
        if old in (plain[c.key], _marked(plain[c.key], c.key)) and _folded(old) not in taken:
            give(c.key, old)
    for c in ordered:
        if c.key not in names and _folded(plain[c.key]) not in taken:
            give(c.key, plain[c.key])
    for c in ordered:
        mark, name = c.key, _marked(plain[c.key], c.key)
        while c.key not in names:
            if _folded(name) not in taken:
                give(c.key, name)
            mark += "'"
            name = _marked(plain[c.key], mark)
    return names


def _plain(candidate: Candidate) -> str:
    name = sanitise(candidate.wanted)
    if not name:
        return _marked("workflow", candidate.key)
    return name if len(name) <= MAX_NAME_CHARS else _marked(name, candidate.key)


def _marked(name: str, key: str) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()[:HASH_CHARS]
    return f"{name[: MAX_NAME_CHARS - HASH_CHARS - 1].rstrip('_-')}_{digest}"


def _folded(name: str) -> str:
    # `My-Weather` and `my_weather` are different names to a program and one name to a model.
    return name.casefold().replace("-", "_")
