"""Whole turns of an agent whose model says that it has done what it has not, with a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from livekit.agents import llm

from caal_node.agent import CaalAgent
from caal_node.answers.checked_reply import checked
from caal_node.answers.claims import ReplyLedger
from caal_node.control.messages import SwitchRequest
from caal_node.core.errors import ToolBroke
from caal_node.core.events import ClaimCorrected, Events
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.grounding.claim_check import ClaimCheck
from caal_node.grounding.ledger import Ledger
from caal_node.models.backends.base import BackendRequest, Chunk
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    ScriptedToolSource,
    plain_settings,
)

DEVICE = {"type": "object", "properties": {"device": {"type": "string"}}, "required": ["device"]}
OFF = ToolSpec("n8n", "n8n", "turn_off", "turn_off", "Turn off a device, such as a lamp.", DEVICE)
NOTE = ToolSpec(
    *("n8n", "n8n", "add_note", "add_note", "Write a note."),
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
LAMP = ScriptedCall("turn_off", {"device": "lamp"})
NOT_DONE, NOT_POSSIBLE = sentence("claim_not_done"), sentence("claim_not_possible")
NOT_LOOKED_UP = sentence("claim_not_looked_up")


async def works(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    return {"ok": True}


async def fails(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    raise ToolBroke("the lamp does not answer")


class Talk(AgentConversation):
    """A conversation whose tools are a lamp's switch and a notebook."""

    def __init__(
        self, *replies: ScriptedReply, answer: Any = works, native: bool = True, **settings: str
    ) -> None:
        self.tier = ScriptedToolSource(OFF, NOTE, answer=answer)
        agent = CaalAgent(settings=plain_settings(**settings), tiers={"n8n": self.tier}, warm=False)
        self.scripted = ScriptedModel(*replies, native_tools=native)
        super().__init__(agent, self.scripted)

    @property
    def became(self) -> list[str]:
        return [event.became for event in self.events_of(ClaimCorrected)]


@pytest.mark.parametrize("detection", ["complete", "streamed"])
async def test_a_claim_that_a_call_covers_is_said(detection: str) -> None:
    async with Talk([LAMP], "I've turned off the lamp.", CAAL_DETECTION=detection) as talk:
        assert (await talk.say("turn off the lamp")).text == "I've turned off the lamp."
        assert talk.became == []


@pytest.mark.parametrize("detection", ["complete", "streamed"])
async def test_a_claim_without_a_call_becomes_the_call_by_one_more_request(detection: str) -> None:
    replies = ["Sure! I've turned off the lamp."], [LAMP], "The lamp is off."
    async with Talk(*replies, CAAL_DETECTION=detection) as talk:
        turn = await talk.say("turn off the lamp")
        assert turn.text == "Sure! The lamp is off."
        assert talk.tier.calls == [("turn_off", {"device": "lamp"})]
        assert talk.became == ["call"]
        assert len(talk.scripted.requests) == 3
        assert talk.scripted.requests[1].must_call


async def test_it_becomes_the_call_where_calls_are_written_as_text() -> None:
    call = '{"calls": [{"tool": "turn_off", "arguments": {"device": "lamp"}}]}'
    replies = '{"say": "The lamp is off now."}', call, '{"say": "The lamp is off now."}'
    async with Talk(*replies, native=False) as talk:
        assert (await talk.say("turn off the lamp")).text == "The lamp is off now."
        assert talk.tier.calls == [("turn_off", {"device": "lamp"})]


LOCK = ToolSpec("n8n", "n8n", "lock_door", "lock_door", "Lock a door.", DEVICE)
DOOR = ToolSpec(
    *("n8n", "n8n", "door_state", "door_state", "Whether a door is open or locked.", DEVICE),
    effect="read",
)
LOOKED = ScriptedCall("door_state", {"device": "back door"})


