"""Values as Python, JavaScript and Gemma write them: one tolerant parser for finished text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d{1,3})?(?![\w.])")
_KEYWORD = re.compile(r"\s*+\**+([^\W\d][\w.-]*+)\s*+=(?!=)\s*+")
_NEXT = re.compile(r"\s*(\S?)")
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nan": float("nan"),
}
_KEY_OR_VALUE_END = re.compile(r"[:,{}\[\]()]")
_UNICODE_ESCAPE = re.compile(r"u([0-9a-fA-F]{4})")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "\n": ""}
_UNQUOTED_END = re.compile(r",(?:\s*[\w\"'-]+|[^\W\d](?:\w| (?=\w)){0,48})\s*:|\}\s*(?:$|[,\]}])")
"""A key of several words stands right behind its comma, as prose does not."""
_WORD = re.compile(r"\w++(?=\s*+(?:,[^,:{}\[\]]{1,64}:|[}\])]))")
"""A word that a key, which may hold spaces, or a bracket follows."""
GEMMA_QUOTES = ('<|"|>', "<escape>")
"""What Gemma's models put around strings."""
_MAX_DEPTH = 64
_MAX_BLANKS = 8
_BEHIND_QUOTE = re.compile(rf"[ \t]{{0,{_MAX_BLANKS}}}")


def quote_ends_string(text: str, at: int, *, closed: bool = True) -> bool | None:
    """Return whether the quote at `at` ends its Python string. None: more text is needed.

    Models forget to escape quotes and apostrophes, as in `'it's tea'`. Words go on behind such a
    one; behind a string come a comma, a bracket or the end.

    closed: no more text comes.
    """
    blanks = _BEHIND_QUOTE.match(text, at + 1)
    behind = blanks.end() if blanks is not None else at + 1
    following = text[behind : behind + 1]
    if following == text[at] and behind == at + 1:
        # `"say "hi""`: the second one ends it.
        after = text[behind + 1 : behind + 2]
        if not after and not closed:
            return None
        return after not in (",", ")", "]", "}", "")
    if not following:
        return True if closed else None
    return not (following.isalnum() or following in "_?!")


class UnreadableLiteral(ValueError):
    """The text is no value."""


class UnquotedText(str):
    """A value that stood without quotes. It is text, unless its schema says otherwise."""

    __slots__ = ()


