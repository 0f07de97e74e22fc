"""Stands in front of a real engine: has it read every prompt, counts, and answers by a script.

The engine evaluates each request as it came, for one token, so that its own counts and its own
cache decide; what the model would have said is replaced by the script, so that every client holds
the same conversation. So the script's words count as read in the next request, where an engine
that had written them itself would have kept them; that is the same for every client.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from aiohttp import web

from tests.bench.scripted_day import Turn
from tests.stand_in_model import Asked, Reply, StandInModel

DEADLINE_S: Final = 900.0
"""For the cold prompt of fifty tools on a machine that is busy with other things."""
HELLO: Final = Turn("", (), "Hello.")


@dataclass(frozen=True, slots=True)
class Read:
    """One prompt, as the engine counted it."""

    tokens: int
    """Evaluated: what was not in its cache."""
    cached: int
    chars: int
    """Of messages and tools in the request, as compact JSON."""


@dataclass(slots=True)
class Script:
    """Where the conversation is. What comes before the first turn is answered with a greeting."""

    turn: Turn = HELLO
    turns: int = 0
    asked: int = 0
    """Requests in this turn."""
    offered: tuple[str, ...] = ()
    """Names of the tools in the newest request."""

    def begin(self, turn: Turn) -> None:
        self.turn, self.asked = turn, 0
        self.turns += 1

    def next(self, offered: Iterable[str]) -> Reply:
        self.asked += 1
        self.offered = tuple(offered)
        call_id = f"call_{self.turns}_{self.asked}"
        return self.turn.reply(self.asked - 1, self.offered, call_id)


@dataclass(slots=True)
class Counts:
    reads: list[Read] = field(default_factory=list[Read])

    @property
    def cold(self) -> int:
        """The first prompt: a warm-up where there is one."""
        return self.reads[0].tokens if self.reads else 0

    @property
    def in_turns(self) -> int:
        return sum(read.tokens for read in self.reads[1:])


class CountingEngine(StandInModel):
    """Takes `/v1/chat/completions`; `engine_url` is llama.cpp's server, with `/v1`."""

    def __init__(self, engine_url: str, model: str, context_tokens: int) -> None:
        super().__init__(
            answer=self._scripted, model=model, context_tokens=context_tokens, llama=True
        )
        self.script: Final = Script()
        self.counts: Final = Counts()
        self._engine: Final = httpx2.AsyncClient(
            base_url=engine_url, timeout=DEADLINE_S, trust_env=False
        )

    async def __aexit__(self, *error: Any) -> None:
        await super().__aexit__(*error)
        await self._engine.aclose()

    def _scripted(self, asked: Asked) -> Reply:
        return self.script.next(tool["function"]["name"] for tool in asked.json.get("tools", ()))

    async def _openai_chat(self, request: web.Request) -> web.StreamResponse:
        read = await self._evaluated(self.requests[-1].json)
        self.counts.reads.append(read)
        self.prompt_tokens = read.tokens + read.cached
        return await super()._openai_chat(request)

    async def _evaluated(self, body: dict[str, Any]) -> Read:
        """Raises: httpx2.HTTPStatusError: the engine refused it, the prompt being too long, say."""
        rest = {k: v for k, v in body.items() if k not in ("stream_options", "stream")}
        one = {**rest, "max_tokens": 1, "max_completion_tokens": 1, "cache_prompt": True}
        reply = await self._engine.post("/chat/completions", json=one)
        if reply.is_error:
            raise web.HTTPBadGateway(text=reply.text[:500])
        timings = reply.json()["timings"]
        shown = {"messages": body["messages"], "tools": body.get("tools", [])}
        chars = len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))
        return Read(timings["prompt_n"], timings["cache_n"], chars)
