"""What the demo needs from the network, told and fetched before anything starts."""

from __future__ import annotations

from rich.console import Console

from caal_node import weights

MODEL = weights.QWEN_CODER_05B
"""Small enough to answer in a second on two cores, and right on what the demo asks."""

SPEECH = (weights.WHISPER_TINY_EN, weights.PIPER_JOE)


def needed(*, model: bool) -> tuple[weights.Weight, ...]:
    """Every weight of the demo. `model`: the embedded one too, where there is no Ollama."""
    return (MODEL, *SPEECH) if model else SPEECH


def fetch(console: Console, *, model: bool) -> None:
    """Download what is not in the cache, with progress bars. It blocks; seconds to minutes.

    Raises:
        ConfigError: one of them cannot be fetched; one line with its mend.
    """
    missing = [weight for weight in needed(model=model) if weights.present(weight) is None]
    if missing:
        total = sum(weight.size for weight in missing)
        console.print(f"The first run downloads {total / 1e6:,.0f} MB; later ones nothing.")
    for weight in missing:
        weights.ensure(weight, console=console)
