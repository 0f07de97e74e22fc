"""What a request's own words say of it and of the tools that it may mean.

The words are in `prompts/needless_calls.toml`, by language. A request in a language that is not
listed there says nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from caal_node.core.prompt_files import read

_LANGUAGES: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(read("needless_calls.toml"))
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
REQUEST_CHARS: Final = 1_000
"""Characters of a request that are read: a minute of speech."""
TEXT_CHARS: Final = 4_000
"""Characters of the tools' descriptions by which their language is found."""
_WORD_BEGINS: Final = r"(?<![\w'])"
ARTICLES: Final = frozenset({"the", "a", "an", "my", "your"})


def plain_words(text: str) -> list[str]:
    """Return the lower-case words of the first `REQUEST_CHARS` of `text`."""
    return _WORD.findall(text[:REQUEST_CHARS].replace("’", "'").casefold())


def language_of(texts: Iterable[str]) -> str:
    """Return the key of the language whose small words `texts` have most of.

    It is empty where there are none, and where two languages have as many.
    """
    found = frozenset(_WORD.findall("\n".join(texts)[:TEXT_CHARS].replace("’", "'").casefold()))
    counts = {key: len(found & small) for key, small in _FUNCTION.items()}
    best = max(counts.values())
    leading = [key for key, count in counts.items() if count == best]
    return leading[0] if best and len(leading) == 1 else ""


def unlike_verb(request: str, tool_words: frozenset[str], language: str) -> bool:
    """Return whether `request` begins with something to do that no word of a tool means.

    `tool_words` are the lower-case words that the tool's author wrote about it.
    """
    text = " ".join(plain_words(request))
    if (before := _BEFORE.get(language)) is not None:
        while (found := before.match(text)) is not None:
            text = text[found.end() :].lstrip()
    for group in _VERBS.get(language, ()):
        if not any(text == verb or text.startswith(f"{verb} ") for verb in group):
            continue
        meant = frozenset(word for verb in group for word in verb.split()[:1])
        return tool_words.isdisjoint(meant)
    return False


def on_topic(request: str, tool_words: frozenset[str], language: str) -> bool:
    """Return whether `request` asks what a tool of this kind is there for, in words of its own.

    `tool_words` are the lower-case words that the tool's author wrote about it.
    """
    text = " ".join(plain_words(request))
    return any(
        not tool_words.isdisjoint(own) and asked.search(text) is not None
        for asked, own in _TOPICS.get(language, ())
    )


def points_elsewhere(request: str, language: str, times: frozenset[str]) -> bool:
    """Return whether `request` paraphrases a place or a thing: "in the capital of France"."""
    pointing = _WORDS["pointing"].get(language, frozenset())
    said = plain_words(request)
    skipped = _FUNCTION.get(language, frozenset()) | _SKIPPED
    for at, word in enumerate(said):
        if word in pointing:
            following = [one for one in said[at + 1 :] if one not in skipped]
            if following and following[0] not in times and not following[0].isdecimal():
                return True
    return False


def answers_anything(tool_words: frozenset[str], language: str) -> bool:
    """Return whether a tool looks up whatever it is asked."""
    return not tool_words.isdisjoint(_WORDS["search"].get(language, frozenset()))


def names_something(parameter: str, language: str) -> bool:
    """Return whether the value of a parameter of this name is a place or a person."""
    words = plain_words(parameter.replace("_", " ").replace("-", " "))
    return not _WORDS["named"].get(language, frozenset()).isdisjoint(words)


def is_question(description: str) -> bool:
    """Return whether a parameter's description is a question: "where it starts"."""
    first = [word.split("'")[0] for word in plain_words(description)[:1]]  # what's
    return any(not asks.isdisjoint(first) for asks in _WORDS["asks"].values())


def is_placeholder(value: str, language: str) -> bool:
    """Return whether `value` is what a model writes where it knows no value."""
    own = plain_words(value)
    without_article = own[1:] if own[:1] and own[0] in ARTICLES else own
    listed = _WORDS["placeholders"].get(language, frozenset())
    return " ".join(own) in listed or " ".join(without_article) in listed


def names_nobody(value: str, language: str) -> bool:
    """Return whether `value` is a pronoun for somebody, which no tool can reach."""
    return " ".join(plain_words(value)) in _WORDS["nobody"].get(language, frozenset())


def _listed(key: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(lists.get(key, ())) for name, lists in _LANGUAGES.items()}


def _pattern(phrases: Sequence[str], *, inside: bool = False) -> re.Pattern[str]:
    escaped = (re.escape(phrase).replace(r"\*", r"\w[\w' ]{0,60}?") for phrase in phrases)
    return re.compile(rf"{_WORD_BEGINS if inside else ''}(?:{'|'.join(escaped)})(?![\w'])")


_FUNCTION: Final = _listed("function")
_WORDS: Final = {
    key: _listed(key) for key in ("asks", "named", "pointing", "search", "placeholders", "nobody")
}
_VERBS: Final = {name: lists.get("verbs", ()) for name, lists in _LANGUAGES.items()}
_TOPICS: Final = {
    name: tuple(
        (_pattern(asked, inside=True), frozenset[str](own))
        for asked, own in lists.get("topics", ())
    )
    for name, lists in _LANGUAGES.items()
}
_BEFORE: Final = {
    name: _pattern(lists["before"]) for name, lists in _LANGUAGES.items() if "before" in lists
}
_SKIPPED: Final = frozenset({"around", "about", "next", "this", "last", "coming", "late", "early"})
