"""Removes characters that people do not see and models read: they could carry instructions.

Control characters and terminal sequences, directions, zero-width characters, tags (U+E0000), runs
of variation selectors, fillers. What writing needs stays: a line break, a joiner between two
emoji or two letters of a script that joins, one variation selector behind a sign that has variants.
Blocks: https://www.unicode.org/reports/tr44/ (Default_Ignorable_Code_Point)
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final, cast

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_TERMINAL: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)")
_SEPARATORS: Final = "\u2028\u2029"
_JOINERS: Final = "\u200c\u200d"
_VARIANTS: Final = "\ufe0e\ufe0f"
_JOINING_SCRIPTS: Final = 0x0600
"""The scripts from Arabic on; Latin, Greek and Cyrillic never join."""
_MAX_DEPTH: Final = 100


def visible_text(text: str) -> str:
    """Gives `text` as a person would see it."""
    if text.isascii() and text.isprintable():
        return text
    text = _TERMINAL.sub("", text)
    if _HIDDEN.search(text) is None:
        return text
    return _HIDDEN.sub(_kept, text)


def one_line(text: str, max_chars: int = 300) -> str:
    """Gives `text` as a person would see it, on one line, cut."""
    return " ".join(visible_text(text).split())[:max_chars]


def is_visible(text: str) -> bool:
    """Tells whether nothing in `text` is hidden."""
    return visible_text(text) == text


def visible_value(value: Any, depth: int = 0) -> Any:
    """Removes what is hidden in every text of a JSON value, its keys included."""
    if isinstance(value, str):
        return visible_text(value)
    if depth > _MAX_DEPTH:
        return value  # parsed JSON is never so deep
    if isinstance(value, list):
        return [visible_value(item, depth + 1) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, item in cast("dict[str, Any]", value).items():
            seen = visible_text(key)
            while seen in found:
                seen += "_"
            found[seen] = visible_value(item, depth + 1)
        return found
    return value


def may_hide(written: str) -> bool:
    """Tells by a quick look whether JSON text may hold such characters, escaped or not."""
    return "\\u" in written or _HIDDEN.search(written) is not None


def _kept(found: re.Match[str]) -> str:
    char, text, at = found[0], found.string, found.start()
    if char in _SEPARATORS:
        return "\n"
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _VARIANTS:
        return char if _has_variants(before) else ""
    if char in _JOINERS and before and after:
        if _joins(before) and _joins(after):
            return char
        if before in _VARIANTS:
            before = text[at - 2 : at - 1]
        if char == _JOINERS[1] and _is_sign(before) and _is_sign(after):
            return char
    return ""


def _joins(char: str) -> bool:
    return (
        ord(char) >= _JOINING_SCRIPTS
        and unicodedata.category(char)[0] in "LM"
        and (_HIDDEN.match(char) is None)
    )


def _is_sign(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in ("So", "Sk")


def _has_variants(char: str) -> bool:
    return bool(char) and (
        unicodedata.category(char) in ("So", "Sm", "Sk") or char in "#*0123456789‼⁉"
    )
