"""Keeping markers out of text that is spoken although it does not stand as running text."""

from __future__ import annotations

from caal_node.reply_parser.format import ParseContext
from caal_node.reply_parser.markers import spoken_rest


class MarkerScrubber:
    """Takes text in pieces and speaks it without markers; holds back what may become one."""

    def __init__(self, context: ParseContext) -> None:
        self._context = context
        self._held = ""

    def say(self, piece: str) -> None:
        """Speak the next piece."""
        markers = self._context.markers
        text = self._held + piece
        at = 0
        while True:
            found = markers.strip.search(text, at)
            cut = markers.partial_start(text, at)
            if found is None or found.start() > cut:
                break  # One inside of what may become another belongs to that.
            self._context.say(text[at : found.start()])
            self._context.mark_gap()
            at = found.end()
        self._context.say(text[at:cut])
        self._held = text[cut:]

    def end(self) -> None:
        """Speak what is left, as no more comes."""
        if self._held:
            self._context.say(spoken_rest(self._held))
            self._context.mark_gap()
        self._held = ""
