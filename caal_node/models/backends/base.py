"""The interface to any model's server: one request in, a stream of chunks out.

A backend knows one wire format, and nothing of LiveKit, of strategies or of what a reply means.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

from caal_node.core.items import Item
from caal_node.core.tool_spec import ToolSchema

# What one server takes of OpenAI's API, learnt from what it refuses.
#
# Servers that call themselves compatible refuse fields that others need, each in words of its own
# (as reported in public issues): api.openai.com "Unrecognized request argument supplied: x" and
# "Unsupported parameter: 'x' is not supported with this model"; Mistral 422 with `extra_forbidden`
# and the field in `loc`; Groq "property 'x' is unsupported, did you mean 'y'?"; Google a list with
# `Unknown name "x": Cannot find field`; xAI "Argument not supported on this model: x", in camel
# case; vLLM a `literal_error` for a value; Ollama `think value "medium" is not supported for this
# model`. A field that is refused is left out from then on, and what was asked is asked again
# without it.

SchemaForm: TypeAlias = Literal[
    "response_format", "structured_outputs", "guided_json", "json_schema"
]
"""The field that holds a reply to a schema: OpenAI's, vLLM's since 0.12, vLLM's before,
llama.cpp's."""
SCHEMA_FORMS: Final[Mapping[SchemaForm, Callable[[Any], Any]]] = {
    "response_format": lambda schema: {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": schema},
    },
    "structured_outputs": lambda schema: {"json": schema},
    "guided_json": lambda schema: schema,
    "json_schema": lambda schema: schema,
}
"""What each takes. They are tried in this order."""

_ESSENTIAL: Final = frozenset({"model", "messages", "prompt", "tools", "stream"})
"""Without these a request asks something else."""
_GUESSED: Final = (
    ("chat_template_kwargs", "reasoning_effort"),
    ("stream_options", "parallel_tool_calls", "logprobs", "top_logprobs", "seed"),
)
"""What is left out, group by group, where a server refuses a request and does not say why."""
_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "chat_template_kwargs": ("enablethinking",),
    "reasoning_effort": (
        "reasoning effort",
        "reasoning value",
        "think value",
        "support thinking",
        "thinking mode",
        "thinking budget",
    ),
    "stream_options": ("includeusage",),
    "parallel_tool_calls": ("parallel tool calls",),
    "logprobs": ("toplogprobs",),
    "top_logprobs": ("logprobs",),
    "response_format": ("response format",),
}
"""Other words by which servers refuse a field, in small letters and without underscores."""
_SUGGESTED: Final = re.compile(r"did you mean [^\n]*|expected one of [^\n]*", re.IGNORECASE)
"""Fields that a refusal names because it would take them."""
_NAMES_BY_WORD: Final = frozenset({"logprobs", "temperature"})
"""Names without an underscore that are no words of ordinary sentences."""
_OTHER_EFFORTS: Final[Mapping[bool, tuple[str, ...]]] = {
    False: ("minimal", "low"),
    True: ("default", "medium", "high", "low"),
}
"""Values of reasoning_effort in place of one that is refused, for thinking off and on."""


@dataclass(slots=True)
class Dialect:
    """What the server of one model takes. It grows with what the server refuses."""

    refused: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Field -> the value that is sent in place of ours; None: it is left out."""
    schema_form: SchemaForm | Literal["none"] | None = None
    """The field that holds a reply to a schema; "none" has been found out, None has not."""
    guessed: frozenset[str] = field(default=frozenset(), compare=False)
    """Fields that are left out because it helped once. That is not kept for other sessions."""
    _in_vain: bool = field(default=False, compare=False)

    def schema_field(self, schema: Any, unknown: SchemaForm) -> dict[str, Any]:
        """Return the field that holds a reply to `schema`: the one of form `unknown` where nothing
        was found out."""
        form = self.schema_form or unknown
        return {} if form == "none" else {form: SCHEMA_FORMS[form](schema)}

    def fitted(self, body: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
        """Return `body` as the server takes it, and without the fields of `without`."""
        gone = self.guessed | without
        sent = {name: value for name, value in body.items() if name not in gone}
        for name in sent.keys() & self.refused.keys():
            if (instead := self.refused[name]) is None:
                del sent[name]
            else:
                sent[name] = instead
        if "max_tokens" in body and "max_tokens" not in sent:
            longer = "max_completion_tokens"  # OpenAI's newer models take only this name.
            if longer not in self.refused:
                sent[longer] = body["max_tokens"]
        return sent

    def learn(self, sent: Mapping[str, Any], words: str) -> frozenset[str]:
        """Return the fields of `sent` that a refusal in these `words` names; none for a schema.

        A schema is not left out here, since whoever wants one asks otherwise without it.
        """
        names = {name for name in sent.keys() - _ESSENTIAL if _is_named(name, words)}
        if schemas := names & SCHEMA_FORMS.keys():
            self.schema_form = "none"
            names -= schemas
        for name in names:
            again = name in self.refused
            self.refused[name] = None if again else _instead(name, sent[name], words)
        return frozenset() if schemas else frozenset(names)

    def guess(self, sent: Mapping[str, Any], words: str, without: frozenset[str]) -> frozenset[str]:
        """Return what to leave out next, where a refusal names no field; nothing if all failed."""
        if self._in_vain or any(_is_named(name, words) for name in _ESSENTIAL):
            return frozenset()
        for group in _GUESSED:
            if more := sent.keys() & set(group):
                return without | more
        self._in_vain = True
        return frozenset()


def _is_named(name: str, words: str) -> bool:
    text = _SUGGESTED.sub("", words).lower().replace("_", "")
    plain = name.lower().replace("_", "")
    if any(re.search(rf"\b{alias}\b", text) for alias in _ALIASES.get(name, ())):
        return True
    distinct = "_" in name or name in _NAMES_BY_WORD
    # A word such as `stop` is a field's name only where it stands like one.
    before = r"\b" if distinct else r"(?:^|[:'\"`.(]\s*)"
    return re.search(rf"{before}{re.escape(plain)}\b", text) is not None


def _instead(name: str, value: Any, words: str) -> str | None:
    if name != "reasoning_effort":
        return None
    quoted = set(re.findall(r"['\"`](\w+)['\"`]", words)) - {value}
    return next((e for e in _OTHER_EFFORTS[value != "none"] if e in quoted), None)


Think: TypeAlias = bool | Literal["low", "medium", "high", "max"]
"""Whether a model thinks before it answers, and how hard."""


_CUT_REASONS: Final = frozenset({"length", "max_tokens", "model_length"})
"""OpenAI's and Ollama's word for a reply that was cut off, Anthropic's and Mistral's."""


@dataclass(frozen=True, slots=True)
class BackendRequest:
    """What to ask a server. The same request always gives the same bytes on the wire."""

    items: tuple[Item, ...]
    tools: tuple[ToolSchema, ...] = ()
    stream: bool = True
    """If false, the reply comes complete, in as few chunks as the server gives."""
    schema: Mapping[str, Any] | None = None
    """A JSON schema that the reply's text must match, if the server can hold it to one."""
    max_tokens: int | None = None
    top_logprobs: int = 0
    """How many candidates of each token to report, if the server can. Streamed replies only."""
    first_s: float | None = None
    """Seconds until the reply's first piece, in place of the backend's own deadline."""
    must_call: bool = False
    """The reply has to hold a call of `tools`, if the server can see to that."""
    parallel: bool | None = None
    """False: one call at most, if the server can see to that. None says nothing of it."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Further fields by OpenAI's names, such as `temperature` or `seed`. They win."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the server says that the model can do. None means that it does not say."""

    tools: bool | None = None
    thinking: bool | None = None
    schema: bool | None = None
    context_tokens: int | None = None
    parameters: int | None = None
    """How many weights the model has."""


