"""Settings of several values: checks, limits of text, fallbacks, cues, the trace and toolsets.

Most have a short form for what most users write, such as `CAAL_CUES=off` or
`CAAL_TRACE=trace.jsonl`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    InstanceOf,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from caal_node.core.addresses import ModelReference, parse_reference
from caal_node.core.errors import ConfigError
from caal_node.core.events import CueKind
from caal_node.core.given_table import GivenTable, json_object

_SWITCH: Final = TypeAdapter(bool)
CUE_FILES: Final[tuple[CueKind, ...]] = ("tool", "agent", "error")
"""The cues that a WAV file may replace, `tool.wav` for the first."""
AGENT_TOOLS: Final = ("spawn_agent", "delegate", "run_sub_agent")
"""The default names of tools that give their work to another agent."""


def names(value: Any) -> Any:
    """Return the names of a text with commas, and any other value as it is."""
    if not isinstance(value, str):
        return value
    return [name for part in value.split(",") if (name := part.strip())]


def switched(value: Any) -> bool | None:
    """Return whether a value says on or off; None where it says neither."""
    try:
        return _SWITCH.validate_python(value)
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True)
class Checks:
    """Which checks of the model's calls and replies are on. See docs/small-models.md."""

    claims: bool = True
    """A reply that claims what no call has done is corrected."""
    facts: bool = True
    """An answer is checked against its results."""
    hedges: bool = True
    """One search, if a tool can, replaces a reply that says that it cannot know."""
    needless_calls: bool = True
    """A call without grounds is dropped, and the model is asked to answer instead."""
    references: bool = True
    """The model reads what "the second one" or "there" means by what tools have said."""


CHECKS: Final = tuple(field.name for field in fields(Checks))
_ALL_BUT: Final = tuple(f"-{name}" for name in CHECKS)


def _checks(value: Any) -> Checks:
    if isinstance(value, Checks):
        return value
    given: object = names(value)
    if (all_on := switched(value)) is not None:
        given = CHECKS if all_on else ()
    listed = cast("list[object]", given) if isinstance(given, list | tuple) else [given]
    if all(each in CHECKS for each in listed):
        return Checks(**{name: name in listed for name in CHECKS})
    if all(each in _ALL_BUT for each in listed):
        return Checks(**{name: f"-{name}" not in listed for name in CHECKS})
    raise ValueError(
        f"write on, off, names of {', '.join(CHECKS)}, or {_ALL_BUT[0]} for all but that"
    )


@dataclass(frozen=True, slots=True)
class Answers:
    """What the agent answers of what it hears. What is typed is always for it."""

    to: Literal["always", "addressed", "named", "woken"] = "always"
    """Everything; what sounds as if it were for it; what has its name, and what follows that; or
    what comes behind its wake word, and what follows that."""
    names: tuple[str, ...] = ()
    """What it is called: it always answers words with one of these."""
    wake_word: str = ""
    """What wakes it: see `speech.wake_word`."""


def _answers(value: Any) -> Answers:
    if isinstance(value, Answers):
        return value
    given: object = names(value)
    listed = cast("list[object]", given) if isinstance(given, list | tuple) else []
    if len(listed) == 1 and isinstance(listed[0], str) and listed[0].startswith(WAKE):
        if word := listed[0].removeprefix(WAKE).strip():
            return Answers("woken", wake_word=word)
        raise ValueError(_ANSWERS_FORM)
    modes = [each for each in listed if each in ("always", "addressed")]
    called = tuple(each for each in listed if isinstance(each, str) and each not in modes)
    are_names = len(modes) + len(called) == len(listed) and all(map(_is_name, called))
    if not are_names or len(called) > MAX_NAMES:
        raise ValueError(_ANSWERS_FORM)
    match modes:
        case ["addressed"]:
            return Answers("addressed", called)
        case ["always"] if not called:
            return Answers()
        case [] if called:
            return Answers("named", called)
        case _:
            raise ValueError(_ANSWERS_FORM)


WAKE: Final = "wake:"
_ANSWERS_FORM: Final = (
    "write always, addressed, or up to 10 names that the agent is called by, such as Olly; names"
    " may also stand behind addressed; or one wake word, such as wake:hey_jarvis"
)
MAX_NAMES: Final = 10


def _is_name(text: str) -> bool:
    return 1 < len(text) <= 40 and any(each.isalnum() for each in text)


AnswersSetting: TypeAlias = Annotated[
    Answers, BeforeValidator(_answers, json_schema_input_type=str | list[str])
]


