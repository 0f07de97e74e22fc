"""Keeping markers out of text that is spoken although it does not stand as running text."""

from __future__ import annotations


class Scrubber:
    """Takes text in pieces, gives it without markers; holds what may become one."""

    def __init__(self) -> None:
        self.holds = ""

    def pass_on(self, piece: str) -> str:
        """The part of what has come that is certain."""
        # Dialects use this, and the scanner knows all dialects.
        from caal_node.replies.markers import cut_marker, without_markers

        text = without_markers(self.holds + piece)
        at = cut_marker(text)
        self.holds = text[at:]
        return text[:at]

    def end(self) -> str:
        """What was held, now that no more comes."""
        from caal_node.replies.markers import spoken_rest

        rest, self.holds = self.holds, ""
        return spoken_rest(rest)
