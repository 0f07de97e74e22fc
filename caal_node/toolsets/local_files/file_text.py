"""The text of a file and its parts, each with the name of its place: a heading, or a page.

Pure: bytes in, text out. `document_process` reads PDFs too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

# Cuts a document into passages: pieces that a question can be answered from, read in one breath.
#
# A passage is whole paragraphs of one section where they fit, else whole sentences, else words.

PASSAGE_CHARS: Final = 800
"""Some 200 tokens: three of them are what a small model reads in two seconds, and the embedding of
this package reads as much of a text."""
MAX_PASSAGES: Final = 10_500
"""Passages of one document: all of a text of 4 MB, however it is cut."""
_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n")
_SENTENCE: Final = re.compile(r"(?<=[.!?:;])\s+|\n")
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document."""

    place: str
    """The heading over it or its page, as `Section.place`."""
    text: str


def passages_of(document: DocumentText) -> list[Passage]:
    """Cut a document into its passages, in order."""
    found: list[Passage] = []
    for section in document.sections:
        for text in _packed(_pieces(section.text)):
            if len(found) >= MAX_PASSAGES:
                return found
            found.append(Passage(section.place, text))
    return found


def _pieces(text: str) -> Iterator[str]:
    """Yield paragraphs, and of long ones their sentences, and of long sentences their words."""
    for paragraph in _PARAGRAPH.split(text):
        whole = paragraph.strip()
        if len(whole) <= PASSAGE_CHARS:
            if whole:
                yield whole
            continue
        for sentence in _SENTENCE.split(whole):
            yield from _cut(_SPACE.sub(" ", sentence).strip())


def _cut(sentence: str) -> Iterator[str]:
    while len(sentence) > PASSAGE_CHARS:
        space = sentence.rfind(" ", PASSAGE_CHARS // 2, PASSAGE_CHARS)
        end = space if space > 0 else PASSAGE_CHARS
        yield sentence[:end].rstrip()
        sentence = sentence[end:].lstrip()
    if sentence:
        yield sentence


def _packed(pieces: Iterator[str]) -> Iterator[str]:
    held = ""
    for piece in pieces:
        if held and len(held) + 1 + len(piece) > PASSAGE_CHARS:
            yield held
            held = ""
        held = f"{held}\n{piece}" if held else piece
    if held:
        yield held


MARKDOWN: Final = frozenset({".md", ".markdown"})
PLAIN: Final = frozenset({".txt", ".text"})
PDF: Final = ".pdf"
MAX_FILE_BYTES: Final = 32 << 20
"""A manual with pictures has some 20 MB."""
MAX_TEXT_BYTES: Final = 4 << 20
"""A text of more is a table or a log, and no document: this is a shelf of novels."""
PLACE_CHARS: Final = 200
"""Characters of a title or a heading: every passage below is kept with it."""
_LOOKED_AT: Final = 8_192
"""Bytes in which a file that is no text has a zero byte."""
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t](?P<text>.*)$")
_TOP_HEADING: Final = re.compile(r"\s{0,200}#[ \t](?P<text>[^\n]*)")
"""The title of a document: a heading of the first rank in front of all else."""
_FENCE: Final = re.compile(r"^ {0,3}(```|~~~)")
_FRONT_TITLE: Final = re.compile(r"^title:(?P<text>.*)$", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\[\]]{1,500})\]\([^()\s]{0,2000}\)")
_WIKI_LINK: Final = re.compile(r"!?\[\[(?:[^\[\]|]{1,500}\|)?([^\[\]|]{1,500})\]\]")
_EMPHASIS: Final = re.compile(r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|`")
_SEPARATORS: Final = re.compile(r"[_\-.\s]+")


class NoText(Exception):
    """A file has no text that could be read; the message says why, without the file's name."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document."""

    place: str
    """How a person finds it: "Bleeding the radiators", "page 12", or "" for the beginning."""
    text: str


@dataclass(frozen=True, slots=True)
class DocumentText:
    """What a file says."""

    title: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """All of it, with headings and page numbers on lines of their own."""
        parts = (
            f"{part.place}\n{part.text}" if part.place else part.text for part in self.sections
        )
        return "\n\n".join(parts)


def text_of(data: bytes, name: str) -> DocumentText:
    """Read a file of text, Markdown by the ending of its name.

    Raises:
        NoText: It is too large, or is no text.
    """
    if len(data) > MAX_TEXT_BYTES:
        raise too_large(MAX_TEXT_BYTES)
    text = _decoded(data)
    if PurePath(name).suffix.lower() in MARKDOWN:
        return _markdown(text, spoken_title(name))
    body = text.strip()
    return DocumentText(spoken_title(name), (Section("", body),) if body else ())


def too_large(most: int) -> NoText:
    """Return the error for a file of more than `most` bytes."""
    return NoText(
        f"it has more than {most >> 20} MB, the most that is read of one file; cut it into "
        "several, or leave it out of `folders`"
    )


def spoken_title(name: str) -> str:
    """Return what a file is called without its ending and marks: "boiler manual"."""
    stem = PurePath(name).stem
    return _SEPARATORS.sub(" ", stem).strip() or stem


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    if b"\0" in data[:_LOOKED_AT]:
        raise NoText("it is no text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")  # what older programs on Windows write
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _markdown(text: str, title: str) -> DocumentText:
    front, body = _front_matter(text)
    top = _TOP_HEADING.match(body)
    if top is not None:
        title = _plain(_without_closing(top["text"])) or title
    if found := _FRONT_TITLE.search(front):
        title = found["text"].strip("\"' ") or title
    over_all = "" if top is None else _without_closing(top["text"])
    sections = [
        Section("" if place == over_all else _plain(place)[:PLACE_CHARS], plain)
        for place, lines in _by_heading(_without_comments(body))
        if (plain := _plain("\n".join(lines)).strip())
    ]
    return DocumentText(title[:PLACE_CHARS], tuple(sections))


def _front_matter(text: str) -> tuple[str, str]:
    if not text.startswith("---\n"):
        return "", text
    front, mark, body = text[4:].partition("\n---\n")
    return (front, body) if mark else ("", text)


def _by_heading(text: str) -> Iterator[tuple[str, list[str]]]:
    place, lines, fence = "", list[str](), ""
    for line in text.split("\n"):
        if found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif not fence and (heading := _HEADING.match(line)):
            yield place, lines
            place, lines = _without_closing(heading["text"]), []
            continue
        lines.append(line)
    yield place, lines


def _without_closing(heading: str) -> str:
    """Return a heading's text without the marks that may close it: `## Pets ##`."""
    text = heading.strip()
    open_end = text.rstrip("#")
    return open_end.rstrip() if not open_end or open_end[-1] in " \t" else text


def _without_comments(text: str) -> str:
    """Take HTML's comments away, in one pass; one without an end stays."""
    kept: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return " ".join((*kept, text[at:]))


def _plain(text: str) -> str:
    """Take the marks of links and of emphasis away, which nobody says."""
    return _EMPHASIS.sub("", _LINK.sub(r"\1", _WIKI_LINK.sub(r"\1", text)))
