"""Where running text stands: in a line, a sentence, a code span, a code fence, behind a call."""

from __future__ import annotations

import re

from caal_node.reply_parser.markers import SEPARATOR

_TAIL_CHARS = 160
"""How much of the text before a call is searched for words that make it an example."""
_EXAMPLE = re.compile(
    r"\b(?:examples?|for instance|e\.g\.|samples?|looks? like (?:this|so|the following)"
    r"|(?:would|could|should|might) look|(?:do not|don't|never) call)\b[^\n.!?]*\s*\Z",
    re.IGNORECASE,
)
"""Words that make what comes in the same sentence an example. "I would use" is none: small models
say so, and then call."""
_SENTENCE_ENDS = frozenset(".!?:;>)…。！？：")
_PHI = "functools"
"""Stands right in front of Phi's list of calls, wherever that is."""
_CODE_COLUMNS = 4
"""Columns of indentation from which on a line is code, as in Markdown."""


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
        self._last = ""
        """What the last character says: see `_last_kind`."""
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
        if self._last == "s":
            return self._tail.endswith(_PHI)
        return self._last in ("", ".")

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
        if line.strip():
            self.line_start = False
        if text.strip():
            self.behind_call = False
        self._last = _last_kind(text, self._last)
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
        self.forget()

    def forget(self) -> tuple[str, str]:
        """What was said says nothing of what comes. It is returned, for `remember`."""
        before = self._tail, self._last
        self._tail = self._last = ""
        return before

    def remember(self, before: tuple[str, str]) -> None:
        """Undo `forget`."""
        self._tail, self._last = before


def _last_kind(text: str, before: str) -> str:
    """Return the kind of a text's last character that is no white space.

    It is "." where a sentence may be over, "s" for the letter with which `functools` ends, a
    quote for a quote, "x" for others, and `before` where there is none.
    """
    bare = _without_end(text)
    char = bare[-1:]
    if not char:
        return before
    if char == ":":
        # Behind a quote it stands behind a key of JSON.
        return "x" if (_without_end(bare[:-1])[-1:] or before) == '"' else "."
    if char in _SENTENCE_ENDS:
        return "."
    return char if char in (_PHI[-1], '"') else "x"


def _without_end(text: str) -> str:
    """Return `text` without the white space at its end, and without separators there."""
    return text.replace(SEPARATOR, " ").rstrip()
