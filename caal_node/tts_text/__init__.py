"""Turns what a model writes into text that a voice can read out, while it streams.

The room is pure: text goes in, text comes out, and nothing is read or waited for.
"""

from caal_node.tts_text.normalizer import TextNormalizer
from caal_node.tts_text.spoken_forms import SpokenForms

__all__ = ["SpokenForms", "TextNormalizer"]
