"""Making what a model writes speakable, as it streams. Pure: text in, text out."""

from caal_node.speakable.stream import Speakable
from caal_node.speakable.wording import Wording

__all__ = ["Speakable", "Wording"]
