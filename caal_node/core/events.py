"""The events of a conversation, as a closed union of frozen dataclasses.

The same objects feed `caal-node chat --json`, the demo's transcript and the room's
`caal.tools` text stream. `to_json` gives one line; the key `type` names the event. What may become
of an announcement is described at the end.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, cast, get_args

Outcome: TypeAlias = Literal["ok", "error", "timeout", "refused", "cancelled", "dry_run"]
Verdict: TypeAlias = Literal["allowed", "refused", "confirmed", "dry_run", "doubted"]
"""What a rule decided of a call. One that is "doubted" needs a person's yes behind it."""
ConfirmationAnswer: TypeAlias = Literal[
    "yes", "no", "correction", "unclear", "silence", "cancelled"
]
"""What became of a question whether a call may run; only "yes" lets it. A "correction" says what is
wanted in its place, and "cancelled" is a question that ended with its turn."""
QuestionEnd: TypeAlias = Literal["accepted", "declined", "dismissed", "cancelled"]
"""How a server's question ended: answered, refused, left, or not needed any more."""
ClaimBecame: TypeAlias = Literal["call", "sentence", "nothing"]
"""What took the place of a claim: its call, an honest sentence, or nothing, as the sentence was
said already, the model's own call follows, or nobody has asked for it."""
RequestOutcome: TypeAlias = Literal["ok", "error", "closed"]
"""How a request to the model ended. "closed": nobody read on, as a person spoke, the words that it
answered were not all, or the reply was known by then."""
CueKind: TypeAlias = Literal["tool", "agent", "error", "tick", "done", "ring"]
TierName: TypeAlias = Literal["agent", "n8n", "mcp"]
SourceState: TypeAlias = Literal["down", "ready"]
API_CALL: Final = "api_"
"""The prefix of the ids of calls that came over the Tools API, and not from the model."""


@dataclass(frozen=True, slots=True)
class UserSaid:
    """A person's words, as speech to text gave them or as they were typed."""

    type: ClassVar[str] = "user"
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """LiveKit's executor has begun a call. `source` is the agent's class, `n8n`, or a server."""

    type: ClassVar[str] = "tool_call_started"
    call_id: str
    tool: str
    tier: TierName
    source: str
    arguments: Mapping[str, Any] | None
    """It is None where the reader may not see arguments, as in the room by default."""


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A tool's source has reported progress; it does so a few times a second at most."""

    type: ClassVar[str] = "tool_progress"
    call_id: str
    tool: str
    tier: TierName
    source: str
    done: float
    """It only grows. The source chooses its unit."""
    total: float | None
    message: str
    """The source's own words. Those of an MCP server may be spoken while its tool takes long."""


@dataclass(frozen=True, slots=True)
class ConfirmationAsked:
    """A person is asked whether a call may run. docs/safety.md says how a button answers."""

    type: ClassVar[str] = "confirmation_asked"
    call_id: str
    tool: str
    words: str
    """The question, as it is said."""
    arguments_hash: str
    """It stands for the tool and all of the call's arguments."""
    pin: bool = False
    """Whether only the PIN is a yes, and no button."""


@dataclass(frozen=True, slots=True)
class ConfirmationEnded:
    """The question is over; `answer` says how, and `by` whether by words, a button or neither."""

    type: ClassVar[str] = "confirmation_ended"
    call_id: str
    tool: str
    answer: ConfirmationAnswer
    by: Literal["words", "button", ""] = ""


@dataclass(frozen=True, slots=True)
class QuestionField:
    """One thing that a server asks for. It is no event, but a part of one."""

    name: str
    """The key of its value in an answer's `content`."""
    kind: Literal["text", "number", "integer", "boolean", "choice", "choices"]
    title: str
    description: str
    required: bool
    """An answer without it is not taken. One that has a `default` may always be left out."""
    default: str | int | float | bool | tuple[int, ...] | None = None
    """What is taken where it is left out; of choices, their places in `choices`."""
    choices: tuple[str, ...] = ()
    """The words of each choice. An answer names one by its place, from 0."""


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A server asks the person something while its tool runs. docs/safety.md says how a form
    answers."""

    type: ClassVar[str] = "question_asked"
    call_id: str
    tool: str
    question_id: str
    """It stands for this question alone."""
    message: str
    """The question, as it is said. It is empty where the reader may not see it, as in the room by
    default, and so is `fields`."""
    fields: tuple[QuestionField, ...] = ()
    """What is asked for; nothing where yes or no is the whole answer."""


@dataclass(frozen=True, slots=True)
class QuestionEnded:
    """The question is over; `answer` says how, and `by` whether by words, a form or neither."""

    type: ClassVar[str] = "question_ended"
    call_id: str
    tool: str
    question_id: str
    answer: QuestionEnd
    by: Literal["words", "form", ""] = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one rule of the owner's decided about a call."""

    by: str
    """The middleware: `policy`, `limits`, `dry_run`, `second_look`, `confirmation`, or one of an
    owner's own."""
    verdict: Verdict
    line: str
    """The place of the rule, such as `caal.toml, line 12`, or the words of a built-in one."""
    took_ms: float


