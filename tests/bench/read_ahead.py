"""Seconds from the end of speech to a reply's first token, with the words read in advance or not.

Run: `python -m tests.bench.read_ahead [--llama] [--ollama] [--times 2]`; both servers unless one is
named, four minutes each. Needs the 0.5B demo weights, xllamacpp, and an `ollama` that
`.ci/build-ollama` has built. Both run on one thread.

A person speaks 150 words a minute, and each word is heard 0.3 s after it was said, as is the last
one. `pending` tokens stand in front of the words, in an answer that the server has not read yet.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from livekit.agents import AgentSession

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import AssistantItem, Item, SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import Backend, ReplyDone
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.llm import LLM
from caal_node.models.question import Question
from caal_node.room.read_ahead import ReadAhead
from caal_node.tools.table import ToolTable
from caal_node.weights import QWEN_CODER_05B, present
from tests.bench.several_rooms import TOOLS, specs
from tests.bench.small_models import SLOW
from tests.bench.table import print_table
from tests.stand_ins import llama_server, ollama_server

CONTEXT_TOKENS: Final = 8_192
WORD_S: Final = 0.4
HEARD_S: Final = 0.3
WORDS: Final = (3, 10, 20, 40)
SAID: Final = """\
could you please tell me what the weather is going to be like tomorrow in the
afternoon because I want to walk to the lake with the children and I would rather not get wet so
should we leave early or wait until later""".split()  # noqa: SIM905 - a sentence
SHORT_ANSWER: Final = "You have four entries today."
LONG_ANSWER: Final = f"""\
{SHORT_ANSWER} The first is the quarterly plan with Anna Keller at half past
nine in the big meeting room, then lunch with Miller and Sons at Lake Street twelve from noon until
a quarter past one, after that a call about the garden with the people who bring the new trees at
three in the afternoon, which may take longer than planned because they also want to talk about the
fence, and at last the dentist at half past five, for which you should leave the office at five at
the latest. Two of them are not confirmed yet, namely lunch and the call, and Anna has asked whether
you can bring the figures of the last quarter on paper, and the plan of the new rooms."""
COLUMNS: Final = ("server", "pending", "words", "without s", "read ahead s", "requests")


class Talk:
    """A conversation in which one question was asked before."""

    def __init__(self, backend: Backend) -> None:
        self.model: Final = LLM(backend=backend, native_tools=True)
        table = ToolTable(specs(()))
        assert len(table) == TOOLS
        self._tools: Final = table.prompt_tools
        self.requests = 0

    def question(self, *talk: Item) -> Question:
        head = SystemItem(read("system.md")), UserItem("What is on my calendar today?")
        return Question((*head, *talk), PromptTools(self._tools.schemas), max_tokens=2)

    async def have_read(self, question: Question) -> None:
        self.requests += 1
        await self.model.read_ahead(question)

    async def first_token_s(self, question: Question) -> float:
        strategy = self.model.retry_policy.first_strategy(question)
        began, found = time.perf_counter(), 0.0
        async with aclosing(self.model.backend.ask(strategy.request(question))) as chunks:
            async for chunk in chunks:
                found = found or time.perf_counter() - began
                if isinstance(chunk, ReplyDone):
                    break
        return found


@dataclass(frozen=True, slots=True)
class Words:
    """Has words read behind an answer."""

    talk: Talk
    answer: str

    async def read(self, words: str) -> None:
        await self.talk.have_read(self.talk.question(AssistantItem(self.answer), UserItem(words)))

    def is_cut_behind(self, answer: str) -> bool:
        return False


async def measured(talk: Talk, answer: str, count: int, *, ahead: bool) -> float:
    """Speak `count` words, and return the seconds to the first token of the reply."""
    if answer == SHORT_ANSWER:  # the server has read it, but none of the words
        await talk.have_read(talk.question(AssistantItem(answer), UserItem("-")))
    else:
        await talk.have_read(talk.question())
    talk.requests = 0
    said = SAID[:count]

    if ahead:
        reading = ReadAhead(Words(talk, answer), AgentSession[Any](vad=None))
        await asyncio.sleep(HEARD_S)
        for heard in range(1, count + 1):
            await asyncio.sleep(WORD_S)
            reading.heard(" ".join(said[:heard]), is_final=heard == count)
        reading.request_begins()
        last = talk.question(AssistantItem(answer), UserItem(" ".join(said)))
        found = await talk.first_token_s(last)
        await reading.aclose()
        return found
    return await talk.first_token_s(talk.question(AssistantItem(answer), UserItem(" ".join(said))))


async def bench(server: str, backend: Backend, times: int) -> list[tuple[object, ...]]:
    talk = Talk(backend)
    rows: list[tuple[object, ...]] = []
    try:
        for answer, count in itertools.product((SHORT_ANSWER, LONG_ANSWER), WORDS):
            without = [await measured(talk, answer, count, ahead=False) for _ in range(times)]
            with_it = [await measured(talk, answer, count, ahead=True) for _ in range(times)]
            pending = 0 if answer == SHORT_ANSWER else len(LONG_ANSWER) // 4
            rows.append((server, pending, count, median(without), median(with_it), talk.requests))
            print(*rows[-1], without, with_it, flush=True)
    finally:
        await talk.model.aclose()
    return rows


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--llama", action="store_true")
    options.add_argument("--ollama", action="store_true")
    options.add_argument("--times", type=int, default=2)
    given = options.parse_args()
    if (gguf := present(QWEN_CODER_05B)) is None:
        missing = f"python -m caal_node.weights {QWEN_CODER_05B.key}"
        print(f"the weights are not in the cache ({missing}): nothing measured", file=sys.stderr)
        return 1
    both = given.llama == given.ollama
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        if both or given.llama:
            address = servers.enter_context(
                llama_server.running(gguf, context_tokens=CONTEXT_TOKENS)
            )
            asked: Backend = OpenAIBackend("any", base_url=address, deadlines=SLOW)
            rows += asyncio.run(bench("llama.cpp", asked, given.times))
            servers.pop_all().close()
        if both or given.ollama:
            if (binary := ollama_server.find_ollama()) is None:
                raise FileNotFoundError("no ollama: .ci/build-ollama builds one")
            ollama = servers.enter_context(ollama_server.running(binary, Path(folder)))
            name = ollama.create("whole", gguf)
            asked = OllamaBackend(
                name,
                host=ollama.url,
                num_ctx=CONTEXT_TOKENS,
                options={"num_thread": 1},
                deadlines=SLOW,
            )
            rows += asyncio.run(bench("Ollama", asked, given.times))
    print_table(f"seconds to the first token, {QWEN_CODER_05B.key}, one thread", COLUMNS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
