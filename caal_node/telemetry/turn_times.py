"""What one turn's time was spent on, in seconds from the end of the person's speech.

It is read from the spans of a trace, by the names that LiveKit gives its own and those of
`caal_node.telemetry.spans`. A turn is one `agent_turn` in which the model was asked.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from caal_node.core.errors import ConfigError
from mcp_bridge.core.files import open_regular

MAX_FILE_BYTES: Final = 64 << 20
"""Bytes of a trace after which its writer, `trace_file`, adds nothing: some hundred thousand spans.
It is here because the writer imports LiveKit, which a reader does not need."""
MAX_LINE_BYTES: Final = 2 << 20
"""A collector writes some hundred spans in a line, and one with contents has a conversation."""
MAX_BYTES: Final = MAX_FILE_BYTES + 8 * MAX_LINE_BYTES
"""The writer ends behind the spans that pass its limit."""
MAX_NS: Final = 1 << 63
"""Nanoseconds from 1970 into the year 2262, as far as OpenTelemetry counts."""
MAX_NUMBER: Final = 1e12
NAME_CHARS: Final = 60
"""Characters of a name that are read: no tool's is longer."""
NAMES_MAX: Final = 16
"""Tools that are read of those shown at once: with a person's words there are six, and a search
adds four."""

# Reads a trace: OTLP's JSON, with any number of spans in a line.


class _Otlp(BaseModel):
    """What is read of a message; all else is left out, as newer versions may add it."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


_Id = Annotated[str, StringConstraints(max_length=64)]
_Nanoseconds = Annotated[int, Field(ge=0, le=MAX_NS)]


class _Value(_Otlp):
    string_value: str | None = None
    int_value: int | None = None
    double_value: float | None = None
    bool_value: bool | None = None


class _Attribute(_Otlp):
    key: str
    value: _Value = _Value()


class _Span(_Otlp):
    trace_id: _Id
    span_id: _Id
    parent_span_id: _Id = ""
    name: str
    start_time_unix_nano: _Nanoseconds
    end_time_unix_nano: _Nanoseconds
    attributes: list[_Attribute] = []


class _ScopeSpans(_Otlp):
    spans: list[_Span] = []


class _ResourceSpans(_Otlp):
    scope_spans: list[_ScopeSpans] = []


class _Traces(_Otlp):
    resource_spans: list[_ResourceSpans]


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One span; its times are in seconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str
    """Empty where it has none."""
    name: str
    begin_s: float
    end_s: float
    attributes: Mapping[str, str | float | bool]

    def text(self, name: str) -> str:
        """Return an attribute as it can be shown, cut to NAME_CHARS; empty where it has none."""
        value = self.attributes.get(name)
        return _shown(value) if isinstance(value, str) else ""

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return the names that an attribute lists; None where it has none."""
        value = self.attributes.get(name)
        if not isinstance(value, str):
            return None
        listed = value[: NAMES_MAX * (NAME_CHARS + 1)].split(",")[:NAMES_MAX]
        return tuple(_shown(each) for each in listed if each)

    def number(self, name: str) -> float | None:
        """Return a number from 0 to MAX_NUMBER; anything else has been made up."""
        value = self.attributes.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if 0 <= value <= MAX_NUMBER else None


