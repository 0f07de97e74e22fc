"""Let every attack loose on this checkout and print how each ended: `make attack`.

Run: `python -m tests.attack [WORDS ...]`; with words, only the attacks whose names hold one of
them. `hold` is the longest that the event loop was held (limit 20 ms, an audio frame), `took` the
time to the answer beside its deadline, `memory` what was in use at once over what was before.
"""

from __future__ import annotations

import argparse
import sys

from tests.attack.harness import Outcome
from tests.attack.runner import Runner, all_attacks

HEARD_CHARS = 60


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("words", nargs="*", help="only attacks whose names hold one of these")
    options.add_argument("--list", action="store_true", help="print the names and play none")
    chosen = options.parse_args()
    attacks = [
        one
        for one in all_attacks()
        if not chosen.words or any(words in one.name for words in chosen.words)
    ]
    if chosen.list:
        print(*(one.name for one in attacks), sep="\n")
        return 0
    width = max((len(one.name) for one in attacks), default=0)
    print(f"{'attack':{width}}  hold ms  took s (limit)  memory MB  heard or told")
    failed: list[Outcome] = []
    with Runner() as runner:
        for one in attacks:
            outcome = runner.outcome_of(one)
            print(_row(outcome, width), flush=True)
            if outcome.faults():
                failed.append(outcome)
    for outcome in failed:
        print(f"\n{outcome.name}\n  " + "\n  ".join(outcome.faults()))
    print(f"\n{len(attacks) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not attacks else 0


def _row(outcome: Outcome, width: int) -> str:
    took = f"{outcome.took_s:.1f} ({outcome.deadline_s:g})"
    heard = " ".join(outcome.heard.split())
    heard = heard if len(heard) <= HEARD_CHARS else heard[: HEARD_CHARS - 1] + "…"
    mark = "  FAILED" if outcome.faults() else ""
    return (
        f"{outcome.name:{width}}  {outcome.hold_ms:7.1f}  {took:>14}  {outcome.memory_mb:9.1f}"
        f"  {heard}{mark}"
    )


if __name__ == "__main__":
    sys.exit(main())
