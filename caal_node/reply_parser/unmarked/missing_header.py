"""Replies whose first header is bare words: it stood in the prompt, or lost its special tokens.

Functionary's template ends with `>>>`, so a reply begins with `all` and a line's end. Servers that
leave special tokens out make of gpt-oss's headers `analysis`, `assistantfinal` and
`assistantcommentary to=functions.set_timer json`. Only at a reply's very beginning can such words
be told from prose: by what stands right behind them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.marker_scrubber import MarkerScrubber
from caal_node.reply_parser.markers import markers
from caal_node.reply_parser.scan import prefix_pattern
from caal_node.reply_parser.syntax.json_arguments import read_arguments
from caal_node.reply_parser.unmarked.text_position import TextPosition, UnmarkedContext

_CHANNELS: Final = ("analysis", "commentary", "final")
_NEXT: Final = tuple(f"assistant{channel}" for channel in _CHANNELS)
_NEXT_OR_CUT: Final = re.compile(prefix_pattern(_NEXT))
_ALL: Final = "all\n"
_TO: Final = " to="
_MESSAGE: Final = "<|message|>"
_MAX_HEAD_CHARS: Final = 128
_RECIPIENT: Final = re.compile(r" to=(functions\.)?([\w.-]+?)(?:\s*(?:json|code))?\s*")


class MissingHeaderReader:
    """Looks at the beginning of the reply."""

    def __init__(self, reading: UnmarkedContext, place: TextPosition) -> None:
        self._reading = reading
        self._place = place

    def at_start(self) -> Steps[None]:
        source = self._reading.source
        head = yield from source.look((_ALL, *_CHANNELS))
        if head is None:
            return
        source.advance(source.at + len(head))
        char = yield from source.peek()
        if head == _ALL:
            if not char or char.isspace() or char.islower():
                source.unread(head)  # A sentence goes on there.
            return
        if (yield from source.look((_MESSAGE,))) is not None:
            yield from self._reading.open(markers().openers["<|channel|>"], f"<|channel|>{head}")
            return
        called = (yield from source.look((_TO,))) is not None
        if not (char.isupper() or called):
            source.unread(head)
            return
        yield from self._messages(head)

    def _messages(self, channel: str) -> Steps[None]:
        """Messages, from behind the first one's channel on."""
        source = self._reading.source
        first = True
        while True:
            if channel != "final" and (yield from source.look((_TO,))) is not None:
                if not (yield from self._call()):
                    yield from self._other(channel, first=first)
                    return
            elif channel == "analysis":
                yield from self._up_to_next(self._reading.think)
            elif channel == "commentary":
                scrubber = MarkerScrubber(self._reading)
                yield from self._up_to_next(scrubber.say)
                scrubber.end()
            else:
                return  # The answer, which is running text like any other.
            head = yield from source.take_any(_NEXT)
            if head is None:
                return
            channel, first = head.removeprefix("assistant"), False

    def _call(self) -> Steps[bool]:
        """A call, from ` to=` on. False: it is none (and was put back)."""
        source, box = self._reading.source, self._reading.desk.box
        head, stop = yield from source.until(("{", "\n", _MESSAGE), _MAX_HEAD_CHARS)
        recipient = _RECIPIENT.fullmatch(head)
        known = recipient is not None and (recipient[1] or box.named(recipient[2]) is not None)
        if stop != "{" or recipient is None or not known:
            source.unread(head)
            return False
        yield from read_arguments(source, self._reading.desk.open(recipient[2]))
        self._place.after_call()
        gap = (yield from source.skip_space()) and source.skipped
        if (yield from source.look(_NEXT)) is None:
            source.unread(gap)
        return True

    def _other(self, channel: str, *, first: bool) -> Steps[None]:
        """` to=` with no call behind it: a header that kept its special tokens, or prose."""
        source = self._reading.source
        head, stop = yield from source.until((_MESSAGE, "\n"), _MAX_HEAD_CHARS)
        source.unread(head)
        if stop == _MESSAGE:
            yield from self._reading.open(markers().openers["<|channel|>"], f"<|channel|>{channel}")
        elif first:
            source.unread(channel)

    def _up_to_next(self, tell: Callable[[str], None]) -> Steps[None]:
        """Hand on a message's text as it comes, all but what may begin the next header."""
        source = self._reading.source
        while True:
            found = _NEXT_OR_CUT.search(source.text, source.at)
            end = found.start() if found is not None else len(source.text)
            if end > source.at:
                tell(source.advance(end))
            if found is not None and found.group() in _NEXT:
                return
            if source.closed:
                tell(source.advance(len(source.text)))
                return
            yield
