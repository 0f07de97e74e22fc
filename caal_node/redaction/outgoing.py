"""Redacts what goes out of a conversation for good: events, logs, traces, transcripts.

What is taken out here cannot be put back, unlike what a model on another machine does not read
(`placeholders.py`). A text loses the secrets that this process knows, what has the shape of one,
and the personal data and folders that the owner's settings name.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast

from caal_node.redaction.personal_data import personal_finders
from caal_node.redaction.secret_shapes import (
    REDACTED,
    called_secret,
    without_keys,
    without_secrets,
)
from caal_node.redaction.settings import RedactionSettings

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
        text = without_secrets(self._by_value(text))
        for name, find in self._personal:
            text = replaced(text, ((*span, f"[{name}]") for span in find(text)))
        return replaced(text, find_paths(text)) if self._paths else text

    def words(self, text: str) -> str:
        """Return a part of a text without secrets. Personal data, several words, stays."""
        return without_keys(self._by_value(text))

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON value redacted in its texts and keys."""
        if isinstance(value, str):
            return self.text(value)
        if depth > MAX_DEPTH:
            return REDACTED
        if isinstance(value, Mapping):
            return {
                self.value(key): self._named(key, each, depth)
                for key, each in cast("Mapping[Any, Any]", value).items()
            }
        if isinstance(value, list | tuple):
            return [self.value(each, depth + 1) for each in cast("Iterable[Any]", value)]
        return value

    def record(self, record: _Record) -> _Record:
        """Return a dataclass with its texts and tables redacted; itself where nothing was found."""
        changed: dict[str, Any] = {}
        for field in dataclasses.fields(cast("Any", record)):
            value: object = getattr(record, field.name)
            if field.name in NAMES or not value:
                continue
            if isinstance(value, str | Mapping):
                found: object = self.value(value)
            elif isinstance(value, tuple):  # of dataclasses: the decisions about a call
                found = tuple(map(self.record, cast("tuple[Any, ...]", value)))
            else:
                continue
            if found != value:
                changed[field.name] = found
        return dataclasses.replace(cast("Any", record), **changed) if changed else record

    def _named(self, key: object, value: Any, depth: int) -> Any:
        if isinstance(key, str) and isinstance(value, str) and called_secret(key, value):
            return REDACTED
        return self.value(value, depth + 1)


def replaced(text: str, finds: Iterable[tuple[int, int, str]]) -> str:
    """Return `text` with each find's words in its place. Finds come in order, none overlaps."""
    parts: list[str] = []
    done = 0
    for start, end, words in finds:
        parts += (text[done:start], words)
        done = end
    return "".join((*parts, text[done:])) if parts else text
