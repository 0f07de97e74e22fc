"""Where the reading of a block stands."""

from __future__ import annotations

from dataclasses import dataclass

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.format import Format, ParseContext

_MAX_PASSED = 4


@dataclass(slots=True)
class CallBlock:
    reading: ParseContext
    dialect: Format
    pending: str | None = None
    """A name whose arguments have not come yet."""
    call: OpenCall | None = None
    """The pending name's call, once it is certain."""
    made: int = 0
    passed: int = 0
    """Markers that were passed in front of a call that may not come."""
    over: bool = False
    """Whether a closer ended it."""

    def name(self, name: str) -> None:
        if self.call is not None:
            self.call.cut_off()
        self.pending = name
        box = self.reading.desk.box
        self.call = self.reading.desk.open(name) if box.find(name) is not None else None

    def take_call(self) -> OpenCall:
        """The pending call, opened now if it was not."""
        call = self.call or self.reading.desk.open(self.pending or "")
        self.pending = self.call = None
        self.made += 1
        return call

    def end_bare(self) -> None:
        """A name was all there was: a call without arguments."""
        if self.pending is None:
            return
        if self.pending.strip() in ("function", ""):
            self.pending = self.call = None
            return
        self.take_call().end({})

    def pass_marker(self) -> bool:
        """A marker went by that carries nothing. False: the block is to end."""
        if self.made or self.pending is not None:
            return True
        if self.dialect.tentative or self.dialect.at_line:
            # It is text again if no call follows; not too much of it, or all would be read twice.
            self.passed += 1
            return self.passed <= _MAX_PASSED
        self.reading.source.record()  # Nobody needs it again, whether a call follows or not.
        return True

    def cut(self) -> None:
        if self.pending is not None:
            self.take_call().cut_off()
