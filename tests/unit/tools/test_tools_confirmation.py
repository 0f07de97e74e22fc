"""Calls that need a yes: asked for in turns of every tier, over the API, and by a button."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from livekit.agents import function_tool

from caal_node import effect
from caal_node.agent import CaalAgent
from caal_node.control.messages import CallAnswer, CallFailure, CallTool
from caal_node.core.errors import ToolUnavailable
from caal_node.core.events import (
    ConfirmationAsked,
    ConfirmationEnded,
    CuePlayed,
    Event,
    ToolCallEnded,
    from_json,
    to_json,
)
from caal_node.core.tool_spec import ToolSpec
from caal_node.policy.policy import Policy
from caal_node.policy.rule import Rule
from caal_node.room.cue_player import SilentCueSink
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.call_middleware import CallMiddleware, Proceed, ToolCallRequest
from caal_node.tools.front_end_answers import FrontEndAnswers, message_of
from caal_node.tools.middleware import confirmation as confirmation_question
from caal_node.tools.middleware.confirmation import PRESS_CHARS, yes_of
from caal_node.tools.middleware.policy_check import PolicyCheck
from caal_node.tools.pipeline import Gates
from caal_node.tools.source import Arguments, ToolListing

DOORS = {
    "type": "object",
    "properties": {"door": {"type": "string"}},
    "required": ["door"],
}
TIERS = {"unlock_door": "agent", "unlock_gate": "n8n", "home__unlock_safe": "mcp"}
UNTIL_S = 20.0


class Locks:
    """A remote source of one tool that destroys."""

    def __init__(self, tier: Any, name: str, wanted: str) -> None:
        source = "home" if tier == "mcp" else tier
        self._spec = ToolSpec(tier, source, name, wanted, "Unlock.", DOORS, effect="destructive")
        self.opened: list[Arguments] = []
        self.gone = False

    async def discover(self) -> ToolListing:
        return ToolListing((self._spec,))

    async def call(self, spec: ToolSpec, arguments: Arguments) -> Any:
        if self.gone:
            raise ToolUnavailable("home is gone.")
        self.opened.append(arguments)
        return {"open": True}

    async def aclose(self) -> None: ...


class House(CaalAgent):
    """An agent with a tool that destroys in each tier."""

    def __init__(self, gates: Gates | None = None, cues: str = "off", **options: Any) -> None:
        self.gate = Locks("n8n", "unlock_gate", "unlock_gate")
        self.safe = Locks("mcp", "unlock_safe", "home__unlock_safe")
        self.happened = asyncio.Event()
        self.opened_doors: list[Mapping[str, Any]] = []
        super().__init__(
            settings=plain_settings(CAAL_CUES=cues),
            tiers={"n8n": self.gate, "mcp": self.safe},
            gates=gates,
            on_event=lambda _: self.happened.set(),
            **options,
        )

    @function_tool
    @effect("destructive")
    async def unlock_door(self, door: str) -> str:
        """Unlock a door."""
        self.opened_doors.append({"door": door})
        return "open"

    @property
    def opened(self) -> list[Arguments]:
        """All that was opened, whichever tier did it."""
        return [*self.opened_doors, *self.gate.opened, *self.safe.opened]


def unlock(tool: str = "unlock_door", door: str = "front") -> ScriptedCall:
    return ScriptedCall(tool, {"door": door})


async def until(talk: AgentConversation, fits: Callable[[Event], bool]) -> Event:
    """The first event that fits, past ones included."""
    assert isinstance(talk.agent, House)
    async with asyncio.timeout(UNTIL_S):
        while not (found := [event for event in talk.events if fits(event)]):
            talk.agent.happened.clear()
            await talk.agent.happened.wait()
    return found[0]


@pytest.mark.parametrize("tool", TIERS)
async def test_a_yes_runs_exactly_what_was_read_back(tool: str) -> None:
    agent = House()
    async with AgentConversation(agent, ScriptedModel([unlock(tool)], "Done.")) as talk:
        asked = await talk.say("unlock it")
        assert asked.text.startswith("Shall I ")
        assert asked.text.endswith("front?")
        assert agent.opened == []
        turn = await talk.say("Yes, please.")
        (question,) = talk.events_of(ConfirmationAsked)
        (answer,) = talk.events_of(ConfirmationEnded)
        (ended,) = talk.events_of(ToolCallEnded)
    assert turn.text == "Done."
    assert agent.opened == [{"door": "front"}]
    assert question.words == asked.text
    assert question.call_id == answer.call_id == ended.call_id
    assert (answer.answer, answer.by, ended.outcome) == ("yes", "words", "ok")
    *_, decision = ended.decisions
    assert (decision.by, decision.verdict) == ("confirmation", "confirmed")
    assert from_json(to_json(question)) == question
    assert from_json(to_json(answer)) == answer


@pytest.mark.parametrize("tool", TIERS)
@pytest.mark.parametrize(
    ("answers", "meaning"),
    [
        (["No."], "no"),
        (["no, the back door"], "correction"),
        (["Yes, we are watching the match", "perhaps"], "unclear"),
    ],
)
async def test_nothing_else_runs_it_and_the_model_learns_why(
    tool: str, answers: list[str], meaning: str
) -> None:
    agent = House()
    model = ScriptedModel([unlock(tool)], "As you like.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        turns = [await talk.say(words) for words in answers]
        (answer,) = talk.events_of(ConfirmationEnded)
        (ended,) = talk.events_of(ToolCallEnded)
        results = [item.output for item in talk.history if item.type == "function_call_output"]
    assert agent.opened == []
    assert (answer.answer, ended.outcome) == (meaning, "refused")
    assert turns[-1].text == "As you like."
    assert "was not made" in results[0]
    assert ("back door" in results[0]) is (meaning == "correction")
    assert meaning in ended.decisions[-1].line


async def test_what_is_no_answer_is_asked_again_once() -> None:
    agent = House()
    async with AgentConversation(agent, ScriptedModel([unlock()], "Done.")) as talk:
        await talk.say("unlock it")
        again = await talk.say("Yes, we are watching the match")
        assert again.text == "Please say yes or no. Shall I unlock door: front?"
        await talk.say("yes")
    assert agent.opened == [{"door": "front"}]


async def test_a_corrected_call_is_read_back_anew() -> None:
    agent = House()
    model = ScriptedModel([unlock()], [unlock(door="back")], "Done.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        turn = await talk.say("No, the back door.")
        assert turn.text == "Shall I unlock door: back?"
        await talk.say("Yes.")
        first, second = talk.events_of(ConfirmationAsked)
    assert agent.opened == [{"door": "back"}]
    assert first.arguments_hash != second.arguments_hash


async def test_a_yes_holds_for_one_call_alone() -> None:
    agent = House()
    model = ScriptedModel([unlock()], "Done.", [unlock()], "Done again.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        await talk.say("yes")
        assert (await talk.say("once more")).text.startswith("Shall I")
        await talk.say("no")
    assert agent.opened == [{"door": "front"}]


@pytest.mark.parametrize("tool", TIERS)
@pytest.mark.parametrize("then", ["deny", "dry_run"])
async def test_what_is_forbidden_while_a_person_is_asked_does_not_run(tool: str, then: Any) -> None:
    agent = House()
    model = ScriptedModel([unlock(tool)], "It is forbidden now.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        (check,) = agent.policies.checks
        check.policy = Policy([Rule(then, tools=[tool], line="caal.toml, line 3")])
        turn = await talk.say("Yes.")
        (ended,) = talk.events_of(ToolCallEnded)
    assert agent.opened == []
    assert turn.text == "It is forbidden now."
    assert ended.outcome == "refused"
    assert [each.verdict for each in ended.decisions][-2:] == ["confirmed", "refused"]
    assert ended.decisions[-1].line == "caal.toml, line 3"


async def test_a_call_for_which_a_yes_was_not_asked_does_not_run_once_a_rule_wants_one() -> None:
    class AfterReload(CallMiddleware):
        name = "reload"

        async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
            check.policy = Policy([Rule("confirm", line="caal.toml, line 3")])
            return await proceed()

    check = PolicyCheck(Policy([Rule("allow")]), asks=True)
    agent = House(Gates(middleware=[check, AfterReload()]))
    async with AgentConversation(agent, ScriptedModel([unlock()], "Not now.")) as talk:
        await talk.say("unlock it")
        (ended,) = talk.events_of(ToolCallEnded)
    assert agent.opened == []
    assert ended.outcome == "refused"


async def test_a_call_that_was_denied_is_not_asked_for_again_in_the_same_turn() -> None:
    agent = House()
    model = ScriptedModel([unlock()], [unlock()], "Then not.", [unlock()], "Done.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        assert (await talk.say("no")).text == "Then not."
        await talk.say("unlock it after all")
        await talk.say("yes")
        assert len(talk.events_of(ConfirmationAsked)) == 2
    assert agent.opened == [{"door": "front"}]


async def test_several_calls_are_asked_for_one_after_the_other() -> None:
    agent = House()
    calls = [unlock("unlock_door"), unlock("unlock_gate"), unlock("home__unlock_safe")]
    async with AgentConversation(agent, ScriptedModel(calls, "Done.")) as talk:
        turn = await talk.say("unlock all")
        asked = [turn.text]
        for answer in ("yes", "no", "yes"):
            asked.append((await talk.say(answer)).text)
        outcomes = {ended.tool: ended.outcome for ended in talk.events_of(ToolCallEnded)}
        questions = [question.words for question in talk.events_of(ConfirmationAsked)]
    assert asked == [*questions, "Done."]
    assert len(questions) == 3
    refused = [tool for tool, outcome in outcomes.items() if outcome == "refused"]
    assert len(refused) == 1
    assert len(agent.opened) == 2


async def test_silence_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation_question, "TYPED_S", 0.01)
    agent = House()
    async with AgentConversation(agent, ScriptedModel([unlock()], "Never mind.")) as talk:
        await talk.say("unlock it")
        ended = await until(talk, lambda event: isinstance(event, ToolCallEnded))
        (answer,) = talk.events_of(ConfirmationEnded)
    assert isinstance(ended, ToolCallEnded)
    assert (answer.answer, answer.by, ended.outcome) == ("silence", "", "refused")
    assert agent.opened == []


async def test_a_server_that_goes_away_while_a_person_is_asked_is_an_error_of_the_call() -> None:
    agent = House()
    model = ScriptedModel([unlock("home__unlock_safe")], "It is away.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        agent.safe.gone = True
        await talk.say("yes")
        (ended,) = talk.events_of(ToolCallEnded)
    assert ended.outcome == "error"
    assert ended.decisions[-1].verdict == "confirmed"


@pytest.mark.parametrize("tool", TIERS)
async def test_a_call_that_is_cancelled_while_a_person_is_asked_does_not_run(tool: str) -> None:
    agent = House()
    async with AgentConversation(agent, ScriptedModel([unlock(tool)], "Hello.", "Yes?")) as talk:
        await talk.say("unlock it")
        agent.cancel_calls()
        ended = await until(talk, lambda event: isinstance(event, ConfirmationEnded))
        await talk.say("yes")
    assert isinstance(ended, ConfirmationEnded)
    assert ended.answer == "cancelled"
    assert agent.opened == []


@pytest.mark.parametrize("tool", TIERS)
async def test_a_conversation_that_ends_while_a_person_is_asked_runs_nothing(tool: str) -> None:
    agent = House()
    async with AgentConversation(agent, ScriptedModel([unlock(tool)], "Hello.")) as talk:
        await talk.say("unlock it")
    assert agent.opened == []


async def test_of_several_calls_that_are_cancelled_only_the_asked_one_is_told_of() -> None:
    agent = House()
    calls = [unlock("unlock_gate"), unlock("home__unlock_safe")]
    async with AgentConversation(agent, ScriptedModel(calls, "Hello.")) as talk:
        await talk.say("unlock both")
        agent.cancel_calls()
        await until(talk, lambda event: isinstance(event, ConfirmationEnded))
        await talk.interrupt()
    asked = [event.call_id for event in talk.events_of(ConfirmationAsked)]
    assert [event.call_id for event in talk.events_of(ConfirmationEnded)] == asked
    assert agent.opened == []


async def test_an_interrupted_turn_leaves_no_yes_behind() -> None:
    agent = House()
    model = ScriptedModel([unlock()], "Hello.", "Yes what?")
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        await talk.interrupt()
        agent.cancel_calls()
        await until(talk, lambda event: isinstance(event, ConfirmationEnded))
        await talk.say("yes")
    assert agent.opened == []


async def test_while_a_person_is_asked_nothing_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caal_node.room.cue_policy.TICK_EVERY_S", 0.01)
    monkeypatch.setattr(confirmation_question, "TYPED_S", 0.2)
    agent = House(cues="on", cue_sink=SilentCueSink())
    async with AgentConversation(agent, ScriptedModel([unlock()], "Never mind.")) as talk:
        await talk.say("unlock it")
        asked = len(talk.events)
        await until(talk, lambda event: isinstance(event, ConfirmationEnded))
        cues = [event.kind for event in talk.events[asked:] if isinstance(event, CuePlayed)]
    assert "tick" not in cues


async def test_the_list_of_middleware_says_what_is_asked_for() -> None:
    agent = House(Gates(middleware=[]))
    async with AgentConversation(agent, ScriptedModel([unlock()], "Done.")) as talk:
        await talk.say("unlock it")
    assert agent.opened == [{"door": "front"}]
    assert "confirmation" in [each.name for each in House().middleware]


# Where nobody can be asked.


@pytest.mark.parametrize("tool", TIERS)
async def test_the_api_names_the_call_and_takes_its_hash_for_a_yes(tool: str) -> None:
    agent = House()
    async with AgentConversation(agent, ScriptedModel("Hello.")) as talk:

        async def call(door: str, confirmation: str = "") -> Any:
            arguments = {"door": door}
            return await agent.on_tools(
                CallTool(name=tool, arguments=arguments, confirmation=confirmation)
            )

        refused = await call("front")
        assert isinstance(refused, CallFailure)
        assert refused.kind == "needs_confirmation"
        assert refused.question.endswith("front?")
        other = await call("back", refused.confirmation)
        assert isinstance(other, CallFailure)
        assert other.confirmation != refused.confirmation
        assert agent.opened == []
        done = await call("front", refused.confirmation)
        assert isinstance(done, CallAnswer)
        outcomes = [ended.outcome for ended in talk.events_of(ToolCallEnded)]
        assert talk.events_of(ConfirmationAsked) == []
    assert agent.opened == [{"door": "front"}]
    assert outcomes == ["refused", "refused", "ok"]


# A front end's button.

CALL_ID, HASH = "c1", "0" * 32


NAMES = {"call_id": CALL_ID, "arguments_hash": HASH}


def press(**changed: Any) -> str:
    """A button's message."""
    return json.dumps({**NAMES, "yes": True, **changed})


