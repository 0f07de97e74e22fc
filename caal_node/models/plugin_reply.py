"""Reads the replies of any other LiveKit model as people may hear them.

What is a call in its text is a call, what is data or a marker is not spoken (`SpokenReplyParser`),
and the limits that this project's own models have hold for it. It is asked once: a call that
nobody can read goes back to it in the next round. `LLM.over` gives such a model the rest.
"""

# pyright: reportUnknownMemberType=false, reportMissingTypeArgument=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# LiveKit leaves the event types of its models open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import asynccontextmanager

from livekit.agents import llm

from caal_node.models.chat_context import call_delta
from caal_node.models.llm import event_delta
from caal_node.models.question import Question
from caal_node.models.reply_limits import (
    ARGUMENTS_CHARS_MAX,
    NAME_CHARS_MAX,
    ReplyLimits,
    calls_left,
    too_long,
)
from caal_node.reply_parser import Event, SpokenReplyParser, TextDelta, UnspokenData
from caal_node.reply_parser.escaping import unescape_markers


@asynccontextmanager
async def as_heard(
    stream: llm.LLMStream, question: Question
) -> AsyncGenerator[AsyncIterable[llm.ChatChunk]]:
    """Enter `stream`, the reply to `question`, and give its chunks until a limit is reached."""
    async with stream as chunks:
        yield _ReplyText(question).read(chunks)


class _ReplyText:
    """One reply's text, and what was read in it."""

    def __init__(self, question: Question) -> None:
        self._tools = question.tools.schemas
        self._may_call = bool(self._tools) and question.may_call and not question.speech_only
        self._limits = ReplyLimits(calls_left(question.turn))
        self._parser = SpokenReplyParser(self._tools)
        self._sent: set[tuple[str, str]] = set()

    async def read(self, chunks: AsyncIterable[llm.ChatChunk]) -> AsyncGenerator[llm.ChatChunk]:
        limits, reply_id = self._limits, "caal_limits"
        async for chunk in chunks:
            if (delta := chunk.delta) is not None:
                reply_id = chunk.id
                text, delta.content = delta.content, None
                events = self._parser.feed(text) if text else []
                if delta.tool_calls:
                    # What is written in front of a call is heard in front of it.
                    events += self._rest(data=False)
                for read in self._deltas(events, len(text or "")):
                    yield llm.ChatChunk(id=reply_id, delta=read)
                made = [c for c in map(_for_the_tool, delta.tool_calls) if self._is_new(c)]
                delta.tool_calls = [call for call in made if limits.call(call.name)]
            if delta is None or delta.tool_calls or delta.extra or chunk.usage:
                yield chunk
            if limits.reached:
                break
            await asyncio.sleep(0)
        for read in self._deltas(self._rest(data=True)):
            yield llm.ChatChunk(id=reply_id, delta=read)
        if limits.note is not None:
            told = json.dumps(limits.note.problem)
            yield llm.ChatChunk(id=reply_id, delta=call_delta(limits.note.name, told))

    def _is_new(self, call: llm.FunctionToolCall) -> bool:
        """Return whether this reply, its text included, has not made this very call before."""
        try:
            read = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return True
        made = call.name, json.dumps(read, ensure_ascii=False, separators=(",", ":"))
        if made in self._sent:
            return False
        self._sent.add(made)
        return True

    def _rest(self, *, data: bool) -> list[Event]:
        """Return what the parser has held back; `data` says whether it is told of data."""
        events = self._parser.finish()
        self._parser = SpokenReplyParser(self._tools)
        return [event for event in events if data or not isinstance(event, UnspokenData)]

    def _deltas(self, events: list[Event], chars: int = 0) -> Iterator[llm.ChoiceDelta]:
        for event in self._limits.admit(events, read=chars):
            if not (self._may_call or isinstance(event, TextDelta)):
                continue
            if (delta := event_delta(event, self._sent)) is not None:
                yield delta


def _for_the_tool(call: llm.FunctionToolCall) -> llm.FunctionToolCall:
    size = len(call.arguments)
    if len(call.name) > NAME_CHARS_MAX:
        call.name = call.name[:NAME_CHARS_MAX]
    if size > ARGUMENTS_CHARS_MAX:
        # No object, so that LiveKit runs nothing, and answers it with these words.
        call.arguments = json.dumps(too_long(size))
    call.arguments = unescape_markers(call.arguments)
    return call
