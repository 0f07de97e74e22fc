"""Language models in GGUF files, by their path, a name of the catalogue, or the hub's name.

    models/mine.gguf                        a file of one's own
    qwen2.5-coder-0.5b                      a weight of the catalogue, by the beginning of its name
    owner/repository/file.gguf              a file of the model hub, at its newest revision

A file of the hub has the digest that the hub gave before the download, and no licence that is
known here: whoever names it has chosen both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.core.paths import from_home
from caal_node.network.guard import refusal_in
from caal_node.weights import cache
from caal_node.weights.catalogue import CATALOGUE, Weight, WeightFile
from caal_node.weights.fetch import described, ensure, present, reason_of

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
