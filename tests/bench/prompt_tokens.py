"""Prompt tokens that a real engine evaluates in a conversation of twelve turns with fifty tools.

Run: `python -m tests.bench.prompt_tokens [--turns 12] [--tools 50] [--layouts NAME ...]`.
Needs the 0.5B demo weights (python -m caal_node.weights qwen2.5-coder-0.5b) and xllamacpp. Each
layout has an engine of its own, so that none finds another's prompts in the cache. The counts are
llama.cpp's `timings.prompt_n`; counting_engine.py says what is scripted and what is real. The
engine has the first layer of the weights only, which counts the same (one_layer.py), unless
`--whole` is given.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.weights import QWEN_CODER_05B, present
from tests import fifty_tools
from tests.bench.counting_engine import CountingEngine, Counts
from tests.bench.layouts import LAYOUTS, Setting, opened
from tests.bench.one_layer import write_one_layer
from tests.bench.scripted_day import DAY, Turn
from tests.bench.table import print_table

CONTEXT_TOKENS: Final = 24_576
"""Room for fifty tools as their servers describe them, and for twelve turns behind them."""
ALL_TOOLS: Final = 50
DEFAULT: Final = tuple(LAYOUTS)[:4]
TURN_S: Final = 1_800.0


@dataclass(frozen=True, slots=True)
class Options:
    gguf: Path
    turns: tuple[Turn, ...]
    tools: int
    context: int
    threads: int | None

    def names(self) -> tuple[str, ...]:
        """The tools that the turns need, and others up to the number; all where it is all."""
        needed = [name for turn in self.turns for name, _ in turn.calls]
        others = [tool.name for tool in fifty_tools.tools() if tool.name not in needed]
        return tuple(dict.fromkeys([*needed, *others]))[: max(self.tools, len(set(needed)))]


async def held(name: str, options: Options) -> Counts:
    """One conversation on a fresh engine.

    Raises:
        RuntimeError: a turn did not go by the script, so the counts would be of something else.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with (
            EmbeddedEngine(
                options.gguf,
                ctx=options.context,
                threads=options.threads,
                prompt_cache_mib=0,  # as Ollama: one slot, and what is in it
            ) as engine,
            CountingEngine(engine.base_url, engine.name, options.context) as counting,
            opened(name, Setting(counting, Path(folder), options.names())) as session,
        ):
            for turn in options.turns:
                counting.script.begin(turn)
                async with asyncio.timeout(TURN_S):
                    await session.run(user_input=turn.said)
                wanted, asked = len(turn.calls) + 1, counting.script.asked
                # A layout without tools in its follow-up answers after one round, which is less.
                if not (asked == wanted or (wanted > 2 == asked and not counting.script.offered)):
                    raise RuntimeError(f"{name}: {turn.said!r} took {asked} requests, not {wanted}")
            return counting.counts


async def bench(layouts: list[str], options: Options) -> None:
    rows: list[tuple[object, ...]] = []
    for name in layouts:
        began = time.perf_counter()
        counts = await held(name, options)
        rows.append(
            (
                name,
                counts.cold,
                counts.in_turns,
                counts.cold + counts.in_turns,
                max((read.tokens for read in counts.reads[1:]), default=0),
                counts.reads[0].chars,
                sum(read.chars for read in counts.reads),
                len(counts.reads),
                round(time.perf_counter() - began),
            )
        )
        print(f"{name}: {' '.join(str(read.tokens) for read in counts.reads)}", flush=True)
    tools, model = len(options.names()), QWEN_CODER_05B.key
    print_table(
        f"prompt tokens evaluated, {len(options.turns)} turns, {tools} tools, {model}",
        (
            "layout",
            "cold",
            "in turns",
            "total",
            "worst request",
            "first prompt chars",
            "all prompts chars",
            "requests",
            "took s",
        ),
        rows,
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=len(DAY), choices=range(1, len(DAY) + 1))
    options.add_argument("--tools", type=int, default=ALL_TOOLS)
    options.add_argument("--layouts", nargs="+", default=list(DEFAULT), choices=list(LAYOUTS))
    options.add_argument("--context", type=int, default=CONTEXT_TOKENS)
    # Two threads that wait for each other on a busy machine take a hundred times as long as one.
    options.add_argument("--threads", type=int, help="of the engine; all cores unless given")
    options.add_argument("--whole", action="store_true", help="all layers: an hour")
    given = options.parse_args()
    if (gguf := present(QWEN_CODER_05B)) is None:
        missing = f"python -m caal_node.weights {QWEN_CODER_05B.key}"
        print(f"the weights are not in the cache ({missing}): nothing measured", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        weights = gguf if given.whole else Path(folder) / "one-layer.gguf"
        if not given.whole:
            write_one_layer(gguf, weights)
        asked = Options(weights, DAY[: given.turns], given.tools, given.context, given.threads)
        asyncio.run(bench(given.layouts, asked))
    return 0


if __name__ == "__main__":
    sys.exit(main())
