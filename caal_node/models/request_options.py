"""What LiveKit's `chat` may ask for beside the conversation, and what it means for a `Question`.

The names are those of LiveKit's plugins: `tool_choice`, `parallel_tool_calls`, and `extra_kwargs`,
which holds fields of OpenAI's requests.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# LiveKit's classes leave the types of what they hold open.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from livekit.agents import APIConnectOptions, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, NotGivenOr
from livekit.agents.utils import is_given

from caal_node.models.question import Question

_LIMITS: Final = ("max_tokens", "max_completion_tokens")
_HTTP_ONLY: Final = ("extra_headers", "extra_query", "timeout")
"""Arguments of OpenAI's Python client that are no part of a request's body."""


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """What every request of a model is asked with, where `chat` gives nothing else."""

    max_tokens: int
    tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN
    parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN
    fields: dict[str, Any] = field(default_factory=dict[str, Any])

    def updated(
        self,
        max_tokens: NotGivenOr[int],
        tool_choice: NotGivenOr[llm.ToolChoice],
        parallel_tool_calls: NotGivenOr[bool],
        fields: NotGivenOr[Mapping[str, Any]],
    ) -> RequestOptions:
        """Return these options with those that are given in their place."""
        return RequestOptions(
            max_tokens if is_given(max_tokens) else self.max_tokens,
            tool_choice if is_given(tool_choice) else self.tool_choice,
            parallel_tool_calls if is_given(parallel_tool_calls) else self.parallel_tool_calls,
            dict(fields if is_given(fields) else self.fields),
        )

    def with_fields(self, fields: Mapping[str, Any]) -> RequestOptions:
        """Return these options with `fields` beside their own; `extra_body` is fields as well."""
        both = {**self.fields, **fields}
        body: Mapping[str, Any] = both.pop("extra_body", {})
        return replace(self, fields={**both, **body})

    def with_field(self, name: str, value: Any) -> RequestOptions:
        return self.with_fields({name: value})

    def applied(self, question: Question) -> Question:
        """Return `question` as it is asked with these options.

        Raises:
            ValueError: the tool that has to be called is none of the question's, or there is a
                field that cannot be sent.
        """
        fields = dict(self.fields)
        if unfit := [name for name in _HTTP_ONLY if name in fields]:
            raise ValueError(f"extra_kwargs: {unfit[0]} cannot be sent; leave it out")
        limits = [limit for name in _LIMITS if (limit := fields.pop(name, None)) is not None]
        most = limits[0] if limits else question.max_tokens or self.max_tokens
        parallel = self.parallel_tool_calls if is_given(self.parallel_tool_calls) else None
        question = replace(question, fields=fields, max_tokens=most, parallel=parallel)
        return _with_choice(question, self.tool_choice)


def _with_choice(question: Question, choice: NotGivenOr[llm.ToolChoice]) -> Question:
    """Return `question` with LiveKit's `tool_choice`. Without tools it means nothing."""
    if not is_given(choice) or choice == "auto" or not (question.tools and question.may_call):
        return question
    if choice == "none":
        return replace(question, may_call=False)
    if choice == "required":
        return replace(question, must_call=True)
    name = choice["function"]["name"]
    # A named tool is the only one that is offered: every server that has `required` keeps to that.
    only = question.tools.only([name])
    if not only:
        known = ", ".join(question.tools.names)
        raise ValueError(f"tool_choice: there is no tool {name!r}; there are: {known}")
    return replace(question, tools=only, head=None, must_call=True)


def given_timeout(options: APIConnectOptions) -> float | None:
    """Return the time-out that somebody gave, in seconds; None where nobody gave any options.

    By LiveKit's default, 10 s, a local model may not even be loaded.
    """
    return None if options is DEFAULT_API_CONNECT_OPTIONS else options.timeout
