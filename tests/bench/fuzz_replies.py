"""Replies that nobody would write: does any raise, speak a marker, or depend on its chunks?

    python -m tests.bench.fuzz_replies [COUNT] [--seed SEED] [--minutes M]

Each reply is made of the project's own examples (and of the peers' collection, where it lies
beside the checkout) by seeded mutations: spliced, cut, doubled, swapped, truncated, with markers
of every format and odd characters put in, nested in each other. Of each is asked:

- raises: does reading it raise, or does anything it gives break the rules of the events?
- marker: is there a marker in what is spoken? (`MARKERS.strip`: every opener, closer and stray
  of every format, every think marker, any `<|...|>` and any tag of a namespace that only calls
  use. Openers that are ordinary words without a call behind them, as `<user>`, are none.)
- chunks: do random chunks give other events than the whole, neighbouring deltas joined?
- again: is the spoken text, read as a reply, other text, or even a call? (A marker's or a call's
  beginning at its very end may go: only what came behind it in the first place said that it was
  none. And replies that declare speech as such are left out: by `to=user`, as the protocol's
  answer, by a gpt-oss header in bare words, or, where no tools are, as any message with `<atem:`
  calls, whose recipient is free text. There the header makes speech even of what looks like a
  call, and it is not spoken. Nor does it count what begins with a header in bare words once the
  marker in front of it is gone: that is one only at a reply's beginning.)
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from caal_node.reply_parser import (
    Event,
    ReplyParser,
    ToolCallEnd,
    ToolCallStart,
    parse_reply,
    summarise,
)
from caal_node.reply_parser.formats import MARKERS
from caal_node.reply_parser.unmarked.bracket_calls import ENDS_INSIDE
from tests.bench.table import print_table
from tests.stand_ins.reply_examples import EXAMPLES, PEERS, TOOLS, joined

MAX_CHARS: Final = 600
"""Long enough for a few calls with speech around them, short enough for a million replies."""
_ODD: Final = (
    *("\x00", "\ufeff", "\u200b", "\u200d", "\u0301", "\u2028", "\ud7ff", "\U0010ffff"),
    *("é", "ß", "İ", "ﬁ", "你好", "🙂", "👩\u200d🚀", "｜", "▁", "◁", "▷", "…", "“", "”", "‘", "’"),
    *"{}[]()<>|\"'`\\/=:;,.!?-_ \n\t\r0",
)
_MARKERS: Final = tuple(
    sorted(
        {
            *MARKERS.all,
            *MARKERS.tentative,
            *("```json\n", "```", "`", "to=", " to=set_timer", "Action:", ">>>", "functools["),
            *('{"name": "', '"arguments": {', '{"type": "final_answer", "text": "', '{"calls": ['),
            *("call:set_timer{", "set_timer(", "set_timer {", "For example, ", "</", "<|", "|>"),
            *("\\n", '\\"', "\\u00e9", "\\ud83d", "[[", "]]", "{{", "}}", "'''", '"""'),
        }
    )
)


_BARE: Final = ("assistantcommentary", "assistantfinal")
"""gpt-oss's headers of a further message, without their special tokens."""


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    """raises, marker, chunks or again."""
    text: str
    detail: str


def mutated(rng: random.Random, seeds: Sequence[str]) -> str:
    """A reply made of one of `seeds` by one to five mutations."""
    text = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 5))):
        text = _mutated_once(rng, text, seeds)[:MAX_CHARS]
    return text


