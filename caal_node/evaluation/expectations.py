"""What to expect of a validated model in a spoken conversation, in sentences (pure).

They are about the way in which it will be asked. A suite's figures say how often; the sentence says
what that is to somebody who speaks, and what they can do about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Final

from caal_node.evaluation.case import SuiteName
from caal_node.evaluation.result import Validation

SLOW_S: Final = 4.0
"""Seconds to a reply from which on people find a conversation slow (research on voice assistants
puts it there)."""

_SAID: Final[Mapping[SuiteName, tuple[str, str]]] = {
    "tool_call": (
        "One request at a time is done",
        "Requests have to be said again: plain ones were not all understood",
    ),
    "two_calls": (
        "Two requests in one breath are done",
        "Say one thing at a time: of two requests in one breath, one is often left out",
    ),
    "abstention": (
        "Small talk and questions call no tool",
        "It may do things that nobody asked for, as small talk called tools: have calls that "
        "matter confirmed",
    ),
    "argument_types": (
        "Numbers, lists and names arrive as they were said",
        "Details get lost: numbers, lists or names did not all arrive as they were said",
    ),
    "tool_result": (
        "What a tool found is told as it is",
        "What a tool found is not always told: ask again",
    ),
    "dialogue": (
        "What was said before can be referred to, also after an interruption",
        "Say names and numbers in full each time: what was said before is not always meant",
    ),
    "reasoning": (
        "It can be asked for small sums and conclusions",
        "Do not rely on its sums and conclusions",
    ),
}


def expectations(validation: Validation) -> Iterator[str]:
    """Yield a sentence for each ability that was tried, then what is to be known of its speed and
    of its server."""
    way = validation.asking
    for suite, (good, poor) in _SAID.items():
        tally = validation.tally(suite, way)
        if tally.total:
            yield f"{good if tally.passed else poor} ({tally.right} of {tally.total} right)."
    seconds = sorted(o.seconds for o in validation.outcomes if o.asking == way)
    if seconds:
        middle, slowest = median(seconds), seconds[-1]
        felt = "it feels slow" if middle >= SLOW_S else "it feels prompt"
        yield f"A reply took {middle:.1f} s, the slowest {slowest:.1f} s, on this server: {felt}."
    if behind := [o for o in validation.outcomes if o.behind_call]:
        words = f"Words stood behind a call in {len(behind)} replies, and are not heard."
        if validation.api == "openai":
            words += " If this server runs tools by itself, set CAAL_SERVER_RUNS_TOOLS=on."
        yield words