def read_trace(path: Path) -> Generator[TraceSpan]:
    """Yield the spans of a trace, which is read piece by piece.

    Raises:
        ConfigError: the file cannot be read, is too long, or holds what is no line of a trace.
    """
    try:
        file = open_regular(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that CAAL_TRACE wrote") from None
    with closing(file):
        yield from read_spans(file, str(path))


def read_spans(file: BinaryIO, name: str) -> Generator[TraceSpan]:
    """Yield the spans of a trace; errors call it `name`.

    Raises:
        ConfigError: it is too long, or holds what is no line of a trace.
    """
    number = size = 0
    while data := file.readline(MAX_LINE_BYTES + 1):
        number, size = number + 1, size + len(data)
        if len(data) > MAX_LINE_BYTES:
            _refuse(name, number, f"it has more than {MAX_LINE_BYTES >> 20} MiB")
        if size > MAX_BYTES:
            raise ConfigError(
                f"{name}: larger than {MAX_BYTES >> 20} MiB, and no trace is. Is it the right "
                "file? Traces can be cut between any two lines"
            )
        if data.strip():
            yield from _spans(name, number, data)


def _spans(name: str, number: int, data: bytes) -> Generator[TraceSpan]:
    try:
        traces = _Traces.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        _refuse(name, number, f"{place}: {first['msg']}" if place else first["msg"])
    for span in (
        span for each in traces.resource_spans for scope in each.scope_spans for span in scope.spans
    ):
        yield TraceSpan(
            span.trace_id,
            span.span_id,
            span.parent_span_id,
            _shown(span.name),
            span.start_time_unix_nano / 1e9,
            max(span.start_time_unix_nano, span.end_time_unix_nano) / 1e9,
            {each.key: value for each in span.attributes if (value := _value(each)) is not None},
        )


def _value(attribute: _Attribute) -> str | float | bool | None:
    value = attribute.value
    given = (value.string_value, value.bool_value, value.int_value, value.double_value)
    return next((each for each in given if each is not None), None)


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else "·" for c in name[:NAME_CHARS])


def _refuse(name: str, number: int, what: str) -> NoReturn:
    raise ConfigError(
        f"{name}, line {number}: {what}. Delete that line, if the file is a trace of CAAL_TRACE; "
        "the others can be read without it"
    )


# The times of a turn.


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """A request to the model. `first_s` is its reply's first piece; counts are the server's."""

    begin_s: float
    first_s: float | None
    end_s: float
    outcome: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class CallTimes:
    """A call. `found` are the tools that it has found; None where it was no search."""

    tool: str
    begin_s: float
    end_s: float
    outcome: str
    found: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CueTime:
    kind: str
    at_s: float


@dataclass(frozen=True, slots=True)
class VoiceTimes:
    """A stretch of the agent's voice. `given_s` is when its first words went to synthesis; None
    where the answer is only written."""

    given_s: float | None
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """One turn. 0 is the person's last sound; of typed words, their arrival."""

    number: int
    session: str
    """The trace's id."""
    at: str
    """The wall clock's time of 0."""
    speech_begin_s: float | None
    """The person's first sound, which is negative; None where they typed."""
    transcribed_s: float | None
    words_s: float
    """When the words were known and the turn was the agent's."""
    requests: tuple[RequestTimes, ...]
    calls: tuple[CallTimes, ...]
    cues: tuple[CueTime, ...]
    voices: tuple[VoiceTimes, ...]
    end_s: float
    told: tuple[str, ...] = ()
    """The tools on demand that the model was shown with the person's words."""

    @property
    def first_word_s(self) -> float | None:
        return min((voice.begin_s for voice in self.voices), default=None)

    @property
    def last_word_s(self) -> float | None:
        return max((voice.end_s for voice in self.voices), default=None)

    @property
    def begin_s(self) -> float:
        """The beginning of whatever began first but the person's speech."""
        return min(0.0, self.words_s, *(each.begin_s for each in self.requests))

    def as_json(self) -> dict[str, Any]:
        """Return all of it as a JSON object, with its times rounded to milliseconds."""
        words = {"first_word_s": self.first_word_s, "last_word_s": self.last_word_s}
        return _rounded(dataclasses.asdict(self) | words)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return [_rounded(each) for each in value] if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType]


_MAX_DEPTH: Final = 32
"""Spans around one in its turn; LiveKit's have seven."""


def turns_of(spans: Iterable[TraceSpan]) -> list[TurnTimes]:
    """Return the turns of a trace, by their numbers, which count from 1 in the whole file."""
    sessions: defaultdict[str, list[TraceSpan]] = defaultdict(list)
    for span in spans:
        sessions[span.trace_id].append(span)
    found = [turn for each in sessions.values() for turn in _turns_of_session(each)]
    found.sort(key=lambda turn: turn.zero_s)
    return [turn.times(number) for number, turn in enumerate(found, 1)]


