"""The text of a file and its parts, each with the name of its place: a heading, or a page.

Bytes in, text out. `main` is the program of a child that can be killed: a PDF is a program in all
but name, and of a long text one step of C holds the event loop, thread or not.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

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


# Takes a document apart, in a thread or in a child.
#
# The child gets the file as standard input, and writes a line of JSON for each thing found.

PASSAGES: Final = "passages"
PART_CHARS: Final = 3_000
"""Characters of a file that one call gives: 750 tokens, four minutes of speech."""
MAX_PAGES: Final = 1_000
MAX_CHARS: Final = 2 << 20
"""Characters of all pages: a thick manual has a million."""


def main() -> None:
    """Answer in the lines that `answer` yields, or in one with the fault."""
    name, wanted = sys.argv[1:]
    data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    try:
        lines = list(answer(data, name, wanted))
    except NoText as why:
        lines = [{"fault": str(why)}]
    for line in lines:
        written = json.dumps(line, ensure_ascii=False).encode(errors="replace")
        sys.stdout.buffer.write(written + b"\n")


def answer(data: bytes, name: str, wanted: str) -> Iterator[Any]:
    """Yield the title and then a document's passages, each with its place; or one part of its text,
    by its number from 1, and how many parts there are.

    Raises:
        NoText: It cannot be read, or has no text.
    """
    document = _pages(data, name) if name.lower().endswith(PDF) else text_of(data, name)
    if wanted == PASSAGES:
        yield document.title
        yield from ([each.place, each.text] for each in passages_of(document))
        return
    text, at = document.text, (int(wanted) - 1) * PART_CHARS
    yield text[at : at + PART_CHARS] if at >= 0 else ""
    yield max(1, -(-len(text) // PART_CHARS))


def _pages(data: bytes, name: str) -> DocumentText:
    if len(data) > MAX_FILE_BYTES:
        raise NoText(f"it has more than {MAX_FILE_BYTES >> 20} MB")
    try:
        from pypdf import PdfReader
    except ImportError:
        raise NoText('to read PDFs, run: pip install "caal-node[documents]"') from None
    try:
        reader = PdfReader(io.BytesIO(data))
        is_locked = reader.is_encrypted and not reader.decrypt("")
        pages = [] if is_locked else _texts(reader)
    except Exception:  # pypdf raises errors of many kinds for a damaged file, RecursionError too
        raise NoText("it is damaged, or no PDF") from None
    if is_locked:
        raise NoText("it needs a password")
    sections = (Section(f"page {at}", page) for at, page in enumerate(pages, 1) if page)
    if not (found := tuple(sections)):
        raise NoText("it has no text, only pictures of it")
    return DocumentText(spoken_title(name), found)


def _texts(reader: Any) -> list[str]:
    pages, left = list[str](), MAX_CHARS
    for page in reader.pages:
        text: str = page.extract_text()[:left]
        pages.append(text.strip())
        left -= len(text)
        if left <= 0 or len(pages) >= MAX_PAGES:
            break
    return pages
