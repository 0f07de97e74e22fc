"""Language models in GGUF files, by their path, a name of the catalogue, or the hub's name.

    models/mine.gguf                        a file of one's own
    qwen2.5-coder-0.5b                      a weight of the catalogue, by the beginning of its name
    owner/repository/file.gguf              a file of the model hub, at its newest revision

A file of the hub has the digest that the hub gave before the download, and no licence that is
known here: whoever names it has chosen both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rich.console import Console

from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.core.paths import from_home
from caal_node.network.guard import refusal_in
from caal_node.weights import cache
from caal_node.weights.fetch import (
    CATALOGUE,
    MINILM,
    PIPER_JOE,
    WHISPER_TINY_EN,
    Weight,
    WeightFile,
    described,
    ensure,
    present,
    reason_of,
)

# Which weights an install needs, by its settings and by the libraries that it has.


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
    models = (settings, *map(settings.with_model, settings.fallbacks.models))
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


MODELS: Final = tuple(weight for weight in CATALOGUE if weight.entry.endswith(".gguf"))
"""The weights of the catalogue that the embedded engine can load."""
_HUB_FILE: Final = re.compile(
    r"(?:(?:https://)?(?:hf\.co|huggingface\.co)/)?(\w[\w.-]*/\w[\w.-]*)/"
    r"(?:(?:resolve|blob)/main/)?(\w[\w.-]*\.gguf)(?:\?download=true)?"
)


def find_gguf(name: str) -> Path:
    """Return the file that `name` names, where it is on this machine. Nothing is fetched.

    Raises:
        ConfigError: it is not here, or is no such name; the message says what to do.
    """
    if (own := from_home(name, "CAAL_MODEL")).is_file():
        return own
    if (weight := catalogued(name)) is not None:
        if (found := present(weight)) is not None:
            return found
        raise ConfigError(
            f"{weight.title} is not in the cache; run: python -m caal_node.weights {weight.key}"
        )
    if (match := _HUB_FILE.fullmatch(name)) is not None:
        if (kept := _folder(match[1]) / match[2]).is_file():
            return kept
        raise ConfigError(f"{name} is not here; run: python -m caal_node.weights {name}")
    known = ", ".join(weight.key for weight in MODELS)
    raise ConfigError(
        f"CAAL_MODEL={name}: no such file, and no model of this name; write the path of a GGUF "
        f"file, one of {known}, or owner/repository/file.gguf of the model hub"
    )


def ensure_gguf(name: str, *, console: Console | None = None) -> Path:
    """Do as `find_gguf`, and fetch what is not here. It blocks, and shows progress.

    Raises:
        ConfigError: it cannot be had; the message says what to do.
    """
    if (weight := catalogued(name)) is not None and not from_home(name, "CAAL_MODEL").is_file():
        return ensure(weight, console=console)
    try:
        return find_gguf(name)
    except ConfigError:
        if (match := _HUB_FILE.fullmatch(name)) is None:
            raise
        return ensure(_described(match[1], match[2]), console=console)


def catalogued(name: str) -> Weight | None:
    """Return the one weight of the catalogue whose key begins so (`qwen2.5-coder:0.5b` too)."""
    begin = name.replace(":", "-").lower()
    found = [weight for weight in MODELS if weight.key.startswith(begin)]
    return found[0] if len(found) == 1 else None


def names_model(name: str) -> bool:
    """Return whether `name` is one of the catalogue or of the hub; it need not be here."""
    return catalogued(name) is not None or _HUB_FILE.fullmatch(name) is not None


def _described(repo: str, name: str) -> Weight:
    """Ask the hub for the size and the digest of a file.

    Raises:
        ConfigError: it does not say them.
    """
    try:
        revision, size, digest = described(repo, name)
    except Exception as error:  # the client raises what its HTTP client and its checks raise
        raise ConfigError(
            f"{repo}/{name}: the model hub does not give it "
            f"({refusal_in(error) or reason_of(error)}); "
            "check the name and the network, or set HF_ENDPOINT to a mirror of the hub"
        ) from error
    return Weight(
        key=_folder(repo).name,
        title=f"{repo}/{name}",
        licence="as its page on the hub says",
        hub_repo=repo,
        hub_revision=revision,
        files=(WeightFile(name, size, digest),),
        entry=name,
    )


def _folder(repo: str) -> Path:
    return cache.weights() / repo.replace("/", "--")