REASON_CHARS: Final = 300
"""Characters that a person at a terminal is shown of why a call failed, and of its result."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """How a call ended, and why it ran at all. It is no event, but a part of one."""

    outcome: Outcome
    decisions: tuple[Decision, ...] = ()
    reason: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    """A call is over. `duration_ms` counts from its start."""

    type: ClassVar[str] = "tool_call_ended"
    call_id: str
    tool: str
    tier: TierName
    outcome: Outcome
    duration_ms: int
    decisions: tuple[Decision, ...] = ()
    """What the owner's rules decided, in their order."""
    reason: str = ""
    """Why it did not end well, as the model or the log is told, without secrets. It is empty where
    the reader may not see it, as in the room by default, and so is `result`."""
    result: str = ""
    """The beginning of what the model reads of the result, without secrets."""


@dataclass(frozen=True, slots=True)
class CuePlayed:
    """A cue was given to the room to be played."""

    type: ClassVar[str] = "cue"
    kind: CueKind


@dataclass(frozen=True, slots=True)
class Spoken:
    """A sentence has gone to speech synthesis."""

    type: ClassVar[str] = "speech"
    text: str


@dataclass(frozen=True, slots=True)
class SpeechFailed:
    """Speech synthesis has failed: nobody has heard the last words, or not all of them."""

    type: ClassVar[str] = "speech_failed"
    reason: str
    """The kind of the error, such as `APIConnectionError`; the log has no more either."""


@dataclass(frozen=True, slots=True)
class ClaimCorrected:
    """The model's reply claimed to have done what no call of the turn has done. Nobody has heard
    it; `became` says what took its place. The reply may be one that LiveKit then threw away."""

    type: ClassVar[str] = "claim_corrected"
    claim: str
    """The model's words."""
    became: ClaimBecame


@dataclass(frozen=True, slots=True)
class Source:
    """Where something was read: a web page, a document. It is no event, but a part of one."""

    title: str
    address: str
    """A URL, or a path in the owner's folders."""
    site: str
    """What people call the place: the host of a URL, the name of a folder."""


@dataclass(frozen=True, slots=True)
class SourcesCited:
    """What the model reads next comes from these sources, the best first."""

    type: ClassVar[str] = "sources_cited"
    tool: str
    """The tool that has read them."""
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class ToolsTold:
    """The model was shown tools that its prompt does not begin with. No event says that none was.

    Those shown with a person's words follow the event of these words, once."""

    type: ClassVar[str] = "tools_told"
    by: Literal["words", "search"]
    """What they were chosen by: a person's words, or the model's own search."""
    tools: tuple[str, ...]
    """The exposed names, the best first. Names that a search only lists are not among them."""
    tokens: int
    """Estimated tokens that they add to the conversation, a search's whole result among them."""


@dataclass(frozen=True, slots=True)
class ToolSourceChanged:
    """A source of tools (an MCP server, n8n) cannot be used, or can be used again. Those that are
    down when a session begins are reported then."""

    type: ClassVar[str] = "tool_source"
    source: str
    state: SourceState
    reason: str = ""
    """Why it is down and what to do, without secrets. It is empty where the reader may not see it,
    as in the room by default."""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """A timer, alarm, reminder or request that is set. It is no event, but a part of one."""

    number: int
    """It stays the same as long as it is set."""
    kind: str
    """`timer`, `alarm`, `reminder` or `request`."""
    name: str
    """What it is for; "" where nobody has said."""
    due: float
    """When it rings, in seconds of Unix time."""
    ringing: bool


@dataclass(frozen=True, slots=True)
class TimersChanged:
    """What is set has changed, or somebody has come who may not know it. The event is the whole
    state, and goes to nobody in the room but a page of the person's own, by default."""

    type: ClassVar[str] = "timers_changed"
    now: float
    """The agent's time, in seconds of Unix time, as the reader's clock may show another one."""
    timers: tuple[SetTimer, ...]
    """What is set in the home, the next first."""
    more: int = 0
    """How many more are set, which are not listed."""