@pytest.mark.parametrize(
    ("message", "means"),
    [
        (press(), True),
        (press(yes=False), False),
        (press(call_id="c2"), None),
        (press(arguments_hash="1"), None),
        (press(yes=1), None),
        (press(yes=None), None),
        ("[true]", None),
        ("yes", None),
        ("[" * 900, None),
        (" " * PRESS_CHARS + press(), None),
    ],
)
def test_a_button_answers_the_call_that_it_names(message: str, means: bool | None) -> None:
    pressed = message_of(message, NAMES, PRESS_CHARS)
    assert (None if pressed is None else yes_of(pressed)) is means


class Pressed:
    """A text stream of LiveKit's, and the room that it comes from."""

    def __init__(self, *chunks: str) -> None:
        self._chunks = list(chunks)
        self.handler: Any = None

    def register_text_stream_handler(self, topic: str, handler: Any) -> None:
        assert topic == "caal.confirm"
        self.handler = handler

    def unregister_text_stream_handler(self, topic: str) -> None:
        self.handler = None

    def __aiter__(self) -> Pressed:
        return self

    async def __anext__(self) -> str:
        if not self._chunks:
            raise StopAsyncIteration
        return self._chunks.pop(0)


@pytest.mark.parametrize(
    ("presser", "person", "presses"),
    [("owner", "owner", [True]), ("guest", "owner", []), ("", "", [])],
)
async def test_a_button_counts_for_the_person_who_is_asked_alone(
    presser: str, person: str, presses: list[bool]
) -> None:
    room: Any = Pressed(press()[:9], press()[9:])
    pressed: list[Any] = []

    def take(message: Mapping[str, Any]) -> bool:
        pressed.append(message["yes"])
        return True

    button = FrontEndAnswers(room, person, NAMES, PRESS_CHARS, take)
    button.open()
    if room.handler is not None:
        room.handler(room, presser)
    for _ in range(5):
        await asyncio.sleep(0)
    await button.aclose()
    assert pressed == presses
    assert room.handler is None
