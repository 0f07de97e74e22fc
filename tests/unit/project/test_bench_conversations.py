"""The bench of whole conversations scores what was played by what the household's tools did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from caal_node.testing import ScriptedCall, ScriptedModel
from tests.bench.conversation_household import TOOLS, read_rows
from tests.bench.conversation_pages import FIRST_LINES, page
from tests.bench.conversation_score import MadeCall, PlayedTurn, score, to_row
from tests.bench.conversations import CHECKS, play, table_row

KITCHEN_OFF = {"room": "kitchen", "state": "off"}


def turn(say: str, spoken: str, *calls: MadeCall, kind: str = "plain") -> PlayedTurn:
    return PlayedTurn(say, kind, calls, spoken, requests=1, rounds=0)


def made(tool: str, outcome: str = "ok", result: str = "{}", **arguments: Any) -> MadeCall:
    return MadeCall(tool, arguments, outcome, result)


async def test_a_conversation_is_played_by_a_real_agent_with_the_scripts_answers() -> None:
    row = {
        "name": "evening",
        "turns": [
            {"say": "Kitchen light off.", "kind": "plain", "calls": [["set_light", KITCHEN_OFF]]},
            {
                "say": "Lock the back door.",
                "kind": "fails",
                "calls": [["lock_door", {"door": "back door"}]],
                "gives": {"lock_door": {"error": "the bolt is jammed"}},
            },
        ],
    }
    model = ScriptedModel(
        [ScriptedCall("set_light", KITCHEN_OFF)],
        "I've turned off the kitchen light.",
        [ScriptedCall("lock_door", {"door": "back door"})],
        "I've locked the back door.",
    )
    played = await play(row, model, lambda: model.requests, CHECKS["off"])
    first, second = played["turns"]
    assert (first["score"]["right"], first["score"]["claims"]) == (True, ())
    assert second["calls"][0]["outcome"] == "error"
    assert second["score"]["claims"] == ("I've locked the back door.",)
    counts = table_row("off", [played])
    assert counts[1:4] == (2, 1, 0)
    assert counts[-2] == "3 of 3"  # no request has changed what the model had read


async def test_with_the_checks_the_claim_of_a_failed_call_is_not_spoken() -> None:
    row = {
        "name": "door",
        "turns": [
            {
                "say": "Lock the back door.",
                "kind": "fails",
                "calls": [["lock_door", {"door": "back door"}]],
                "gives": {"lock_door": {"error": "the bolt is jammed"}},
            }
        ],
    }
    lock = [ScriptedCall("lock_door", {"door": "back door"})]
    model = ScriptedModel(lock, "I've locked the back door.")
    played = await play(row, model, lambda: model.requests, CHECKS["on"])
    assert played["turns"][0]["score"]["claims"] == ()
    assert played["turns"][0]["corrected"]


@pytest.mark.parametrize(
    ("say", "spoken", "calls", "found"),
    [
        ("Wake me at seven.", "I'll wake you at seven.", (), 1),
        ("Wake me at seven.", "I can't do that.", (), 0),
        ("Wake me at seven.", "Shall I set a timer?", (), 0),
        ("Light off.", "The light is off.", (made("set_light", room="office"),), 0),
        ("Light off.", "The nursery light is off.", (made("set_light", room="office"),), 1),
        ("Light off.", "Done.", (made("set_light", "timeout"),), 1),
        ("Tell Ida.", "Message sent to Ida.", (), 1),
    ],
)
def test_a_claim_is_covered_by_a_call_of_its_tool_that_worked(
    say: str, spoken: str, calls: tuple[MadeCall, ...], found: int
) -> None:
    judged = score(turn(say, spoken, *calls), {"calls": []}, [])
    assert len(judged.claims) == found


@pytest.mark.parametrize(
    ("spoken", "found"),
    [
        ("It is 19 degrees.", 0),
        ("It is nineteen degrees.", 0),
        ("It is 21 degrees.", 1),
        ("I found two rooms.", 0),
        ("It starts at 7:30 in the evening.", 0),
        ("It starts at quarter to nine, at 8:45.", 1),
    ],
)
def test_a_number_is_wrong_that_stands_in_no_result(spoken: str, found: int) -> None:
    result = '{"rooms": [{"c": 19}, {"c": 18}], "begins": "19:30"}'
    judged = score(
        turn("How warm?", spoken, made("room_climate", result=result)), {"calls": []}, []
    )
    assert len(judged.wrong) == found


def test_calls_are_right_where_each_wanted_one_was_made_and_no_other() -> None:
    row = {"calls": [["get_weather", {"city": "Cork", "day": ["tomorrow", None]}]]}
    right = made("get_weather", city="Cork")
    assert score(turn("Rain?", "", right), row, []).right
    assert not score(turn("Rain?", ""), row, []).right
    both = score(turn("Rain?", "", right, made("get_weather", city="Rome")), row, [])
    assert (both.right, both.needless) == (False, 1)


def test_the_held_out_conversations_name_tools_and_arguments_that_there_are() -> None:
    conversations = read_rows("held_out")["conversations"]
    assert len(conversations) >= 24
    for row in conversations:
        assert 3 <= len(row["turns"]) <= 5, row["name"]
        for each in row["turns"]:
            for tool, arguments in each["calls"] or ():
                assert set(arguments) <= set(TOOLS[tool]["properties"]), each
            assert set(each.get("gives", ())) <= set(TOOLS), each


def played(name: str, spoken: str, *, wrong: bool) -> dict[str, Any]:
    row = turn("How warm?", spoken)
    judged = score(row, {"calls": [], "wrong": ["hot"] if wrong else []}, [])
    return {"name": name, "turns": [json.loads(json.dumps(to_row(row, judged)))], "kept": [True]}


def test_the_page_has_the_worst_conversations_first_before_and_after(tmp_path: Path) -> None:
    before = [played("good", "It is mild.", wrong=False), played("bad", "It is hot.", wrong=True)]
    after = [played("good", "It is mild.", wrong=False), played("bad", "I | know.", wrong=True)]
    for checks, rows in (("off", before), ("on", after)):
        (tmp_path / f"small-{checks}.json").write_text(json.dumps(rows), encoding="utf-8")
    text = page(tmp_path, ["small"])
    assert text.index("## Bad (small)") < text.index("## Good (small)")
    assert "| How warm? | It is hot. **fact** | I / know. |" in text
    assert "| small | off | 2 | 0 | 1 | 50.0 |" in text


def test_the_page_says_what_was_not_played_with_the_checks(tmp_path: Path) -> None:
    rows = json.dumps([played("alone", "It is hot.", wrong=True)])
    (tmp_path / "small-off.json").write_text(rows, encoding="utf-8")
    assert "| How warm? | It is hot. **fact** | not played |" in page(tmp_path, ["small"])


def test_the_page_in_docs_names_the_commands_that_made_it() -> None:
    text = (Path(__file__).parents[3] / "docs" / "transcripts.md").read_text("utf-8")
    assert "python -m tests.bench.conversations" in text
    assert "python -m tests.bench.conversation_pages" in text
    assert text.startswith(FIRST_LINES.partition("\n")[0])