def _mutated_once(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    low, high = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
    if high - low > 40 and rng.random() < 0.7:
        high = low + rng.randint(1, 40)
    part = text[low:high]
    other = rng.choice(seeds)
    match rng.randrange(10):
        case 0:  # splice
            return text[:low] + other[rng.randint(0, len(other)) :]
        case 1:  # nest
            return text[:low] + other + text[low:]
        case 2:  # drop
            return text[:low] + text[high:]
        case 3:  # double
            return text[:high] + part * rng.randint(1, 3) + text[high:]
        case 4:  # swap
            return text[high:] + part + text[:low]
        case 5:  # truncate
            return text[:high]
        case 6:  # behead
            return text[low:]
        case 7 | 8:  # a marker
            return text[:low] + rng.choice(_MARKERS) + text[low:]
        case _:  # odd characters, some over others
            return text[:low] + "".join(rng.choices(_ODD, k=rng.randint(1, 4))) + text[high:]


def findings(
    text: str, tools: list[dict[str, Any]], rng: random.Random, *, in_thinking: bool = False
) -> Iterator[Finding]:
    """What is wrong with the reading of `text`."""
    try:
        whole = _events([text], tools, in_thinking=in_thinking)
        pieces = _events(_chunks(text, rng), tools, in_thinking=in_thinking)
        reply = summarise(whole)
        again = parse_reply(reply.text, tools)
    except Exception as problem:
        yield Finding("raises", text, repr(problem))
        return
    if broken := _broken_rule(whole):
        yield Finding("raises", text, broken)
    if found := MARKERS.strip.search(reply.text):
        yield Finding("marker", text, f"{found.group()!r} in {reply.text!r}")
    if pieces != whole:
        yield Finding("chunks", text, f"\n  pieces {pieces}\n  whole  {whole}")
    kept = reply.text[: MARKERS.partial_start(reply.text)]
    declared = ("to=user", '"say"', '"final', *_BARE, *(() if tools else ("<atem:",)))
    if any(mark in text for mark in declared) or text.startswith("commentary"):
        return
    if reply.text.startswith(("all\n", "analysis", "commentary", "final")):
        return
    broken_off = any(getattr(problem, "problem", "") == ENDS_INSIDE for problem in again.problems)
    if broken_off and not again.calls and reply.text.startswith(again.text.rstrip()):
        return
    if again.calls or again.text.strip() not in (reply.text.strip(), kept.strip()):
        yield Finding("again", text, f"\n  {reply.text!r}\n  {again}")


def _chunks(text: str, rng: random.Random) -> list[str]:
    longest = rng.choice((1, 2, 5, 20))
    ends = [0]
    for size in rng.choices(range(1, longest + 1), k=len(text)):
        if ends[-1] >= len(text):
            break
        ends.append(ends[-1] + size)
    return [text[start:end] for start, end in itertools.pairwise(ends)]


def _events(
    chunks: Sequence[str], tools: list[dict[str, Any]], *, in_thinking: bool
) -> list[Event]:
    parser = ReplyParser(tools, in_thinking=in_thinking)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return joined([*events, *parser.finish()])


def _broken_rule(events: Sequence[Event]) -> str:
    """Each end comes right behind a start with its id; nothing else starts."""
    started: list[str] = []
    ended: list[str] = []
    for event in events:
        if isinstance(event, ToolCallStart):
            started.append(event.id)
        elif isinstance(event, ToolCallEnd):
            ended.append(event.id)
            json.dumps(event.arguments)
    return "" if started == ended else f"{started} began, and {ended} ended"


def run(
    count: int, seed: int, *, shown: int = 3, seconds: float = float("inf")
) -> tuple[int, Counter[str]]:
    """Look at `count` replies, or at as many as there is time for; print the first findings.

    Returns:
        How many were looked at, and how many findings of each kind there were.
    """
    until = time.monotonic() + seconds
    rng = random.Random(seed)
    peers = [case for case in PEERS if len(case["text"]) <= MAX_CHARS]
    seeds = [*EXAMPLES, *(case["text"] for case in peers)]
    counts: Counter[str] = Counter()
    for done in range(count):
        if time.monotonic() > until:
            return done, counts
        text = mutated(rng, seeds)
        tools = TOOLS
        if rng.random() < 0.05:
            tools = []
        elif peers and rng.random() < 0.3:
            tools = rng.choice(peers)["tools"]
        for finding in findings(text, tools, rng, in_thinking=rng.random() < 0.1):
            counts[finding.kind] += 1
            if counts[finding.kind] <= shown:
                print(f"{finding.kind}: {finding.text!r} {finding.detail}\n", flush=True)
    return count, counts


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("count", nargs="?", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--show", type=int, default=3, help="findings of a kind to print")
    options.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    given = options.parse_args()
    began = time.process_time()
    done, counts = run(given.count, given.seed, shown=given.show, seconds=60 * given.minutes)
    print_table(
        f"{done:,} mutated replies, seed {given.seed}, "
        f"{time.process_time() - began:,.0f} s of CPU time",
        ("finding", "replies"),
        [(kind, counts[kind]) for kind in ("raises", "marker", "chunks", "again")],
    )
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
