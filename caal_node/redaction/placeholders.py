"""What a model on another machine reads in place of secrets, personal data and folders.

A secret becomes `***`, for good. A person's data becomes a placeholder with a number, such as
`[email 1]`, and the same data always the same one, so that a prompt's beginning stays the same
from turn to turn. Where the model repeats a placeholder of its prompt, in a call's arguments or in
speech, it is put back: "mail it to her" works, and the address has not left this machine.

Only placeholders of the prompt at hand are put back. A model that makes one up, or another
conversation's, gets nothing for it.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from caal_node.redaction.outgoing import find_paths, personal_finders, replaced
from caal_node.redaction.secret_shapes import without_secrets
from caal_node.redaction.settings import MAX_NAME_CHARS, RedactionSettings

MAX_PLACEHOLDERS: Final = 10_000
"""Numbers that one connection to a model gives out. What comes later has no number, and is not put
back; an hour of talk has some dozens."""
TEXTS_KEPT: Final = 1_024
"""Texts whose redaction is remembered: a window has some hundred, and all but the last few were
in the prompt before."""
_PLACEHOLDER: Final = re.compile(r"\[[a-z][a-z0-9_-]* [1-9]\d{0,4}\]")
PLACEHOLDER_CHARS: Final = MAX_NAME_CHARS + 8
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
"""What can be put back within JSON text as well as within speech."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A text as the model reads it, and what stands behind its placeholders and short paths."""

    text: str
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    paths: Mapping[str, str] = field(default_factory=dict[str, str])


class PromptRedaction:
    """Redacts the texts of one conversation's prompts.

    `by_value` takes out the secrets that are known by their value; it must not change, as what was
    redacted once is remembered.
    """

    def __init__(
        self, settings: RedactionSettings, by_value: Callable[[str], str] = lambda text: text
    ) -> None:
        self._by_value: Final = by_value
        self._personal: Final = personal_finders(settings)
        self._paths: Final = settings.paths
        self._given: Final[dict[tuple[str, str], str]] = {}
        self._counts: Final[dict[str, int]] = {}
        self._known: Final[OrderedDict[str, Shown]] = OrderedDict()

    def is_known(self, text: str) -> bool:
        """Return whether `text` was redacted lately, so that it costs nothing now."""
        return text in self._known

    def shown(self, text: str) -> Shown:
        """Return `text` as the model reads it."""
        if (known := self._known.get(text)) is not None:
            self._known.move_to_end(text)
            return known
        self._known[text] = known = self._shown(text)
        if len(self._known) > TEXTS_KEPT:
            self._known.popitem(last=False)
        return known

    def shown_json(self, text: str) -> Shown:
        """Return JSON as the model reads it: it stays JSON, also where a number was found."""
        plain = self.shown(text)
        if plain.text == text:
            return plain
        values, paths = dict(plain.values), dict(plain.paths)

        def show(each: str) -> str:
            shown = self.shown(each)
            values.update(shown.values)
            paths.update(shown.paths)
            return shown.text

        try:
            found = mapped_texts(json.loads(text), show, numbers=True)
        except (ValueError, RecursionError):
            return plain
        return Shown(json.dumps(found, ensure_ascii=False, separators=(",", ":")), values, paths)

    def _shown(self, text: str) -> Shown:
        values: dict[str, str] = {}
        paths: dict[str, str] = {}
        text = without_secrets(self._by_value(text))
        for name, find in self._personal:
            spans = [(*span, self._placeholder(name, text[slice(*span)])) for span in find(text)]
            values |= {words: text[start:end] for start, end, words in spans}
            text = replaced(text, spans)
        if self._paths:
            found = list(find_paths(text))
            for start, end, words in found:
                # Two folders may have files of one name: then nobody can say which is meant.
                known = paths.setdefault(words, text[start:end])
                paths[words] = known if known == text[start:end] else ""
            text = replaced(text, found)
        return Shown(text, {words: value for words, value in values.items() if " " in words}, paths)

    def _placeholder(self, name: str, value: str) -> str:
        if (given := self._given.get((name, value))) is not None:
            return given
        if len(self._given) >= MAX_PLACEHOLDERS or not _PLAIN.fullmatch(value):
            return f"[{name}]"
        number = self._counts[name] = self._counts.get(name, 0) + 1
        self._given[name, value] = given = f"[{name} {number}]"
        return given


class Restoring:
    """Puts back what one prompt's placeholders stand for, in the reply to it."""

    def __init__(self) -> None:
        self._values: Final[dict[str, str]] = {}
        self._paths: Final[dict[str, str]] = {}
        self._held = ""

    def __bool__(self) -> bool:
        return bool(self._values or self._paths)

    def note(self, shown: Shown) -> str:
        """Remember what stands behind the placeholders of one of the prompt's texts; return it."""
        self._values.update(shown.values)
        for words, path in shown.paths.items():
            known = self._paths.setdefault(words, path)
            self._paths[words] = path if known == path else ""
        return shown.text

    def update(self, other: Restoring) -> None:
        """Remember what another one knows."""
        self.note(Shown("", other._values, other._paths))

    def text(self, text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: self._values.get(found[0], found[0]), text)

    def arguments(self, written: str) -> str:
        """Put back in a call's arguments, JSON as the model wrote it; paths where they are all."""
        written = self.text(written)
        if not self._paths:
            return written
        try:
            value: object = json.loads(written)
            found = mapped_texts(value, lambda each: self._paths.get(each) or each)
        except (ValueError, RecursionError):
            return written
        if found == value:
            return written
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

    def feed(self, piece: str) -> str:
        """Put back in speech that comes in pieces; what may become a placeholder is held back."""
        text = self._held + piece
        opened = text.rfind("[")
        whole = len(text)
        if opened >= 0 and "]" not in text[opened:] and whole - opened < PLACEHOLDER_CHARS:
            whole = opened
        self._held = text[whole:]
        return self.text(text[:whole])

    def finish(self) -> str:
        """Return what was held back, as nothing follows it."""
        held, self._held = self._held, ""
        return self.text(held)


def mapped_texts(value: Any, change: Callable[[str], str], *, numbers: bool = False) -> Any:
    """Return parsed JSON with `change` applied to its texts; with `numbers`, to whole numbers too.

    A number stays one where nothing is changed in it.
    """
    if isinstance(value, str):
        return change(value)
    if numbers and isinstance(value, int) and not isinstance(value, bool):
        written = str(value)
        return value if (changed := change(written)) == written else changed
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: mapped_texts(each, change, numbers=numbers) for key, each in members}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [mapped_texts(each, change, numbers=numbers) for each in items]
    return value
