"""Markdown as it is spoken: how a line begins, fenced code, tables, and marks within a line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from caal_node.tts_text.output_buffer import OutputBuffer
from caal_node.tts_text.spoken_forms import (
    FORMULA_CHARS,
    PHONE_CHARS,
    PHONE_SO_FAR,
    SpokenForms,
    spoken_formula,
    spoken_phone_number,
)

# Constructs that reach over several words: links, tags, citations, formulas, telephone numbers.
#
# The end of a construct decides what it is, so each is waited for, up to its own cap.

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


RULE_CHARS: Final = 80
"""A line of dashes longer than this is a rule, whatever follows."""

_HEADING: Final = re.compile(r"#{1,6}[ \t]+")
_BULLET: Final = re.compile(r"[-+*•‣◦▪–●○][ \t]+(?:\[(?P<box>[ xX])\][ \t]+)?")
_NUMBERED: Final = re.compile(r"\d{1,3}[.)](?=[ \t])")
_QUOTE: Final = re.compile(r">[ \t]*(?=[^\d\s=])|>[ \t]+|>(?=\n)")
_RULE: Final = re.compile(
    r"(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}[ \t]*)(?:\n|\Z)"
)
_RULE_SO_FAR: Final = re.compile(r"(?:[-*_][ \t]*)+|=+[ \t]*")
_DEFINITION: Final = re.compile(r"\[(?:\^[\w-]{1,20}|\d{1,3})\]:[ \t]+")
_DEFINITION_SO_FAR: Final = re.compile(r"\[(?:\^[\w-]{0,20}|\d{0,3})(?:\](?::[ \t]*)?)?")
_UNDECIDED: Final = re.compile(
    r"#{1,6}[ \t]*|[-+*•‣◦▪–●○][ \t]*(?:\[[ xX]?\]?[ \t]*)?|\d{1,3}[.)]?|>[ \t]*"
)

FENCE_BODY_CHARS: Final = 1500
"""A block is kept up to this, a third of a page, until it is known whether it holds code."""
FENCE_LINE_CHARS: Final = 80
SHORT_CODE_CHARS: Final = 80
"""A single line of code up to this is spoken: it is a command that a person asked for."""
FENCE_OPENING: Final = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+([\w+#.-]*+)[^`\n]*+\n")
FENCE_OPENING_SO_FAR: Final = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3,}+|~{3,}+)[^`\n]*+)")
_CODE_LINE: Final = re.compile(
    r"[;{}]\s*$|^\s*(?:def|class|import|from|return|if|for|while|const|let|var|function|public|#include"
    r"|@\w+|</?\w+)\b|^(?>.*?\w\().*\)|^\s*[\"'\w.-]+\s*[=:]\s*\S|^\s*[$#>]\s|^\s{4,}\S|[=<>!]=|=>|->"
)
_LANGUAGE_NAMES: Final = {
    "py": "Python", "python": "Python", "js": "JavaScript", "javascript": "JavaScript",
    "ts": "TypeScript", "typescript": "TypeScript", "sh": "shell", "bash": "shell", "zsh": "shell",
    "shell": "shell", "console": "shell", "cpp": "C++", "c++": "C++", "cs": "C#", "csharp": "C#",
    "rb": "Ruby", "rs": "Rust", "golang": "Go", "yml": "YAML", "objc": "Objective-C",
}  # fmt: skip
_INITIALS: Final = frozenset(
    ("json", "yaml", "toml", "xml", "html", "css", "sql", "php", "csv", "ini", "c", "r")
)
"""Languages whose names are written in capitals."""

ROW_CHARS: Final = 1000
"""A row longer than this is no row to listen to and is read as text."""
SPOKEN_ROWS: Final = 5
"""A listener keeps no more rows in mind; of the others the number is told."""
_CELLS: Final = re.compile(r"(?<!\\)\|")
_SEPARATOR: Final = re.compile(r"\s*+(?:\|\s*+)?(?::?-++:?\s*+\|\s*+)*:?-++:?\s*+(?:\|\s*+)?")
_YES_MARKS: Final = frozenset("✓✔✅☑")
_NO_MARKS: Final = frozenset("✗✘❌☒")


@dataclass(frozen=True, slots=True)
class LineMarker:
    """The first `length` characters of a line are a marker; `spoken` is said in its place."""

    length: int
    item: bool = False
    """Whether a heading or a list's item follows, which ends in a pause."""
    spoken: str = ""
    task_done: bool = False
    """Whether the marker holds the ticked box of a task."""


def line_marker(text: str, *, final: bool) -> LineMarker | Literal["wait"] | None:
    """Return the marker at the beginning of `text`, which begins a line; None if there is none.

    "wait" is returned where more text decides it; with `final` no more comes.
    """
    run = _RULE_SO_FAR.match(text)
    if run and run.end() > RULE_CHARS:
        return LineMarker(1)
    if run and run.end() == len(text) and not final:
        return "wait"
    if rule := _RULE.match(text):
        return LineMarker(rule.end())
    if not final and (_UNDECIDED.fullmatch(text) or _DEFINITION_SO_FAR.fullmatch(text)):
        return "wait"
    if heading := _HEADING.match(text):
        return LineMarker(heading.end(), item=True)
    if bullet := _BULLET.match(text):
        box = bullet["box"]
        return LineMarker(bullet.end(), item=True, task_done=box is not None and box in "xX")
    if number := _NUMBERED.match(text):
        return LineMarker(number.end(), item=True, spoken=number[0])
    if found := _QUOTE.match(text) or _DEFINITION.match(text):
        return LineMarker(found.end())
    return None


