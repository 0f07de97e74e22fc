"""What reaches over several words: links, tags, citations, formulas, telephone numbers.

Each is waited for up to a cap, since its end decides what it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from caal_node.tts_text.formulas import FORMULA_CHARS, spoken_formula
from caal_node.tts_text.numbers import PHONE_CHARS, PHONE_SO_FAR, phone
from caal_node.tts_text.output_buffer import Mouth
from caal_node.tts_text.spoken_forms import Wording

LABEL_CHARS: Final = 300
"""Of a link's text or an image's description: two sentences."""
ADDRESS_CHARS: Final = 1000
"""Of a link's address: links with tracking are some hundreds."""
TAG_CHARS: Final = 300
STRUCK_CHARS: Final = 200
PRICE_CHARS: Final = 80
"""Digits that go on longer are no amount."""

OPENER: Final = re.compile(
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
_BREAKING_NAMES: Final = (
    "br p div li ul ol tr table thead tbody h1 h2 h3 h4 h5 h6 hr blockquote pre section dt dd"
)
_BREAKING: Final = frozenset(_BREAKING_NAMES.split())
_INLINE_NAMES: Final = (
    "b i em strong u s span a code kbd mark small sub sup del ins font center img td th cite q "
    "abbr tt var samp label details summary"
)
_INLINE: Final = frozenset(_INLINE_NAMES.split())
_FORMULAS: Final = (
    (re.compile(r"\$\$([^$]+)\$\$"), "$$"),
    (re.compile(r"\$(?=\S)([^$\n]+?)(?<=\S)\$(?!\w)"), "$"),
    (re.compile(r"\\\(([^$]+?)\\\)"), r"\("),
    (re.compile(r"\\\[([^$]+?)\\\]"), r"\["),
)
_STRUCK: Final = re.compile(r"~~(?=\S)[^~\n]*~~")
_PRICE: Final = re.compile(r"\$\d[^\s$]*")


@dataclass(frozen=True, slots=True)
class Span:
    """`length` characters mean `said`; `again` is to be read in their place."""

    length: int
    said: str = ""
    again: str = ""
    line: bool = False
    """Whether a new line begins here."""


@dataclass(frozen=True, slots=True)
class Wait:
    """More has to come."""


WAIT: Final = Wait()


def span(held: str, mouth: Mouth, wording: Wording, *, final: bool) -> Span | Wait | None:
    """What `held` begins with, if that is a span."""
    match held[0]:
        case "[" | "!":
            return _link(held, mouth, wording, final=final)
        case "<":
            return _tag(held, mouth, final=final)
        case "$" | "\\":
            return _formula(held, wording, final=final)
        case "~":
            return _closed(_STRUCK, held, "~~", STRUCK_CHARS, final=final)
        case "【":
            return _closed(_SOURCE, held, "【", STRUCK_CHARS, final=final)
        case first if first.isdigit() or first in "+(":
            return _phone(held, mouth, wording, final=final)
        case _:
            return None


def _open(text: str, cap: int, *, final: bool) -> bool:
    """Whether the closer that is not in `text` may still come."""
    return not final and len(text) < cap and "\n" not in text


def _closed(
    pattern: re.Pattern[str], held: str, opener: str, cap: int, *, final: bool
) -> Span | Wait | None:
    if match := pattern.match(held, 0, cap):
        return Span(match.end())
    if len(held) <= len(opener):
        return WAIT if opener.startswith(held) and not final else None
    if not held.startswith(opener) or held[len(opener)].isspace():
        return None
    return WAIT if _open(held, cap, final=final) else None


def _link(held: str, mouth: Mouth, wording: Wording, *, final: bool) -> Span | Wait | None:
    if held[0] == "!" and held[1:2] != "[":
        return WAIT if held == "!" and not final else None
    label = _LABEL.match(held, 0, LABEL_CHARS)
    if label is None:
        return WAIT if _open(held, LABEL_CHARS, final=final) else None
    if label.end() == len(held) and not final:
        return WAIT
    rest = held[label.end() :]
    if rest[:1] in ("(", "["):
        if address := _ADDRESS.match(rest, 0, ADDRESS_CHARS):
            if rest[0] == "(" or not _CITATION.fullmatch(label[1]):
                where = address[0][1:-1].split()
                again = label[1] if label[1].strip() else " ".join(where[:1])
                return Span(label.end() + address.end(), again=again)
        elif _open(rest, ADDRESS_CHARS, final=final):
            return WAIT
    if _CITATION.fullmatch(label[1]) and _is_citation(label[1], mouth, wording):
        return Span(label.end())
    return None


def _is_citation(label: str, mouth: Mouth, wording: Wording) -> bool:
    word = mouth.before.word
    if mouth.touching:
        return mouth.last not in "([{=_" and len(word) > 1 and word not in wording.index_after
    if not mouth.last or mouth.last in ":=(":
        return False
    return label.isdigit() and word not in wording.citation_not_after


def _tag(held: str, mouth: Mouth, *, final: bool) -> Span | Wait | None:
    if len(held) == 1:
        return None if final else WAIT
    if not (held[1].isalpha() or held[1] in "/!"):
        return None
    tag = _TAG.match(held, 0, TAG_CHARS)
    if tag is None:
        close = held.find(">", 0, TAG_CHARS)
        if close < 0:
            open_still = held.find("<", 1) < 0 and _open(held, TAG_CHARS, final=final)
            return WAIT if open_still else None
        inner = held[1:close]
        if ("://" in inner or "@" in inner) and not re.search(r"[\s<]", inner):
            return Span(close + 1, again=inner)
        return None
    if tag["note"] is not None:
        return Span(tag.end())
    name = tag[2].lower()
    if name not in _BREAKING and name not in _INLINE:
        return Span(tag.end(), said=tag[0])  # a voice's own markup, or somebody's placeholder
    if mouth.before.raw == "`":
        return Span(tag.end(), said=tag[2])
    return Span(tag.end(), line=name in _BREAKING)


def _formula(held: str, wording: Wording, *, final: bool) -> Span | Wait | None:
    if len(held) == 1:
        return None if final else WAIT
    for pattern, opener in _FORMULAS:
        if not held.startswith(opener):
            continue
        if opener == "$" and held[1].isdecimal() and (verdict := _price(held, final=final)) != "no":
            return WAIT if verdict == "wait" else None
        if match := pattern.match(held, 0, FORMULA_CHARS):
            if match.end() == len(held) and not final:
                return WAIT
            return Span(match.end(), said=spoken_formula(match[1], wording))
        if opener == "$" and (held[1].isspace() or held[1] == "$"):
            return None
        far = final or len(held) >= FORMULA_CHARS or (opener == "$" and "\n" in held)
        return None if far else WAIT
    return None


def _price(held: str, *, final: bool) -> str:
    """Whether `$5` begins an amount ("yes"), a formula ("no"), or more must come ("wait")."""
    price = _PRICE.match(held, 0, PRICE_CHARS)
    assert price is not None
    if price.end() == PRICE_CHARS:
        return "yes"
    after = held[price.end() : price.end() + 8]
    if not after:
        return "yes" if final else "wait"
    if after[0] == "$" or any(c in price[0] for c in "\\^_{}="):
        return "no"
    sign = after.lstrip(" ")[:1]
    if not sign and not final and len(after) < 8:
        return "wait"
    return "no" if sign and sign in "=+*/<>^\\-" else "yes"


def _phone(held: str, mouth: Mouth, wording: Wording, *, final: bool) -> Span | Wait | None:
    run = PHONE_SO_FAR.match(held[:PHONE_CHARS])
    assert run is not None  # an empty run matches as well
    if run.end() == len(held) and len(held) < PHONE_CHARS and not final:
        return WAIT
    found = phone(held[: run.end()], mouth.before, wording)
    if found is None or (held[found[0] :][:1].isalnum()):
        return None
    return Span(found[0], said=found[1])
