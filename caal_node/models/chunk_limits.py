"""Holds the replies of any other LiveKit model to the limits that this project's own have."""

# pyright: reportUnknownMemberType=false, reportMissingTypeArgument=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# LiveKit leaves the event types of its models open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager

from livekit.agents import llm

from caal_node.models.chat_context import call_delta
from caal_node.models.reply_limits import ARGUMENTS_CHARS_MAX, NAME_CHARS_MAX, ReplyLimits, too_long
from caal_node.reply_parser.escaping import unescape_markers


@asynccontextmanager
async def limited(
    stream: llm.LLMStream, calls: int
) -> AsyncGenerator[AsyncIterable[llm.ChatChunk]]:
    """Enter `stream`, and give its chunks until one of the limits is reached."""
    async with stream as chunks:
        yield _within(chunks, ReplyLimits(calls))


async def _within(
    chunks: AsyncIterable[llm.ChatChunk], limits: ReplyLimits
) -> AsyncGenerator[llm.ChatChunk]:
    async for chunk in chunks:
        if (delta := chunk.delta) is not None:
            if delta.content:
                delta.content = limits.speech(delta.content)
            made = [call for call in delta.tool_calls if limits.call(call.name[:NAME_CHARS_MAX])]
            delta.tool_calls = list(map(_for_the_tool, made))
        yield chunk
        if limits.reached:
            break
        await asyncio.sleep(0)
    if limits.note is not None:
        told = json.dumps(limits.note.problem)
        yield llm.ChatChunk(id="caal_limits", delta=call_delta(limits.note.name, told))


def _for_the_tool(call: llm.FunctionToolCall) -> llm.FunctionToolCall:
    size = len(call.arguments)
    if len(call.name) > NAME_CHARS_MAX:
        call.name = call.name[:NAME_CHARS_MAX]
    if size > ARGUMENTS_CHARS_MAX:
        # No object, so that LiveKit runs nothing, and answers it with these words.
        call.arguments = json.dumps(too_long(size))
    call.arguments = unescape_markers(call.arguments)
    return call
