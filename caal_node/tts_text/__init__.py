"""Making what a model writes speakable, as it streams. Pure: text in, text out."""

from caal_node.tts_text.normalizer import Speakable
from caal_node.tts_text.spoken_forms import Wording

__all__ = ["Speakable", "Wording"]
