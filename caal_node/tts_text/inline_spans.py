"""Constructs that reach over several words: links, tags, citations, formulas, telephone numbers.

The end of a construct decides what it is, so each is waited for, up to its own cap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from caal_node.tts_text.formulas import FORMULA_CHARS, spoken_formula
from caal_node.tts_text.numbers_and_dates import (
    PHONE_CHARS,
    PHONE_SO_FAR,
    spoken_phone_number,
)
from caal_node.tts_text.output_buffer import OutputBuffer
from caal_node.tts_text.spoken_forms import SpokenForms

LABEL_CHARS: Final = 300
"""The cap of a link's text or an image's description: two sentences."""
ADDRESS_CHARS: Final = 1000
"""The cap of a link's address: links with tracking have some hundreds."""
TAG_CHARS: Final = 300
STRUCK_CHARS: Final = 200
PRICE_CHARS: Final = 80
"""Digits that go on for longer are no amount."""

SPAN_OPENING: Final = re.compile(
    r"!?\[|<(?=[A-Za-z/!])|\\[(\[]|~~(?=\S)|(?<=[(\[{\"“—])\$|【|(?<=(?<!\w)[(\[\"“])\+?\d"
)
"""Where, inside a word, a span may begin."""

_LABEL: Final = re.compile(r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]*\])*)\]")
_ADDRESS: Final = re.compile(r"\((?:[^()\n]|\([^()\n]*\))*\)|\[[^\]\n]{0,40}\]")
_CITATION: Final = re.compile(r"\^?\d{1,3}(?:\s?[,–-]\s?\d{1,3})*|\^[\w-]{1,20}")
_SOURCE: Final = re.compile(r"【[^】\n]{0,80}】")
_TAG: Final = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9]*)((?:[ \t][^<>\n]*)?/?)>|<!--(?P<note>[^<>\n]*)-->"
)
_BLOCK_TAG: Final = re.compile(
    "br|p|div|li|[uo]l|tr|table|thead|tbody|h[1-6]|hr|blockquote|pre|section|dt|dd"
)
_INLINE_TAG: Final = re.compile(
    "b|i|em|strong|u|s|span|a|code|kbd|mark|small|sub|sup|del|ins|font|center|img|td|th|cite|q|"
    "abbr|tt|var|samp|label|details|summary"
)
_FORMULAS: Final = (
    (re.compile(r"\$\$([^$]+)\$\$"), "$$"),
    (re.compile(r"\$(?=\S)([^$\n]+?)(?<=\S)\$(?!\w)"), "$"),
    (re.compile(r"\\\(([^$]+?)\\\)"), r"\("),
    (re.compile(r"\\\[([^$]+?)\\\]"), r"\["),
)
_STRUCK: Final = re.compile(r"~~(?=\S)[^~\n]*~~")
_PRICE: Final = re.compile(r"\$\d[^\s$]*")


@dataclass(frozen=True, slots=True)
class InlineSpan:
    """A construct of `length` characters. With no further field set it is left out."""

    length: int
    spoken: str = ""
    """What is said for it."""
    read_again: str = ""
    """Text that is read in its place, with all rules."""
    breaks_line: bool = False
    """Whether a new line begins here."""


_Found: TypeAlias = InlineSpan | Literal["wait"] | None
"""What a text begins with; "wait" where more text decides it."""


def inline_span(text: str, buffer: OutputBuffer, forms: SpokenForms, *, final: bool) -> _Found:
    """Return the construct that `text` begins with; "wait" where more text decides it."""
    match text[0]:
        case "[" | "!":
            return _link(text, buffer, forms, final=final)
        case "<":
            return _tag(text, buffer, final=final)
        case "$" | "\\":
            return _formula(text, forms, final=final)
        case "~":
            return _omitted(_STRUCK, text, "~~", STRUCK_CHARS, final=final)
        case "【":
            return _omitted(_SOURCE, text, "【", STRUCK_CHARS, final=final)
        case first if first.isdigit() or first in "+(":
            return _phone(text, buffer, forms, final=final)
        case _:
            return None


def _may_still_close(text: str, cap: int, *, final: bool) -> bool:
    """Tell whether the end of a construct, which is not in `text`, may still come."""
    return not final and len(text) < cap and "\n" not in text


def _omitted(pattern: re.Pattern[str], text: str, opener: str, cap: int, *, final: bool) -> _Found:
    if match := pattern.match(text, 0, cap):
        return InlineSpan(match.end())
    if len(text) <= len(opener):
        return "wait" if opener.startswith(text) and not final else None
    if not text.startswith(opener) or text[len(opener)].isspace():
        return None
    return "wait" if _may_still_close(text, cap, final=final) else None


