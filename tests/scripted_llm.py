"""A model that says what a test wrote down: one entry a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from livekit.agents import llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = "c1"


Reply: TypeAlias = str | Sequence[Call]


class ScriptedLLM(llm.LLM):
    """Gives `replies` in turn; `on_request` is called before each."""

    def __init__(self, *replies: Reply, on_request: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.replies = list(replies)
        self.on_request = on_request

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        **_: Any,
    ) -> llm.LLMStream:
        self.on_request()
        reply = self.replies.pop(0)
        return _Scripted(
            self, reply, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options
        )


class _Scripted(llm.LLMStream):
    def __init__(self, of: ScriptedLLM, reply: Reply, **options: Any) -> None:
        self._reply = reply
        super().__init__(of, **options)

    async def _run(self) -> None:
        if isinstance(self._reply, str):
            delta = llm.ChoiceDelta(role="assistant", content=self._reply)
        else:
            calls = [
                llm.FunctionToolCall(
                    name=call.name, arguments=json.dumps(call.arguments), call_id=call.call_id
                )
                for call in self._reply
            ]
            delta = llm.ChoiceDelta(role="assistant", tool_calls=calls)
        self._event_ch.send_nowait(llm.ChatChunk(id="scripted", delta=delta))