class TextLimits(GivenTable):
    """What a model that is asked by text may do in one turn."""

    replies: Annotated[int, Field(ge=1, le=64)] = 8
    """Replies with calls; `max_tool_rounds` may be lower. The next reply can only be speech."""
    calls: Annotated[int, Field(ge=1, le=256)] = 16
    """Calls of one reply: one for each light of a flat. More is a list that never ends."""
    turn_calls: Annotated[int, Field(ge=1, le=1_000)] = 32
    """Calls of all replies of the turn: two full replies, or four rounds of eight."""
    payload: Annotated[int, Field(ge=256, le=400_000)] = 32_768
    """Characters of one call's arguments as JSON: 8,000 tokens, which a person would dictate for
    half an hour, or a page of text that the model wrote itself some ten times over."""
    observation: Annotated[int, Field(ge=200, le=200_000)] = 3_000
    """Characters of one result that the model reads, about 1,000 tokens. Of a longer one it reads
    the structure and the ids."""
    seconds: Annotated[float, Field(gt=0, le=86_400)] = 60
    """From the turn's first request on. After that the model may only speak."""


class ToolCalls(TextLimits):
    """How a model calls tools, and what it may do in one turn where it is asked by text."""

    by: Literal["auto", "native", "server", "text", "jsonl", "xml", "markdown-json"] = "auto"
    """With its server's own calls, or in text; auto finds it out. A form of text is used alone;
    otherwise text is one JSON object for a whole reply where the server can enforce a schema, else
    JSONL. With `server`, its server runs tools by itself: see `Settings.server_runs_tools`."""


def _references(value: Any) -> Any:
    given: object = names(value)
    if not isinstance(given, list | tuple):
        raise ValueError("write a list of models, each a name or api:model@url")
    return tuple(
        parse_reference(name) if isinstance(name, str) else name
        for name in cast("list[object]", given)
    )


class Fallbacks(GivenTable):
    """The models that answer where the first one fails."""

    models: Annotated[
        tuple[ModelReference, ...],
        BeforeValidator(_references, json_schema_input_type=str | list[str]),
        Field(max_length=8),
    ] = ()
    """They are asked in this order: `api:model@url` or only a name."""
    after: Annotated[float, Field(gt=0, le=600)] = 30
    """Seconds in which a reply must begin before the next model is asked. On a slow machine the
    first reply as a whole takes that long."""
    only_validated: bool = False
    """Whether to leave out fallbacks that were not validated in their present version. One that
    failed validation is always left out."""


def _cues_folder(folder: Path | None) -> Path | None:
    if folder is not None and not any((folder / f"{kind}.wav").is_file() for kind in CUE_FILES):
        raise ValueError("write on, off, or a folder with tool.wav, agent.wav or error.wav")
    return folder


class Cues(GivenTable):
    """The sounds of a room."""

    on: bool = True
    words: bool = True
    """Whether the agent says "One moment, please." while a tool takes long."""
    done: bool = False
    """Whether a sound, and no sentence, ends a spoken turn that was one order which worked at
    once."""
    folder: Annotated[Path | None, AfterValidator(_cues_folder)] = None
    """WAV files in place of built-in cues."""
    agent_tools: Annotated[
        tuple[str, ...], BeforeValidator(names, json_schema_input_type=str | list[str])
    ] = AGENT_TOOLS
    """Names of tools that give work to another agent, and so get the agent cue."""
    silent_tools: Annotated[
        tuple[str, ...], BeforeValidator(names, json_schema_input_type=str | list[str])
    ] = ()
    """Globs of names of tools that run without sounds and lines, such as `clock__*`."""

    @property
    def files(self) -> dict[CueKind, Path]:
        """The files that take the place of built-in cues."""
        if self.folder is None:
            return {}
        found: dict[CueKind, Path] = {}
        for kind in CUE_FILES:
            if (path := self.folder / f"{kind}.wav").is_file():
                found[kind] = path
        return found


class Trace(GivenTable):
    """The file to which spans are written, as lines of OTLP's JSON."""

    file: Path
    content: bool = False
    """Whether the file has the words, arguments and results as well."""


_SHORT_FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "tool_calls": ("by", '{"by": "text", "calls": 8}'),
    "fallbacks": ("models", '{"models": ["llama3.2"], "after": 10}'),
    "cues": ("folder", '{"folder": "sounds"}'),
    "trace": ("file", '{"file": "trace.jsonl", "content": true}'),
}
"""The key that a text without braces or a list stands for, if there is one, and an example."""


