"""What a format of tool calls is, and what its reader works with: text, events, position."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.events import (
    CUT_OFF,
    BrokenCall,
    CallBuilder,
    Event,
    ReasoningDelta,
    TextDelta,
    TextWasThinking,
    ToolCallStart,
    UnknownCall,
    joined,
)
from caal_node.reply_parser.markers import SEPARATOR, THINKING_CLOSERS, MarkerTable, spoken_rest
from caal_node.reply_parser.tool_index import ToolIndex

_MAX_BRACES = 9
_BRACES = re.compile(r"[{}]")
_GUARDED_LINES = 4
"""A name and its arguments stand on neighbouring lines, perhaps with an empty one between."""
_SPOKEN_TAIL_CHARS = 128
"""How much of the spoken text is kept: longer than any marker."""


class EventBuffer:
    """Collects the events of a reply until `take` hands them over.

    Neighbouring pieces of text become one event. Where a marker was left out of the speech, what
    stood on either side is kept apart, so that it becomes neither one word nor another marker.
    """

    def __init__(self, markers: MarkerTable) -> None:
        self.markers = markers
        self._events: list[Event] = []
        self._space: list[str] = []
        """White space that is spoken only if speech follows."""
        self._tail = ""
        """The end of what was spoken."""
        self._open_braces = 0
        """Curly brackets that are open in what was spoken."""
        self._before: tuple[str, int, bool] = ("", 0, False)
        """Tail, brackets and `spoken` in front of the text that a closer without an opener would
        turn into thinking."""
        self._guarded_lines = 0
        """Lines for which a marker must be replaced by a separator: what was spoken begins as a
        call does."""
        self.spoken = False
        """Whether anything was said yet that is still taken for speech."""
        self.call_events = 0
        """How many events of calls there were so far."""
        self.skip_space = False
        """Whether the next text's leading white space belongs to a marker before it."""
        self.gap = False
        """Whether a marker stood between what was spoken and what comes."""
        self._held_from: int | None = None
        """Where the events of a call begin that was found in thinking. It is made only if the
        thinking never ends, as models forget to end it."""
        self._before_held = self._before
        """Tail, brackets and `spoken` in front of them."""
        self._text_open = False
        """Whether there is text that a closer without an opener would turn into thinking."""

    def take(self) -> list[Event]:
        """Return the events that were collected since the last time."""
        if self._held_from == 0:
            return []  # All of it is held, however often somebody asks.
        events, self._events = self._events, []
        if self._held_from is not None:
            self._events = events[self._held_from :]
            del events[self._held_from :]
            self._held_from = 0
        return joined(events) if len(events) > 1 else events

    def hold(self) -> None:
        """Keep back what comes from now on, until `end_unopened_thinking` or `release`."""
        if self._held_from is None:
            self._held_from = len(self._events)
            self._before_held = self._tail, self._open_braces, self.spoken

    def release(self) -> None:
        """The reply is over: calls that were held back are made."""
        self._held_from = None

    def emit(self, event: Event) -> None:
        """Add an event that is no text."""
        if isinstance(event, ToolCallStart | BrokenCall | UnknownCall):
            self._space.clear()
            self._text_open = False
            self.gap = True
            self.call_events += 1
        self._events.append(event)

    def say(self, text: str) -> str:
        """Add speech.

        Returns:
            The same text with what keeps it apart from what was spoken before it.
        """
        behind_marker = self.skip_space
        if behind_marker:
            text = text.lstrip()
        if not text:
            return text
        self.skip_space = False
        if not self._text_open and text.isspace():
            self._space.append(text)
            return text
        passed = text
        if self._space:
            text = "".join(self._space) + text
            self._space.clear()
        if self.gap:
            self.gap = False
            separator = self._separator(text)
            text = separator + text
            if not behind_marker:  # Else the white space is the marker's, so it indents nothing.
                passed = separator + passed
        if not self._text_open:
            self._text_open = True
            self._before = self._tail, self._open_braces, self.spoken
        self._remember(text)
        self._events.append(TextDelta(text))
        return passed

    def think(self, text: str) -> None:
        """Add thinking."""
        if self.skip_space:
            text = text.lstrip()
        if text:
            self.skip_space = False
            self._events.append(ReasoningDelta(text))

    def end_unopened_thinking(self) -> None:
        """A closer came without its opener: what was taken for speech was thinking."""
        self._space.clear()
        self.skip_space = True
        if self._held_from is not None:
            held = self._events[self._held_from :]
            self._events[self._held_from :] = [
                ReasoningDelta(event.text)
                for event in held
                if isinstance(event, TextDelta | ReasoningDelta)
            ]
            self._held_from, self._text_open = None, False
            self._tail, self._open_braces, self.spoken = self._before_held
        if self._text_open:
            self._text_open = False
            self._tail, self._open_braces, self.spoken = self._before
            self._events.append(TextWasThinking())

    def guard_call_beginning(self) -> None:
        """What was said last begins as a call does: nothing behind a marker must complete it."""
        self._guarded_lines = _GUARDED_LINES

    def _separator(self, text: str) -> str:
        """Return what is put between the spoken text and `text`, so that they stay apart."""
        tail = self._tail
        may_complete_call = self._guarded_lines or self._open_braces
        if may_complete_call or self.markers.partial_start(tail) < len(tail):
            return f" {SEPARATOR} "
        return " " if tail[-1:].strip() and text[0].strip() else ""

    def _remember(self, text: str) -> None:
        """Note what the end of the speech says of what may come behind it."""
        self.spoken = self.spoken or not text.isspace()
        if "{" in text or "}" in text:
            # One by one: as a whole "}{" would open nothing, in two pieces it does.
            for brace in _BRACES.findall(text):
                more = 1 if brace == "{" else -1
                self._open_braces = min(max(self._open_braces + more, 0), _MAX_BRACES)
        if self._guarded_lines:
            self._guarded_lines = max(0, self._guarded_lines - text.count("\n"))
        self._tail = (self._tail + text)[-_SPOKEN_TAIL_CHARS:]


