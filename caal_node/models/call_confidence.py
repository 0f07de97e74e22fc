"""Reads off a reply how likely each of its calls is what the person wants.

The signals are the odds of the call's tokens, where the server tells them, what of its arguments
was said, and whether the request's words fit the tool. `caal_node/grounding/confidence.py` makes a
probability of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from caal_node.grounding.confidence import CallSignals, confidence_of
from caal_node.models.backends.base import Chunk, GeneratedToken, TextChunk
from caal_node.models.question import Question
from caal_node.models.strategies.evidence import Evidence
from caal_node.models.strategies.json_reply import LogprobGate
from caal_node.models.strategies.tool_relevance import relevance_of
from caal_node.reply_parser import Event, ToolCallEnd

TOKENS_MAX: Final = 4096
"""Tokens of a reply that are kept; four times as many as a reply may have."""
ITEMS_MAX: Final = 32
"""Items at the conversation's end in which values are looked for: some eight turns."""
TOOLS_MAX: Final = 200
"""Tools up to which their words are compared with the request; more would hold the loop for longer
than an audio frame."""
VALUES_MAX: Final = 64
"""Values of one call that are looked up in its text."""


class CallConfidence:
    """Judges the calls of one reply to `question`."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._gate = LogprobGate()
        self._tokens: list[GeneratedToken] = []
        self._read = 0
        """Tokens that belong to calls which were judged already."""
        self._evidence: Evidence | None = None

    def see(self, chunk: Chunk) -> None:
        """Take the next chunk of the reply, before its events are judged."""
        if isinstance(chunk, TextChunk) and chunk.tokens and len(self._tokens) < TOKENS_MAX:
            self._gate.see(chunk.tokens)
            self._tokens += chunk.tokens

    def judged(self, events: Sequence[Event]) -> list[Event]:
        """Return `events`, each finished call with its `confidence`."""
        return [self._judged(e) if isinstance(e, ToolCallEnd) else e for e in events]

    def _judged(self, call: ToolCallEnd) -> ToolCallEnd:
        return replace(call, confidence=round(confidence_of(self.signals(call)), 3))

    def signals(self, call: ToolCallEnd) -> CallSignals:
        """Return what is known of the reply's next call. Each call is asked about once."""
        if self._evidence is None:
            self._evidence = Evidence(self._question.conversation[-ITEMS_MAX:])
        tools = self._question.tools
        schema = next((t for t in tools.schemas if t["function"]["name"] == call.name), None)
        said = 1.0 if schema is None else self._evidence.share(schema, call.arguments)
        name, value = self._likelihoods(call)
        return CallSignals(
            said,
            self._fit(call.name, self._evidence.request),
            odds=self._gate.margin,
            name=name,
            value=value,
        )

    def _fit(self, name: str, request: str) -> float:
        """Return how well the request's words fit the tool, as a share of the best one's fit."""
        tools = self._question.tools
        if len(tools.schemas) > TOOLS_MAX:
            return 1.0
        scores = relevance_of(tools).scores(request)
        best = max(scores.values(), default=0.0)
        return scores.get(name, 0.0) / best if best > 0 else 0.0

    def _likelihoods(self, call: ToolCallEnd) -> tuple[float | None, float | None]:
        """Return the log probabilities of the unlikeliest tokens of the name and of the values."""
        tokens = self._tokens[self._read :]
        text = "".join(token.text for token in tokens)
        start = text.find(call.name)
        if start < 0:
            return None, None
        behind = start + len(call.name)
        name = min(_of_span(tokens, start, behind), default=None)
        lowest: list[float] = []
        for written in _written(call.arguments):
            at = text.find(written, behind)
            if at >= 0:
                lowest += _of_span(tokens, at, at + len(written))
        self._read += sum(1 for _ in _before(tokens, behind))
        return name, min(lowest, default=None)


def _written(arguments: Any) -> Iterator[str]:
    """Yield the values as a reply has them, without the quotes around texts."""
    values: list[Any] = [arguments]
    for each in islice(values, VALUES_MAX):  # the list grows meanwhile
        if isinstance(each, dict):
            values += each.values()
        elif isinstance(each, list):
            values += each
        elif isinstance(each, str):
            yield json.dumps(each, ensure_ascii=False)[1:-1]
        else:
            yield json.dumps(each)


def _before(tokens: Sequence[GeneratedToken], end: int) -> Iterator[GeneratedToken]:
    at = 0
    for token in tokens:
        at += len(token.text)
        if at > end:
            return
        yield token


def _of_span(tokens: Sequence[GeneratedToken], start: int, end: int) -> Iterator[float]:
    """Yield the log probability of each token that has text between the two positions."""
    at = 0
    for token in tokens:
        following = at + len(token.text)
        if at < end and following > start and token.top:
            # What is not among the candidates is less likely than the last one of them.
            floor = token.top[-1][1]
            yield next((logprob for text, logprob in token.top if text == token.text), floor)
        at = following
