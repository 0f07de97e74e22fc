"""Which weights an install needs, by its settings and by the libraries that it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from caal_node.config.settings import Settings
from caal_node.weights.catalogue import MINILM, PIPER_JOE, WHISPER_TINY_EN, Weight
from caal_node.weights.fetch import ensure
from caal_node.weights.gguf import ensure_gguf


@dataclass(frozen=True, slots=True)
class NeededWeight:
    """What a setting wants: a weight, or the name of a GGUF file."""

    what: Weight | str
    setting: str
    library: str
    """The import name of the library without which it is of no use."""
    extra: str
    """The extra of this package that brings the library."""

    @property
    def title(self) -> str:
        return self.what if isinstance(self.what, str) else self.what.title

    @property
    def usable(self) -> bool:
        """Whether the library is installed."""
        return find_spec(self.library) is not None

    def fetch(self, console: Console) -> Path:
        """Return where it is, once it is there."""
        if isinstance(self.what, str):
            return ensure_gguf(self.what, console=console)
        return ensure(self.what, console=console)


def needed(settings: Settings) -> Iterator[NeededWeight]:
    """Yield the weights that `settings` want."""
    if settings.stt == "local":
        yield NeededWeight(WHISPER_TINY_EN, "CAAL_STT=local", "faster_whisper", "local-speech")
    if settings.tts == "local":
        yield NeededWeight(PIPER_JOE, "CAAL_TTS=local", "piper", "local-speech")
    if settings.embedding == "minilm":
        yield NeededWeight(MINILM, "CAAL_EMBEDDING=minilm", "tokenizers", "embedding")
    models = (settings, *map(settings.with_model, settings.fallbacks))
    for name in dict.fromkeys(each.model for each in models if each.api == "embedded"):
        yield NeededWeight(name, "CAAL_API=embedded", "xllamacpp", "embedded")


def fetch_needed(settings: Settings, *, console: Console | None = None) -> None:
    """Fetch what `settings` need and the cache lacks, and say where it is. It blocks.

    Raises:
        ConfigError: it cannot be fetched; the message says what to do.
    """
    console = console or Console(stderr=True)

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, highlight=False, markup=False)

    wanted = list(needed(settings))
    for one in wanted:
        if one.usable:
            say(f"{one.setting}: {one.title} is there: {one.fetch(console)}")
        else:
            say(
                f"{one.setting}: {one.title} is not fetched, as {one.library} is not installed "
                f"(pip install 'caal-node[{one.extra}]')"
            )
    if not wanted:
        say("these settings need no weights")
