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

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from n8n.core.json_values import DECODER, mapping, sequence, visible, well_formed
from n8n.core.workflow_tool import Example, NotesPart
from n8n.notes.directives import (
    MAX_TAKES_S,
    NEXT,
    are_described,
    directive,
    fits,
    from_list_line,
    from_param_line,
    from_prose,
    from_row,
    from_words,
    mended,
    read_example,
    read_field,
    read_time,
)
from n8n.notes.parameter import MAX_NAME_CHARS, Parameter, kind_of, pattern, type_schema

# Parameters in a Markdown table: a row for each, a column for its name, type, need and so on.

MAX_CELLS: Final = 12
"""Cells of a row that are read; tables in notes have three or four."""
_RULE: Final = re.compile(r"\|?(?:\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?")
_BETWEEN_CELLS: Final = re.compile(r"(?<!\\)\|")
_RESULTS_HEADING: Final = re.compile(
    rf"^[\s#>*_]*+(?:\w++\s++)?{pattern('results')}[\s*_:]*+$", re.I
)
_MARKS: Final = {"": None, "-": False, "–": False, "✗": False, "x": True, "✓": True, "✔": True}
"""What a cell says of a need without a word."""


def is_table(lines: list[str], at: int) -> bool:
    """Return whether a table begins with the line at `at`: its head, and the rule below it."""
    below = lines[at + 1] if at + 1 < len(lines) else ""
    return "|" in lines[at] and "|" in below and _RULE.fullmatch(below.strip()) is not None


def read_table(
    lines: list[str], at: int, *, is_announced: bool
) -> tuple[int, dict[str, Parameter]] | None:
    """Read the table that begins with the line at `at`; None where it is none of parameters.

    `is_announced`: a heading such as `Parameters:` stands over it. Otherwise it has to have a
    column of names, and one of types or of needs. Returns the index of the line after it as well.
    """
    head = [cell.strip("*_`").strip().lower() for cell in _cells(lines[at])]
    kinds = [kind_of(title, "columns.*") for title in head]
    if is_announced:
        kinds = kinds if "columns.name" in kinds else ["columns.name", *kinds[1:]]
    elif "columns.name" not in kinds or not {"columns.type", "columns.need"} & set(kinds):
        return None
    if not is_announced and _RESULTS_HEADING.match(
        next((x for x in reversed(lines[:at]) if x.strip()), "")
    ):
        return None
    found: dict[str, Parameter] = {}
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        row = dict(enumerate(_cells(lines[end])))
        of_kind = {kind: row.get(i, "") for i, kind in reversed(list(enumerate(kinds)))}
        need_title = head[kinds.index("columns.need")] if "columns.need" in kinds else ""
        found |= from_row(
            of_kind["columns.name"],
            [
                text
                for i, text in row.items()
                if i >= len(kinds) or kinds[i] in (None, "columns.type")
            ],
            needed=_needed(of_kind.get("columns.need", ""), need_title),
            default=of_kind.get("columns.default", "").strip("`\"' -") or None,
        )
        end += 1
    return end, found


def _cells(line: str) -> list[str]:
    text = line.strip().removeprefix("|")
    text = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    return [cell.replace("\\|", "|").strip() for cell in _BETWEEN_CELLS.split(text)[:MAX_CELLS]]


def _needed(text: str, title: str) -> bool | None:
    """Read a cell of the column of needs; None where it says nothing."""
    text = text.strip("*_` ").lower()
    if text in _MARKS:
        said = _MARKS[text]
    else:
        said = {"yes": True, "required": True, "no": False, "optional": False}.get(
            kind_of(text, "optional", "required", "yes", "no") or ""
        )
        if kind_of(text, "optional", "required"):
            return said
    if said is not None and kind_of(title, "optional"):
        return not said
    return said


# The schema block of notes: what stands between `---schema` and `---`, or in a code fence.
#
# It holds JSON such as `{"city": {"type": "string", "required": true}}`, a whole JSON schema of an
# object, or lines of `city: string, required`.

MAX_DEPTH: Final = 6
"""How deep a parameter's own schema may go: a model fills in no deeper one."""
MAX_LIST_VALUES: Final = 256
"""The values of an enum; a check compares each with each, and a model reads no more."""
_KEPT_KEYWORDS: Final = frozenset(
    (
        *("type", "description", "enum", "const", "default", "format", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "items"),
        *("properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf"),
    )
)
"""The keywords that a schema may use; above all references ($ref) stay out."""
_NO_FORMATS: Final = FormatChecker(())
_OPENS: Final = re.compile(
    r"^\s*+(?:-{3,}+\s*+schema(?:\s*+-++)?|`{3,}+\s*+schema)\s*+(?::\s*+)?$", re.IGNORECASE
)
_CLOSES: Final = re.compile(r"^\s*(?:-{3,}|`{3,})\s*$")
_CODE_FENCE: Final = re.compile(r"^\s*`{3,}\w*\s*$")


def opens_block(line: str) -> bool:
    return _OPENS.match(line) is not None


