"""What is tried after each kind of failure, by the policy alone: no request is sent here."""

from __future__ import annotations

from typing import Any

import pytest

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import UserItem
from caal_node.grounding.references import Reference
from caal_node.models.backends.base import Capabilities
from caal_node.models.question import Question
from caal_node.models.reply_attempt import FailureSignal, ReplyAttempt
from caal_node.models.retry_policy import RetryPolicy

TOOL: Any = {"type": "function", "function": {"name": "look", "description": "", "parameters": {}}}
QUESTION = Question((UserItem("look"),), PromptTools((TOOL,)))


def tried(*signals: FailureSignal, native: bool = True, schema: bool = True) -> list[str]:
    """The names of the strategies that are tried while one attempt after another fails so."""
    policy = RetryPolicy("a model")
    policy.stats.capabilities = Capabilities(schema=schema)
    if not native:
        policy.stats.leave_native("a test")
    step = policy.first_step(QUESTION)
    names: list[str] = [step.strategy.name]
    for signal in signals:
        backend: Any = None  # The attempt is never run.
        attempt = ReplyAttempt(backend, step.strategy, step.question)
        attempt.signal = signal
        policy.learn_from(step, attempt)
        following = policy.next_step(step, attempt)
        if following is None:
            return [*names, "apology"]
        step = following
        names.append(step.strategy.name)
    return names


@pytest.mark.parametrize("signal", ["empty", "broken_call", "unknown_tool", "broke_off", "grammar"])
def test_the_same_is_asked_once_more_then_less_is_asked_of_the_model(signal: Any) -> None:
    expected = ["native", "native", "json_reply", "plain", "apology"]
    assert tried(signal, signal, signal, signal) == expected


def test_without_a_schema_the_text_protocol_stands_in_for_the_json_reply() -> None:
    expected = ["native", "native", "text_protocol", "plain", "apology"]
    assert tried("empty", "empty", "empty", "empty", schema=False) == expected


def test_what_the_server_refuses_is_not_asked_once_more() -> None:
    refusals: list[FailureSignal] = ["refused"] * 4
    assert tried(*refusals) == ["native", "json_reply", "text_protocol", "plain", "apology"]
    assert tried(*refusals, native=False)[:2] == ["json_reply", "text_protocol"]


def test_a_model_that_is_unsure_of_its_call_is_asked_for_speech_and_stays_as_it_is() -> None:
    policy = RetryPolicy("a model")
    policy.stats.capabilities = Capabilities(schema=True)
    policy.stats.leave_native("a test")
    step = policy.first_step(QUESTION)
    backend: Any = None
    attempt = ReplyAttempt(backend, step.strategy, step.question)
    attempt.signal = "unsure"
    policy.learn_from(step, attempt)
    following = policy.next_step(step, attempt)
    assert following is not None
    assert following.strategy.name == "json_reply"
    assert "calls" not in str(following.strategy.request(QUESTION).schema)
    assert "calls" in str(policy.first_step(QUESTION).strategy.request(QUESTION).schema)


def test_what_was_listed_already_is_asked_for_once_more_without_its_tool() -> None:
    policy = RetryPolicy("a model")
    policy.stats.capabilities = Capabilities(schema=True)
    policy.stats.leave_native("a test")
    other: Any = {**TOOL, "function": {**TOOL["function"], "name": "take"}}
    meant = Reference("the second one", ("Roma",), ("Roma",), "look", listed_by={})
    tools = PromptTools((TOOL, other))
    question = Question((UserItem("the second one"),), tools, references=(meant,))
    step = policy.first_step(question)
    backend: Any = None
    attempt = ReplyAttempt(backend, step.strategy, question)
    attempt.signal = "repeated"
    following = policy.next_step(step, attempt)
    assert following is not None
    request = following.strategy.request(following.question)
    assert request.items == attempt.request.items, "the server has read all of it"
    assert "'look'" in str(attempt.request.schema)
    assert "'look'" not in str(request.schema)
    assert not following.question.judges_calls, "so that no third request follows"