def table_of(name: str, value: Any) -> Any:
    """Return the table that a setting's value stands for; what is no form of it stays as it is.

    Raises:
        ValueError: a text is no JSON object; the message says what to write.
    """
    key, example = _SHORT_FORMS[name]
    if name == "cues" and (on := switched(value)) is not None:
        return {"on": on}
    if isinstance(value, str) and not (key and is_short(value)):
        return json_object(value, example)
    is_short_form = key and isinstance(value, str | Path | list | tuple)
    return cast("Any", {key: value} if is_short_form else value)


def is_short(value: Any) -> bool:
    """Say whether a value is the short form of a table."""
    return not isinstance(value, dict) and not str(value).lstrip().startswith("{")


# What may be written, for the schema of `caal.toml`. JSON as a text is for the environment.
_Name: TypeAlias = Annotated[str, WithJsonSchema({"enum": [*CHECKS, *_ALL_BUT]})]
_Switch: TypeAlias = bool | Annotated[str, WithJsonSchema({"enum": ["on", "off"]})]
_Listed: TypeAlias = str | list[str]

ChecksSetting: TypeAlias = Annotated[
    InstanceOf[Checks],
    BeforeValidator(_checks, json_schema_input_type=_Switch | _Name | list[_Name]),
]
ToolCallsSetting: TypeAlias = Annotated[
    ToolCalls,
    BeforeValidator(partial(table_of, "tool_calls"), json_schema_input_type=ToolCalls | str),
]
FallbacksSetting: TypeAlias = Annotated[
    Fallbacks,
    BeforeValidator(partial(table_of, "fallbacks"), json_schema_input_type=Fallbacks | _Listed),
]
CuesSetting: TypeAlias = Annotated[
    Cues, BeforeValidator(partial(table_of, "cues"), json_schema_input_type=Cues | bool | str)
]
TraceSetting: TypeAlias = Annotated[
    Trace | None,
    BeforeValidator(partial(table_of, "trace"), json_schema_input_type=Trace | str),
]


# The tables `[toolsets.NAME]`: which toolsets are on, and their options.
#
# What the options are is the toolset's to say, so they are judged when it is made. A value
# `"${NAME}"` is the variable of that name, so that a token need not stand in the file.

TABLE: Final = "toolsets"
ENABLED: Final = "enabled"
_VARIABLE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)\}")


@dataclass(frozen=True, slots=True)
class ToolsetTable:
    """One toolset's table."""

    name: str
    options: Mapping[str, Any]
    enabled: bool = True
    base: Path = Path()
    """The folder that relative paths start from."""
    lines: Mapping[str, str] = field(default_factory=dict[str, str])
    """The place of each option in words; that of "" is the table's own."""

    def where(self, option: str = "") -> str:
        """Return the place of an option for an error: file, line and key."""
        key = f"{TABLE}.{self.name}.{option}".rstrip(".")
        line = self.lines.get(option) or self.lines.get("")
        return f"{line}, {key}" if line else key

    def expanded(self, env: Mapping[str, str] = os.environ) -> dict[str, Any]:
        """Return the options with the values of variables.

        Raises:
            ConfigError: a variable is not set.
        """
        return {name: self._expanded(name, value, env) for name, value in self.options.items()}

    def _expanded(self, option: str, value: Any, env: Mapping[str, str]) -> Any:
        if not (isinstance(value, str) and (match := _VARIABLE.fullmatch(value))):
            return value
        if not (found := env.get(match["name"])):
            raise ConfigError(
                f"{self.where(option)}: {match['name']} is not set; write it into .env, "
                "or set it where this process starts."
            )
        return found


def toolset_tables(
    value: object, base: Path = Path(), lines: Mapping[str, str] | None = None
) -> dict[str, ToolsetTable]:
    """Read all tables. `lines` has the place of each `NAME` and `NAME.option` in words.

    Raises:
        ValueError: a table is none; the message says what to write.
    """
    lines = lines or {}
    if not isinstance(value, Mapping):
        raise ValueError("write a table such as [toolsets.lists]")
    made: dict[str, ToolsetTable] = {}
    for name, options in cast("Mapping[str, object]", value).items():
        if isinstance(options, ToolsetTable):
            made[name] = options
            continue
        if not isinstance(options, Mapping):
            raise ValueError(f"write {name} as a table, [toolsets.{name}]")
        given = dict(cast("Mapping[str, Any]", options))
        enabled = given.pop(ENABLED, True)
        if not isinstance(enabled, bool):
            raise ValueError(f"{name}.{ENABLED}: write true or false")
        places = {
            key.partition(".")[2]: line
            for key, line in lines.items()
            if key == name or key.startswith(f"{name}.")
        }
        made[name] = ToolsetTable(name, given, enabled, base, places)
    return made