class House(AgentConversation):
    """A conversation whose tools are a door's lock and, as a rule, what tells of the door."""

    def __init__(self, *replies: ScriptedReply, reads: bool = True, **settings: str) -> None:
        specs = (LOCK, DOOR) if reads else (LOCK,)
        self.tier = ScriptedToolSource(*specs, answer=self._answer)
        agent = CaalAgent(settings=plain_settings(**settings), tiers={"n8n": self.tier}, warm=False)
        self.scripted = ScriptedModel(*replies)
        super().__init__(agent, self.scripted)

    async def _answer(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return {"device": "back door", "state": "locked"} if spec.name == "door_state" else "ok"


@pytest.mark.parametrize("detection", ["complete", "streamed"])
async def test_a_state_that_no_call_has_read_is_read_by_one_more_request(detection: str) -> None:
    replies = "No, the back door is open.", [LOOKED], "Yes, the back door is locked."
    async with House(*replies, CAAL_DETECTION=detection) as talk:
        turn = await talk.say("is the back door locked")
        assert turn.text == "Yes, the back door is locked."
        assert talk.tier.calls == [("door_state", {"device": "back door"})]
        assert talk.scripted.requests[1].must_call


@pytest.mark.parametrize(
    "second", ["It is locked.", [ScriptedCall("lock_door", {"device": "back door"})]]
)
async def test_a_state_that_is_not_read_when_asked_again_is_not_told(second: ScriptedReply) -> None:
    async with House("The back door is locked.", second) as talk:
        assert (await talk.say("uh is the back door locked")).text == NOT_LOOKED_UP
        assert talk.tier.calls == [], "to ask of a door locks none"


async def test_a_state_that_a_tool_can_only_set_is_not_told() -> None:
    async with House("Yes, it is locked.", reads=False) as talk:
        assert (await talk.say("did I lock the front door")).text == NOT_LOOKED_UP
        assert len(talk.scripted.requests) == 1


async def test_an_order_behind_a_question_is_carried_out() -> None:
    lock = ScriptedCall("lock_door", {"device": "back door"})
    async with House("It is already locked.", [lock], "The back door is locked now.") as talk:
        turn = await talk.say("did I leave the back door open, um, just lock it")
        assert turn.text == "The back door is locked now."
        assert talk.tier.calls == [("lock_door", {"device": "back door"})]


async def test_a_state_that_an_earlier_result_has_is_told() -> None:
    said = "The back door is locked."
    async with House([LOOKED], said, "Yes, it is still locked.") as talk:
        assert (await talk.say("is the back door locked")).text == said
        assert (await talk.say("is the door still locked")).text == "Yes, it is still locked."
        assert len(talk.scripted.requests) == 3


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("is the back door locked", "Do you mean the door to the garden?"),
        ("is the back door locked", "I can't see whether the door is locked."),
        ("is the bakery open today", "The bakery is open until six."),
        ("why is a door locked at night", "The door is locked so that nobody comes in."),
        ("what do I do if the door is open", "Ask me, and the door is locked at once."),
        ("is the baker's shop open", "The shop is open."),
        ("I think the door is locked", "Good, then the door is locked."),
        ("are you open to ideas", "My mind is open."),
    ],
)
async def test_what_reports_no_state_of_a_thing_that_was_asked_for_is_said(
    asked: str, reply: str
) -> None:
    async with House(reply) as talk:
        assert (await talk.say(asked)).text == reply


async def test_what_the_person_has_told_of_a_thing_may_be_told_again() -> None:
    async with House("All right.", "Yes, the door is locked.") as talk:
        await talk.say("I have the key of the back door with me")
        assert (await talk.say("so is the door locked")).text == "Yes, the door is locked."


async def test_a_promise_whose_call_follows_is_said_and_nothing_is_asked_again() -> None:
    async with Talk(["I'll turn off the lamp. ", LAMP], "Done.") as talk:
        assert (await talk.say("turn off the lamp")).text == "I'll turn off the lamp. Done."
        assert len(talk.scripted.requests) == 2


async def test_what_is_told_as_done_before_its_call_ran_is_not_said() -> None:
    async with Talk(["I've turned off the lamp. ", LAMP], "Done.") as talk:
        assert (await talk.say("turn off the lamp")).text == "Done."
        assert talk.became == ["nothing"]


async def test_a_claim_that_no_tool_fits_becomes_an_honest_sentence() -> None:
    async with Talk("I've ordered a pizza for you. It will arrive in half an hour.") as talk:
        assert (await talk.say("order me a pizza")).text == NOT_DONE
        assert talk.became == ["sentence"]
        assert len(talk.scripted.requests) == 1


