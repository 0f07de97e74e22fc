"""Cuts a document into passages: pieces that a question can be answered from, read in one breath.

A passage is whole paragraphs of one section where they fit, else whole sentences, else words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from caal_node.toolsets.local_files.file_text import DocumentText

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
