"""What one turn's time was spent on, in seconds from the end of the person's speech."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from caal_node.core.errors import ConfigError
from caal_node.core.events import API_CALL, ModelRequestEnded
from caal_node.room.trace_file import MAX_FILE_BYTES
from mcp_bridge.core.files import open_regular

# Reads a trace: a line of JSON for each event, as `caal_node.room.trace_file` writes it.

MAX_LINE_BYTES: Final = 2 << 20
"""A line of a trace with `content` has some texts of at most 64 Ki characters."""
MAX_BYTES: Final = MAX_FILE_BYTES + 8 * MAX_LINE_BYTES
"""The writer ends behind the lines that pass its limit."""
MAX_NUMBER: Final = 1e12
"""No time and no count of tokens is larger; what is has been made up."""
NAME_CHARS: Final = 60
"""Characters of a name that are read: no tool's is longer."""


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One event of a trace. `time_s` only grows within a session."""

    path: Path
    number: int
    session: str
    type: str
    at: datetime
    """The wall clock's time."""
    time_s: float
    """Seconds by the monotonic clock; by the wall clock where an older version wrote the line."""
    fields: Mapping[str, Any]

    def ms(self, name: str) -> float:
        """Return a field in milliseconds as seconds."""
        if (value := self.count(name)) is None:
            self._refuse(name, "a number of milliseconds")
        return value / 1000

    def optional_ms(self, name: str) -> float | None:
        value = self.count(name)
        return None if value is None else value / 1000

    def count(self, name: str) -> float | None:
        """Return a number that is not negative, or None where the line has none."""
        value = self.fields.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(name, "a number")
        if not 0 <= value <= MAX_NUMBER:
            self._refuse(name, f"a number from 0 to {MAX_NUMBER:g}")
        return value

    def flag(self, name: str) -> bool:
        value = self.fields.get(name)
        if not isinstance(value, bool):
            self._refuse(name, "true or false")
        return value

    def name(self, name: str) -> str:
        """Return a name as it can be shown: printable, and cut to NAME_CHARS."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            self._refuse(name, "a name")
        return _shown(value)

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return a list of names, or None where the line has none, as one without content may."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            self._refuse(name, "a list of names")
        return tuple(_shown(each) for each in cast("list[object]", value) if isinstance(each, str))

    def _refuse(self, name: str, wanted: str) -> NoReturn:
        _refuse(self.path, self.number, f'"{name}" of "{self.type}" is not {wanted}')


def read_trace(path: Path) -> Generator[TraceLine]:
    """Yield the lines of a trace, which is read piece by piece.

    Raises:
        ConfigError: the file cannot be read, is too long, or holds what is no line of a trace.
    """
    try:
        file = open_regular(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that CAAL_TRACE wrote") from None
    with closing(file):
        number = size = 0
        while data := file.readline(MAX_LINE_BYTES + 1):
            number, size = number + 1, size + len(data)
            if len(data) > MAX_LINE_BYTES:
                _refuse(path, number, f"it has more than {MAX_LINE_BYTES >> 20} MiB")
            if size > MAX_BYTES:
                raise ConfigError(
                    f"{path}: larger than {MAX_BYTES >> 20} MiB, and no trace is. Is it the right "
                    "file? Traces can be cut between any two lines"
                )
            if data.strip():
                yield _line(path, number, data)


def _line(path: Path, number: int, data: bytes) -> TraceLine:
    try:
        value = json.loads(data.decode(), parse_constant=_no_number)
    except RecursionError:
        _refuse(path, number, "it is nested too deeply")
    except ValueError:  # what is no UTF-8 as well
        _refuse(path, number, "it is not complete JSON, as if the write was cut off")
    if not isinstance(value, dict):
        _refuse(path, number, "it is not a JSON object")
    fields = cast("dict[str, Any]", value)
    kind, session = fields.get("type"), fields.get("session")
    if not isinstance(kind, str) or not isinstance(session, str):
        _refuse(path, number, 'it lacks "type" or "session"')
    try:
        at = datetime.fromisoformat(fields.get("at", ""))
        time_s = fields.get("mono_s", at.timestamp())
    except (TypeError, ValueError, OverflowError, OSError):
        _refuse(path, number, 'its "at" is not a time such as "2026-11-23T12:00:00.250+00:00"')
    if isinstance(time_s, bool) or not isinstance(time_s, int | float):
        _refuse(path, number, '"mono_s" is not a number of seconds')
    if not -MAX_NUMBER <= time_s <= MAX_NUMBER:
        _refuse(path, number, f'"mono_s" is not between -{MAX_NUMBER:g} and {MAX_NUMBER:g}')
    return TraceLine(path, number, _shown(session), _shown(kind), at, float(time_s), fields)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else "·" for c in name[:NAME_CHARS])


def _refuse(path: Path, number: int, what: str) -> NoReturn:
    raise ConfigError(
        f"{path}, line {number}: {what}. Delete that line, if the file is a trace of CAAL_TRACE; "
        "the others can be read without it"
    )


REQUEST: Final = ModelRequestEnded.type


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
    """A tool's call. `end_s` and `outcome` are None where the trace ends before it."""

    tool: str
    begin_s: float
    end_s: float | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class CueTime:
    kind: str
    at_s: float