@dataclass(frozen=True, slots=True)
class FactCorrected:
    """A clause of the answer told otherwise than the results do. Nobody has heard it; `heard` says
    what they hear in its place. The reply may be one that LiveKit then threw away."""

    type: ClassVar[str] = "fact_corrected"
    clause: str
    """The model's words."""
    heard: str
    """The clause mended, or an honest sentence; "" where that one was said already."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn is over, after so many `rounds` of tools and `requests` to the model."""

    type: ClassVar[str] = "turn_ended"
    rounds: int
    requests: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class ModelRequestEnded:
    """A request to the model is over. It is no event: metrics and spans alone are told. Times count
    from its sending.

    The counts are the server's own, None where it told none.
    """

    took_ms: int
    first_ms: int | None
    """To the first piece of the reply, which of a complete one is all of it; None: none came."""
    outcome: RequestOutcome
    prompt_tokens: int | None = None
    """The whole prompt, cached or not."""
    cached_tokens: int | None = None
    """What the server had in its cache; 0 also where it tells nothing of it."""
    completion_tokens: int | None = None


Event: TypeAlias = (
    UserSaid
    | ToolCallStarted
    | ToolProgress
    | ConfirmationAsked
    | ConfirmationEnded
    | QuestionAsked
    | QuestionEnded
    | ToolCallEnded
    | CuePlayed
    | Spoken
    | SpeechFailed
    | ClaimCorrected
    | SourcesCited
    | ToolsTold
    | ToolSourceChanged
    | TimersChanged
    | FactCorrected
    | TurnEnded
)


class HearsEvents(Protocol):
    """What events are passed on to."""

    def emit(self, event: Event, /) -> None: ...


class Events:
    """Passes events of a conversation on to whoever hears them now; else they are dropped."""

    def __init__(self, hearer: HearsEvents | None = None) -> None:
        self.hearer = hearer

    def emit(self, event: Event) -> None:
        if self.hearer is not None:
            self.hearer.emit(event)


_PARTS: Final = (Decision, Source, QuestionField, SetTimer)


def to_json(event: Event) -> str:
    """Write an event as one line of JSON: `type` first, then the event's fields in order."""
    fields = {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
    return json.dumps(
        {"type": event.type, **fields}, ensure_ascii=False, separators=(",", ":"), default=_plain
    )


def _plain(value: object) -> object:
    return dataclasses.asdict(value) if isinstance(value, _PARTS) else str(value)


_TYPES: Final = {event_type.type: event_type for event_type in get_args(Event)}


def from_json(line: str) -> Event:
    """Read the event of a line that `to_json` wrote.

    Raises:
        ValueError: The line holds no event, or one of a newer version.
    """
    fields = json.loads(line)
    try:
        if "decisions" in fields:
            fields["decisions"] = tuple(Decision(**each) for each in fields["decisions"])
        if "sources" in fields:
            fields["sources"] = tuple(Source(**each) for each in fields["sources"])
        if "fields" in fields:
            fields["fields"] = tuple(_field(each) for each in fields["fields"])
        if "tools" in fields:
            fields["tools"] = tuple(fields["tools"])
        if "timers" in fields:
            fields["timers"] = tuple(SetTimer(**each) for each in fields["timers"])
        return _TYPES[fields.pop("type")](**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this line is no event") from error


def _field(written: dict[str, Any]) -> QuestionField:
    for name in ("default", "choices"):
        if isinstance(written[name], list):
            written[name] = tuple(cast("list[Any]", written[name]))
    return QuestionField(**written)


# What somebody outside a room may want of an announcement, and what became of it.

Priority: TypeAlias = Literal["low", "normal", "urgent"]
"""How an announcement waits: "low" for a long pause, which may never come, "normal" for a short
one, "urgent" only until the person has finished speaking."""
AnswerTo: TypeAlias = Literal["model", "caller"]
"""Who gets what the person says next: the conversation, as ever, or who asked for the words."""
AnnouncementStatus: TypeAlias = Literal["said", "answered", "silence", "not_said"]
"""What became of an announcement. "answered" and "silence" are of one that was a question."""
NotSaid: TypeAlias = Literal[
    "nobody_there", "no_pause", "interrupted", "speech_failed", "session_ended"
]
"""Why an announcement was not said. "interrupted" is by the person before its first word, or by a
more urgent one; "speech_failed" is a text to speech that gave an error."""


@dataclass(frozen=True, slots=True)
class Announced:
    """What became of an announcement."""

    status: AnnouncementStatus
    reason: NotSaid | None = None
    answer: str | None = None
