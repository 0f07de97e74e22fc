"""Where the text stands: in a line, a sentence, a code span, a code fence, behind a call."""

from __future__ import annotations

import re
from typing import Protocol

from caal_node.replies.reading import Dialect, Reading
from caal_node.replies.source import Steps

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


class Running(Reading, Protocol):
    """The running text, as seen from here."""

    def open(self, dialect: Dialect, opener: str) -> Steps[None]:
        """Let `dialect` read what follows `opener`; what is no call stays running text."""
        ...


class Place:
    """Follows the running text as it goes by."""

    def __init__(self, reading: Running) -> None:
        self._reading = reading
        self.line_start = True
        self.behind_call = False
        self.fence = False
        """Inside a code fence that holds no call."""
        self.span = False
        """Inside a code span."""
        self.tail = ""
        """The last of the text."""
        self.spoken = False
        """Whether anything was said yet."""

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
        return _EXAMPLE.search(self.tail) is not None

    @property
    def indented(self) -> bool:
        """Whether the line is indented as code is."""
        line = self.tail.rpartition("\n")[2]
        return line.endswith(("    ", "\t")) and not line.strip()

    @property
    def sentence_over(self) -> bool:
        last = self.tail.rstrip()[-1:]
        return not last or last in _SENTENCE_ENDS or self.tail.endswith("functools")

    def passed(self, text: str) -> None:
        """`text` has gone by as running text."""
        if "\n" in text:
            self.line_start = text.rpartition("\n")[2].strip(" \t") == ""
            self.span = False
        elif text.strip():
            self.line_start = False
        if text.strip():
            self.behind_call = False
            self.spoken = True
        self.tail = (self.tail + text)[-_TAIL_CHARS:]

    def after_call(self) -> None:
        self.line_start = True
        self.behind_call = True
        self.span = False
        self.tail = ""

    def say(self, text: str) -> None:
        self.passed(text)
        self._reading.say(text)

    def say_back(self, text: str) -> None:
        """`text` was read for a call and is none."""
        self._reading.say_back(text)
        self.passed(text)
