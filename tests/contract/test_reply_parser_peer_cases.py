"""The replies of other projects' own suites, where their collection lies beside the checkout.

Each line: text, tools, expected calls, tier. `core` must be understood; `neg_plain` is speech that
looks a little like a call, `neg_syntax` is marker syntax that is none.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from caal_node.reply_parser import parse_reply
from caal_node.reply_parser.formats import MARKERS
from tests.stand_ins.reply_examples import PEERS, PEERS_FILE

needs_cases = pytest.mark.skipif(
    not PEERS,
    reason=f"no {PEERS_FILE.name} beside the checkout (or name one in CAAL_REPLY_CASES)",
)
# By value. What is missed is where the suites contradict each other or call undeclared tools.
GOALS = {"core": 0.98, "neg_plain": 1.0, "neg_syntax": 0.98}


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1, NaN is NaN."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return left == right


@needs_cases
def test_the_rates_are_reached() -> None:
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    missed: list[str] = []
    for case in PEERS:
        reply = parse_reply(
            case["text"], case["tools"], in_thinking=bool(case.get("think_prefill"))
        )
        wanted = [[call["name"], call["arguments"]] for call in case["expected"]]
        total[case["tier"]] += 1
        if same([[call.name, call.arguments] for call in reply.calls], wanted):
            right[case["tier"]] += 1
        elif case["tier"] in GOALS:
            missed.append(case["id"])
    rates = {tier: right[tier] / total[tier] for tier in GOALS}
    short = {tier: rate for tier, rate in rates.items() if rate < GOALS[tier]}
    assert short == {}, f"{rates}, missed {missed}"


@needs_cases
def test_no_marker_is_left_in_what_is_spoken() -> None:
    spoken = {
        case["id"]: parse_reply(
            case["text"], case["tools"], in_thinking=bool(case.get("think_prefill"))
        ).text
        for case in PEERS
    }
    assert [name for name, text in spoken.items() if MARKERS.strip.search(text)] == []
