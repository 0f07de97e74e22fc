"""How models spell the names of tools, and which spellings are the same name."""

from __future__ import annotations

import re

MAX_NAME_CHARS = 128
"""Longer text is no name. Names that models are offered have at most 64 characters."""
_TAIL = re.compile(r"(?:<[|｜]|\[|\().*$|:\d+$", re.DOTALL)
_GAP = re.compile(r"\w_\s|\s_\w|(?:\A|\s)–\s")
"""What stands where a marker was left out between the two halves of a name."""
_ONE_WORD = re.compile(r"[^\s<>{}\[\]]*\w[^\s<>{}\[\]]*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_FILLER = frozenset(
    ("a", "an", "the", "of", "for", "to", "in", "on", "and", "or", "by", "with", "this", "is")
)
_WRAPPING = "\"'`“”‘’ \t\r\n"


def normalised(name: str) -> str:
    """Return `name` without case and separators."""
    return "".join(char for char in name.casefold() if char.isalnum())


def words(text: str) -> list[str]:
    """Return the words of a name or a description, in lower case, without filler."""
    return [word for word in (w.lower() for w in _WORD.findall(text)) if word not in _FILLER]


def ends_with(own: str, name: str) -> bool:
    """Return whether `own` is `name` behind a namespace that the model left out."""
    asked = words(name)
    return words(own)[-len(asked) :] == asked


def same_words(name: str, own: str) -> bool:
    """Return whether white space in `name` stands only between the words of `own`, unlike in
    "set tim er"."""
    if re.search(r"\s", name) is None:
        return True
    asked, meant = ([word.lower() for word in _WORD.findall(text)] for text in (name, own))
    return asked == meant


def has_gap(name: str) -> bool:
    """Return whether something was left out of the middle of `name`, so that it is none."""
    return _GAP.search(name) is not None


def plausible(name: str) -> bool:
    """Return whether text right behind a marker can be a name: it is short, and one word."""
    return len(name) <= MAX_NAME_CHARS and _ONE_WORD.fullmatch(name) is not None


def spellings(name: str) -> list[str]:
    """Return what may be left of a name without its wrapping, suffix and namespace."""
    bare = name.strip(_WRAPPING)
    found = [bare]
    if bare.endswith(".call"):  # Llama 3's built-in tools: `brave_search.call(query="...")`.
        found.append(bare.removesuffix(".call"))
    cut = _TAIL.sub("", bare).strip(_WRAPPING)
    if cut and cut != bare:
        found.append(cut)
    for separator in (".", "/", ":"):
        space, _, last = cut.rpartition(separator)
        if last and last != cut and not re.search(r"\s", space) and not last[0].isspace():
            found.append(last)
    return found
