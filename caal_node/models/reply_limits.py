"""How much of one reply is taken, by whichever server, strategy or format it comes.

A model that goes round in circles ends here, and so does a server that plays one. The request is
closed as soon as a limit is reached: what was said until then is the reply, calls beyond the limit
are not made, and the model is told so.

A reply also ends at its calls. What a model writes behind them was written without their results:
small models make those up, and tell them as if they were true. None of it is heard or believed, and
its tokens are saved. Calls may follow each other; only thinking and blanks may stand between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from caal_node.config.setting_tables import TextLimits
from caal_node.core.items import Item, Turn
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    ReasoningDelta,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    ToolCallStart,
    UnspokenData,
)

AS_NATIVE: Final = TextLimits()
"""What holds for a server's own tool calls, whatever the settings say of text."""
CALLS_MAX: Final = AS_NATIVE.calls
CALLS_PER_TURN_MAX: Final = AS_NATIVE.turn_calls
NAME_CHARS_MAX: Final = 64
"""Characters of a call's name, as many as the names of tools have."""
ARGUMENTS_CHARS_MAX: Final = AS_NATIVE.payload
SPEECH_CHARS_MAX: Final = 24_000
"""Characters of one reply that are heard: about 4,000 words, 27 minutes at 150 words a minute."""
THINKING_CHARS_MAX: Final = 131_072
"""Characters of one reply's thinking: 32,000 tokens. Whoever speaks waits for all of it."""
REPLY_CHARS_MAX: Final = 524_288
"""Characters of one reply, its calls included: more than all that the other limits let through in a
reply that means something."""
REPEATED_CHARS: Final = 1_200
PERIOD_CHARS: Final = 150
"""A reply whose last 1,200 characters are one piece of up to 150, eight times over, is a loop. It
is noticed after a minute and a half of speech; no song has such a refrain."""
SLICE_CHARS: Final = 1_024
"""Characters that are read at once: 4 ms for the worst of texts."""
_PROBE_CHARS: Final = 16
"""The end of a text by which its period is looked for."""


Limit: TypeAlias = Literal["calls", "speech", "thinking", "size", "behind_call"]


def calls_left(turn: Turn[Item], limits: TextLimits = AS_NATIVE) -> int:
    """Return how many calls the next reply of `turn` may have."""
    return max(0, min(limits.calls, limits.turn_calls - len(turn.results)))


class ReplyLimits:
    """Takes the events of one reply until one of the limits is reached."""

    def __init__(self, calls: int = CALLS_MAX, payload: int = ARGUMENTS_CHARS_MAX) -> None:
        self.reached: Limit | None = None
        """The limit that ended the reply; nothing more of it is taken."""
        self._calls = calls
        self._calls_left = calls
        self._called = False
        self._payload = payload
        self._last_call = ""
        self._chars_left = REPLY_CHARS_MAX
        self._speech_left = SPEECH_CHARS_MAX
        self._thinking_left = THINKING_CHARS_MAX
        self._tail = ""
        self._unchecked = 0

    def admit(self, events: Iterable[Event], *, read: int = 0) -> list[Event]:
        """Return as many of `events` as are within the limits; `ToolCallStart` is left out.

        `read` are the characters that they were read of, whatever these mean.
        """
        self._chars_left -= read
        if self._chars_left < 0:
            self.reached = self.reached or "size"
        kept: list[Event] = []
        for event in events:
            if self.reached is not None and self.reached != "size":
                break
            match event:
                case TextDelta(text):
                    kept += [TextDelta(said)] if (said := self.speech(text)) else []
                case ReasoningDelta(text):
                    self._thinking_left -= len(text)
                    if self._thinking_left < 0:
                        self.reached = "thinking"
                    else:
                        kept.append(event)
                case TextWasThinking():
                    self._speech_left = SPEECH_CHARS_MAX
                    kept.append(event)
                case UnspokenData():
                    kept.append(event)
                case ToolCallStart():
                    pass  # Its call comes next.
                case _:
                    if self.call(event.name):
                        kept.append(of_allowed_size(event, self._payload))
        return kept

    def speech(self, text: str) -> str:
        """Return what may be said of `text`, which comes next in the reply."""
        if self._called and text.strip():
            self.end_behind_call()
            return ""
        if len(text) > self._speech_left:
            self.reached = "speech"
            head = text[: self._speech_left]
            return head[: head.rfind(" ") + 1] or head
        self._speech_left -= len(text)
        self._tail = (self._tail + text)[-REPEATED_CHARS:]
        self._unchecked += len(text)
        if self._unchecked >= PERIOD_CHARS:
            self._unchecked = 0
            if _is_periodic(self._tail):
                self.reached = "speech"
        return text

    def call(self, name: str) -> bool:
        """Return whether one more call, of the tool `name`, may be made."""
        if not self._calls_left:
            self._refuse(name)
            return False
        self._calls_left -= 1
        self._called, self._last_call = True, name
        return True

    def end_behind_call(self) -> None:
        """End the reply: what comes was written without the results of its calls."""
        self.reached = self.reached or "behind_call"

    def _refuse(self, name: str) -> None:
        self.reached = "calls"
        self._last_call = self._last_call or name

    @property
    def note(self) -> BrokenCall | None:
        """What the model is told of the calls that were not made, in the form of one of them."""
        if self.reached != "calls":
            return None
        problem = f"Only the first {self._calls} calls of a reply are made; the rest was not."
        return BrokenCall("", self._last_call, problem)


def _is_periodic(text: str) -> bool:
    if len(text) < REPEATED_CHARS:
        return False
    period = len(text) - _PROBE_CHARS - text.rfind(text[-_PROBE_CHARS:], 0, -1)
    return period <= PERIOD_CHARS and text[period:] == text[:-period]


def of_allowed_size(event: Event, most: int = ARGUMENTS_CHARS_MAX) -> Event:
    """Return `event`; of a call whose arguments are longer than `most`, that it cannot be made."""
    if not isinstance(event, ToolCallEnd):
        return event
    size = len(json.dumps(event.arguments, ensure_ascii=False, default=str))
    if size <= most:
        return event
    return BrokenCall(event.id, event.name, too_long(size, most))


def too_long(size: int, most: int = ARGUMENTS_CHARS_MAX) -> str:
    """Return what the model is told of arguments of `size` characters."""
    return f"The arguments have {size} characters; {most} are allowed."
