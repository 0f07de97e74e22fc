"""Stands in front of a real engine: has it read every prompt, counts, and answers by a script.

The engine evaluates each request as it came, for one token, so that its own counts and its own
cache decide; what the model would have said is replaced by the script, so that every client holds
the same conversation. So the script's words count as read in the next request, where an engine
that had written them itself would have kept them; that is the same for every client.

Where a prompt is too long to be evaluated in any bearable time, the engine only makes its tokens
(`tokenize`): those that the prompt before did not begin with are what a cache of one prompt would
have had evaluated. In the bench with fifty tools both ways give the same counts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import httpx2
from aiohttp import web

from tests.bench.prompt_parts import new_parts
from tests.bench.scripted_model import Did, Script
from tests.stand_ins.stand_in_model import Asked, Reply, StandInModel

DEADLINE_S: Final = 900.0
"""For the cold prompt of fifty tools on a machine that is busy with other things."""
_NO_PROMPT: Final = frozenset(
    {"stream", "stream_options", "response_format", "logprobs", "top_logprobs"}
)
"""Fields of a request that change its reply and no token of its prompt."""


@dataclass(frozen=True, slots=True)
class Read:
    """One prompt, as the engine counted it."""

    turn: int
    """From 1 on; 0 is what comes before the first turn."""
    did: Did
    """What was answered."""
    tokens: int
    """Evaluated: what was not in its cache."""
    cached: int
    chars: int
    """Of messages and tools in the request, as compact JSON."""
    new: Mapping[str, int]
    """Characters of what the request before did not have, by what they are."""

    @property
    def length(self) -> int:
        """Tokens of the whole prompt."""
        return self.cached + self.tokens

    @property
    def tools(self) -> int:
        """The evaluated tokens that tell of tools, or show what a search has found. They are
        shared out by characters."""
        own = self.new.get("told", 0) + self.new.get("found", 0)
        return round(self.tokens * own / max(1, sum(self.new.values())))


@dataclass(slots=True)
class Counts:
    reads: list[Read] = field(default_factory=list[Read])

    @property
    def warm_up(self) -> int:
        """Tokens that were read before the first turn."""
        return sum(read.tokens for read in self.reads if not read.turn)

    @property
    def in_turns(self) -> int:
        return sum(read.tokens for read in self.reads if read.turn)

    @property
    def longest(self) -> int:
        """Tokens of the longest request of a turn."""
        return max((read.tokens for read in self.reads if read.turn), default=0)

    @property
    def cuts(self) -> tuple[int, ...]:
        """The places in `reads` of prompts that are shorter than the one before: a window only
        grows until it is cut."""
        return tuple(
            at
            for at, (before, read) in enumerate(pairwise(self.reads), 1)
            if read.length < before.length
        )

    def by_part(self) -> Mapping[str, int]:
        """Return the tokens that were read in turns by what they are, each request's being shared
        out by characters."""
        parts: defaultdict[str, float] = defaultdict(float)
        for read in self.reads:
            chars = sum(read.new.values())
            for name, own in read.new.items() if read.turn else ():
                parts[name] += read.tokens * own / chars
        return {name: round(tokens) for name, tokens in parts.items()}

    def before_first_word(self, turn: int) -> int:
        """Return the tokens that are read from the person's words to the first spoken ones."""
        total = 0
        for read in self.reads:
            if read.turn == turn:
                total += read.tokens
                if read.did == "answer":
                    break
        return total


class CountingEngine(StandInModel):
    """Takes `/v1/chat/completions`; `engine_url` is llama.cpp's server, with `/v1`."""

    def __init__(
        self, engine_url: str, model: str, context_tokens: int, *, tokenize: bool = False
    ) -> None:
        super().__init__(
            answer=self._scripted, model=model, context_tokens=context_tokens, llama=True
        )
        self.script: Final = Script()
        self.counts: Final = Counts()
        self._tokenize: Final = tokenize
        self._tokens: list[int] = []
        self._before: Mapping[str, Any] = {}
        self._engine: Final = httpx2.AsyncClient(
            base_url=engine_url, timeout=DEADLINE_S, trust_env=False
        )

    async def __aexit__(self, *error: Any) -> None:
        await super().__aexit__(*error)
        await self._engine.aclose()

    def _scripted(self, asked: Asked) -> Reply:
        return self.script.next(asked.json)

    async def _openai_chat(self, request: web.Request) -> web.StreamResponse:
        body = self.requests[-1].json
        tokens, cached = await self._evaluated(body)
        self.prompt_tokens = tokens + cached
        # The script is asked when the reply begins, and says by then what the request was for.
        turn, at = self.script.turns, len(self.counts.reads)
        shown = {"messages": body["messages"], "tools": body.get("tools", [])}
        chars = len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))
        parts = new_parts(self._before, body)
        self._before = body
        self.counts.reads.append(Read(turn, "warm-up", tokens, cached, chars, parts))
        response = await super()._openai_chat(request)
        self.counts.reads[at] = Read(turn, self.script.did, tokens, cached, chars, parts)
        return response

    async def _evaluated(self, body: dict[str, Any]) -> tuple[int, int]:
        """Return the tokens that the engine evaluated, and those that it had in its cache.

        Raises:
            aiohttp.web.HTTPBadGateway: it refused the request, the prompt being too long, say.
        """
        rest = {name: value for name, value in body.items() if name not in _NO_PROMPT}
        if self._tokenize:
            return await self._tokenized(rest)
        one = {**rest, "max_tokens": 1, "max_completion_tokens": 1, "cache_prompt": True}
        timings = (await self._asked("/chat/completions", one))["timings"]
        return timings["prompt_n"], timings["cache_n"]

    async def _tokenized(self, body: dict[str, Any]) -> tuple[int, int]:
        prompt = (await self._asked("../apply-template", body))["prompt"]
        asked = {"content": prompt, "add_special": True, "parse_special": True}
        tokens: list[int] = (await self._asked("../tokenize", asked))["tokens"]
        pairs = enumerate(zip(self._tokens, tokens, strict=False))
        most = min(len(self._tokens), len(tokens) - 1)  # the last one is always evaluated
        cached = min(most, next((at for at, (old, new) in pairs if old != new), most))
        self._tokens = tokens
        return len(tokens) - cached, cached

    async def _asked(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        reply = await self._engine.post(path, json=body)
        if reply.is_error:
            raise web.HTTPBadGateway(text=reply.text[:500])
        return reply.json()