@dataclass(slots=True)
class _Turn:
    """One turn's spans."""

    agent: TraceSpan
    person: TraceSpan | None
    """LiveKit's `user_turn`, if the person spoke: from the first sound until the turn is over."""
    spans: list[TraceSpan]
    """Those below `agent`, in the order in which they began."""
    cues: list[TraceSpan] = dataclasses.field(default_factory=list[TraceSpan])

    @property
    def zero_s(self) -> float:
        if self.person is None:
            return self.agent.begin_s
        return self.person.end_s - (self.person.number("lk.end_of_turn_delay") or 0.0)

    def times(self, number: int) -> TurnTimes:
        zero, person = self.zero_s, self.person
        return TurnTimes(
            number=number,
            session=self.agent.trace_id,
            at=datetime.fromtimestamp(zero, UTC).isoformat(timespec="milliseconds"),
            speech_begin_s=None if person is None else min(person.begin_s - zero, 0.0),
            transcribed_s=None if person is None else person.number("lk.transcription_delay"),
            words_s=0.0 if person is None else person.end_s - zero,
            requests=tuple(_request(each, zero) for each in self.of("chat")),
            calls=tuple(_call(each, zero) for each in self.of("execute_tool")),
            cues=tuple(CueTime(cue.text("caal.cue.kind"), cue.begin_s - zero) for cue in self.cues),
            voices=tuple(self._voices(zero)),
            end_s=max([self.agent.end_s, *(each.end_s for each in self.spans)]) - zero,
            told=next(filter(None, (each.names("caal.tools.told") for each in self.spans)), ()),
        )

    def of(self, operation: str) -> list[TraceSpan]:
        name = "gen_ai.operation.name"
        return [each for each in self.spans if each.text(name) == operation]

    def _voices(self, zero: float) -> Generator[VoiceTimes]:
        first: float | None = None
        for each in self.spans:
            if each.name == "tts_request" and first is None:
                first = each.begin_s - zero
            elif each.name == "agent_speaking":
                yield VoiceTimes(first, each.begin_s - zero, each.end_s - zero)
                first = None


def _turns_of_session(spans: Sequence[TraceSpan]) -> list[_Turn]:
    spans = sorted(spans, key=lambda span: span.begin_s)
    by_id = {span.span_id: span for span in spans}
    below: defaultdict[str, list[TraceSpan]] = defaultdict(list)
    for span in spans:
        above: TraceSpan | None = span
        for _ in range(_MAX_DEPTH):
            above = None if above is None else by_id.get(above.parent_id)
            if above is not None and above.name == "agent_turn":
                below[above.span_id].append(span)
                break
    turns: list[_Turn] = []
    person: TraceSpan | None = None
    """The last who has spoken and was not answered yet; what follows without speech was typed."""
    speaks_until_s = -math.inf
    for span in spans:
        if span.name == "user_turn":
            person, speaks_until_s = span, max(speaks_until_s, span.end_s)
        elif span.name == "agent_turn":
            turn = _Turn(span, person, below[span.span_id])
            if not turn.of("chat") or span.end_s < speaks_until_s:
                continue  # it was said without the model, or the person had not finished
            person, speaks_until_s = None, -math.inf
            turns.append(turn)
    turns.sort(key=lambda turn: turn.zero_s)
    zeros = [turn.zero_s for turn in turns]
    for cue in (span for span in spans if span.name == "cue"):
        if place := bisect_right(zeros, cue.begin_s):
            turns[place - 1].cues.append(cue)
    return turns


def _request(span: TraceSpan, zero: float) -> RequestTimes:
    first = span.number("gen_ai.response.time_to_first_chunk")
    begin, end = span.begin_s - zero, span.end_s - zero
    failed = "error" if span.text("error.type") else "ok"
    return RequestTimes(
        begin,
        None if first is None else min(begin + first, end),
        end,
        span.text("caal.model.outcome") or failed,
        *(
            None if (tokens := span.number(f"gen_ai.usage.{name}")) is None else round(tokens)
            for name in ("input_tokens", "cache_read.input_tokens", "output_tokens")
        ),
    )


def _call(span: TraceSpan, zero: float) -> CallTimes:
    failed = "error" if span.text("error.type") else "ok"
    outcome = span.text("caal.tool.outcome") or failed
    tool = span.text("gen_ai.tool.name")
    found = span.names("caal.tools.found")
    return CallTimes(tool, span.begin_s - zero, span.end_s - zero, outcome, found)