async def test_a_promise_that_no_tool_fits_becomes_an_honest_sentence() -> None:
    async with Talk("Okay, I'll order a pizza for you right away.") as talk:
        assert (await talk.say("order me a pizza")).text == NOT_POSSIBLE


@pytest.mark.parametrize("second", ["I have turned off the lamp!", [ScriptedCall("add_note", {})]])
async def test_a_model_that_does_not_call_the_tool_either_time_says_so(
    second: ScriptedReply,
) -> None:
    async with Talk("The lamp is off.", second) as talk:
        assert (await talk.say("turn off the lamp")).text == NOT_DONE
        assert talk.tier.calls == []
        assert talk.scripted.replies_left == 0


async def test_a_request_again_that_fails_is_an_honest_sentence() -> None:
    async with Talk("The lamp is off.", OSError("gone")) as talk:
        assert (await talk.say("turn off the lamp")).text == NOT_DONE


async def test_a_failed_call_is_never_told_as_done() -> None:
    async with Talk([LAMP], "I've turned off the lamp.", answer=fails) as talk:
        assert (await talk.say("turn off the lamp")).text == sentence("tool_failed")
        assert len(talk.scripted.requests) == 2


async def test_what_was_said_of_the_failure_is_said() -> None:
    reply = "I couldn't turn off the lamp, as it does not answer."
    async with Talk([LAMP], reply, answer=fails) as talk:
        assert (await talk.say("turn off the lamp")).text == reply


async def test_a_dry_run_is_never_told_as_done() -> None:
    async with Talk([LAMP], "Done, the lamp is off.", CAAL_DRY_RUN="on") as talk:
        said = (await talk.say("turn off the lamp")).text
        assert "would have" in said
        assert "is off" not in said
        assert talk.tier.calls == []


@pytest.mark.parametrize(
    "answer",
    [
        "The lamp is off. Good night!",
        "It's dark now, sleep well.",
        "I've seen to it, as you asked.",
        "I put out the light beside your bed.",
        "Das Licht habe ich ausgemacht.",
    ],
)
async def test_nothing_is_denied_behind_a_call_that_worked(answer: str) -> None:
    async with Talk([LAMP], answer) as talk:
        assert (await talk.say("turn off the lamp")).text == answer
        assert talk.became == []


async def test_an_announced_look_up_that_no_tool_does_is_left_out_and_the_rest_is_said() -> None:
    async with Talk("Let me check. Paris is the capital of France.") as talk:
        said = (await talk.say("what is the capital of France?")).text
        assert said == "Paris is the capital of France."
        assert talk.became == ["nothing"]


@pytest.mark.parametrize("reply", ["Let me check.", "I've looked it up, and it is open."])
async def test_a_look_up_that_no_tool_can_do_and_nothing_else_is_told_of(reply: str) -> None:
    async with Talk(reply) as talk:
        said = (await talk.say("when does the museum open?")).text
        assert said == sentence("claim_not_looked_up")


async def test_a_turn_asks_again_once_at_most() -> None:
    async with Talk("The lamp is off.", [LAMP], "I've added the note for Anna, too.") as talk:
        said = (await talk.say("turn off the lamp and add a note for Anna")).text
        assert said == NOT_DONE
        assert len(talk.scripted.requests) == 3


async def test_a_read_only_question_is_answered_untouched() -> None:
    reply = "The window is open, and the door is locked. Anything else?"
    async with Talk(reply) as talk:
        assert (await talk.say("is the window open?")).text == reply
        assert talk.became == []


async def test_it_can_be_switched_off() -> None:
    async with Talk("I've turned off the lamp.", CAAL_CHECKS="off") as talk:
        assert (await talk.say("turn off the lamp")).text == "I've turned off the lamp."


async def test_it_is_switched_within_a_conversation() -> None:
    said = "I've turned off the lamp."
    async with Talk(said, said, said, NOT_DONE) as talk:
        talk.agent.on_switch(SwitchRequest(checks={"claims": False}))
        assert (await talk.say("turn off the lamp")).text == said
        report = talk.agent.on_switch(SwitchRequest(checks={"claims": True}))
        assert report.checks["claims"]
        assert (await talk.say("turn off the lamp")).text == NOT_DONE


