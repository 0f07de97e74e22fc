"""Holds a state that no call has read: "the back door is locked", where only that was asked.

Only what is certain is held: the person asks whether a thing is open or locked or on, a tool knows
of such a thing, and neither a result, nor a call, nor anybody's words say anything of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Final

from caal_node.core.tool_spec import ToolSchema
from caal_node.grounding.action_claims import plain
from caal_node.grounding.action_words import action_words
from caal_node.grounding.call_words import call_words, known_stems
from caal_node.grounding.claim_tools import reports_state, things_named
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.grounding.spoken_check import NotDone, Say
from caal_node.grounding.stated_states import asks_for_state, says_state
from caal_node.policy.heard_words import stems

RESULT_CHARS: Final = 8_000
"""Characters of an earlier result that are read; a longer one may tell of anything."""
_ASKS_OTHERWISE: Final = re.compile(r"^(?:\w+[,.]? )?(?:how|why|when|where|who|what)\b")
"""A question that is not answered by a state alone."""


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
        self._words: Final = action_words()

    def check(self, clause: str) -> Say | NotDone:
        """Return the clause, or that it reports a state that was not read."""
        if not says_state(clause) or clause.rstrip().endswith("?"):
            return Say(clause)
        ledger = self._ledger()
        if not reports_state(clause, ledger) or self._depends(clause):
            return Say(clause)
        if not self._asks_for_state(ledger.request):
            return Say(clause)
        things = things_named(clause, ledger, self._words)
        if not things:
            return Say(clause)
        if self._is_known(things, ledger) or not self._has_tool(things):
            return Say(clause)
        return NotDone(clause)

    def _asks_for_state(self, request: str) -> bool:
        text = plain(request)
        return (
            not self._depends(text) and _ASKS_OTHERWISE.match(text) is None and asks_for_state(text)
        )

    def _depends(self, text: str) -> bool:
        frames = self._words.frames
        return any(frames[key].search(plain(text)) for key in ("conditions", "past_times"))

    def _is_known(self, things: frozenset[str], ledger: Ledger) -> bool:
        turn = ledger.turn
        if any(not things.isdisjoint(known_stems(stems(text), self._words)) for text in self._told):
            return True
        if any(entry.effect == "read" or call_words(entry, self._words).reads for entry in turn):
            return True  # Whether it fits is the facts' check.
        return any(self._tells(entry, things) for entry in (*turn, *ledger.earlier))

    def _tells(self, entry: LedgerEntry, things: frozenset[str]) -> bool:
        if entry.by_server or len(entry.result) > RESULT_CHARS:
            return True
        text = f"{' '.join(entry.arguments)} {entry.result}"
        found = call_words(entry, self._words).things | known_stems(stems(text), self._words)
        return not things.isdisjoint(found)

    def _has_tool(self, things: frozenset[str]) -> bool:
        return any(
            not things.isdisjoint(known_stems(stems(text), self._words))
            for tool in self._tools
            if any(thing in (text := json.dumps(tool["function"]).lower()) for thing in things)
        )
