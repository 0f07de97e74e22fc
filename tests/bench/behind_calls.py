"""How often a small model writes on behind its call, and what: a made-up result, or an answer.

Run: `python -m tests.bench.behind_calls [--gguf FILE] [--limit N] [--ways native jsonl xml]`.
By default the embedded engine with the 0.5B demo weights (python -m caal_node.weights
qwen2.5-coder-0.5b). Temperature 0. The replies are those of the first request alone, streamed and
unconstrained, read to their end. `calling` counts replies with a call, readable or not; `behind`
those of them that go on behind it in words; `results` those in which what goes on is, or begins
with, a result that the model made up; `again` those with another call behind the words. `share`
is how much of the calling replies' text the node does not wait for, as it ends them there.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Final

from caal_node.models.backends.base import Backend, NativeCall, TextChunk
from caal_node.models.model_preparation import warm
from caal_node.models.strategies import CallStrategy, NativeStrategy, TextProtocolStrategy
from caal_node.reply_parser import BrokenCall, TextDelta, ToolCallEnd, UnknownCall
from tests.bench.asked_ways import Setting
from tests.bench.small_models import served
from tests.bench.spoken_requests import load
from tests.bench.table import print_table

WAYS: Final[dict[str, CallStrategy]] = {
    "native": NativeStrategy(),
    "jsonl": TextProtocolStrategy(),
    "xml": TextProtocolStrategy("xml"),
}
COLUMNS: Final = ("way", "replies", "calling", "behind", "results", "again", "share")
_CALLS: Final = (ToolCallEnd, BrokenCall, UnknownCall)


class Tally:
    """What the replies of one way held."""

    def __init__(self) -> None:
        self.replies = self.calling = self.behind = self.results = self.again = 0
        self.chars = self.chars_behind = 0

    async def add(self, backend: Backend, way: CallStrategy, setting: Setting, say: str) -> None:
        """Ask once, and read the reply to its end, as if nothing ended it."""
        question = setting.question(say)
        reader = way.reader(question)
        called = behind = again = False
        chars = until_over = 0
        async with aclosing(backend.ask(way.request(question))) as chunks:
            async for chunk in chunks:
                chars += len(chunk.text) if isinstance(chunk, TextChunk) else 0
                for event in reader.feed(chunk):
                    again = again or (behind and isinstance(event, _CALLS))
                    called = called or isinstance(event, _CALLS)
                    words = isinstance(event, TextDelta) and bool(event.text.strip())
                    behind = behind or (called and words)
                called = called or isinstance(chunk, NativeCall)
                if not (behind or reader.invented_result):
                    until_over = chars
        self.replies += 1
        if called:
            self.calling += 1
            self.behind += behind
            self.results += reader.invented_result
            self.again += again
            self.chars += chars
            self.chars_behind += chars - until_over

    @property
    def share(self) -> str:
        return f"{100 * self.chars_behind / self.chars:.0f} %" if self.chars else "-"


async def run(given: argparse.Namespace) -> None:
    requests = load("measured").first(given.limit)
    rows: list[tuple[object, ...]] = []
    for name in given.ways:
        tally = Tally()
        async with served(given) as (backend, url, model, clock):
            setting = Setting(backend, url, model, requests, clock)
            await warm(backend, WAYS[name].request(setting.question("hello")))
            for request in requests.requests:
                await tally.add(backend, WAYS[name], setting, request.say)
        t = tally
        rows.append((name, t.replies, t.calling, t.behind, t.results, t.again, t.share))
        print_table(f"{len(requests.requests)} requests, {model}", COLUMNS, rows)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"))
    parser.add_argument("--gguf", type=Path, help="other weights for the embedded engine")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--limit", type=int, help="requests, spread over all kinds")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(run(options()))
