"""The text of a reply, which may begin in the middle of thinking.

Some chat templates write the opener of a think block themselves (R1, Qwen3-Thinking), so that a
reply has the closer alone. What comes before it would be spoken by the time that it is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from caal_node.core.tool_spec import ToolSchema
from caal_node.models.strategies.speech_filter import without_thinking
from caal_node.reply_parser import Event, ReasoningDelta, ReplyParser, TextDelta, TextWasThinking


class ReplyText:
    """Reads as `ReplyParser` does. `in_thinking`: the prompt left a think block open.

    A reply without any closer was no thinking after all: it is read anew at its end, as it must
    not be lost.
    """

    def __init__(self, tools: Sequence[ToolSchema], *, in_thinking: bool = False) -> None:
        self.unclosed = False
        """The reply was to begin in thinking, and has ended without coming out of it."""
        self._tools = tools
        self._parser = ReplyParser(tools, in_thinking=in_thinking)
        self._inside = in_thinking
        self._thought: list[str] = []

    def feed(self, text: str) -> list[Event]:
        if self._inside:
            self._thought.append(text)
        return self._seen(self._parser.feed(text))

    def begins_outside(self) -> None:
        """The server keeps the thinking apart, so the text begins as speech."""
        if self._inside and not self._thought:
            self._parser = ReplyParser(self._tools)
            self._inside = False

    def led_to_call(self) -> None:
        """A structured call has come: it is the reply, and the text before it stays unspoken."""
        self._inside = False
        self._thought.clear()

    def finish(self) -> list[Event]:
        events = self._seen(self._parser.finish())
        if not self._inside or not "".join(self._thought).strip():
            return events
        self._inside = False
        anew = ReplyParser(self._tools)
        events = [*anew.feed("".join(self._thought)), *anew.finish()]
        closed = any(isinstance(event, TextWasThinking) for event in events)
        self.unclosed = not closed and any(isinstance(event, TextDelta) for event in events)
        return without_thinking(events)

    def _seen(self, events: list[Event]) -> list[Event]:
        if any(not isinstance(event, ReasoningDelta) for event in events):
            self._inside = False
            self._thought.clear()
        return events
