"""Prompt tokens that a real engine evaluates in a conversation of twelve turns with many tools.

Run: `python -m tests.bench.prompt_tokens [--tools 20 50 100 500] [--layouts NAME ...]
[--script day evening] [--requests]`. Needs the 0.5B demo weights (python -m caal_node.weights
qwen2.5-coder-0.5b) and xllamacpp. Each run has an engine of its own, so that none finds another's
prompts in the cache. The counts are llama.cpp's `timings.prompt_n`; counting_engine.py and
scripted_model.py say what is scripted and what is real. The engine has the first layer of the
weights only, which counts the same (one_layer.py), unless `--whole-weights` is given. With five
hundred schemas in front even that takes minutes; with `--tokenize` the engine only makes tokens.
`--picture FILE.svg` draws the runs (prompt_picture.py). That of docs/discovery.md is
`--tokenize --context 4096 --tools 100 --layouts on-demand livekit-proxy`.

`warm-up` is what is read before the first turn, `in turns` all behind it. `wait s` is modelled: the
tokens that are read from the person's words to the first spoken one, in the longest turn, at
`READ_TOKENS_PER_S`. `told first` are the turns, of those that need tools, in whose first request
every tool that they need could be called already. `missed` are calls of the script that were not
run with their arguments, `lost ids` identifiers that a call needs and the prompt no longer had, and
calls in a prompt without their result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from livekit.agents import llm

from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.weights import QWEN_CODER_05B, present
from tests.bench.counting_engine import CountingEngine, Counts
from tests.bench.layouts import LAYOUTS, Setting, opened
from tests.bench.one_layer import write_one_layer
from tests.bench.prompt_picture import Panel, draw
from tests.bench.scripted_day import SCRIPTS, Turn
from tests.bench.scripted_model import CARRIERS, SEARCHES, Script
from tests.bench.table import print_table
from tests.stand_ins import many_tools

READ_TOKENS_PER_S: Final = 90.0
"""Prompt tokens a second that the modelled wait assumes."""
CONTEXT_TOKENS: Final = 32_768
"""Three quarters of it, a whole prompt, hold fifty tools as their servers describe them, and twelve
turns behind them."""
CONTEXT_A_TOOL: Final = 374
"""Tokens of context for each of more tools: one takes some 210 as its server describes it."""
DEFAULT_TOOLS: Final = (50,)
DEFAULT_LAYOUTS: Final = ("on-demand", "on-demand-text", "whole", "livekit-openai")
_NO_CONTEXT: Final = 512
"""Tokens of an engine that evaluates nothing."""
TURN_S: Final = 1_800.0
PARTS: Final = ("told", "found", "results", "calls", "words", "answers", "tools", "head")
"""What a request's new tokens are, see `prompt_parts`."""
TITLES: Final = {"on-demand": "caal-node", "livekit-proxy": "LiveKit's ToolProxyToolset"}
"""What layouts are called in pictures."""
COLUMNS: Final = (
    "script",
    "tools",
    "layout",
    "warm-up",
    "in turns",
    "longest",
    "wait s",
    "searches",
    "turns without",
    "told first",
    "missed",
    "lost ids",
    "requests",
    "took s",
)


@dataclass(frozen=True, slots=True)
class Run:
    """One conversation to hold."""

    gguf: Path
    script: str
    turns: tuple[Turn, ...]
    tools: int
    layout: str
    context: int
    threads: int | None
    tokenize: bool

    def names(self) -> tuple[str, ...]:
        """The tools that the turns need, and others up to the number."""
        needed = [call.tool for turn in self.turns for call in turn.calls]
        others = [tool.name for tool in many_tools.tools() if tool.name not in needed]
        return tuple(dict.fromkeys([*needed, *others]))[: max(self.tools, len(set(needed)))]


@dataclass(slots=True)
class Outcome:
    counts: Counts
    script: Script
    missed: list[str] = field(default_factory=list[str])

    def row(self, run: Run) -> tuple[object, ...]:
        """Return the figures from `warm-up` to `requests`, see `COLUMNS`."""
        turns = range(1, len(run.turns) + 1)
        need = sum(bool(turn.calls) for turn in run.turns)
        first = sum(number in self.script.told_first for number in turns if _calls(run, number))
        return (
            self.counts.warm_up,
            self.counts.in_turns,
            self.counts.longest,
            max(map(self.counts.before_first_word, turns)) / READ_TOKENS_PER_S,
            len(self.script.searched),
            f"{len(turns) - len(set(self.script.searched))}/{len(turns)}",
            f"{first}/{need}",
            len(self.missed),
            len(self.script.lost_ids),
            len(self.counts.reads),
        )

    def panel(self, run: Run) -> Panel:
        title = f"{TITLES.get(run.layout, run.layout)}: {self.counts.in_turns:,} tokens read anew"
        return Panel(f"{title} in {len(run.turns)} turns, {len(run.names())} tools", self.counts)

    def print_requests(self) -> None:
        """Print each request: its turn, what was answered, its tokens, and what was new in it."""
        for read in self.counts.reads:
            parts = ", ".join(f"{name} {chars}" for name, chars in read.new.items())
            print(f"  {read.turn:2} {read.did:7} {read.tokens:6,} tokens; chars: {parts}")


def _calls(run: Run, turn: int) -> int:
    return len(run.turns[turn - 1].calls)


