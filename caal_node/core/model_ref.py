"""Reads a model in one word: `qwen3:8b`, `openai:local`, `ollama:llama3.2@http://box:11434`.

The form is `[API:]MODEL[@URL]`. The text before the first colon is an API only where it names one
(`qwen3:8b` has none), and the text behind an `@` is the address only where it has a scheme.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from caal_node.core.addresses import ollama_url, server_url

Api: TypeAlias = Literal[
    "ollama", "openai", "completions", "livekit", "embedded", "anthropic", "google"
]
_WITH_URL: Final = re.compile(r"(?=.*\Z)(.*?)@(\w+://.*|[\w.-]+:\d{1,5}(?:/.*)?)")
"""A name may hold an `@` too, so an address without a scheme is known by its port."""
CLOUD: Final[Mapping[Api, str]] = {
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
"""Services whose models LiveKit's own plugins ask, with the address of each."""
APIS: Final[tuple[Api, ...]] = typing.get_args(Api)


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A model, its API and its address; None stands for the settings' own API or address."""

    model: str
    api: Api | None = None
    base_url: str | None = None

    def __str__(self) -> str:
        api = f"{self.api}:" if self.api else ""
        return f"{api}{self.model}" + (f"@{self.base_url}" if self.base_url else "")


def parse_reference(text: str) -> ModelReference:
    """Read a reference.

    Raises:
        ValueError: This is no reference; the message says why in plain words.
    """
    rest, base_url = text.strip(), None
    if match := _WITH_URL.fullmatch(rest):
        rest, base_url = match.groups()
    start, colon, name = rest.partition(":")
    api: Api | None = next((known for known in APIS if colon and start == known), None)
    model = name if api else rest
    if not model or any(char.isspace() for char in model):
        raise ValueError("write a model's name, or api:model@url such as ollama:qwen3:8b")
    if base_url is not None:
        base_url = (
            ollama_url(base_url) if api == "ollama" else server_url(base_url, ("http", "https"))
        )
    return ModelReference(model, api, base_url)
