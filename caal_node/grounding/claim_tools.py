"""Which of the tools on offer could do what an answer claims to have done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from caal_node.core.tool_spec import ToolSchema
from caal_node.grounding.action_claims import (
    ActionClaim,
    RequestKind,
    claims_in,
    request_kind,
)
from caal_node.grounding.action_words import ANYTHING, LOOK_UP, REQUESTED, ActionWords, action_words
from caal_node.grounding.call_words import CallWords, call_words, does, known_stems
from caal_node.grounding.claim_check import things_of
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.policy.heard_words import COMMON, stems


def fitting_tools(clause: str, ledger: Ledger, tools: Sequence[ToolSchema]) -> frozenset[str]:
    """Return the names of the tools that the person's request and the claim both ask for.

    A tool whose call failed, was refused or was only told of in this turn is not tried again.
    """
    words = action_words()
    request = request_kind(ledger.request, words)
    claims = claims_in(clause, request, words) or [ActionClaim(ANYTHING, "done", clause)]
    tried = {entry.tool for entry in ledger.turn if entry.state not in ("done", "pending")}
    asked = known_stems(stems(ledger.request), words) - COMMON
    return frozenset(
        name
        for tool in tools
        if (name := tool["function"]["name"]) not in tried
        and any(_could(_words_of(tool, words), one, request, asked, words) for one in claims)
    )


def is_asked_for(clause: str, ledger: Ledger) -> bool:
    """Say whether the person has asked for what a clause claims, or whether it was done."""
    words = action_words()
    request = request_kind(ledger.request, words)
    claims = claims_in(clause, request, words)
    asked = any(request.commands(claim.action, words) for claim in claims)
    return asked or not claims or request.is_question


def is_promised(clause: str, ledger: Ledger) -> bool:
    """Say whether all that a clause claims is still to come."""
    words = action_words()
    claims = claims_in(clause, request_kind(ledger.request, words), words)
    return bool(claims) and all(claim.kind != "done" for claim in claims)


def is_looked_up(clause: str, ledger: Ledger) -> bool:
    """Say whether a clause claims to have looked something up, and nothing else."""
    words = action_words()
    claims = claims_in(clause, request_kind(ledger.request, words), words)
    return bool(claims) and all(claim.action == LOOK_UP for claim in claims)


def _could(
    tool: CallWords,
    claim: ActionClaim,
    request: RequestKind,
    asked: frozenset[str],
    words: ActionWords,
) -> bool:
    shares = bool((things_of(claim, words) | asked) & (tool.things - COMMON))
    if claim.action == LOOK_UP:
        return shares and (tool.reads or not tool.actions)
    if tool.reads or not request.commands(claim.action, words):
        return False
    if claim.action in (ANYTHING, REQUESTED):
        named = request.actions
        if not named:
            return shares
        return bool(tool.actions & named) or (
            shares and any(does(tool, name, request, words) for name in named)
        )
    return claim.action in tool.actions or (shares and does(tool, claim.action, request, words))


def _words_of(tool: ToolSchema, words: ActionWords) -> CallWords:
    function = cast("Mapping[str, Any]", tool["function"])
    parameters = cast("Mapping[str, Any]", function.get("parameters") or {})
    names = " ".join(cast("Mapping[str, Any]", parameters.get("properties") or {}))
    about = str(function.get("description") or "")
    return call_words(
        LedgerEntry("", str(function["name"]), {}, "pending", description=f"{about} {names}"), words
    )