@dataclass(frozen=True, slots=True)
class ToolsTold:
    """When the model was told of tools for this turn, and of which, where the trace says so."""

    at_s: float
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VoiceTimes:
    """A stretch of the agent's voice. `given_s` is when its first sentence went to synthesis."""

    given_s: float | None
    begin_s: float
    end_s: float | None
    heard: bool


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """One turn. 0 is the person's last sound; of typed words, their arrival."""

    number: int
    session: str
    at: str
    """The wall clock's time of the words."""
    speech_begin_s: float | None
    """The person's first sound, which is negative; None where they typed, or nobody noted it."""
    transcribed_s: float | None
    words_s: float
    """When the words were known and the turn was the agent's."""
    requests: tuple[RequestTimes, ...]
    tools_told: tuple[ToolsTold, ...]
    calls: tuple[CallTimes, ...]
    cues: tuple[CueTime, ...]
    sentences_s: tuple[float, ...]
    """When each sentence went to synthesis."""
    voices: tuple[VoiceTimes, ...]
    end_s: float

    @property
    def first_word_s(self) -> float | None:
        return min((voice.begin_s for voice in self.voices), default=None)

    @property
    def last_word_s(self) -> float | None:
        return max((v.end_s for v in self.voices if v.end_s is not None), default=None)

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


def times_of(
    number: int, user: TraceLine, person: TraceLine | None, lines: Iterable[TraceLine]
) -> TurnTimes:
    """Return the times of the turn of the words of `user`.

    `person` is how they were spoken, and `lines` everything else of the turn, in order. What was
    over before the person's speech was is left out.
    """
    lines = list(lines)
    requests = [line for line in lines if line.type == REQUEST]
    if person is not None:
        zero = person.time_s - person.ms("silent_ms")
    else:
        answered = (line for line in requests if line.time_s >= user.time_s)
        zero = min([user.time_s, *(line.time_s - line.ms("took_ms") for line in answered)])
    lines = [line for line in lines if line.time_s >= zero]
    end = max((line.time_s for line in lines), default=user.time_s)
    transcribed_s = None if person is None else person.optional_ms("transcribed_ms")
    sentences = [line for line in lines if line.type == "speech"]
    return TurnTimes(
        number=number,
        session=user.session,
        at=user.at.isoformat(timespec="milliseconds"),
        speech_begin_s=None if person is None else -person.ms("spoke_ms"),
        transcribed_s=transcribed_s,
        words_s=user.time_s - zero,
        requests=tuple(_request(line, zero) for line in lines if line.type == REQUEST),
        tools_told=tuple(
            ToolsTold(line.time_s - zero, line.names("names") or ())
            for line in lines
            if line.type == "tools_told"
        ),
        calls=_calls(lines, zero),
        cues=tuple(
            CueTime(line.name("kind"), line.time_s - zero) for line in lines if line.type == "cue"
        ),
        sentences_s=tuple(line.time_s - zero for line in sentences),
        voices=_voices(lines, zero),
        end_s=end - zero,
    )


def _request(line: TraceLine, zero: float) -> RequestTimes:
    end = line.time_s - zero
    begin = end - line.ms("took_ms")
    first = line.optional_ms("first_ms")
    return RequestTimes(
        begin,
        None if first is None else min(begin + first, end),
        end,
        line.name("outcome"),
        *(
            None if (tokens := line.count(name)) is None else round(tokens)
            for name in ("prompt_tokens", "cached_tokens", "completion_tokens")
        ),
    )


def _calls(lines: Iterable[TraceLine], zero: float) -> tuple[CallTimes, ...]:
    calls: dict[str, CallTimes] = {}
    for line in lines:
        if not line.type.startswith("tool_call_"):
            continue
        call_id, at_s = line.name("call_id"), line.time_s - zero
        if call_id.startswith(API_CALL):  # it is of no turn
            continue
        if line.type == "tool_call_started":
            calls[call_id] = CallTimes(line.name("tool"), at_s, None, None)
        elif line.type == "tool_call_ended":
            known = calls.get(call_id)
            begin_s = at_s - line.ms("duration_ms") if known is None else known.begin_s
            calls[call_id] = CallTimes(line.name("tool"), begin_s, at_s, line.name("outcome"))
    return tuple(calls.values())


def _voices(lines: Iterable[TraceLine], zero: float) -> tuple[VoiceTimes, ...]:
    voices: list[VoiceTimes] = []
    given_s: float | None = None
    for line in lines:
        sounds = bool(voices) and voices[-1].end_s is None
        at_s = line.time_s - zero
        if line.type == "speech" and not sounds and given_s is None:
            given_s = at_s
        elif line.type == "agent_voice" and line.flag("sounding") != sounds:
            if sounds:
                voices[-1] = dataclasses.replace(voices[-1], end_s=at_s)
            else:
                voices.append(VoiceTimes(given_s, at_s, None, line.flag("heard")))
                given_s = None
    return tuple(voices)
