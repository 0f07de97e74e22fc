"""Where the text stands: in a line, a sentence, a code span, a code fence, behind a call."""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.markers import APART

_TAIL_CHARS = 160
"""How much of the text before a bare call is looked at for words that make it an example."""
_EXAMPLE = re.compile(
    r"\b(?:examples?|for instance|e\.g\.|samples?|looks? like (?:this|so|the following)"
    r"|(?:would|could|should|might) look|(?:do not|don't|never) call)\b[^\n.!?]*\s*\Z",
    re.IGNORECASE,
)
"""Words that make what comes in the same sentence an example. "I would use" is none: small models
say so, and then call."""
_SENTENCE_ENDS = frozenset(".!?:;>)…。！？：")
_OVER = "\0"
"""Between texts of which the first says nothing of the second."""
_PHI = "functools"
"""Stands right in front of Phi's list of calls, wherever that is."""
_INDENTED = 4
"""Columns from which on a line is code, as in Markdown."""


class UnmarkedContext(ParseContext, Protocol):
    """The running text, as seen from here."""

    @property
    def spoken(self) -> bool:
        """Whether anything was said yet."""
        ...

    def apart(self, text: str) -> str:
        """`text`, which is speech, as it will stand behind what was said."""
        ...

    def beware(self) -> None:
        """What was said last begins as a call does; nothing behind a marker must complete it."""
        ...

    def open(self, dialect: Format, opener: str) -> Steps[bool]:
        """Let `dialect` read what follows `opener`; what is no call stays running text."""
        ...


class TextPositionState(NamedTuple):
    line_start: bool
    behind_call: bool
    fence: bool
    span: bool
    closing: bool
    last: str
    indent: int
    wreck: int


def last_of(text: str, before: str) -> str:
    """The kind of a text's last character that is no white space: "." where a sentence may be
    over, "s" for the letter with which `functools` ends, '"', "x" for others, `before` for none.
    """
    bare = _bare(text)
    char = bare[-1:]
    if not char:
        return before
    if char == ":":
        # Behind a quote it stands behind a key of JSON.
        return "x" if (_bare(bare[:-1])[-1:] or before) == '"' else "."
    if char in _SENTENCE_ENDS:
        return "."
    return char if char in (_PHI[-1], '"') else "x"


def _bare(text: str) -> str:
    """Without the white space at its end, and without what stands for a marker there."""
    return text.replace(APART, " ").rstrip()


def _recent(text: str) -> str:
    """What of `text` is looked at."""
    return text.rpartition(_OVER)[2][-_TAIL_CHARS:]


class TextPosition:
    """Follows the running text as it goes by."""

    def __init__(self, reading: UnmarkedContext) -> None:
        self._reading = reading
        self.line_start = True
        self.behind_call = False
        self.fence = False
        """Inside a code fence that holds no call."""
        self.span = False
        """Inside a code span."""
        self.closing = False
        """A fence that held a call is still to be closed."""
        self.wreck = 0
        """BracketCalls that are open in a call that a marker broke; 0: there is none."""
        self.went_by: list[str] = []
        """What has passed since this was last cleared."""
        self.consulted = False
        """Whether what was done since this was last cleared depends on more than the state."""
        self._last = ""
        self._indent = 0
        self._tail = ""
        """The last of the text."""

    def standing(self) -> TextPositionState:
        return TextPositionState(
            self.line_start,
            self.behind_call,
            self.fence,
            self.span,
            self.closing,
            self._last,
            self._indent,
            self.wreck,
        )

    def stand(self, state: TextPositionState, passed: str) -> None:
        """Be as `state` says; `passed` has gone by since."""
        self._tail = _recent(self._tail + passed)
        (
            self.line_start,
            self.behind_call,
            self.fence,
            self.span,
            self.closing,
            self._last,
            self._indent,
            self.wreck,
        ) = state

    @property
    def quoting(self) -> bool:
        """Whether markers are being shown, not used."""
        return self.fence or self.span

    @property
    def strict(self) -> bool:
        """In the middle of a line only a tool's own name makes JSON a call."""
        return not (self.line_start or self.behind_call)

    @property
    def example(self) -> bool:
        """Whether the text says that what comes is an example."""
        self.consulted = True
        return _EXAMPLE.search(self._tail) is not None

    @property
    def indented(self) -> bool:
        """Whether the line is indented as code is."""
        return self._indent >= _INDENTED

    @property
    def sentence_over(self) -> bool:
        if self._last == "s":
            self.consulted = True
            return self._tail.endswith(_PHI)
        return self._last in ("", ".")

    def passed(self, text: str) -> None:
        """`text` has gone by as running text."""
        line = text
        if "\n" in text:
            line = text.rpartition("\n")[2]
            self.line_start, self._indent = True, 0
            self.span = False
        if self.line_start:
            blank = line.lstrip(" \t")
            self._indent += 0 if blank else len(line.expandtabs(_INDENTED))
            self._indent = min(_INDENTED, self._indent)
        if line.strip():
            self.line_start = False
        if text.strip():
            self.behind_call = False
        self._last = last_of(text, self._last)
        self._tail = _recent(self._tail + text)
        self.went_by.append(text)

    def forget(self) -> tuple[str, str]:
        """What came before says nothing of what comes; returns it, for `remember`."""
        before = self._tail, self._last
        self._tail = self._last = ""
        return before

    def remember(self, before: tuple[str, str]) -> None:
        self._tail, self._last = before

    def thought(self) -> None:
        """Thinking is over: what comes is as at the beginning of a line."""
        self.line_start, self._indent = True, 0

    def was_thinking(self) -> None:
        """What has gone by since the last call was thinking."""
        self.thought()
        self._tail = self._last = ""
        self.went_by.append(_OVER)

    def after_call(self) -> None:
        self.line_start = True
        self.behind_call = True
        self.span = False
        self._indent = 0
        self.forget()

    def say(self, text: str) -> None:
        self.passed(self._reading.apart(text))
        self._reading.say(text)

    def say_back(self, text: str) -> None:
        """`text` was read for a call and is none."""
        self.passed(self._reading.say_back(text))
