"""Running text through `Speakable`, whole and in pieces."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

from caal_node.prompting import read
from caal_node.tts_text import Speakable, Wording

WORDING = Wording.of(tomllib.loads(read("speakable.toml")))


def said(text: str) -> str:
    speaks = Speakable(WORDING)
    return speaks.feed(text) + speaks.finish()


def chunked(text: str, sizes: Sequence[int]) -> str:
    """The same in chunks of `sizes`, over and over."""
    speaks = Speakable(WORDING)
    out: list[str] = []
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        out.append(speaks.feed(text[at : at + size]))
        at += size
        turn += 1
    return "".join(out) + speaks.finish()