def _link(text: str, buffer: OutputBuffer, forms: SpokenForms, *, final: bool) -> _Found:
    if text[0] == "!" and text[1:2] != "[":
        return "wait" if text == "!" and not final else None
    label = _LABEL.match(text, 0, LABEL_CHARS)
    if label is None:
        return "wait" if _may_still_close(text, LABEL_CHARS, final=final) else None
    if label.end() == len(text) and not final:
        return "wait"
    rest = text[label.end() :]
    if rest[:1] in ("(", "["):
        if address := _ADDRESS.match(rest, 0, ADDRESS_CHARS):
            if rest[0] == "(" or not _CITATION.fullmatch(label[1]):
                where = address[0][1:-1].split()
                again = label[1] if label[1].strip() else " ".join(where[:1])
                return InlineSpan(label.end() + address.end(), read_again=again)
        elif _may_still_close(rest, ADDRESS_CHARS, final=final):
            return "wait"
    if _CITATION.fullmatch(label[1]) and _is_citation(label[1], buffer, forms):
        return InlineSpan(label.end())
    return None


def _is_citation(label: str, buffer: OutputBuffer, forms: SpokenForms) -> bool:
    word = buffer.preceding.word
    if buffer.no_space_since_word:
        return buffer.last_char not in "([{=_" and len(word) > 1 and word not in forms.index_after
    if not buffer.last_char or buffer.last_char in ":=(":
        return False
    return label.isdigit() and word not in forms.citation_not_after


def _tag(text: str, buffer: OutputBuffer, *, final: bool) -> _Found:
    if len(text) == 1:
        return None if final else "wait"
    if not (text[1].isalpha() or text[1] in "/!"):
        return None
    tag = _TAG.match(text, 0, TAG_CHARS)
    if tag is None:
        close = text.find(">", 0, TAG_CHARS)
        if close < 0:
            open_still = text.find("<", 1) < 0 and _may_still_close(text, TAG_CHARS, final=final)
            return "wait" if open_still else None
        inner = text[1:close]
        if ("://" in inner or "@" in inner) and not re.search(r"[\s<]", inner):
            return InlineSpan(close + 1, read_again=inner)
        return None
    if tag["note"] is not None:
        return InlineSpan(tag.end())
    name = tag[2].lower()
    if not (_BLOCK_TAG.fullmatch(name) or _INLINE_TAG.fullmatch(name)):
        return InlineSpan(tag.end(), spoken=tag[0])  # a voice's own markup, or a placeholder
    if buffer.preceding.last_read == "`":
        return InlineSpan(tag.end(), spoken=tag[2])
    return InlineSpan(tag.end(), breaks_line=_BLOCK_TAG.fullmatch(name) is not None)


def _formula(text: str, forms: SpokenForms, *, final: bool) -> _Found:
    if len(text) == 1:
        return None if final else "wait"
    for pattern, opener in _FORMULAS:
        if not text.startswith(opener):
            continue
        if opener == "$" and text[1].isdecimal():
            meaning = _price_or_formula(text, final=final)
            if meaning != "formula":
                return "wait" if meaning == "wait" else None
        if match := pattern.match(text, 0, FORMULA_CHARS):
            if match.end() == len(text) and not final:
                return "wait"
            return InlineSpan(match.end(), spoken=spoken_formula(match[1], forms))
        if opener == "$" and (text[1].isspace() or text[1] == "$"):
            return None
        far = final or len(text) >= FORMULA_CHARS or (opener == "$" and "\n" in text)
        return None if far else "wait"
    return None


def _price_or_formula(text: str, *, final: bool) -> Literal["price", "formula", "wait"]:
    """Tell what `$5` begins; "wait" where more text decides it."""
    price = _PRICE.match(text, 0, PRICE_CHARS)
    assert price is not None
    if price.end() == PRICE_CHARS:
        return "price"
    after = text[price.end() : price.end() + 8]
    if not after:
        return "price" if final else "wait"
    if after[0] == "$" or any(c in price[0] for c in "\\^_{}="):
        return "formula"
    sign = after.lstrip(" ")[:1]
    if not sign and not final and len(after) < 8:
        return "wait"
    return "formula" if sign and sign in "=+*/<>^\\-" else "price"


def _phone(text: str, buffer: OutputBuffer, forms: SpokenForms, *, final: bool) -> _Found:
    run = PHONE_SO_FAR.match(text[:PHONE_CHARS])
    assert run is not None  # An empty run matches as well.
    if run.end() == len(text) and len(text) < PHONE_CHARS and not final:
        return "wait"
    found = spoken_phone_number(text[: run.end()], buffer.preceding, forms)
    if found is None or (text[found[0] :][:1].isalnum()):
        return None
    return InlineSpan(found[0], spoken=found[1])
