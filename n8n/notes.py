"""What an author writes in a webhook node's notes, and what it means.

    Get the weather forecast for a city.
    Parameters: city (required, string), days (optional, integer 1-7, default 1).
    Example: what's the weather in Paris -> {"city": "Paris"}
    Speak: message

Free text is the description. Parameters may also stand in `@param` lines, in a list under a heading
`Parameters:`, or in a block between `---schema` and `---` (or the end): JSON such as
`{"city": {"type": "string", "required": true}}`, a whole JSON schema of an object, or lines of
`city: string, required`. `Examples:` may head a list of `- words -> {...}` lines. `Speak:` names
the field of the result that is spoken as it stands, `Takes: 40 s` says how long a run may take.
What cannot be read is a problem with its line's number; the rest of the notes still counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from n8n.parameters import Parameter
from n8n.schema_block import from_schema_block
from n8n.shapes import DECODER, mapping, parse_json, well_formed
from n8n.tool import Example
from n8n.written import from_list_line, from_param_line, from_prose

MAX_NOTES_CHARS = 20_000
"""Ten times the longest note of a registry of 21 real workflows; the rest is not read."""
MAX_EXAMPLES = 8
MAX_LISTS = 4
"""Sentences of one line that list parameters: those that are required, those that are optional."""

MAX_TAKES_S = 600
"""The longest that `Takes:` may ask for; nobody waits in a conversation for longer."""

_FENCE = re.compile(r"^\s*(?:-{3,}\s*schema\s*-*|`{3,}\s*schema)\s*:?\s*$", re.IGNORECASE)
_FENCE_END = re.compile(r"^\s*(?:-{3,}|`{3,})\s*$")
_CODE_FENCE = re.compile(r"^\s*`{3,}\w*\s*$")
_HEAD_WORDS = (
    r"(?<![\w-])(?:(?P<need>required|mandatory|optional)\s+)?(?:input\s+|query\s+|body\s+)?"
    r"(?:param(?:eter)?s?|inputs?|arg(?:ument)?s?)"
)
_PROSE = re.compile(_HEAD_WORDS + r"\s*[*_]{0,2}\s*:\s*[*_]{0,2}\s*", re.IGNORECASE)
_HEADING = re.compile(r"^[\s#>*_]*" + _HEAD_WORDS + r"[\s*_:]*$", re.IGNORECASE)
_OUTPUTS = re.compile(r"(?:outputs?|returns?|returned|response|result)\s+$", re.IGNORECASE)
_NONE = re.compile(r"\s*(?:(?:none|nothing|no)\b(?!\s*[(\[:])|-\s*$)", re.IGNORECASE)
_LISTED = re.compile(
    r"^\s*(?:(?:[-*•]|\d+[.)])\s+|(?=[`*_]*\w+[`*_?!]*\s*(?:[(:\[]|[-–—]\s)))(.*)$"
)
_TAKES = re.compile(
    r"^\s*takes\s*:\s*(?:up to|about|at most)?\s*(\d{1,4})"
    r"\s*(s|sec|seconds?|m|min|minutes?)?\s*\.?\s*$",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"^\s*examples?\s*:\s*(.*)$", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.*)$")
_SPEAK = re.compile(r"^\s*speak\s*:\s*([A-Za-z_]\w*)\s*\.?\s*$", re.IGNORECASE)
_ARROW = re.compile(r"\s*(?:->|=>|→)\s*")
# Control characters, and those that turn the direction of text around: nothing an author needs
# here, and a way to hide words from the person who reads the notes.
_HIDDEN = re.compile(
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
        if _FENCE.match(lines[at]):
            at = reader.schema_block(lines, at)
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
        if self._in_examples and (bullet := _BULLET.match(line)):
            self._example(number, bullet[1])
            return
        if (found := _EXAMPLE.match(line)) is not None:
            self._in_examples = not found[1]
            if found[1]:
                self._example(number, found[1])
            return
        self._in_examples = self._in_examples and not line.strip()
        if self._list is not None and self._list_line(line):
            return
        if line.lstrip().lower().startswith("@param"):
            self._add(from_param_line(line), f"line {number}: an @param line without a name")
        elif (speak := _SPEAK.match(line)) is not None:
            self.spoken_field = speak[1]
        elif (takes := _TAKES.match(line)) is not None:
            minutes = (takes[2] or "s").lower().startswith("m")
            self.takes_s = float(min(int(takes[1]) * (60 if minutes else 1), MAX_TAKES_S))
        elif (heading := _HEADING.match(line)) is not None:
            self._list, self._listed = (number, _says_required(heading)), 0
        else:
            self.prose.append(self._sentences(number, line))

    def end(self) -> None:
        """Nothing follows."""
        if self._list is not None and not self._listed:
            self.problems.append(f"line {self._list[0]}: nothing readable after `Parameters:`")
        self._list = None

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

    def schema_block(self, lines: list[str], start: int) -> int:
        """Read the block whose fence is at `start`; the line to go on with."""
        body = "\n".join("" if _CODE_FENCE.match(x) else x for x in lines[start + 1 :])
        opening = len(body) - len(body.lstrip())
        try:
            block, end = DECODER.raw_decode(body, opening)
            self.parameters.update(from_schema_block(well_formed(body, block)))
        except (ValueError, RecursionError) as e:
            if body.lstrip()[:1] not in ("{", "[") and self._plain_lines(lines, start):
                return self._past_fence(lines, start + 1, lambda x: not _FENCE_END.match(x))
            at = start + 2 + body.count("\n", 0, getattr(e, "pos", opening))
            reason = e.msg if isinstance(e, json.JSONDecodeError) else str(e)
            self.problems.append(f"line {at}: the ---schema block: {reason}")
            return self._past_fence(lines, start + 1, lambda x: not _FENCE_END.match(x))
        after = start + 2 + body.count("\n", 0, end)
        return self._past_fence(lines, after, lambda x: not x.strip() or bool(_CODE_FENCE.match(x)))

    def _plain_lines(self, lines: list[str], start: int) -> bool:
        """Read `city: string, required` lines up to the closing fence; whether there were any."""
        found: dict[str, Parameter] = {}
        for line in lines[start + 1 :]:
            if _FENCE_END.match(line):
                break
            found |= from_list_line(line.strip().lstrip("-*• "), "schema")
        self.parameters.update(found)
        return bool(found)

    @staticmethod
    def _past_fence(lines: list[str], at: int, skipped: Callable[[str], bool]) -> int:
        while at < len(lines) and skipped(lines[at]):
            at += 1
        return at + 1 if at < len(lines) and _FENCE_END.match(lines[at]) else at

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

    def _add(self, found: Mapping[str, Parameter], problem: str) -> None:
        # A schema block says more than a line, whichever comes first.
        for name, parameter in found.items():
            self.parameters.setdefault(name, parameter)
        if not found:
            self.problems.append(problem)

    def _example(self, number: int, text: str) -> None:
        words, _, tail = _split_arrow(text)
        arguments: Any = {}
        if tail:
            try:
                arguments = parse_json(tail)
            except (ValueError, RecursionError):
                arguments = None
        if not words or not isinstance(arguments, dict):
            self.problems.append(
                f'line {number}: an example reads: words a person says -> {{"name": "value"}}'
            )
            return
        self.examples.append(Example(words, mapping(cast(object, arguments))))


def _says_required(head: re.Match[str]) -> bool:
    return (head["need"] or "").lower() in ("required", "mandatory")


def _split_arrow(text: str) -> tuple[str, str, str]:
    arrow = _ARROW.search(text)
    words, tail = (text[: arrow.start()], text[arrow.end() :]) if arrow else (text, "")
    return words.strip().strip("\"'“”‘’").strip(), "->" if arrow else "", tail.strip().rstrip(".")