class MarkerScrubber:
    """Speaks text that does not stand as running text, piece by piece and without its markers."""

    def __init__(self, events: EventBuffer) -> None:
        self._events = events
        self._held = ""
        """What may become a marker."""

    def say(self, piece: str) -> None:
        """Speak the next piece."""
        markers = self._events.markers
        text = self._held + piece
        at = 0
        while True:
            found = markers.strip.search(text, at)
            cut = markers.partial_start(text, at)
            if found is None or found.start() > cut:
                break  # One inside of what may become another belongs to that.
            self._events.say(text[at : found.start()])
            self._events.gap = True
            at = found.end()
        self._events.say(text[at:cut])
        self._held = text[cut:]

    def say_all(self, text: str) -> None:
        """Speak `text`, behind which nothing comes."""
        self.say(text)
        self.end()

    def end(self) -> None:
        """Speak what is left, as no more comes."""
        if self._held:
            self._events.say(spoken_rest(self._held))
            self._events.gap = True
        self._held = ""


_TAIL_CHARS = 160
"""How much of the text before a call is searched for words that make it an example."""
_EXAMPLE = re.compile(
    r"\b(?:examples?|for instance|e\.g\.|samples?|looks? like (?:this|so|the following)"
    r"|(?:would|could|should|might) look|(?:do not|don't|never) call)\b[^\n.!?]*\s*\Z",
    re.IGNORECASE,
)
"""Words that make what comes in the same sentence an example. "I would use" is none: small models
say so, and then call."""
_SENTENCE_ENDS = frozenset(".!?;>)…。！？：")
_PHI = "functools"
"""Stands right in front of Phi's list of calls, wherever that is."""
_STRING = re.compile(r"""(["'])(?:(?!\1)[^\\]|\\.)*+(?:\1|\\?\Z)""", re.DOTALL)
"""A string of JSON or of Python, also one that never ends."""
_CODE_COLUMNS = 4
"""Columns of indentation from which on a line is code, as in Markdown."""
_BARE_HEADER: Final = ">>>"
"""Functionary's header: the one marker without a bracket, so that JSON may seem to hold it."""
_MAX_DEPTH: Final = 32


