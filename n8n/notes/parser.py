"""What an author writes in a webhook node's notes, and what it means.

    Get the weather forecast for a city.
    Parameters: city (required, string), days (optional, integer 1-7, default 1).
    Example: what's the weather in Paris -> {"city": "Paris"}
    Speak: message

Free text is the description. Parameters may also stand in `@param` lines, in a list or a table
under a heading `Parameters:`, or in a schema block. `Examples:` may head a list of
`- words -> {...}` lines. `Speak:` names the field of the result that is spoken as it stands,
`Takes: 40 s` says how long a run may take. The words may be of any language in words.toml. What
cannot be read becomes a problem with its line's number; the rest of the notes still counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from n8n.core.text import visible
from n8n.core.workflow_tool import Example, NotesPart
from n8n.notes.directives import (
    MAX_TAKES_S,
    NEXT,
    directive,
    fits,
    mended,
    read_example,
    read_field,
    read_time,
)
from n8n.notes.parameter import Parameter
from n8n.notes.parameter_text import are_described, from_list_line, from_param_line, from_prose
from n8n.notes.schema_block import opens_block, read_block
from n8n.notes.table import is_table, read_table
from n8n.notes.words import kind_of, pattern

MAX_NOTES_CHARS: Final = 20_000
"""Ten times the longest note of a registry of 21 real workflows; the rest is not read."""
MAX_EXAMPLES: Final = 8
MAX_BLOCKS: Final = 8
"""Schema blocks that are read; each is looked for its end as far as the notes go."""
MAX_LISTS: Final = 4
"""One line may hold two sentences that list parameters, the required and the optional ones."""
MAX_PIECES: Final = 40
"""One line may hold so many directives; what is behind them is description."""
_HEADING_WORDS: Final = (
    rf"(?<![\w-])(?:(?P<need>{pattern('required', 'optional')})[\s-]+)?"
    rf"(?:(?:input|query|body)\s+)?{pattern('parameters')}"
)
_SENTENCE: Final = re.compile(
    _HEADING_WORDS + r"\s*(?:[*_]{1,2}\s*)?:\s*(?:[*_]{1,2}\s*)?", re.IGNORECASE
)
_HEADING: Final = re.compile(r"^[\s#>*_]*" + _HEADING_WORDS + r"[\s*_:]*$", re.IGNORECASE)
_RESULTS: Final = re.compile(rf"{pattern('results')}\s+$", re.IGNORECASE)
_NONE: Final = re.compile(rf"\s*(?:{pattern('none')}\b(?!\s*[(\[:])|-\s*$)", re.IGNORECASE)
_LIST_ITEM: Final = re.compile(
    r"^\s*(?:(?:[-*•]|\d+[.)])\s+|(?=[`*_]*+(?:(?<=_)|(?=\w))\w*+[`*_?!]*+\s*+(?:[(:\[]|[-–—]\s)))(.*)$"
)
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.*)$")
_EXAMPLE: Final = directive("examples")
_SPEAK: Final = directive("speaks")
_TAKES: Final = directive("takes")
_ACCEPTS: Final = directive("accepts")
_DIRECTIVES: Final = (("examples", _EXAMPLE), ("speaks", _SPEAK), ("takes", _TAKES))
_UNREADABLE: Final = "nothing readable after `Parameters:`"


@dataclass(frozen=True, slots=True)
class Notes:
    """What the notes of a webhook node say."""

    description: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])
    examples: tuple[Example, ...] = ()
    spoken_field: str | None = None
    takes_s: float | None = None
    """How long the author says that a run may take."""
    takes_nothing: bool = False
    """The author says that there are no parameters (`Parameters: none`)."""
    problems: tuple[str, ...] = ()
    flawed: frozenset[NotesPart] = frozenset()
    """The parts that have a problem, so that nothing more is said of what is missing there."""


def parse_notes(text: str) -> Notes:
    """Read notes. Any text gives Notes; nothing is raised."""
    parser = _NotesParser()
    lines = visible(text[:MAX_NOTES_CHARS]).split("\n")
    if len(text) > MAX_NOTES_CHARS:
        parser.problems.append(f"only the first {MAX_NOTES_CHARS} characters of the notes are read")
    at = blocks = 0
    while at < len(lines):
        if blocks < MAX_BLOCKS and opens_block(lines[at]):
            blocks += 1
            at, parameters, problem = read_block(lines, at)
            parser.parameters.update(parameters)
            if problem:
                parser.tell("parameters", problem)
        elif (
            is_table(lines, at)
            and (table := read_table(lines, at, is_announced=parser.awaits_list)) is not None
        ):
            parser.add_table(at + 1, table[1])
            at = table[0]
        else:
            parser.read_line(at + 1, lines[at], lines[at + 1] if at + 1 < len(lines) else "")
            at += 1
    parser.end_list()
    return parser.notes()


class _NotesParser:
    """Reads notes line by line and collects what they say."""

    def __init__(self) -> None:
        self.parameters: dict[str, Parameter] = {}
        self.problems: list[str] = []
        self._prose: list[str] = []
        self._examples: list[Example] = []
        self._spoken_field: str | None = None
        self._takes_s: float | None = None
        self._takes_nothing = False
        self._flawed: set[NotesPart] = set()
        self._in_examples = False
        self._list: int | None = None
        """The line of the heading whose list is being read."""
        self._list_required = False
        self._listed = 0
        self._has_bullets = False
        """Whether the list's items are marked, so that a line without a mark is none of them."""

    def read_line(self, number: int, line: str, following: str) -> None:
        """Read a line that is in no schema block and no table; the number is for problems.

        `following` is the line after it.
        """
        is_item = _BULLET.match(line) is not None and (self._list is not None or self._in_examples)
        rest, remarks = (line, []) if is_item else mended(line, following)
        for remark in remarks:
            self.tell("notes", f"line {number}: {remark}")
        for _ in range(MAX_PIECES):
            rest = self._read_piece(number, rest, following)
            if not rest:
                return
        self._prose.append(rest)

    def _read_piece(self, number: int, line: str, following: str) -> str:
        """Read the first directive of a line, or what stands before it; return the rest."""
        if self._in_examples and (item := _BULLET.match(line)) is not None:
            return self._add_example(number, item[1])
        if self._list is not None and self._read_list_line(number, line, following):
            return ""
        if (example := _EXAMPLE.match(line)) is not None:
            self._in_examples = not example["text"]
            return self._add_example(number, example["text"]) if example["text"] else ""
        self._in_examples = self._in_examples and not line.strip()
        cut = found.start() if (found := NEXT.search(line)) is not None else len(line)
        line, rest = line[:cut], line[cut:].lstrip()
        if line.lstrip().lower().startswith("@param"):
            self._add(number, from_param_line(line), "an @param line without a name")
        elif (speak := _SPEAK.match(line)) is not None:
            self._read_speak(number, speak["word"], speak["text"])
        elif (takes := _TAKES.match(line)) is not None:
            self._read_takes(number, takes["word"], takes["text"], following)
        elif (accepts := _ACCEPTS.match(line)) is not None and self._read_accepted(
            number, accepts["text"], following
        ):
            pass
        elif (heading := _HEADING.match(line)) is not None:
            self._begin_list(number, required=_says_required(heading))
        else:
            self._prose.append(self._without_parameters(number, line))
        return rest

    def _read_speak(self, number: int, word: str, text: str) -> None:
        if (field := read_field(text)) is None:
            how = f"`{word}:` is followed by the name of one field of the answer"
            self.tell("notes", f"line {number}: {how}: `{word}: message`")
            return
        self._spoken_field, is_alone = field
        if not is_alone:
            how = f"`{word}: {text.strip()[:60]}` is read as `{word}: {self._spoken_field}`"
            self.tell("notes", f"line {number}: {how}")

    def _read_takes(self, number: int, word: str, text: str, following: str) -> None:
        if (seconds := read_time(text)) is not None:
            self._takes_s = min(seconds, MAX_TAKES_S)
            if seconds > MAX_TAKES_S:
                most = f"nobody waits for longer than {MAX_TAKES_S // 60} minutes"
                self.tell("notes", f"line {number}: {most}, and `{word}:` counts as that")
        elif not self._read_accepted(number, text, following):
            how = (
                f"`{word}:` is followed by a time such as `40 s`, or by parameters and their types"
            )
            self.tell("notes", f"line {number}: {how}")

    def _read_accepted(self, number: int, text: str, following: str) -> bool:
        """Read parameters behind `Takes:` or `Needs:`, which may be followed by something else."""
        if not text.strip():
            item = _LIST_ITEM.match(following)
            is_parameter = item and are_described(from_list_line(item[1], "prose"), item[1])
            if not (is_parameter or following.lstrip().startswith("|")):
                return False
            self._begin_list(number, required=False)
            return True
        found, rest = from_prose(text)
        if not are_described(found, text):
            return False
        self._add(number, found, _UNREADABLE)
        self._prose.append(rest)
        return True

    @property
    def awaits_list(self) -> bool:
        """Whether a heading of parameters has been read, and none of its list yet."""
        return self._list is not None and not self._listed

    def _begin_list(self, number: int, *, required: bool) -> None:
        self._list, self._listed, self._has_bullets = number, 0, False
        self._list_required = required

    def add_table(self, number: int, found: Mapping[str, Parameter]) -> None:
        """Take the parameters of a table that begins in that line."""
        self._list = None
        self._add(number, found, "a table without a row that begins with a name")

    def tell(self, part: NotesPart, problem: str) -> None:
        """Keep a problem, and which part of the notes has it."""
        self.problems.append(problem)
        self._flawed.add(part)

    def end_list(self) -> None:
        """End the list that is being read; one without an item is a problem."""
        if self._list is not None and not self._listed:
            self.tell("parameters", f"line {self._list}: {_UNREADABLE}")
        self._list = None

    def notes(self) -> Notes:
        return Notes(
            re.sub(r"\n{2,}", "\n", "\n".join(self._prose)).strip(),
            self.parameters,
            tuple(self._examples[:MAX_EXAMPLES]),
            self._spoken_field,
            self._takes_s,
            self._takes_nothing and not self.parameters,
            tuple(self.problems),
            frozenset(self._flawed),
        )

    def _without_parameters(self, number: int, line: str) -> str:
        """Read the sentences of a line that list parameters, and return the rest of the line."""
        kept = ""
        for _ in range(MAX_LISTS):
            heading = _SENTENCE.search(line)
            if heading is None or _RESULTS.search(line[: heading.start()]):
                break
            found, rest = from_prose(line[heading.end() :], required=_says_required(heading))
            if _NONE.match(line, heading.end()):
                self._takes_nothing = True
            else:
                self._add(number, found, _UNREADABLE)
            kept, line = f"{kept} {line[: heading.start()].rstrip()}", rest
        return f"{kept} {line}".strip()

    def _may_be_item(self, line: str, following: str) -> bool:
        """Whether a line below a heading may be one of its list, and not `Speak: message`."""
        if _BULLET.match(line) is not None:
            return True
        found = ((kind, pattern.match(line)) for kind, pattern in _DIRECTIVES)
        return not self._has_bullets and not any(
            match is not None and fits(kind, match["text"], following) for kind, match in found
        )

    def _read_list_line(self, number: int, line: str, following: str) -> bool:
        """Read a line if it belongs to the list under the heading; return whether it does."""
        if not line.strip():
            if self._listed:
                self._list = None
            return True
        if not self._listed and _NONE.match(line.lstrip(" -*•")):
            self._list, self._takes_nothing = None, True
            return True
        item = _LIST_ITEM.match(line) if self._may_be_item(line, following) else None
        found = (
            {} if item is None else from_list_line(item[1], "prose", required=self._list_required)
        )
        if not found:
            self.end_list()
            return False
        self._has_bullets = _BULLET.match(line) is not None
        self._listed += 1
        self._add(number, found, _UNREADABLE)
        return True

    def _add(self, number: int, found: Mapping[str, Parameter], problem: str) -> None:
        # A schema block says more than a line, whichever comes first.
        for name, parameter in found.items():
            self.parameters.setdefault(name, parameter)
            for doubt in parameter.doubts:
                self.tell("notes", f"line {number}: {name}: {doubt}")
        if not found:
            self.tell("parameters", f"line {number}: {problem}")

    def _add_example(self, number: int, text: str) -> str:
        """Read an example, and return what follows it in its line."""
        example, rest = read_example(text)
        if example is None:
            form = 'an example reads: words a person says -> {"name": "value"}'
            self.tell("examples", f"line {number}: {form}")
        else:
            self._examples.append(example)
        return rest


def _says_required(heading: re.Match[str]) -> bool:
    return heading["need"] is not None and kind_of(heading["need"], "required") is not None
