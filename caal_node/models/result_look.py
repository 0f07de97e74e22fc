"""A request about what the calls of a turn have found: does it answer what the person asked?

The conversation and the results stand in it as quoted data, of a bounded size. The reply is one
word that a schema holds to yes or no, and `read_second_look` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from caal_node.core.items import Item, SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.grounding.result_kind import kind_of, looks_up
from caal_node.models.backends.base import BackendRequest
from caal_node.models.question import Question
from caal_node.models.second_look import CANDIDATES, TALK_ITEMS, shortened, talk_line

CALLS_MAX: Final = 4
"""Calls that are shown, the newest: what people ask for takes one or two."""
RESULT_CHARS: Final = 1_200
"""Characters of one result, some 300 tokens: what answers a question stands at the beginning."""
_REPLY_TOKENS: Final = 16
_ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"answers": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["answers"],
    "additionalProperties": False,
}


def found_in(ledger: Ledger) -> tuple[LedgerEntry, ...]:
    """Return the calls of the turn that have found something; there is nothing to look at where
    none has, or where one has failed, of which the answer has to tell anyway."""
    if not all(looks_up(entry) and kind_of(entry) == "found" for entry in ledger.turn):
        return ()
    return ledger.turn[-CALLS_MAX:]


def result_look_request(talk: Sequence[Item], found: Sequence[LedgerEntry]) -> BackendRequest:
    """Write the request about what was `found` for the newest words of `talk`."""
    shown = {
        "talk": [line for item in talk if (line := talk_line(item))][-TALK_ITEMS:],
        "found": [
            {
                "tool": entry.tool,
                "arguments": {name: shortened(value) for name, value in entry.arguments.items()},
                "result": entry.result[:RESULT_CHARS],
            }
            for entry in found
        ],
    }
    data = json.dumps(shown, ensure_ascii=False, default=str)
    question = Question((SystemItem(read("result_look.md")), UserItem(data)))
    return BackendRequest(
        question.conversation, schema=_ANSWER, max_tokens=_REPLY_TOKENS, top_logprobs=CANDIDATES
    )
