"""Run text through `TextNormalizer`, whole and in pieces."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

from caal_node.core.prompt_files import read
from caal_node.tts_text import SpokenForms, TextNormalizer

FORMS = SpokenForms.model_validate(tomllib.loads(read("speakable.toml")))


def normalized(text: str) -> str:
    normalizer = TextNormalizer(FORMS)
    return normalizer.feed(text) + normalizer.finish()


def chunked(text: str, sizes: Sequence[int]) -> str:
    """Feed the text in chunks of `sizes`, over and over."""
    normalizer = TextNormalizer(FORMS)
    out: list[str] = []
    at = number = 0
    while at < len(text):
        size = sizes[number % len(sizes)]
        out.append(normalizer.feed(text[at : at + size]))
        at += size
        number += 1
    return "".join(out) + normalizer.finish()
