"""Weights for people who have no model's server and no speech service: fetched, checked and kept.

`ensure(WEIGHT)` returns the path that a loader wants, and downloads what is missing. It blocks,
shows progress and may take minutes, so call it before an event loop runs, or in a thread.
"""

from caal_node.weights.fetch import (
    CATALOGUE,
    MINILM,
    PIPER_JOE,
    QWEN_CODER_05B,
    QWEN_CODER_15B,
    WHISPER_TINY_EN,
    Weight,
    ensure,
    present,
)

__all__ = [
    "CATALOGUE",
    "MINILM",
    "PIPER_JOE",
    "QWEN_CODER_05B",
    "QWEN_CODER_15B",
    "WHISPER_TINY_EN",
    "Weight",
    "ensure",
    "present",
]
