"""How far the reading of a block of calls has come."""

from __future__ import annotations

from dataclasses import dataclass

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.format import CallFormat
from caal_node.reply_parser.parse_context import ParseContext

_MAX_PASSED = 4


@dataclass(slots=True)
class CallBlock:
    """A block of calls that is being read, and the call in it whose arguments are to come."""

    context: ParseContext
    call_format: CallFormat
    pending: str | None = None
    """A name whose arguments have not come yet."""
    call: OpenCall | None = None
    """The pending name's call, once it is certain."""
    made: int = 0
    """How many calls were made."""
    passed: int = 0
    """How many markers were passed in front of a call that may not come."""
    over: bool = False
    """Whether a closer ended it."""

    def set_name(self, name: str) -> None:
        """Note a call's name. Its arguments are to come."""
        if self.call is not None:
            self.call.cut_off()
        self.pending = name
        calls = self.context.calls
        self.call = calls.open(name) if calls.tools.find(name) is not None else None

    def take_call(self) -> OpenCall:
        """Return the pending call, which is opened now if it was not."""
        call = self.call or self.context.calls.open(self.pending or "")
        self.pending = self.call = None
        self.made += 1
        return call

    def end_pending(self) -> None:
        """End the pending call, if there is one, as a call without arguments."""
        if self.pending is None:
            return
        if self.pending.strip() in ("function", ""):
            self.pending = self.call = None
            return
        self.take_call().end({})

    def cut_off_pending(self) -> None:
        """End the pending call, if there is one, as cut off."""
        if self.pending is not None:
            self.take_call().cut_off()

    def pass_marker(self) -> bool:
        """Note that a marker went by that carries nothing. False: the block is to end."""
        if self.made or self.pending is not None:
            return True
        if self.call_format.tentative or self.call_format.at_line:
            # It is text again if no call follows; not too much of it, or all would be read twice.
            self.passed += 1
            return self.passed <= _MAX_PASSED
        self.context.cursor.record()  # Nobody needs it again, whether a call follows or not.
        return True