class CodeFence:
    """A fenced block: code is told of in a sentence, and words in a fence are read out.

    The block begins after its opening line; `add_line` takes what follows, and `finish` decides.
    """

    def __init__(self, opening: re.Match[str], forms: SpokenForms) -> None:
        self._fence = opening[1]
        self._language = opening[2].lower()
        self._forms = forms
        self._lines = 0
        self._body: list[str] | None = []
        self._chars = 0

    def is_closed_by(self, line: str) -> bool:
        mark = line.strip()
        return len(self._fence) <= len(mark) <= FENCE_LINE_CHARS and set(mark) == {self._fence[0]}

    def add_line(self, text: str) -> None:
        """Take a line with its newline, or a piece of a line that is very long."""
        self._lines += "\n" in text
        self._chars += len(text)
        if self._body is not None:
            self._body.append(text)

    @property
    def held_chars(self) -> int:
        return self._chars if self._body is not None else 0

    def take_words(self) -> str | None:
        """Return the block's text once so much has come that it must be decided, if it is words."""
        if self._body is None or self._chars <= FENCE_BODY_CHARS:
            return None
        body = "".join(self._body)
        if self._holds_words(body):
            return body
        self._body = None  # It is code, of which only the lines are counted from here on.
        return None

    def finish(self) -> tuple[str, str]:
        """Return the sentence that is said for code, or else the words that are to be read on."""
        if self._body is not None:
            body = "".join(self._body)
            if not body.strip() or self._holds_words(body):
                return "", body
            if self._lines <= 1 and len(body) <= SHORT_CODE_CHARS:
                return "", body
        return self._description(), ""

    def _holds_words(self, body: str) -> bool:
        if self._language:
            return self._language in self._forms.text_fences
        lines = [line for line in body.splitlines() if line.strip()]
        return sum(bool(_CODE_LINE.search(line)) for line in lines) * 3 <= len(lines)

    def _description(self) -> str:
        name = self._language
        name = _LANGUAGE_NAMES.get(name) or (
            name.upper() if name in _INITIALS else name.capitalize()
        )
        key = ("code_in" if name else "code") + ("_one" if self._lines <= 1 else "")
        return self._forms.phrase(key, language=name, lines=str(self._lines))


class MarkdownTable:
    """A table, spoken row by row. It takes the lines that begin with a bar.

    `speak` turns the text of one cell into what is said for it.
    """

    def __init__(self, speak: Callable[[str], str], forms: SpokenForms) -> None:
        self._speak = speak
        self._forms = forms
        self._first: list[str] | None = None
        """The first row, until the next one tells whether it is a header."""
        self._header: list[str] | None = None
        self._rows = 0

    def add_row(self, line: str) -> list[str]:
        """Return the sentences that can be said after `line`, given without its newline."""
        if _SEPARATOR.fullmatch(line):
            self._header, self._first = self._first, None
            return []
        cells = [self._spoken_cell(cell) for cell in _CELLS.split(line.strip().strip("|"))]
        if self._header is not None:
            self._rows += 1
            return [self._row_with_headers(cells)] if self._rows <= SPOKEN_ROWS else []
        previous, self._first = self._first, cells
        return [] if previous is None else [_sentence(previous)]

    def finish(self) -> list[str]:
        """Return the sentences that are said once no more lines come."""
        if self._first is not None:
            return [_sentence(self._first)]
        if self._header is not None and not self._rows:
            return [self._forms.phrase("columns", columns=", ".join(filter(None, self._header)))]
        more = self._rows - SPOKEN_ROWS
        if more <= 0:
            return []
        key = "rows_one_more" if more == 1 else "rows_more"
        return [self._forms.phrase(key, more=str(more), rows=str(self._rows))]

    def _spoken_cell(self, cell: str) -> str:
        cell = cell.replace("\\|", "|").strip()
        mark = cell.rstrip("️")
        if mark in _YES_MARKS | _NO_MARKS and mark:
            return self._forms.phrases["yes" if mark in _YES_MARKS else "no"]
        return self._speak(cell).strip().rstrip(".")

    def _row_with_headers(self, cells: list[str]) -> str:
        assert self._header is not None
        headers = self._header + [""] * (len(cells) - len(self._header))
        spoken = [
            self._forms.phrase("cell", header=header, value=cell) if header else cell
            for header, cell in zip(headers, cells, strict=False)
            if cell
        ]
        return _sentence(spoken)


def _sentence(cells: list[str]) -> str:
    text = ", ".join(filter(None, cells))
    return text + "." if text else ""
