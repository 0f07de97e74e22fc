"""What an author writes in a webhook node's notes, and what it means.

    Get the weather forecast for a city.
    Parameters: city (required, string), days (optional, integer 1-7, default 1).
    Example: what's the weather in Paris -> {"city": "Paris"}
    Speak: message

Free text is the description. Parameters may also stand in `@param` lines, in a list under a heading
`Parameters:`, or in a schema block. `Examples:` may head a list of `- words -> {...}` lines.
`Speak:` names the field of the result that is spoken as it stands, `Takes: 40 s` says how long a
run may take. What cannot be read becomes a problem with its line's number; the rest of the notes
still counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from n8n.core.json_values import mapping, parse_json
from n8n.core.text import visible
from n8n.core.workflow_tool import Example
from n8n.notes.parameter import Parameter
from n8n.notes.parameter_text import from_list_line, from_param_line, from_prose
from n8n.notes.schema_block import opens_block, read_block

MAX_NOTES_CHARS: Final = 20_000
"""Ten times the longest note of a registry of 21 real workflows; the rest is not read."""
MAX_EXAMPLES: Final = 8
MAX_BLOCKS: Final = 8
"""Schema blocks that are read; each is looked for its end as far as the notes go."""
MAX_LISTS: Final = 4
"""One line may hold two sentences that list parameters, the required and the optional ones."""
MAX_TAKES_S: Final = 600
"""The longest that `Takes:` may ask for; nobody waits in a conversation for longer."""
_HEADING_WORDS: Final = (
    r"(?<![\w-])(?:(?P<need>required|mandatory|optional)\s+)?(?:input\s+|query\s+|body\s+)?"
    r"(?:param(?:eter)?s?|inputs?|arg(?:ument)?s?)"
)
_SENTENCE: Final = re.compile(_HEADING_WORDS + r"\s*[*_]{0,2}\s*:\s*[*_]{0,2}\s*", re.IGNORECASE)
_HEADING: Final = re.compile(r"^[\s#>*_]*" + _HEADING_WORDS + r"[\s*_:]*$", re.IGNORECASE)
_OUTPUTS: Final = re.compile(r"(?:outputs?|returns?|returned|response|result)\s+$", re.IGNORECASE)
_NONE: Final = re.compile(r"\s*(?:(?:none|nothing|no)\b(?!\s*[(\[:])|-\s*$)", re.IGNORECASE)
_LIST_ITEM: Final = re.compile(
    r"^\s*(?:(?:[-*•]|\d+[.)])\s+|(?=[`*_]*\w+[`*_?!]*\s*(?:[(:\[]|[-–—]\s)))(.*)$"
)
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.*)$")
_TAKES: Final = re.compile(
    r"^\s*takes\s*:\s*(?:up to|about|at most)?\s*(\d{1,4})"
    r"\s*(s|sec|seconds?|m|min|minutes?)?\s*\.?\s*$",
    re.IGNORECASE,
)
_SPEAK: Final = re.compile(r"^\s*speak\s*:\s*([A-Za-z_]\w*)\s*\.?\s*$", re.IGNORECASE)
_EXAMPLE: Final = re.compile(r"^\s*examples?\s*:\s*(.*)$", re.IGNORECASE)
_ARROW: Final = re.compile(r"\s*(?:->|=>|→)\s*")


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
            parser.problems += [problem] if problem else []
        else:
            parser.read_line(at + 1, lines[at])
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
        self._in_examples = False
        self._list: tuple[int, bool] | None = None
        """The line of the heading whose list is being read, and whether it says `required`."""
        self._listed = 0

    def read_line(self, number: int, line: str) -> None:
        """Read a line that is in no schema block; the number is for problems."""
        if self._in_examples and (item := _BULLET.match(line)) is not None:
            self._add_example(number, item[1])
            return
        if (example := _EXAMPLE.match(line)) is not None:
            self._in_examples = not example[1]
            if example[1]:
                self._add_example(number, example[1])
            return
        self._in_examples = self._in_examples and not line.strip()
        if self._list is not None and self._read_list_line(line, *self._list):
            return
        if line.lstrip().lower().startswith("@param"):
            self._add(from_param_line(line), f"line {number}: an @param line without a name")
        elif (speak := _SPEAK.match(line)) is not None:
            self._spoken_field = speak[1]
        elif (takes := _TAKES.match(line)) is not None:
            in_minutes = (takes[2] or "s").lower().startswith("m")
            self._takes_s = float(min(int(takes[1]) * (60 if in_minutes else 1), MAX_TAKES_S))
        elif (heading := _HEADING.match(line)) is not None:
            self._list, self._listed = (number, _says_required(heading)), 0
        else:
            self._prose.append(self._without_parameters(number, line))

    def end_list(self) -> None:
        """End the list that is being read; one without an item is a problem."""
        if self._list is not None and not self._listed:
            self.problems.append(f"line {self._list[0]}: nothing readable after `Parameters:`")
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
        )

    def _without_parameters(self, number: int, line: str) -> str:
        """Read the sentences of a line that list parameters, and return the rest of the line."""
        kept = ""
        for _ in range(MAX_LISTS):
            heading = _SENTENCE.search(line)
            if heading is None or _OUTPUTS.search(line[: heading.start()]):
                break
            found, rest = from_prose(line[heading.end() :], required=_says_required(heading))
            if _NONE.match(line, heading.end()):
                self._takes_nothing = True
            else:
                self._add(found, f"line {number}: nothing readable after `Parameters:`")
            kept, line = f"{kept} {line[: heading.start()].rstrip()}", rest
        return f"{kept} {line}".strip()

    def _read_list_line(self, line: str, heading: int, required: bool) -> bool:
        """Read a line if it belongs to the list under the heading; return whether it does."""
        if not line.strip():
            if self._listed:
                self._list = None
            return True
        if not self._listed and _NONE.match(line.lstrip(" -*•")):
            self._list, self._takes_nothing = None, True
            return True
        item = _LIST_ITEM.match(line)
        found = {} if item is None else from_list_line(item[1], "prose", required=required)
        if not found:
            self.end_list()
            return False
        self._listed += 1
        self._add(found, f"line {heading}: nothing readable after `Parameters:`")
        return True

    def _add(self, found: Mapping[str, Parameter], problem: str) -> None:
        # A schema block says more than a line, whichever comes first.
        for name, parameter in found.items():
            self.parameters.setdefault(name, parameter)
        if not found:
            self.problems.append(problem)

    def _add_example(self, number: int, text: str) -> None:
        if (example := _read_example(text)) is None:
            form = 'an example reads: words a person says -> {"name": "value"}'
            self.problems.append(f"line {number}: {form}")
        else:
            self._examples.append(example)


def _read_example(text: str) -> Example | None:
    """Read `what's the weather in Paris -> {"city": "Paris"}`; None for what is no example."""
    words, *rest = _ARROW.split(text, maxsplit=1)
    words = words.strip().strip("\"'“”‘’").strip()
    arguments_text = "".join(rest).strip().rstrip(".")
    try:
        arguments: Any = parse_json(arguments_text) if arguments_text else {}
    except (ValueError, RecursionError):
        return None
    if not words or not isinstance(arguments, dict):
        return None
    return Example(words, mapping(cast(object, arguments)))


def _says_required(heading: re.Match[str]) -> bool:
    return (heading["need"] or "").lower() in ("required", "mandatory")
