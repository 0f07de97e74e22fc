"""The text of a reply as it arrives: what is unread, what was taken, what is put back."""

from __future__ import annotations

from caal_node.reply_parser.nesting import Nesting
from caal_node.reply_parser.states import EVERYTHING, State

_MAX_RETRIES = 8


class Tape:
    """The unread text, and whether more can come."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.closed = False
        self.waiting: State = EVERYTHING
        """Set by a reader before it yields: what need not wake it."""
        self.walked = 0
        """How much of the text that has just come the waiting state has gone through."""
        self.reached: State = EVERYTHING
        """The state in which that left it."""
        self.retried = 0
        self._record: list[str] | None = None

    # -- arriving ---------------------------------------------------------------------------

    def arrive(self, walked: str, new: str, reached: State) -> None:
        """Make text readable: what the waiting state went through, and what it did not know."""
        self.text = self.text[self.at :] + walked + new
        self.at = 0
        self.walked = len(walked)
        self.reached = reached
        self.waiting = EVERYTHING

    # -- taking -----------------------------------------------------------------------------

    def advance(self, end: int) -> str:
        """Take the text up to index `end`."""
        taken = self.text[self.at : end]
        self.at = end
        if self._record is not None and taken:
            self._record.append(taken)
        return taken

    def record(self) -> None:
        """Keep what is read from here on, for `recorded`."""
        self._record = []

    def recorded(self) -> str:
        """What was read since `record`; recording stops."""
        text = "".join(self._record or ())
        self._record = None
        return text

    def recorded_from(self, count: int) -> str:
        """What was read since `recorded_chars` was `count`."""
        return "".join(self._record or ())[count:]

    @property
    def recorded_chars(self) -> int:
        """How much was read since `record`. Takes longer the more that is."""
        return sum(map(len, self._record or ()))

    def unread(self, text: str) -> None:
        """Put `text`, which was taken last, back in front."""
        left = len(text)
        while self._record and left > 0:
            last = self._record.pop()
            if len(last) > left:
                self._record.append(last[: len(last) - left])
            left -= len(last)
        before = self.at - len(text)
        if before >= 0 and self.text.startswith(text, before):
            self.at = before
        else:
            self.text = text + self.text[self.at :]
            self.at = 0

    def retry(self, text: str) -> bool:
        """Put back what a reader took and could not use. False: not this time.

        After a few times it is not put back, so that a hostile reply cannot be read over and over.
        """
        self.retried += 1
        if self.retried <= _MAX_RETRIES:
            self.unread(text)
        return self.retried <= _MAX_RETRIES

    def take_walked(self) -> tuple[str, Nesting] | None:
        """Take what a `Nesting` has gone through while its reader slept, and where it stands."""
        walked, self.walked = self.walked, 0
        if not walked or not isinstance(self.reached, Nesting):
            return None
        return self.advance(self.at + walked), self.reached
