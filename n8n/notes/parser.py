"""What an author writes in a webhook node's notes, and what it means.

    Get the weather forecast for a city.
    Parameters: city (required, string), days (optional, integer 1-7, default 1).
    Example: what's the weather in Paris -> {"city": "Paris"}
    Speak: message

Free text is the description. Parameters may also stand in `@param` lines, in a list under a heading
`Parameters:`, or in a block (fence.py). `Examples:` may head a list of `- words -> {...}` lines.
`Speak:` names the field of the result that is spoken as it stands, `Takes: 40 s` says how long a
run may take. What cannot be read is a problem with its line's number; the rest of the notes still
counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from n8n.core.workflow_tool import Example
from n8n.notes.directives import (
    EXAMPLE_FORM,
    after_example,
    bulleted,
    read_example,
    spoken_field,
    takes_s,
)
from n8n.notes.fence import opens_block, read_block
from n8n.notes.parameter import Parameter
from n8n.notes.parameter_text import from_list_line, from_param_line, from_prose

MAX_NOTES_CHARS: Final = 20_000
"""Ten times the longest note of a registry of 21 real workflows; the rest is not read."""
MAX_EXAMPLES: Final = 8
MAX_LISTS: Final = 4
"""Sentences of one line that list parameters: those that are required, those that are optional."""
_HEAD_WORDS: Final = (
    r"(?<![\w-])(?:(?P<need>required|mandatory|optional)\s+)?(?:input\s+|query\s+|body\s+)?"
    r"(?:param(?:eter)?s?|inputs?|arg(?:ument)?s?)"
)
_PROSE: Final = re.compile(_HEAD_WORDS + r"\s*[*_]{0,2}\s*:\s*[*_]{0,2}\s*", re.IGNORECASE)
_HEADING: Final = re.compile(r"^[\s#>*_]*" + _HEAD_WORDS + r"[\s*_:]*$", re.IGNORECASE)
_OUTPUTS: Final = re.compile(r"(?:outputs?|returns?|returned|response|result)\s+$", re.IGNORECASE)
_NONE: Final = re.compile(r"\s*(?:(?:none|nothing|no)\b(?!\s*[(\[:])|-\s*$)", re.IGNORECASE)
_LISTED: Final = re.compile(
    r"^\s*(?:(?:[-*•]|\d+[.)])\s+|(?=[`*_]*\w+[`*_?!]*\s*(?:[(:\[]|[-–—]\s)))(.*)$"
)
# Control characters, and those that turn the direction of text around: nothing an author needs
# here, and a way to hide words from the person who reads the notes.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)


@dataclass(frozen=True, slots=True)
class Notes:
    description: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])
    examples: tuple[Example, ...] = ()
    spoken_field: str | None = None
    takes_s: float | None = None
    """How long the author says that a run may take."""
    takes_nothing: bool = False
    """`Parameters: none`: it is known that there are no parameters."""
    problems: tuple[str, ...] = ()


def visible(text: str) -> str:
    """Line ends made one kind, characters that do not show taken out."""
    text = text.encode("utf-8", errors="replace").decode()
    return _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def parse_notes(text: str) -> Notes:
    """Total: any text gives Notes."""
    reader = _Reader()
    lines = visible(text[:MAX_NOTES_CHARS]).split("\n")
    if len(text) > MAX_NOTES_CHARS:
        reader.problems.append(f"only the first {MAX_NOTES_CHARS} characters of the notes are read")
    at = 0
    while at < len(lines):
        if opens_block(lines[at]):
            block = read_block(lines, at)
            reader.parameters.update(block.parameters)
            reader.problems += [block.problem] if block.problem else []
            at = block.end
        else:
            reader.line(at + 1, lines[at])
            at += 1
    reader.end()
    return reader.notes()


class _Reader:
    def __init__(self) -> None:
        self.prose: list[str] = []
        self.parameters: dict[str, Parameter] = {}
        self.examples: list[Example] = []
        self.spoken_field: str | None = None
        self.takes_s: float | None = None
        self.takes_nothing = False
        self.problems: list[str] = []
        self._in_examples = False
        self._list: tuple[int, bool] | None = None
        """The line of the heading whose list is being read, and whether it says `required`."""
        self._listed = 0

    def line(self, number: int, line: str) -> None:
        if self._in_examples and (item := bulleted(line)) is not None:
            self._example(number, item)
            return
        if (words := after_example(line)) is not None:
            self._in_examples = not words
            if words:
                self._example(number, words)
            return
        self._in_examples = self._in_examples and not line.strip()
        if self._list is not None and self._list_line(line):
            return
        if line.lstrip().lower().startswith("@param"):
            self._add(from_param_line(line), f"line {number}: an @param line without a name")
        elif (name := spoken_field(line)) is not None:
            self.spoken_field = name
        elif (seconds := takes_s(line)) is not None:
            self.takes_s = seconds
        elif (heading := _HEADING.match(line)) is not None:
            self._list, self._listed = (number, _says_required(heading)), 0
        else:
            self.prose.append(self._sentences(number, line))

    def end(self) -> None:
        """Nothing follows."""
        if self._list is not None and not self._listed:
            self.problems.append(f"line {self._list[0]}: nothing readable after `Parameters:`")
        self._list = None

    def notes(self) -> Notes:
        text = re.sub(r"\n{2,}", "\n", "\n".join(self.prose)).strip()
        return Notes(
            text,
            self.parameters,
            tuple(self.examples[:MAX_EXAMPLES]),
            self.spoken_field,
            self.takes_s,
            self.takes_nothing and not self.parameters,
            tuple(self.problems),
        )

    def _sentences(self, number: int, line: str) -> str:
        """What a line describes, once the sentences that list parameters are taken out of it."""
        kept = ""
        for _ in range(MAX_LISTS):
            head = _PROSE.search(line)
            if head is None or _OUTPUTS.search(line[: head.start()]):
                break
            found, rest = from_prose(line[head.end() :], required=_says_required(head))
            if _NONE.match(line, head.end()):
                self.takes_nothing = True
            else:
                self._add(found, f"line {number}: nothing readable after `Parameters:`")
            kept, line = f"{kept} {line[: head.start()].rstrip()}", rest
        return f"{kept} {line}".strip()

    def _list_line(self, line: str) -> bool:
        """Whether the line belongs to the list under the heading; then it is read."""
        assert self._list is not None
        if not line.strip():
            if self._listed:
                self._list = None
            return True
        found: dict[str, Parameter] = {}
        says_none = self._listed == 0 and bool(_NONE.match(line.lstrip(" -*•")))
        if not says_none and (item := _LISTED.match(line)) is not None:
            found = from_list_line(item[1], "prose", required=self._list[1])
        if not found:
            if not says_none:
                self.end()
                return False
            self._list, self.takes_nothing = None, True
            return True
        self._listed += 1
        self._add(found, "")
        return True

    def _add(self, found: Mapping[str, Parameter], problem: str) -> None:
        # A schema block says more than a line, whichever comes first.
        for name, parameter in found.items():
            self.parameters.setdefault(name, parameter)
        if not found:
            self.problems.append(problem)

    def _example(self, number: int, text: str) -> None:
        if (example := read_example(text)) is None:
            self.problems.append(f"line {number}: {EXAMPLE_FORM}")
        else:
            self.examples.append(example)


def _says_required(head: re.Match[str]) -> bool:
    return (head["need"] or "").lower() in ("required", "mandatory")
