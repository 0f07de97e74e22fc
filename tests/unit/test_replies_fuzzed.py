"""A short run of the fuzzer; `python -m tests.bench.fuzz_replies` makes the long ones."""

from __future__ import annotations

import random
from typing import Any

import pytest

from caal_node.replies.resting import Automaton
from caal_node.replies.running import RunningText
from caal_node.replies.source import Steps
from tests.bench.fuzz_replies import findings, mutated
from tests.reply_examples import EXAMPLES, TOOLS

REPLIES = 500


@pytest.mark.parametrize("seed", [11, 12, 13, 14])
def test_mutated_replies_are_read_as_they_should_be(seed: int) -> None:
    rng = random.Random(seed)
    found: list[Any] = []
    for number in range(REPLIES):
        tools = TOOLS if number % 20 else []
        text = mutated(rng, EXAMPLES)
        found += findings(text, tools, rng, in_thinking=number % 10 == 0)
    assert found == []


def test_the_fuzzer_notices_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def own_automaton(names: tuple[str, ...]) -> Automaton:
        return Automaton()

    def speak(text: RunningText, marker: str) -> Steps[None]:
        text.say(marker)
        yield from ()

    monkeypatch.setattr(RunningText, "_marker", speak)
    # What is learned here must not be known to other tests.
    monkeypatch.setattr("caal_node.replies.running.automaton", own_automaton)
    rng = random.Random(1)
    kinds = {finding.kind for text in EXAMPLES for finding in findings(text, TOOLS, rng)}
    assert "marker" in kinds
