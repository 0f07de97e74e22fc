"""How likely a call is what the person wants, from the odds of its tokens and what was said."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caal_node.context.prompt_tools import PromptTools
from caal_node.core.items import AssistantItem, ResultItem, SystemItem, UserItem
from caal_node.grounding.confidence import CallSignals, confidence_of, features_of, sigmoid
from caal_node.models.backends.base import Chunk, GeneratedToken, ReplyDone, TextChunk, Usage
from caal_node.models.call_confidence import CallConfidence
from caal_node.models.question import Question
from caal_node.models.second_look import (
    TALK_CHARS,
    TALK_ITEMS,
    VALUE_CHARS,
    ProposedCall,
    read_second_look,
    second_look_request,
)
from caal_node.reply_parser import ToolCallEnd

SHARES = st.floats(0, 1)
LOGPROBS = st.none() | st.floats(max_value=0, allow_nan=False)
TIMER: Any = {
    "type": "function",
    "function": {
        "name": "set_timer",
        "description": "Start a timer.",
        "parameters": {
            "type": "object",
            "properties": {"label": {"type": "string"}},
            "required": ["label"],
        },
    },
}
LAMP: Any = {
    "type": "function",
    "function": {
        "name": "set_lamp",
        "description": "Switch a lamp.",
        "parameters": {"type": "object", "properties": {"lamp": {"type": "string"}}},
    },
}


@given(SHARES, SHARES, st.none() | st.floats(), LOGPROBS, LOGPROBS)
def test_whatever_is_known_it_is_a_probability(
    said: float,
    fit: float,
    odds: float | None,
    name: float | None,
    value: float | None,
) -> None:
    if odds is not None and math.isnan(odds):
        odds = None
    signals = CallSignals(said, fit, odds, name, value)
    assert 0 <= confidence_of(signals) <= 1
    assert all(-1 <= each <= 1 for each in features_of(signals).values())


@given(st.floats(allow_nan=False))
def test_log_odds_of_any_size_are_a_probability(log_odds: float) -> None:
    assert 0 <= sigmoid(log_odds) <= 1
    assert sigmoid(log_odds) + sigmoid(-log_odds) == pytest.approx(1)


def test_what_nobody_said_of_a_tool_that_does_not_fit_is_less_likely() -> None:
    for likely in (CallSignals(1.0, 1.0), CallSignals(1.0, 1.0, 6.0, -0.1, -0.1)):
        assert confidence_of(replace(likely, said=0.0)) < confidence_of(likely)
        assert confidence_of(replace(likely, fit=0.0)) < confidence_of(likely)


def test_a_model_that_is_less_sure_of_its_tokens_is_believed_less() -> None:
    sure = CallSignals(1.0, 1.0, odds=8.0, name=-0.01, value=-0.01)
    unsure = CallSignals(1.0, 1.0, odds=-4.0, name=-3.0, value=-3.0)
    assert confidence_of(unsure) < confidence_of(sure)


def token(text: str, *others: tuple[str, float], own: float = -0.1) -> GeneratedToken:
    return GeneratedToken(text, tuple(sorted([(text, own), *others], key=lambda one: -one[1])))


def judging(*tokens: GeneratedToken, words: str = "a timer for the eggs") -> CallConfidence:
    question = Question((SystemItem("You help."), UserItem(words)), PromptTools((TIMER, LAMP)))
    judging = CallConfidence(question)
    judging.see(TextChunk("".join(each.text for each in tokens), tokens))
    return judging


def test_the_signals_are_those_of_the_calls_own_tokens() -> None:
    judge = judging(
        token('{"'),
        token("calls", ("say", -4.1), own=-0.1),
        token('":[{"name":"', own=-5.0),
        token("set_", own=-0.2),
        token("timer", own=-0.7),
        token('","arguments":{"label":"', own=-5.0),
        token("egg", own=-0.3),
        token("s", own=-1.5),
        token('"}}]}', own=-5.0),
    )
    signals = judge.signals(ToolCallEnd("1", "set_timer", {"label": "eggs"}))
    assert signals.odds == pytest.approx(4.0)
    assert signals.name == -0.7
    assert signals.value == -1.5
    assert (signals.said, signals.fit) == (1.0, 1.0)


def test_each_call_of_a_reply_is_judged_by_its_own_tokens() -> None:
    judge = judging(
        token('{"calls":['),
        token("set_timer", own=-0.2),
        token(' "'),
        token("eggs", own=-0.3),
        token('" '),
        token("set_timer", own=-2.0),
        token(' "'),
        token("tea", own=-3.0),
    )
    first = judge.signals(ToolCallEnd("1", "set_timer", {"label": "eggs"}))
    second = judge.signals(ToolCallEnd("2", "set_timer", {"label": "tea"}))
    assert (first.name, first.value) == (-0.2, -0.3)
    assert (second.name, second.value) == (-2.0, -3.0)
    assert second.said == 0.0


def test_without_odds_words_alone_decide() -> None:
    judge = judging()
    (said,) = judge.judged([ToolCallEnd("1", "set_timer", {"label": "eggs"})])
    (unsaid,) = judge.judged([ToolCallEnd("2", "set_lamp", {"lamp": "cellar"})])
    assert isinstance(said, ToolCallEnd)
    assert isinstance(unsaid, ToolCallEnd)
    assert said.confidence is not None
    assert unsaid.confidence is not None
    assert unsaid.confidence < said.confidence


async def reply(*tokens: GeneratedToken, text: str | None = None) -> AsyncGenerator[Chunk]:
    if text is not None:
        yield TextChunk(text)
    for each in tokens:
        yield TextChunk(each.text, (each,))
    yield ReplyDone("stop", Usage())


async def test_a_look_is_as_sure_as_its_least_sure_answer() -> None:
    ln = math.log
    found = await read_second_look(
        reply(
            token('{"wanted'),
            token('": "'),
            token("yes", ("no", ln(0.1)), ("Yes", ln(0.1)), own=ln(0.8)),
            token('", "lamp":'),
            token(' "'),
            token("no", ("yes", ln(0.25)), own=ln(0.75)),
            token('"}'),
        )
    )
    assert found == pytest.approx(0.25)


async def test_without_odds_the_words_of_a_look_count() -> None:
    yes = await read_second_look(reply(text='{"wanted": "yes", "lamp": "yes"}'))
    no = await read_second_look(reply(text='{"wanted": "yes", "lamp": "no"}'))
    assert yes == pytest.approx(0.9)
    assert no == pytest.approx(0.1)


@given(st.text(max_size=200))
async def test_no_reply_of_a_look_breaks_anything(text: str) -> None:
    found = await read_second_look(reply(text=text))
    assert found is None or 0 <= found <= 1


@given(
    st.lists(st.text(max_size=2_000), max_size=10),
    st.dictionaries(st.text(max_size=100), st.text(max_size=2_000) | st.integers(), max_size=20),
)
@example([], {"<channel|>": ""})
def test_a_look_is_a_bounded_question_of_quoted_data(
    said: list[str], arguments: dict[str, Any]
) -> None:
    request = second_look_request(
        [UserItem(text) for text in said], ProposedCall("set_lamp", "Switch a lamp.", arguments)
    )
    asked = request.items[-1]
    assert isinstance(asked, UserItem)
    assert "\n" not in asked.text
    told = json.loads(asked.text)
    assert len(told["talk"]) <= TALK_ITEMS
    assert all(len(line) <= TALK_CHARS for line in told["talk"])
    assert all(len(str(value)) <= VALUE_CHARS for value in told["arguments"].values())
    assert request.schema is not None
    assert set(request.schema["required"]) == {"wanted", *told["arguments"]}


def test_a_look_shows_earlier_results_and_answers_but_no_instructions() -> None:
    talk = [
        SystemItem("Be kind."),
        UserItem("which lamps are on"),
        ResultItem("1", "get_lamps", '["cellar"]'),
        AssistantItem("The cellar lamp."),
        UserItem("switch it off"),
    ]
    asked = second_look_request(talk, ProposedCall("set_lamp", "", {"lamp": "cellar"})).items[-1]
    assert isinstance(asked, UserItem)
    assert json.loads(asked.text)["talk"] == [
        "Person: which lamps are on",
        'Tool get_lamps: ["cellar"]',
        "Assistant: The cellar lamp.",
        "Person: switch it off",
    ]
