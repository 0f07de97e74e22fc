"""What one server takes of OpenAI's API, learnt from what it refuses.

Servers that call themselves compatible refuse fields that others need, each in words of its own
(as reported in public issues): api.openai.com "Unrecognized request argument supplied: x" and
"Unsupported parameter: 'x' is not supported with this model"; Mistral 422 with `extra_forbidden`
and the field in `loc`; Groq "property 'x' is unsupported, did you mean 'y'?"; Google a list with
`Unknown name "x": Cannot find field`; xAI "Argument not supported on this model: x", in camel case;
vLLM a `literal_error` for a value; Ollama `think value "medium" is not supported for this model`.
A field that is refused is left out from then on, and what was asked is asked again without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

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
