"""Which reply is right, which way is the better one, and what the report says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from caal_node.cli.validate import expectations, markdown, table
from caal_node.context.pairing import INTERRUPTED
from caal_node.core.items import ResultItem, UserItem
from caal_node.evaluation.run import EXAMPLES, TOOLS
from caal_node.evaluation.store import Identity, Mark, Outcome, Validation, to_object
from caal_node.evaluation.suites import (
    ABSENT,
    SUITES,
    Asking,
    ExpectedCall,
    ExpectedCalls,
    ExpectedSpeech,
    Right,
    SuiteName,
    fault,
    same,
)
from caal_node.reply_parser import Reply, ToolCall, UnknownCall

TIMER = ExpectedCalls((ExpectedCall("set_timer", {"minutes": (5,), "label": (ABSENT, "tea")}),))


def calling(*calls: tuple[str, dict[str, Any]], text: str = "") -> Reply:
    return Reply([ToolCall(name, arguments) for name, arguments in calls], text)


RIGHT: list[tuple[Right, Reply]] = [
    (TIMER, calling(("set_timer", {"minutes": 5}))),
    (TIMER, calling(("set_timer", {"minutes": 5.0, "label": "Tea"}), text="One moment.")),
    (ExpectedSpeech(), Reply(text="Good morning.")),
    (ExpectedSpeech(("Rome",)), Reply(text="It is rome, of course.")),
    (ExpectedSpeech(("4", "four")), Reply(text="Four.", reasoning="2 + 2")),
]


@pytest.mark.parametrize(("right", "reply"), RIGHT)
def test_a_right_reply_has_no_fault(right: Right, reply: Reply) -> None:
    assert fault(right, reply) == ""


WRONG: list[tuple[Right, Reply, str]] = [
    (TIMER, Reply(), "no reply"),
    (TIMER, Reply(text="It is set."), "called nothing"),
    (TIMER, calling(("get_forecast", {})), "called get_forecast"),
    (TIMER, calling(("set_timer", {})), "minutes is missing"),
    (TIMER, calling(("set_timer", {"minutes": "5"})), "minutes is '5'"),
    (TIMER, calling(("set_timer", {"minutes": True})), "minutes is True"),
    (TIMER, calling(("set_timer", {"minutes": 5, "label": "eggs"})), "label is 'eggs'"),
    (TIMER, calling(("set_timer", {"minutes": 5, "loud": True})), "loud was not said"),
    (TIMER, calling(("set_timer", {"minutes": 5}), ("set_timer", {"minutes": 5})), "also called"),
    (TIMER, Reply(problems=[UnknownCall("timer", ("set_timer",))]), "cannot be made"),
    (ExpectedSpeech(), calling(("set_timer", {"minutes": 5})), "called set_timer"),
    (ExpectedSpeech(), Reply(text=" "), "said nothing"),
    (ExpectedSpeech(("Rome",)), Reply(text="Paris."), "said Paris."),
    (ExpectedSpeech(), Reply(text='{"type": "final_answer", "text": "Hi"}'), "spoke"),
    (ExpectedSpeech(), Reply(text="<think>hm</think> Hi"), "spoke"),
    (ExpectedSpeech(), Reply(text="```json\n{}\n```"), "spoke"),
    (ExpectedSpeech(("4",)), Reply(reasoning="2 + 2 is 4"), "said nothing"),
    (ExpectedSpeech(("4",)), Reply(text="It is 14."), "said It is 14."),
]


@pytest.mark.parametrize(("right", "reply", "says"), WRONG)
def test_what_is_wrong_is_said_in_a_few_words(right: Right, reply: Reply, says: str) -> None:
    found = fault(right, reply)
    assert says in found
    assert "\n" not in found


def test_two_calls_of_one_tool_are_right_in_either_order() -> None:
    both = ExpectedCalls(
        (ExpectedCall("set_timer", {"minutes": (4,)}), ExpectedCall("set_timer", {"minutes": (9,)}))
    )
    four, nine = ("set_timer", {"minutes": 4}), ("set_timer", {"minutes": 9})
    assert fault(both, calling(nine, four)) == ""
    assert fault(both, calling(nine, nine)) != ""
    assert fault(both, calling(four)) != ""


def test_long_speech_must_come_in_pieces_where_it_is_streamed() -> None:
    long = Reply(text="A rainbow is light that rain has bent.")
    assert fault(ExpectedSpeech(in_pieces=True), long, pieces=1)
    assert not fault(ExpectedSpeech(in_pieces=True), long, pieces=5)
    assert not fault(ExpectedSpeech(in_pieces=True), Reply(text="Light."), pieces=1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(VALUES)
def test_a_value_is_the_same_as_itself_also_after_a_journey_as_json(value: Any) -> None:
    assert same(value, json.loads(json.dumps(value)))


@given(VALUES, VALUES)
def test_being_the_same_does_not_depend_on_the_order(one: Any, other: Any) -> None:
    assert same(one, other) == same(other, one)


def test_kinds_are_told_apart_and_spelling_is_not() -> None:
    assert same("New York", "new-york")
    assert same([1, "a b"], [1.0, "A B"])
    assert not same(1, True)
    assert not same("5", 5)
    assert not same({"a": 1}, {"a": 1, "b": None})


def test_every_case_is_of_a_tool_that_is_there_and_stands_in_no_example() -> None:
    names = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    shown = {e.utterance.lower() for examples in EXAMPLES.values() for e in examples}
    said: list[str] = []
    for suite in SUITES:
        assert suite.chosen(full=False), suite.name
        for case in suite.cases:
            said.append(f"{suite.name}: {case.name}")
            assert not {i.text.lower() for i in case.said if isinstance(i, UserItem)} & shown
            wanted = case.right.wanted if isinstance(case.right, ExpectedCalls) else ()
            for calling in wanted:
                assert set(calling.arguments) <= set(names[calling.tool]["properties"])
                for required in names[calling.tool]["required"]:
                    assert ABSENT not in calling.arguments[required]
    assert len(said) == len(set(said))


def test_every_case_can_fail_whatever_the_suite() -> None:
    for case in (case for suite in SUITES for case in suite.cases):
        wrong = Reply(text="I did it.") if isinstance(case.right, ExpectedCalls) else Reply()
        assert fault(case.right, wrong)
        if isinstance(case.right, ExpectedSpeech) and case.right.words:
            assert fault(case.right, Reply(text="I have no idea."))


def test_dialogues_refer_to_results_abstain_call_twice_and_are_interrupted() -> None:
    (suite,) = (suite for suite in SUITES if suite.name == "dialogue")
    rights = [case.right for case in suite.cases]
    assert any(isinstance(right, ExpectedSpeech) and right.words for right in rights)
    assert any(isinstance(right, ExpectedSpeech) and not right.words for right in rights)
    assert any(isinstance(right, ExpectedCalls) and len(right.wanted) == 2 for right in rights)
    results = [item for case in suite.cases for item in case.said if isinstance(item, ResultItem)]
    assert any(result.output == INTERRUPTED for result in results)


def outcomes(asking: Asking, mark: Mark, *suites: SuiteName, count: int = 4) -> list[Outcome]:
    names = suites or tuple(suite.name for suite in SUITES)
    return [
        Outcome(name, asking, f"case {n}", mark, "" if mark == "right" else "why [x]", 1, 10, 2)
        for name in names
        for n in range(count)
        if asking == "text" or name != "text_protocol"
    ]


def validation(*found: Outcome, native_offered: bool = True) -> Validation:
    return Validation(
        *("m:1b", "ollama", "http://127.0.0.1:11434"),
        identity=Identity("ollama", "0.17.4", "sha256:" + "ab" * 32),
        at="2026-01-05T12:00:00+00:00",
        full=False,
        node_version="0.1.0",
        native_offered=native_offered,
        outcomes=found,
    )


def test_the_way_that_passes_is_the_better_one_and_alike_it_is_native() -> None:
    both = validation(*outcomes("native", "right"), *outcomes("text", "right"))
    assert (both.passed, both.asking) == (True, "native")
    text = validation(*outcomes("native", "corrected"), *outcomes("text", "right"))
    assert (text.passed, text.asking) == (True, "text")
    neither = validation(*outcomes("native", "wrong"), *outcomes("text", "failed"))
    assert (neither.passed, neither.asking) == (False, "native")


def test_a_model_without_tool_calls_of_its_own_is_asked_by_text() -> None:
    found = validation(*outcomes("text", "wrong"), native_offered=False)
    assert (found.passed, found.asking) == (False, "text")


def test_one_miss_in_four_is_passed_and_two_are_not() -> None:
    def calls(*marks: Mark) -> Validation:
        others = [o for o in outcomes("native", "right") if o.suite != "tool_call"]
        tried = [outcomes("native", mark, "tool_call", count=1)[0] for mark in marks]
        return validation(*others, *tried)

    assert calls("right", "right", "right", "wrong").passed
    assert not calls("right", "right", "corrected", "wrong").passed
    assert calls("right", "right", "corrected", "wrong").missed("native") == ("tool_call",)


def test_two_calls_in_one_breath_are_not_required() -> None:
    others = [o for o in outcomes("native", "right") if o.suite != "two_calls"]
    assert validation(*others, *outcomes("native", "wrong", "two_calls")).passed


def test_the_report_names_model_server_digest_and_what_was_wrong() -> None:
    found = validation(*outcomes("native", "wrong"), *outcomes("text", "right"))
    text = markdown(found)
    assert text.startswith("# m:1b\n")
    assert "ollama 0.17.4" in text
    assert "abababab" in text
    assert "Validated. It will be asked by the text protocol." in text
    assert "| tool call | one request, one call | 0/4 | 4/4 |" in text
    assert "why \\[x\\]" in text

    console = Console(width=100, record=True, file=None, force_terminal=False)
    with console.capture() as shown:
        console.print(table(found))
    assert "0/4" in shown.get()
    assert "why [x]" in shown.get()


def test_the_report_says_what_to_expect_by_voice() -> None:
    good = "\n".join(expectations(validation(*outcomes("text", "right"), native_offered=False)))
    assert "Two requests in one breath are done (4 of 4 right)." in good
    assert "feels prompt" in good
    assert "behind a call" not in good

    slow = [replace(o, seconds=9.0, behind_call=True) for o in outcomes("native", "wrong")]
    found = replace(validation(*slow), api="openai")
    poor = "\n".join(expectations(found))
    assert "Say one thing at a time" in poor
    assert "confirmed (0 of 4 right)." in poor
    assert "9.0 s" in poor
    assert "feels slow" in poor
    assert f"in {len(slow)} replies" in poor
    assert "CAAL_TOOL_CALLS=server" in poor
    assert "CAAL_TOOL_CALLS" not in "\n".join(expectations(replace(found, api="ollama")))
    assert "What to expect by voice:" in markdown(found)


def test_the_object_has_counts_and_every_case() -> None:
    found = to_object(validation(*outcomes("native", "corrected"), *outcomes("text", "right")))
    assert found["suites"]["tool_call"] == {
        "native": {"right": 0, "corrected": 4, "total": 4},
        "text": {"right": 4, "corrected": 0, "total": 4},
    }
    assert "native" not in found["suites"]["text_protocol"]
    assert len(found["cases"]) == 4 * (8 + 9)
    assert json.loads(json.dumps(found)) == found