class Correcting:
    """A corrector that keeps what it is given."""

    over = False
    owed = ""

    def __init__(self) -> None:
        self.claims: list[str] = []

    async def correct(self, claim: str, *, spoke: bool) -> AsyncGenerator[llm.ChatChunk]:
        self.claims.append(claim)
        yield text("[corrected]")

    def drop(self, claim: str) -> None:
        self.claims.append(claim)


def text(words: str) -> llm.ChatChunk:
    return llm.ChatChunk(id="r", delta=llm.ChoiceDelta(role="assistant", content=words))


async def stream(*pieces: str) -> AsyncGenerator[llm.ChatChunk]:
    for piece in pieces:
        yield text(piece)


def filtered(chunks: AsyncGenerator[llm.ChatChunk]) -> AsyncGenerator[llm.ChatChunk]:
    ledger = Ledger("turn off the lamp")
    return checked(
        chunks, [ClaimCheck(lambda: ledger)], Correcting(), ReplyLedger([], {}), Events()
    )


async def said(chunks: AsyncGenerator[llm.ChatChunk]) -> str:
    return "".join([(chunk.delta and chunk.delta.content) or "" async for chunk in chunks])


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
async def test_a_claim_is_held_however_it_comes(size: int) -> None:
    reply = "Sure. I've turned off the lamp. Good night!"
    pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
    assert await said(filtered(stream(*pieces))) == "Sure. [corrected]Good night!"


async def test_a_reply_without_an_action_passes_untouched() -> None:
    reply = "Snow is white, as it\n  scatters light;  all of it — really… And you? \n"
    assert await said(filtered(stream(*reply))) == reply


async def test_the_first_clause_is_heard_before_the_second_is_there() -> None:
    more = asyncio.Event()

    async def slow() -> AsyncGenerator[llm.ChatChunk]:
        yield text("It is Tuesday. ")
        await more.wait()
        yield text("All day.")

    chunks = filtered(slow())
    first = await asyncio.wait_for(anext(chunks), 5)
    assert first.delta is not None
    assert first.delta.content == "It is Tuesday. "
    more.set()
    assert await said(chunks) == "All day."


async def test_a_reply_that_is_thrown_away_leaves_nothing_behind() -> None:
    """As LiveKit does where a person goes on speaking: the generator is closed, then asked anew."""
    closed: list[bool] = []

    async def endless() -> AsyncGenerator[llm.ChatChunk]:
        try:
            yield text("Sure. ")
            yield text("I've turned off the lamp")
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    before = asyncio.all_tasks()
    source = endless()
    chunks = filtered(source)
    assert (await anext(chunks)).delta is not None
    waiting = asyncio.ensure_future(anext(chunks))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await chunks.aclose()
    await source.aclose()
    assert closed == [True]
    assert asyncio.all_tasks() <= before


class Hanging(ScriptedModel):
    """A model whose second request is not answered, until it is thrown away."""

    def __init__(self, *replies: ScriptedReply) -> None:
        super().__init__(*replies)
        self.asked_again, self.ended = asyncio.Event(), asyncio.Event()
        answer = self.backend.ask

        async def ask(request: BackendRequest) -> AsyncGenerator[Chunk]:
            if request.must_call:
                self.asked_again.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.ended.set()
            async with aclosing(answer(request)) as chunks:
                async for chunk in chunks:
                    yield chunk

        self.backend.ask = ask


async def test_a_turn_that_is_ended_while_the_call_is_asked_for_leaves_nothing_behind() -> None:
    model = Hanging("The lamp is off.", "It is Tuesday.")
    tier = ScriptedToolSource(OFF, answer=works)
    agent = CaalAgent(settings=plain_settings(), tiers={"n8n": tier}, warm=False)
    async with AgentConversation(agent, model) as talk, asyncio.timeout(20):
        turn = asyncio.ensure_future(talk.say("turn off the lamp"))
        await model.asked_again.wait()
        turn.cancel()
        await asyncio.wait([turn])
        await model.ended.wait()
        assert (await talk.say("which day is it?")).text == "It is Tuesday."
        assert tier.calls == []
        assert talk.events_of(ClaimCorrected) == []
        said = [item.text_content for item in talk.history if isinstance(item, llm.ChatMessage)]
        assert "The lamp is off." not in said
