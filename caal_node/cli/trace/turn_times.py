"""What one turn's time was spent on, in seconds from the end of the person's speech."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from caal_node.cli.trace.trace_lines import TraceLine
from caal_node.core.events import API_CALL, ModelRequestEnded

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
