"""The tool `undo`: what it takes back, by whose leave, how often, and what it says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import RunContext, function_tool

from caal_node.agent import CaalAgent
from caal_node.control.messages import CallAnswer, CallTool
from caal_node.core.errors import InvalidArguments, ToolBroke
from caal_node.core.events import ConfirmationAsked, ToolCallEnded
from caal_node.policy.policy import Policy
from caal_node.policy.rule import Rule
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.middleware.confirmation import Confirmation
from caal_node.tools.middleware.policy_check import PolicyCheck
from caal_node.tools.pipeline import Gates
from caal_node.tools.source import Undoable, VerbatimResult
from caal_node.tools.undo import KEPT_S, UNDO, undo_for

UNDO_CALL = ScriptedCall("undo", {})
NOTHING = "There is nothing that I can undo."
CANNOT = "Sorry, I can't undo that."


class Desk(CaalAgent):
    """Its notes can be taken back, its letters cannot."""

    def __init__(self, gates: Gates | None = None, **env: str) -> None:
        self.notes: list[str] = []
        self.undone: list[str] = []
        self.begun = asyncio.Event()
        self.goes_on = asyncio.Event()
        super().__init__(settings=plain_settings(**env), tiers={}, gates=gates, warm=False)

    @function_tool
    async def write_note(self, text: str) -> Undoable:
        """Write a note.

        Example: note that the door sticks -> {"text": "the door sticks"}
        """
        self.notes.append(text)

        async def undo() -> str:
            self.undone.append(text)
            self.notes.remove(text)
            return f"The note is gone: {text}."

        return Undoable({"note": text}, undo, f"Noted: {text}.")

    @function_tool
    async def write_slowly(self, text: str) -> Undoable:
        """Write a note whose undo takes its time."""
        self.notes.append(text)

        async def undo() -> str:
            self.undone.append(text)
            self.begun.set()
            await self.goes_on.wait()
            self.notes.remove(text)
            return "Gone."

        return Undoable("written", undo, "Noted slowly.")

    @function_tool
    async def begin_note(self) -> Undoable | str:
        """Write a note that goes on until somebody ends it."""
        self.begun.set()
        await self.goes_on.wait()
        return "written"

    @function_tool
    async def paint(self, color: str) -> Undoable:
        """Paint the desk, in a colour that stays on it."""

        async def undo() -> str:
            failure = ToolBroke("It is dry.")
            failure.words = "The paint is dry."
            raise failure

        return Undoable(color, undo, f"It is {color}.")

    @function_tool
    async def move_lamp(self, to: str) -> Undoable:
        """Move the lamp."""

        async def undo() -> VerbatimResult:
            return VerbatimResult({"lamp": "back"}, "The lamp is back.")

        return Undoable(to, undo, f"It is on the {to}.")

    @function_tool
    async def send_letter(self) -> str:
        """Send a letter."""
        return "sent"

    @function_tool
    async def get_notes(self) -> list[str]:
        """Return the notes."""
        return self.notes

    @function_tool
    async def write_wrongly(self, kind: str) -> str:
        """Fail."""
        raise InvalidArguments("no") if kind == "invalid" else ToolBroke("no")


def note(text: str) -> ScriptedCall:
    return ScriptedCall("write_note", {"text": text})


async def test_the_last_call_is_taken_back_once_and_then_the_one_before() -> None:
    agent = Desk()
    replies = [note("a")], [note("b")], [UNDO_CALL], "Gone.", [UNDO_CALL], "Gone too.", [UNDO_CALL]
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        for words in ("note a", "note b", "undo that"):
            turn = await talk.say(words)
        assert agent.notes == ["a"]
        assert turn.text == "Gone."
        assert turn.calls[0].outcome == "ok"
        await talk.say("and undo that too")
        assert agent.notes == []
        assert (await talk.say("undo that")).text == NOTHING
    assert agent.undone == ["b", "a"]


async def test_the_model_reads_what_was_undone() -> None:
    agent = Desk()
    async with AgentConversation(agent, ScriptedModel([note("a")], [UNDO_CALL], "Ok.")) as talk:
        await talk.say("note a")
        await talk.say("take that back")
        ended = talk.events_of(ToolCallEnded)[-1]
    assert (ended.tool, ended.outcome, ended.result) == ("undo", "ok", "The note is gone: a.")


async def test_all_that_one_turn_changed_is_taken_back() -> None:
    agent = Desk()
    replies = [note("a"), note("b")], [UNDO_CALL], "Both are gone."
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        await talk.say("note a and note b")
        await talk.say("undo that")
    assert agent.undone == ["b", "a"]


async def test_what_of_a_turn_could_not_be_undone_is_said() -> None:
    lamp = ScriptedCall("move_lamp", {"to": "floor"})
    paint = ScriptedCall("paint", {"color": "red"})
    letter = ScriptedCall("send_letter", {})
    turns = [
        ([lamp, letter], "The lamp is back. I can't undo the rest."),
        ([paint, lamp], "The lamp is back. The paint is dry."),
        ([lamp, paint], "The paint is dry."),
        ([lamp], "The lamp is back."),
    ]
    for calls, heard in turns:
        replies = [calls, *(["Sent."] if letter in calls else []), [UNDO_CALL]]
        async with AgentConversation(Desk(), ScriptedModel(*replies)) as talk:
            await talk.say("paint the desk red, move the lamp to the floor, send the letter")
            assert (await talk.say("undo that")).text == heard


async def test_a_call_under_way_is_not_undone_and_neither_is_the_one_before() -> None:
    agent = Desk()
    replies = [note("a")], [ScriptedCall("begin_note", {})], [UNDO_CALL], "Ended."
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        await talk.say("note a")
        going_on = asyncio.create_task(talk.say("begin a note"))
        await agent.begun.wait()
        answer = await agent.on_tools(CallTool(name="undo", arguments={}))
        assert isinstance(answer, CallAnswer)
        assert answer.result == {"undone": [], "not_undone": ["begin_note"]}
        agent.goes_on.set()
        await going_on
    assert agent.notes == ["a"]


async def test_a_call_of_some_minutes_ago_is_not_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, now = Desk(), [0.0]
    monkeypatch.setattr(agent._pipeline.undos, "_clock", lambda: now[0])  # pyright: ignore[reportPrivateUsage]
    replies = [note("a")], [UNDO_CALL], "Ok.", [note("b")], [UNDO_CALL]
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        await talk.say("note a")
        now[0] += KEPT_S
        await talk.say("undo that")
        assert agent.undone == ["a"]
        await talk.say("note b")
        now[0] += KEPT_S + 1
        assert (await talk.say("undo that")).text == NOTHING
    assert agent.undone == ["a"]


async def test_nothing_behind_what_cannot_be_undone_is_undone() -> None:
    agent = Desk()
    letter = [ScriptedCall("send_letter", {})]
    replies = [note("a")], letter, "Sent.", [UNDO_CALL]
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        await talk.say("note a")
        await talk.say("send the letter")
        assert (await talk.say("undo that")).text == CANNOT
    assert agent.notes == ["a"]


@pytest.mark.parametrize(
    "between",
    [ScriptedCall("get_notes", {}), ScriptedCall("write_wrongly", {"kind": "invalid"})],
    ids=["reads", "failed before it did anything"],
)
async def test_a_call_that_changed_nothing_is_passed_over(between: ScriptedCall) -> None:
    agent = Desk()
    replies = [note("a")], [between], "That is it.", [UNDO_CALL], "Gone."
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        for words in ("note a", "get my notes, write wrongly", "undo that"):
            await talk.say(words)
    assert agent.undone == ["a"]


async def test_a_call_that_broke_off_is_not_passed_over() -> None:
    agent = Desk()
    broken = ScriptedCall("write_wrongly", {"kind": "broken"})
    replies = [note("a")], [broken], "That failed.", [UNDO_CALL]
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        await talk.say("note a")
        await talk.say("write wrongly")
        assert (await talk.say("undo that")).text == CANNOT
    assert agent.notes == ["a"]


async def test_an_undo_that_is_cancelled_is_not_run_again() -> None:
    agent = Desk()
    slow = [ScriptedCall("write_slowly", {"text": "a"})]
    async with AgentConversation(agent, ScriptedModel(slow, [UNDO_CALL], [UNDO_CALL])) as talk:
        await talk.say("write a slowly")
        undoing = asyncio.create_task(talk.say("undo that"))
        await agent.begun.wait()
        agent.cancel_calls()
        await undoing
        agent.goes_on.set()
        assert (await talk.say("undo that")).text == NOTHING
    assert agent.undone == ["a"]
    assert talk.events_of(ToolCallEnded)[1].outcome == "cancelled"


def with_rule(then: Any, tool: str, **conditions: Any) -> Gates:
    policy = Policy(rules=[Rule(then, tools=[tool], **conditions)])
    check = PolicyCheck(policy, asks=True)
    return Gates(middleware=[check, Confirmation(check.needs_yes)])


@pytest.mark.parametrize("tool", ["undo", "write_note"])
async def test_the_owner_s_rules_about_undo_and_about_the_tool_hold(tool: str) -> None:
    agent = Desk(with_rule("confirm", tool))
    async with AgentConversation(agent, ScriptedModel([note("a")], [UNDO_CALL], "Ok.")) as talk:
        await talk.say("note a")
        if tool == "write_note":
            await talk.say("yes")
        asked = await talk.say("undo that")
        assert asked.text == "Shall I undo write note: text a?"
        assert agent.notes == ["a"]
        await talk.say("yes")
    assert agent.notes == []
    assert len(talk.events_of(ConfirmationAsked)) == (2 if tool == "write_note" else 1)


async def test_an_undo_that_is_refused_can_be_asked_for_again() -> None:
    agent = Desk(with_rule("confirm", "undo"))
    replies = [note("a")], [UNDO_CALL], "All right.", [UNDO_CALL], "Gone."
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        for words in ("note a", "undo that", "no"):
            await talk.say(words)
        assert agent.notes == ["a"]
        await talk.say("do undo that")
        await talk.say("yes")
    assert agent.notes == []


async def test_who_may_not_call_the_tool_may_not_take_its_call_back() -> None:
    agent = Desk(with_rule("allow", "nothing"))
    async with AgentConversation(agent, ScriptedModel([note("a")], [UNDO_CALL], "No.")) as talk:
        await talk.say("note a")
        agent.middleware.insert(0, PolicyCheck(Policy(rules=[Rule("deny", tools=["write_*"])])))
        await talk.say("undo that")
        assert talk.events_of(ToolCallEnded)[-1].outcome == "refused"
    assert agent.notes == ["a"]


async def test_a_dry_run_has_nothing_to_undo_and_undoes_nothing() -> None:
    agent = Desk(with_rule("allow", "nothing"))
    async with AgentConversation(agent, ScriptedModel([note("a")], [UNDO_CALL])) as talk:
        await talk.say("note a")
        dry = Desk(CAAL_DRY_RUN="on").middleware
        agent.middleware[:] = dry
        assert "would have" in (await talk.say("undo that")).text
    assert agent.notes == ["a"]
    dry_agent = Desk(CAAL_DRY_RUN="on")
    async with AgentConversation(dry_agent, ScriptedModel([note("a")], [UNDO_CALL])) as talk:
        await talk.say("note a")
        await talk.say("undo that")
    assert dry_agent.undone == []


async def test_the_api_undoes_by_name_and_its_own_calls_are_not_the_conversation_s() -> None:
    agent = Desk()
    async with AgentConversation(agent, ScriptedModel([note("a")])) as talk:
        await talk.say("note a")
        await agent.on_tools(CallTool(name="write_note", arguments={"text": "program"}))
        answer = await agent.on_tools(CallTool(name="undo", arguments={}))
        assert isinstance(answer, CallAnswer)
        assert answer.result == "The note is gone: a."
    assert agent.notes == ["program"]


def test_undo_is_there_if_a_tool_declares_it_and_none_has_its_name() -> None:
    @function_tool
    async def plain(text: str) -> str:
        """Plain."""
        return text

    @function_tool
    async def sometimes(context: RunContext[None]) -> Undoable | None:
        """Sometimes."""

    @function_tool(name="undo")
    async def own(text: str) -> str:
        """Own."""
        return text

    assert undo_for([plain]) == []
    assert undo_for([plain, sometimes]) == [UNDO]
    assert undo_for([sometimes, own]) == []


async def test_undo_comes_and_goes_with_the_tools_of_an_agent() -> None:
    agent = Desk()
    assert UNDO in agent.tools
    (undoable,) = (each for each in agent.tools if each.id == "write_note")
    (plain,) = (each for each in agent.tools if each.id == "get_notes")
    async with AgentConversation(agent, ScriptedModel()):
        await agent.update_tools([plain])
        assert "undo" not in agent.table
        await agent.update_tools([*agent.tools, undoable])
        assert "undo" in agent.table
        await agent.update_tools(agent.tools)
        assert [entry.exposed for entry in agent.table].count("undo") == 1


async def test_an_author_s_own_undo_takes_precedence() -> None:
    class Own(Desk):
        @function_tool
        async def undo(self) -> str:
            """Undo in another way."""
            return "My own undo."

    agent = Own()
    assert UNDO not in agent.tools
    async with AgentConversation(agent, ScriptedModel([note("a")], [UNDO_CALL], "Ok.")) as talk:
        await talk.say("note a")
        await talk.say("undo that")
        assert talk.events_of(ToolCallEnded)[-1].result == "My own undo."
    assert agent.notes == ["a"]


async def test_nothing_is_undone_in_the_next_session() -> None:
    agent = Desk()
    async with AgentConversation(agent, ScriptedModel([note("a")])) as talk:
        await talk.say("note a")
    async with AgentConversation(agent, ScriptedModel([UNDO_CALL])) as talk:
        assert (await talk.say("undo that")).text == NOTHING
