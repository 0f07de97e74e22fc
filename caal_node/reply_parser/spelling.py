"""How names are written, and what is the same in two ways of writing one."""

from __future__ import annotations

import re

MAX_NAME_CHARS = 128
"""Longer is no name (exposed names have at most 64 characters)."""
_TAIL = re.compile(r"(?:<[|｜]|\[|\().*$|:\d+$", re.DOTALL)
_TORN = re.compile(r"\w_\s|\s_\w|(?:\A|\s)–\s")
"""Two halves of a name from between which a marker was left out: no name."""
_ONE_WORD = re.compile(r"[^\s<>{}\[\]]*\w[^\s<>{}\[\]]*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_FILLER = frozenset(
    ("a", "an", "the", "of", "for", "to", "in", "on", "and", "or", "by", "with", "this", "is")
)
_WRAPPING = "\"'`“”‘’ \t\r\n"


def normalised(name: str) -> str:
    """Without case and separators."""
    return "".join(char for char in name.casefold() if char.isalnum())


def words(text: str) -> list[str]:
    """The words of a name or a description, in lower case, without filler."""
    return [word for word in (w.lower() for w in _WORD.findall(text)) if word not in _FILLER]


def ends_with(own: str, name: str) -> bool:
    """Whether `own` is `name` behind a namespace that the model left out."""
    asked = words(name)
    return words(own)[-len(asked) :] == asked


def same_words(name: str, own: str) -> bool:
    """Whether white space in `name` stands between the words of `own` only ("set tim er")."""
    if re.search(r"\s", name) is None:
        return True
    asked, meant = ([word.lower() for word in _WORD.findall(text)] for text in (name, own))
    return asked == meant


def torn(name: str) -> bool:
    """Whether something was left out of the middle of `name`, so that it is none."""
    return _TORN.search(name) is not None


def plausible(name: str) -> bool:
    """Whether text right after a marker can be a name: short, one word."""
    return len(name) <= MAX_NAME_CHARS and _ONE_WORD.fullmatch(name) is not None


def spellings(name: str) -> list[str]:
    """What may be left of a name when wrapping, suffix and namespace are gone."""
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