@dataclass(frozen=True, slots=True)
class GeneratedToken:
    """One generated token, and what the model could have written in its place.

    `top` holds texts with their natural log probabilities, best first, before any grammar has
    taken its choice away.
    """

    text: str
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str
    tokens: tuple[GeneratedToken, ...] = ()
    """The tokens of `text`, if `BackendRequest.top_logprobs` asked and the server tells them."""


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    """Thinking that the server keeps apart from the reply. It is never spoken."""

    text: str


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A structured call. `id` may be empty; `arguments` is JSON text as it came. If the
    reply was cut, that may be a part of it, or nothing."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A call that the server has begun to run by itself. It is told, and never run here."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ServerResult:
    """The end of the `ServerCall` of the same id. What came of it is the server's own business."""

    id: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the server gives them. `prompt` is the whole prompt, cached or not."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
        )


@dataclass(frozen=True, slots=True)
class ReplyDone:
    """The last chunk of a reply. `length` means that a token limit cut it off."""

    reason: Literal["stop", "length"]
    usage: Usage

    @classmethod
    def of(cls, reason: str | None, usage: Usage, request: BackendRequest) -> ReplyDone:
        """Return the end of the reply to `request`, for which its server gave `reason`.

        Some servers say "stop" or "tool_calls" whatever ended it, so the tokens are counted, too.
        """
        most = request.max_tokens
        cut = reason in _CUT_REASONS or (most is not None and usage.completion >= most)
        return cls("length" if cut else "stop", usage)


Chunk: TypeAlias = TextChunk | ReasoningChunk | NativeCall | ServerCall | ServerResult | ReplyDone


class Backend(Protocol):
    """One server and one model."""

    @property
    def model(self) -> str: ...

    @property
    def address(self) -> str:
        """Where requests go (scheme, host and port), for messages to people."""
        ...

    async def capabilities(self) -> Capabilities:
        """Ask the server what the model can do.

        Raises:
            ModelUnreachable, ModelTimeout: the server did not answer.
            ModelMissing: it does not have the model.
        """
        ...

    def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """Send `request`; the last chunk is always a `ReplyDone`.

        Closing the iterator closes the connection, which stops the server's work.

        Raises:
            ModelError: one of its kinds, before or between chunks.
        """
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class LearnsDialect(Protocol):
    """A backend of an API that its servers speak with differences."""

    dialect: Dialect


@runtime_checkable
class RendersTools(Protocol):
    """A backend whose server can say what the model reads of a request's tools."""

    async def dumps_tools(self, request: BackendRequest) -> bool:
        """Return whether the server prints the tools of `request` in its own language's notation,
        and not as a model was trained to read them. False where it does not say.

        Raises:
            ModelError: the same as `Backend.ask`.
        """
        ...


@runtime_checkable
class KeepsSlots(Protocol):
    """A backend whose servers may keep a prompt for each room."""

    async def take_slot(self) -> None:
        """Have the requests of this backend go to one slot that no other room's go to.

        Nothing happens, and nothing is raised, where the server has one alone, does not keep what
        is in it, or would refuse to be asked for it.
        """
        ...