class TextPosition:
    """Follows running text as it is passed on, and tells what its end says of what comes next."""

    def __init__(self) -> None:
        self.line_start = True
        """Whether nothing but white space stands in front, in this line."""
        self.behind_call = False
        """Whether nothing but white space stands between the last call and here."""
        self.fence = False
        """Whether this is inside a code fence that holds no call."""
        self.span = False
        """Whether this is inside a code span."""
        self.fence_to_close = False
        """Whether a fence that held a call is still to be closed."""
        self.broken_depth = 0
        """Brackets that are open in a call that a marker broke; 0 where there is none."""
        self._indent = 0
        self._tail = ""
        """The end of the text."""

    @property
    def quoting(self) -> bool:
        """Whether markers are being shown, not used."""
        return self.fence or self.span

    @property
    def strict(self) -> bool:
        """Whether this is the middle of a line, where only a tool's own name makes JSON a call."""
        return not (self.line_start or self.behind_call)

    @property
    def example(self) -> bool:
        """Whether the text says that what comes is an example."""
        return _EXAMPLE.search(self._tail) is not None

    @property
    def indented(self) -> bool:
        """Whether the line is indented as code is."""
        return self._indent >= _CODE_COLUMNS

    @property
    def sentence_over(self) -> bool:
        """Whether a new sentence may begin here."""
        said = self._tail.replace(SEPARATOR, " ").rstrip()
        if not said:
            return len(self._tail) < _TAIL_CHARS
        if said[-1] == ":":
            # Behind a quote it stands behind a key of JSON.
            return not said[:-1].rstrip().endswith('"')
        return said[-1] in _SENTENCE_ENDS or self._tail.endswith(_PHI)

    def passed(self, text: str) -> None:
        """Follow `text`, which was passed on as speech."""
        line = text
        if "\n" in text:
            line = text.rpartition("\n")[2]
            self.line_start, self._indent = True, 0
            self.span = False
        if self.line_start:
            blank = line.lstrip(" \t")
            self._indent += 0 if blank else len(line.expandtabs(_CODE_COLUMNS))
            self._indent = min(_CODE_COLUMNS, self._indent)
        if not line.isspace() and line:
            self.line_start = False
        if not text.isspace() and text:
            self.behind_call = False
        self._tail = (self._tail + text)[-_TAIL_CHARS:]

    def after_call(self) -> None:
        """A call has ended here."""
        self.line_start = True
        self.behind_call = True
        self.span = False
        self._indent = 0
        self.forget()

    def after_thinking(self) -> None:
        """Thinking is over: what comes is as at the beginning of a line."""
        self.line_start, self._indent = True, 0

    def after_unopened_thinking(self) -> None:
        """Thinking is over whose opener was never written, so the text so far was no speech."""
        self.after_thinking()
        self.behind_call = False
        self.forget()

    def forget(self) -> str:
        """What was said says nothing of what comes. It is returned, for `remember`."""
        before, self._tail = self._tail, ""
        return before

    def remember(self, before: str) -> None:
        """Undo `forget`."""
        self._tail = before


class ReadOutcome(Enum):
    """What text without a marker in front of it proved to be."""

    CALL = "It is a call, whether it can be made or not."
    SPEECH = "It is no call."
    BROKEN = "It begins as only a call does, and breaks off."


@dataclass(frozen=True, slots=True)
class CallFormat:
    """One way of writing calls. The folder `formats/` holds them, one file for each family."""

    name: str
    openers: tuple[str, ...]
    """Markers that begin it, wherever they stand."""
    read: FormatReader
    """Reads what follows an opener."""
    closers: tuple[str, ...] = ()
    """Markers that end it."""
    ends: tuple[str, ...] = ()
    """Markers in front of which a block of calls ends, unless they stand in a value."""
    strays: tuple[str, ...] = ()
    """Its other markers: they mean nothing outside a call and are never spoken."""
    tentative: bool = False
    """Whether an opener without a call behind it is ordinary text (`<user>`)."""
    at_line: bool = False
    """Whether its openers are ordinary words, which count at the beginning of a line only."""
    untyped_json: bool = False
    """Whether the value of an undeclared parameter is read as JSON where that is possible."""
    turn: bool = False
    """Whether its openers begin another turn, so that no block of calls goes on behind one."""
    name_and_json: bool = False
    """Whether any name right in front of a JSON object is a call, even if no tools are known."""
    unquote: bool = False
    """Whether a declared string may stand in quotes that are not part of it."""
    in_thinking: bool = True
    """Whether an opener counts in the middle of thinking."""


