"""Which of the tools on offer could do what an answer claims to have done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from caal_node.core.tool_spec import Effect, ToolSchema, ToolSpec
from caal_node.grounding.action_claims import (
    ActionClaim,
    RequestKind,
    claims_in,
    plain,
    request_kind,
)
from caal_node.grounding.action_words import ANYTHING, LOOK_UP, REQUESTED, ActionWords, action_words
from caal_node.grounding.call_words import CallWords, call_words, does, known_stems
from caal_node.grounding.claim_check import things_of
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.grounding.stated_states import says_state
from caal_node.policy.heard_words import COMMON, QUESTIONS, stem, stems

_QUESTIONS: Final = frozenset(map(stem, QUESTIONS))


def fitting_tools(
    clause: str,
    ledger: Ledger,
    tools: Sequence[ToolSchema],
    spec_of: Callable[[str], ToolSpec | None] = lambda name: None,
) -> frozenset[str]:
    """Return the names of the tools that the person's request and the claim both ask for.

    `spec_of` knows what tools do by the model's names. A tool whose call failed, was refused or was
    only told of in this turn is not tried again.
    """
    words = action_words()
    request = request_kind(ledger.request, words)
    claims = claims_in(clause, request, words) or [ActionClaim(ANYTHING, "done", clause)]
    tried = {entry.tool for entry in ledger.turn if entry.state not in ("done", "pending")}
    asked = known_stems(stems(ledger.request), words) - COMMON
    if is_read := reports_state(clause, ledger):
        asked = things_named(clause, ledger, words)
    found = list[str]()
    for tool in tools:
        name = tool["function"]["name"]
        if name in tried:
            continue
        spec = spec_of(name)
        own = _words_of(tool, "write" if spec is None else spec.effect, words)
        if is_read:
            fits = own.reads and not asked.isdisjoint(own.things)
        else:
            fits = any(_could(own, one, request, asked, words) for one in claims)
        if fits:
            found.append(name)
    return frozenset(found)


def reports_state(clause: str, ledger: Ledger) -> bool:
    """Say whether a clause only tells how things are, where the person asks for that."""
    words = action_words()
    request = request_kind(ledger.request, words)
    said = request.is_question and says_state(clause)
    return said and not claims_in(clause, request, words)


def things_named(clause: str, ledger: Ledger, words: ActionWords) -> frozenset[str]:
    """Return the stems of the things that a clause and the person's request both name; those of the
    request where the clause names none, and nothing where it names others."""
    asked, told = (
        things_of(ActionClaim(LOOK_UP, "done", plain(text)), words) - _QUESTIONS
        for text in (ledger.request, clause)
    )
    found = asked & told if told else asked
    # Of "the back door" it is the door.
    return found - known_stems(map(stem, words.places), words) or found


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
    """Say whether a clause tells what has to be looked up, and claims nothing else."""
    words = action_words()
    claims = claims_in(clause, request_kind(ledger.request, words), words)
    looks_up = bool(claims) and all(claim.action == LOOK_UP for claim in claims)
    return looks_up or reports_state(clause, ledger)


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


def _words_of(tool: ToolSchema, effect: Effect, words: ActionWords) -> CallWords:
    function = cast("Mapping[str, Any]", tool["function"])
    parameters = cast("Mapping[str, Any]", function.get("parameters") or {})
    names = " ".join(cast("Mapping[str, Any]", parameters.get("properties") or {}))
    about = str(function.get("description") or "")
    return call_words(
        LedgerEntry(
            "",
            str(function["name"]),
            {},
            "pending",
            effect=effect,
            description=f"{about} {names}",
        ),
        words,
    )