async def held(run: Run) -> Outcome:
    """One conversation on a fresh engine."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            EmbeddedEngine(
                run.gguf,
                ctx=_NO_CONTEXT if run.tokenize else run.context,
                threads=run.threads,
                prompt_cache_mib=0,  # as Ollama: one slot, and what is in it
            ) as engine,
            CountingEngine(
                engine.base_url, engine.name, run.context, tokenize=run.tokenize
            ) as counting,
            opened(run.layout, Setting(counting, Path(folder), run.names())) as session,
        ):
            outcome = Outcome(counting.counts, counting.script)
            seen = 0
            for turn in run.turns:
                counting.script.begin(turn)
                async with asyncio.timeout(TURN_S):
                    await session.run(user_input=turn.said)
                items = session.history.items
                outcome.missed += not_run(turn, items[seen:])
                seen = len(items)
            return outcome


def not_run(turn: Turn, items: Sequence[llm.ChatItem]) -> list[str]:
    """Return the tools of the turn's calls that LiveKit has not run, and those of other calls.

    An argument may be missing, since by text one that nobody said is left out of a call.
    """
    failed = {
        item.call_id for item in items if isinstance(item, llm.FunctionCallOutput) and item.is_error
    }
    ran = [
        _carried(item.name.rpartition("__")[2], json.loads(item.arguments))
        for item in items
        if isinstance(item, llm.FunctionCall) and item.call_id not in failed
    ]
    missed: list[str] = []
    for call in turn.calls:
        made = [
            (name, arguments)
            for name, arguments in ran
            if name == call.tool and arguments.items() <= call.arguments.items()
        ]
        if made:
            ran.remove(made[0])
        else:
            missed.append(call.tool)
    strange = [name for name, _ in ran if name not in SEARCHES]
    return missed + [f"{name} (for nothing)" for name in strange]


def _carried(name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    inner = CARRIERS.get(name, "")
    if inner not in arguments:
        return name, arguments
    return arguments["name"], arguments[inner]


async def bench(runs: Iterable[Run], *, requests: bool, picture: Path | None) -> bool:
    """Hold every conversation, print the table, and draw it to `picture`; return whether no call
    and no id was lost."""
    panels: list[Panel] = []
    rows: list[tuple[object, ...]] = []
    parts: list[tuple[object, ...]] = []
    well = True
    for run in runs:
        began = time.perf_counter()
        outcome = await held(run)
        took = round(time.perf_counter() - began)
        rows.append((run.script, len(run.names()), run.layout, *outcome.row(run), took))
        panels.append(outcome.panel(run))
        by_part = outcome.counts.by_part()
        what = tuple(by_part.get(name, 0) for name in PARTS)
        parts.append((run.script, len(run.names()), run.layout, *what))
        tokens = " ".join(str(read.tokens) for read in outcome.counts.reads)
        print(f"{run.script}, {run.tools} tools, {run.layout}: {tokens}", flush=True)
        if requests:
            outcome.print_requests()
        if lost := [*outcome.missed, *outcome.script.lost_ids]:
            well = False
            print(f"  lost: {', '.join(lost)}", flush=True)
    print_table(
        f"prompt tokens evaluated, {QWEN_CODER_05B.key}; waits at {READ_TOKENS_PER_S:.0f} tokens/s",
        COLUMNS,
        rows,
    )
    if picture is not None:
        await asyncio.to_thread(picture.write_text, draw(panels), encoding="utf-8")
    title = "what they are, in turns; each request's tokens by its new characters"
    print_table(title, (*COLUMNS[:3], *PARTS), parts)
    return well


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    longest = max(map(len, SCRIPTS.values()))
    options.add_argument("--turns", type=int, default=longest, choices=range(1, longest + 1))
    options.add_argument("--tools", type=int, nargs="+", default=list(DEFAULT_TOOLS))
    options.add_argument(
        "--layouts", nargs="+", default=list(DEFAULT_LAYOUTS), choices=list(LAYOUTS)
    )
    options.add_argument("--script", nargs="+", default=["day"], choices=list(SCRIPTS))
    options.add_argument("--requests", action="store_true", help="what each request's tokens are")
    options.add_argument("--picture", type=Path, help="draw the runs to this SVG")
    options.add_argument("--context", type=int, help="tokens; as many as the tools need")
    # Two threads that wait for each other on a busy machine take a hundred times as long as one.
    options.add_argument("--threads", type=int, help="of the engine; all cores unless given")
    options.add_argument("--tokenize", action="store_true", help="evaluate nothing, as for 500")
    options.add_argument("--whole-weights", action="store_true", help="all layers: an hour")
    given = options.parse_args()
    if (gguf := present(QWEN_CODER_05B)) is None:
        missing = f"python -m caal_node.weights {QWEN_CODER_05B.key}"
        print(f"the weights are not in the cache ({missing}): nothing measured", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        weights = gguf if given.whole_weights else Path(folder) / "one-layer.gguf"
        if not given.whole_weights:
            write_one_layer(gguf, weights)
        runs = [
            Run(
                weights,
                script,
                SCRIPTS[script][: given.turns],
                tools,
                layout,
                given.context or max(CONTEXT_TOKENS, tools * CONTEXT_A_TOOL),
                given.threads,
                given.tokenize,
            )
            for script in given.script
            for tools in given.tools
            for layout in given.layouts
        ]
        return 0 if asyncio.run(bench(runs, requests=given.requests, picture=given.picture)) else 1


if __name__ == "__main__":
    sys.exit(main())
