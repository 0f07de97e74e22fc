"""What was done in a turn, read off the conversation's items."""

from __future__ import annotations

import json

import pytest

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.tool_spec import ToolSpec
from caal_node.grounding.ledger import CallState, ledger_of

LOCK = ToolSpec("agent", "Home", "lock_door", "lock_door", "Lock a door.", {}, effect="write")


SPECS = {"lock_door": LOCK}


@pytest.mark.parametrize(
    ("output", "is_error", "state"),
    [
        ('{"locked":true}', False, "done"),
        ("Locked.", False, "done"),
        ('{"error":"tool_error","message":"jammed"}', True, "failed"),
        ('{"error":"timeout"}', True, "failed"),
        ('{"error":"refused"}', True, "refused"),
        ('{"error":"needs_confirmation"}', True, "refused"),
        ("jammed", True, "failed"),
        ('{"dry_run":true,"done":false}', False, "dry_run"),
        ("{" * 100_000, False, "done"),
        (None, False, "pending"),
    ],
)
def test_a_call_is_known_by_how_it_ended(
    output: str | None, is_error: bool, state: CallState
) -> None:
    items: list[Item] = [UserItem("lock up"), CallItem("a", "lock_door", '{"door":"front"}')]
    if output is not None:
        items.append(ResultItem("a", "lock_door", output, is_error))
    (entry,) = ledger_of(items, SPECS).turn
    assert entry.state == state
    assert entry.arguments == {"door": "front"}
    assert entry.description == "Lock a door."


def test_calls_of_earlier_turns_stand_apart() -> None:
    items: list[Item] = [
        SystemItem("Be kind."),
        UserItem("lock up"),
        CallItem("a", "lock_door", "{}"),
        ResultItem("a", "lock_door", json.dumps({"ok": True})),
        AssistantItem("Done."),
        UserItem("and the back door"),
        CallItem("b", "lock_door", "no object"),
        CallItem("c", "unknown", "{}"),
    ]
    ledger = ledger_of(items, SPECS)
    assert ledger.request == "and the back door"
    assert [entry.call_id for entry in ledger.earlier] == ["a"]
    assert [entry.call_id for entry in ledger.turn] == ["b", "c"]
    assert ledger.turn[0].arguments == {}
    assert ledger.turn[1].effect == "write"


def test_a_conversation_without_words_has_none() -> None:
    ledger = ledger_of([], SPECS)
    assert (ledger.request, ledger.turn, ledger.earlier) == ("", (), ())