class ParseContext:
    """A reply that is being read.

    in_thinking: the reply begins inside of a think block.
    id_prefix: what the ids of calls begin with.
    """

    def __init__(
        self, tools: ToolIndex, markers: MarkerTable, *, in_thinking: bool, id_prefix: str
    ) -> None:
        self.cursor = Cursor()
        self.markers = markers
        self.events = EventBuffer(markers)
        self.calls = CallBuilder(tools, self.events.emit, id_prefix)
        self.position = TextPosition()
        self.thinking: tuple[str, ...] | None = THINKING_CLOSERS if in_thinking else None
        """What may close the thinking that is open; None outside of thinking."""
        self.literal: tuple[str, ...] = ()
        """What may close the speech in which markers mean nothing; empty outside of it."""
        self.gap_before_marker = False
        """What `events.gap` was before the marker that was found last."""
        self.invented_result = False
        """Whether a result that the model made up stood behind a call."""

    def note_result(self) -> None:
        """Note that a tool's result, or another's turn, begins here, which no model can know."""
        self.invented_result = self.invented_result or self.position.behind_call

    def begin_thinking(self, closers: tuple[str, ...]) -> None:
        """Take what follows for thinking, up to one of `closers`."""
        self.thinking = closers
        self.events.skip_space = True

    def pass_on(self, text: str) -> None:
        """Pass on text without markers, as thinking or as speech."""
        if self.thinking is not None:
            self.events.think(text)
        else:
            self.say(text)

    def say(self, text: str) -> None:
        """Pass on running text without markers as speech."""
        self.position.passed(self.events.say(text))

    def say_rejected(self, text: str) -> None:
        """Pass on as speech what was read for a call and is none, but for the markers in it. From
        a marker on, it is read again."""
        found = self.markers.strip.search(text)
        header = text.find(_BARE_HEADER, 1)
        if header > 0 and (found is None or header < found.start()):
            if self.cursor.try_unread(text[header:]):  # It may begin a call, as behind any speech.
                text = text[:header]
        elif found is not None and self.cursor.try_unread(text[found.start() :]):
            text = text[: found.start()]
        elif found is None:
            cut = self.markers.partial_start(text)
            if cut < len(text) and (cut > 0 or text[0] != "["):
                # The reading stopped inside a marker; the scanner shall see it whole.
                self.cursor.unread(text[cut:])
                text = text[:cut]
        clean = text if found is None else self.markers.strip.sub(f" {SEPARATOR} ", text)
        self.events.gap = self.events.gap or clean != text
        self.say(clean)
        self.events.gap = self.events.gap or clean != text

    def skip_broken_call(self, text: str, *, restarted: bool = False) -> Steps[bool]:
        """Leave out `text`, whose reading ended with `ReadOutcome.BROKEN`.

        If a marker broke it, what stands in front of the marker is left out, and so is what
        belongs to the call behind it; reading goes on at the marker. But where the reply ends
        and the marker stands in a string, that is a value of a call that was cut off.

        restarted: the call begins again behind `text`, so that it is left out without a marker,
            too.

        Returns:
            Whether it was left out.
        """
        cursor, found = self.cursor, self.markers.strip.search(text)
        over = cursor.closed and cursor.at >= len(cursor.text)
        if over and found is not None and _is_in_string(text, found.start()):
            self.calls.broken("", CUT_OFF)  # The marker is a part of a value.
            return True
        if found is not None:
            broken, cut = True, found.start()
            if not cursor.try_unread(text[cut:]):
                cut = len(text)
        else:  # The reading may have stopped inside a marker, or in front of one.
            cut = self.markers.partial_start(text)
            cursor.unread(text[cut:])
            broken = bool((yield from self.markers.peek(cursor)))
            if not broken:
                cursor.advance_by(len(text) - cut)
        if broken or restarted:
            self.calls.broken("", "The call breaks off in the middle; write it whole.")
        if broken:
            depth = sum(map(text[:cut].count, "[{(")) - sum(map(text[:cut].count, "]})"))
            self.position.broken_depth = min(max(depth, 1), _MAX_DEPTH)
        return broken or restarted

    def read_format(self, call_format: CallFormat, opener: str) -> Steps[bool]:
        """Let `call_format` read what follows `opener`. False: it stays running text."""
        cursor, position, before = self.cursor, self.position, self.events.call_events
        thinking, self.thinking = self.thinking, None
        cursor.record()
        if (yield from call_format.read(self, call_format, opener)):
            cursor.recorded()
            position.after_call()
            if self.events.call_events == before and self.thinking is None:
                position.broken_depth = 0  # A header: what follows is a message of its own.
            return True
        text = cursor.recorded()
        if self.thinking is None:
            self.thinking = thinking
        if call_format.tentative:
            self.events.gap = self.gap_before_marker
            self.pass_on(opener)
            if opener == _BARE_HEADER:
                self.events.guard_call_beginning()
        else:
            text = text.removeprefix(opener)  # Some readers read it again as a tag.
        cursor.unread(text)
        return False


def _is_in_string(text: str, at: int) -> bool:
    """Return whether index `at` stands in a string of the call that `text` begins. A quote in front
    of words ends none: another call began there."""
    for found in _STRING.finditer(text):
        if found.end() > at:
            behind = text[found.end() :].lstrip()[:1]
            return found.start() < at and (not behind or behind in ",:]})")
    return False


FormatReader: TypeAlias = Callable[[ParseContext, CallFormat, str], Steps[bool]]
"""Takes the context, the format and the opener that was found, and returns whether this was a
call. If it was none, what was read is put back and read again as running text."""
