"""Holds a state that no call has read: "the back door is locked", "it is already off".

Only what is certain is held: the person asks whether a thing is open or locked or on, or wants it
so, a tool knows of such a thing, and neither a result, nor a call, nor anybody's words tell of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Final

from caal_node.core.tool_spec import ToolSchema
from caal_node.grounding.claim_check import clause_odds
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.grounding.spoken_check import NotDone, Say
from caal_node.grounding.stated_states import (
    STATE_STEMS,
    asks_for_state,
    says_state,
    without_states,
)
from caal_node.language.requests import intent_of
from caal_node.policy.heard_words import COMMON, NO, QUESTIONS, YES, stem, stems

RESULT_CHARS: Final = 8_000
"""Characters of an earlier result that are read; a longer one may tell of anything."""
SURELY: Final = 0.5
"""Odds of a state or a claim from which a clause tells one, and supposes none."""
_ASKS_OTHERWISE: Final = re.compile(
    r"^(?:\w+[,.]? )?(?:how|why|when|where|who|what)\b", re.IGNORECASE
)
"""A question that is not answered by a state alone."""
_NO_THINGS: Final = COMMON | STATE_STEMS | YES | NO | frozenset(map(stem, QUESTIONS))


class UnreadStates:
    """Judges the clauses of one answer.

    Args:
        ledger: What was done in the turn and before it.
        tools: What the model may call.
        told: What was said before the person's newest words, and the instructions.
    """

    def __init__(
        self, ledger: Callable[[], Ledger], tools: Sequence[ToolSchema], told: Sequence[str]
    ) -> None:
        self._ledger: Final = ledger
        self._tools: Final = tools
        self._told: Final = told

    def check(self, clause: str) -> Say | NotDone:
        """Return the clause, or that it reports a state that was not read."""
        if not says_state(clause) or clause.rstrip().endswith("?"):
            return Say(clause)
        ledger, odds = self._ledger(), clause_odds(clause)
        if intent_of(ledger.request) == "none" or odds["state"] + odds["done"] < SURELY:
            return Say(clause)
        if _ASKS_OTHERWISE.match(ledger.request) or not asks_for_state(ledger.request):
            return Say(clause)
        texts = ledger.request, without_states(clause)
        asked, told = (stems(text) - _NO_THINGS for text in texts)
        things = asked & told if told else asked
        if not things or self._is_known(things, ledger) or not self._has_tool(things):
            return Say(clause)
        return NotDone(clause)

    def _is_known(self, things: frozenset[str], ledger: Ledger) -> bool:
        if any(not things.isdisjoint(stems(text)) for text in self._told):
            return True
        if any(entry.reads for entry in ledger.turn):
            return True  # Whether it fits is the facts' check.
        return any(_tells(entry, things) for entry in (*ledger.turn, *ledger.earlier))

    def _has_tool(self, things: frozenset[str]) -> bool:
        return any(
            not things.isdisjoint(stems(text))
            for tool in self._tools
            if any(thing in (text := json.dumps(tool["function"]).lower()) for thing in things)
        )


def _tells(entry: LedgerEntry, things: frozenset[str]) -> bool:
    if entry.by_server or len(entry.result) > RESULT_CHARS:
        return True
    text = f"{entry.tool} {json.dumps(entry.arguments)[:RESULT_CHARS]} {entry.result}"
    return not things.isdisjoint(stems(text))