def read_block(lines: list[str], start: int) -> tuple[int, dict[str, Parameter], str | None]:
    """Read the block that the line at `start` opens.

    Returns the index of the line after it, its parameters, and the problem if it cannot be read.
    """
    body = "\n".join("" if _CODE_FENCE.match(x) else x for x in lines[start + 1 :])
    opening = len(body) - len(body.lstrip())
    try:
        block, end = DECODER.raw_decode(body, opening)
        found = _from_json(well_formed(body, block))
    except (ValueError, RecursionError) as e:
        after = _past(lines, start + 1, lambda x: not _CLOSES.match(x))
        if body.lstrip()[:1] not in ("{", "[") and (found := _from_lines(lines, start)):
            return after, found, None
        at = start + 2 + body.count("\n", 0, getattr(e, "pos", opening))
        reason = _no_json(e) if isinstance(e, json.JSONDecodeError) else str(e)
        return after, {}, f"line {at}: the ---schema block: {reason}"
    after = start + 2 + body.count("\n", 0, end)
    end = _past(lines, after, lambda x: not x.strip() or bool(_CODE_FENCE.match(x)))
    return end, found, None


def _no_json(error: json.JSONDecodeError) -> str:
    """Say what the JSON stumbles over, and what mostly is the cause."""
    at = error.doc[error.pos :].lstrip()[:1]
    before = error.doc[: error.pos].rstrip()[-1:]
    # Python tells of the comma itself since 3.13, and before of what follows it.
    if at == "," or (before == "," and at in ("]", "}")):
        return f"it is not JSON at {at!r}: is there a comma too many?"
    where = repr(at) if at else "its end"
    return f"it is not JSON at {where}: is a quote, a comma, a value or a bracket missing?"


def _past(lines: list[str], at: int, skipped: Callable[[str], bool]) -> int:
    while at < len(lines) and skipped(lines[at]):
        at += 1
    return at + 1 if at < len(lines) and _CLOSES.match(lines[at]) else at


def _from_lines(lines: list[str], start: int) -> dict[str, Parameter]:
    """Read lines of `city: string, required` up to the one that closes the block."""
    found: dict[str, Parameter] = {}
    for line in lines[start + 1 :]:
        if _CLOSES.match(line):
            break
        found |= from_list_line(line.strip().lstrip("-*• "), "schema")
    return found


def _from_json(block: object) -> dict[str, Parameter]:
    """Read a map of parameters, or a JSON schema of an object. Raises ValueError, one line."""
    if not isinstance(block, dict):
        raise ValueError('it must be a JSON object such as {"city": {"type": "string"}}')
    block = cast(dict[str, Any], block)
    properties, required = block, ()
    if isinstance(block.get("properties"), dict):
        properties, required = mapping(block["properties"]), sequence(block.get("required"))
    return {
        name: _from_spec(name, spec, name in required)
        for name, spec in properties.items()
        if 0 < len(name) <= MAX_NAME_CHARS
    }


def _from_spec(name: str, spec: Any, is_listed: bool) -> Parameter:
    if isinstance(spec, str):
        return from_words(spec, "schema", required=is_listed)
    if not isinstance(spec, dict):
        raise ValueError(f'{name!r} must be an object such as {{"type": "string"}}')
    spec = cast(dict[str, Any], spec)
    schema = cast(dict[str, Any], _kept(spec, MAX_DEPTH))
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    if actions := spec.get("for"):
        only = ", ".join(map(str, sequence(actions) or [actions]))
        schema["description"] = f"{schema.get('description', '')} (for {only})".strip()
    if _longest_list(schema) > MAX_LIST_VALUES:
        raise ValueError(f"{name!r}: a list of over {MAX_LIST_VALUES} values is too long")
    try:
        # Without its formats: it would compile each pattern, which may take seconds.
        Draft202012Validator.check_schema(schema, format_checker=_NO_FORMATS)
    except SchemaError as e:
        raise ValueError(f"{name!r}: {e.message.splitlines()[0][:120]}") from None
    return Parameter(schema, is_listed or spec.get("required") is True, "schema")


def _longest_list(schema: Any) -> int:
    inner: list[Any] = []
    if isinstance(schema, dict):
        inner = list(cast(dict[str, Any], schema).values())
    elif isinstance(schema, list):
        inner = cast(list[Any], schema)
    own = len(inner) if isinstance(schema, list) else 0
    return max(own, *map(_longest_list, inner)) if inner else own


def _kept(schema: Any, depth: int) -> Any:
    """Return a schema with the kept keywords alone, down to a depth."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in cast(dict[str, object], schema).items():
        if key not in _KEPT_KEYWORDS or depth == 0:
            continue
        if key == "type" and isinstance(value, str):
            kept = {**kept, **(type_schema(value) or {"type": value}), **kept}
        elif key == "properties" and (properties := mapping(value)):
            kept[key] = {name: _kept(inner, depth - 1) for name, inner in properties.items()}
        elif key in ("anyOf", "oneOf", "allOf") and (schemas := sequence(value)):
            kept[key] = [_kept(inner, depth - 1) for inner in schemas]
        elif key in ("items", "additionalProperties"):
            kept[key] = _kept(value, depth - 1)
        else:
            kept[key] = value
    return kept


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
