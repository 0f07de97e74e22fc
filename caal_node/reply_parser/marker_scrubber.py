"""Keeping markers out of text that is spoken although it does not stand as running text."""

from __future__ import annotations

from caal_node.reply_parser.format import ParseContext


class MarkerScrubber:
    """Takes text in pieces and speaks it without markers; holds what may become one."""

    def __init__(self, reading: ParseContext) -> None:
        self._reading = reading
        self.holds = ""

    def say(self, piece: str) -> None:
        # Dialects use this, and the scanner knows all dialects.
        from caal_node.reply_parser.markers import MAX_MARKER_CHARS, cut_marker, markers

        text = self.holds + piece
        at = 0
        while True:
            found = markers().strip.search(text, at)
            near = max(at, len(text) - MAX_MARKER_CHARS)
            cut = near + cut_marker(text[near:])
            if found is None or found.start() > cut:
                break  # one inside what may become another belongs to that
            self._reading.say(text[at : found.start()])
            self._reading.drop()
            at = found.end()
        self._reading.say(text[at:cut])
        self.holds = text[cut:]

    def end(self) -> None:
        """No more comes."""
        from caal_node.reply_parser.markers import spoken_rest

        if self.holds:
            self._reading.say(spoken_rest(self.holds))
            self._reading.drop()
        self.holds = ""