def has_unquoted_text(value: Any) -> bool:
    """Return whether something in `value` stood without quotes, so that it was no literal."""
    if isinstance(value, dict):
        return any(map(has_unquoted_text, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return any(map(has_unquoted_text, cast("list[Any]", value)))
    return isinstance(value, UnquotedText)


def without_marks(value: Any) -> Any:
    """Return `value` with plain text wherever text stood without quotes."""
    if isinstance(value, UnquotedText):
        return str(value)
    if isinstance(value, dict):
        return {k: without_marks(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        kind = RepeatedValues if isinstance(value, RepeatedValues) else list[Any]
        return kind(map(without_marks, cast("list[Any]", value)))
    return value


class LiteralParser:
    """Parses `text`; `at` is the index of what comes next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.cut = False
        """Whether the text ended where a bracket or a quote was still to be closed."""

    def skip_space(self) -> str:
        """Skip white space, and return the character behind it, or ""."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def value(self, depth: int = 0, *, ends: str = ",)]}") -> Any:
        """Parse one value.

        ends: characters that end a value without quotes.

        Raises:
            UnreadableLiteral: there is none.
        """
        if depth > _MAX_DEPTH:
            raise UnreadableLiteral("nested too deeply")
        began = self.at
        char = self.skip_space()
        if char == "{":
            return self._sequence("}", depth) if self._begins_set() else self.mapping(depth)
        if char in ("[", "("):
            return self._sequence("]" if char == "[" else ")", depth)
        text = self._string(char)
        return self._unquoted(ends, began) if text is None else text

    def literal(self) -> Any:
        """Parse the one literal that the text is.

        Raises:
            UnreadableLiteral: something stands behind it, or a word in it has no quotes.
        """
        value = self.value()
        if self.skip_space() or has_unquoted_text(value):
            raise UnreadableLiteral("not one literal")
        return value

    def mapping(self, depth: int = 0) -> dict[str, Any]:
        """Parse `{key: value, ...}`. Keys need no quotes, and the closing brace may be missing."""
        self.at += 1
        found: dict[str, Any] = {}
        while self._has_next("}"):
            key = self._key()
            value = self.value(depth + 1, ends=",}")
            if depth:
                found[key] = value
            else:
                add(found, key, value)
        return found

    def _begins_set(self) -> bool:
        """Return whether the curly bracket here opens a set, `{'a', 'b'}`: no key comes first."""
        began, self.at = self.at, self.at + 1
        text = self._string(self.skip_space())
        if text is None:
            found = _KEY_OR_VALUE_END.search(self.text, self.at)
            sign = found.group() if found is not None and found.start() > self.at else ""
        else:
            sign = self.skip_space()
        self.at = began
        return sign in (",", "}")

    def _sequence(self, end: str, depth: int) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while self._has_next(end):
            before = self.at
            found.append(self.value(depth + 1, ends="," + end))
            if self.at == before:
                raise UnreadableLiteral("not a list")
        return found

    def _has_next(self, end: str) -> bool:
        """Skip commas. False: there is nothing more, or `end`, which is taken."""
        while (char := self.skip_space()) == ",":
            self.at += 1
        self.cut = self.cut or not char
        if char in ("", end):
            self.at += 1
            return False
        return True

    def _key(self) -> str:
        key = self._string(self.text[self.at])
        if key is None:
            end = self.text.find(":", self.at)
            if end < 0:
                raise UnreadableLiteral("a key without a value")
            key = self.text[self.at : end].strip()
            self.at = end
        if self.skip_space() != ":":
            raise UnreadableLiteral("a key without a value")
        self.at += 1
        return key

    def _string(self, char: str) -> str | None:
        """Parse the string that begins with `char`. None: there is none, and nothing was taken."""
        for quote in GEMMA_QUOTES:
            if self.text.startswith(quote, self.at):
                return self._gemma_string(quote)
        if char not in ("'", '"'):
            return None
        mark = char * 3 if self.text.startswith(char * 3, self.at) else char
        at = self.at + len(mark)
        parts: list[str] = []
        finder = re.compile(r"\\|" + re.escape(mark))
        while True:
            found = finder.search(self.text, at)
            if found is None:
                self.cut = True
                return None  # The quote is never closed.
            parts.append(self.text[at : found.start()])
            at = found.end()
            if found.group() == char and not quote_ends_string(self.text, found.start()):
                parts.append(char)
                continue
            if found.group() != "\\":
                break
            text, at = self._escape(at)
            parts.append(text)
        self.at = at
        for quote in GEMMA_QUOTES:  # A string that began with one quote and ends with another.
            if self.text.startswith(quote, self.at):
                self.at += len(quote)
        return "".join(parts)

    def _gemma_string(self, quote: str) -> str:
        start = self.at + len(quote)
        end = self.text.find(quote, start)
        if end < 0:
            # Never closed: all that is left, but for the call's own bracket.
            self.cut = True
            self.at = len(self.text)
            return self.text[start:].rstrip().removesuffix("}")
        self.at = end + len(quote)
        return self.text[start:end]

    def _escape(self, at: int) -> tuple[str, int]:
        """Return what the escape whose letter is at `at` means, and the index behind it."""
        code = _UNICODE_ESCAPE.match(self.text, at)
        if code is not None:
            return chr(int(code[1], 16)), code.end()
        letter = self.text[at : at + 1]
        return _ESCAPES.get(letter, "\\" + letter), at + 1

    def _unquoted(self, ends: str, began: int) -> Any:
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            follows = _NEXT.match(self.text, number.end())
            if follows is not None and (not follows[1] or follows[1] in ends):
                self.at = number.end()
                digits = number.group()
                return int(digits) if re.fullmatch(r"[+-]?\d{1,400}", digits) else float(digits)
        known = _WORD.match(self.text, self.at)
        if known is not None and known.group().lower() in _WORDS:
            self.at = known.end()
            return _WORDS[known.group().lower()]
        if "}" in ends:
            # A mapping's value may hold commas: it ends where the next key begins.
            found = _UNQUOTED_END.search(self.text, self.at)
        else:
            found = re.compile("[" + re.escape(ends) + "]").search(self.text, self.at)
        end = found.start() if found else len(self.text)
        text = self.text[began:end]
        self.at = end
        word = text.strip()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        if not word and not found:
            raise UnreadableLiteral("a value is missing")
        return UnquotedText(text if "\n" in text else word)


class RepeatedValues(list[Any]):
    """The values of a key that stands several times in one call's arguments, in that order.

    Models that are asked for elements write a list as the same element again and again, and some
    do it in JSON and in Python, too. All values are kept until the parameter's schema says whether
    it is a list; where it is none, the last one counts, as in JSON.
    """


def collect(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping of `pairs`, with all the values of keys that stand in it twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        add(found, key, value)
    return found


def add(found: dict[str, Any], key: str, value: Any) -> None:
    """Add one value to `found`."""
    if key not in found:
        found[key] = value
    elif isinstance(found[key], RepeatedValues):
        found[key].append(value)
    else:
        found[key] = RepeatedValues([found[key], value])


def last(value: Any) -> Any:
    """Return what counts of a value where no list is wanted."""
    return value[-1] if isinstance(value, RepeatedValues) else value


def parse_keywords(text: str, names: tuple[str, ...], *, literal: bool = False) -> dict[str, Any]:
    """Parse the arguments of `f(a=1, b='x')`, from what stands between the brackets.

    names: what positional arguments are called, in order.
    literal: only literals are allowed; a word without quotes is not taken for text.

    Raises:
        UnreadableLiteral: it is no argument list.
    """
    parser = LiteralParser(text)
    found: dict[str, Any] = {}
    count = 0
    while True:
        char = parser.skip_space()
        if not char:
            return found
        if char == ",":
            parser.at += 1
            continue
        before = parser.at
        named = _KEYWORD.match(text, parser.at)
        if named is not None:
            parser.at = named.end()
            key = named.group(1)
        elif found and not count:
            # Not Python. `minutes=1,000` would be no minutes.
            raise UnreadableLiteral("a value without a name behind one with a name")
        elif count < len(names):
            key = names[count]
            count += 1
        else:
            raise UnreadableLiteral("more arguments than parameters")
        value = parser.value(ends=",")
        if literal and isinstance(value, UnquotedText):
            raise UnreadableLiteral("not a literal")
        add(found, key, value.strip() if isinstance(value, UnquotedText) else value)
        if parser.at == before or parser.skip_space() not in ("", ","):
            raise UnreadableLiteral("not an argument list")
