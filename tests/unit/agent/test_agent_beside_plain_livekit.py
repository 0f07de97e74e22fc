"""What a LiveKit author writes does in a CaalAgent what it does in LiveKit's own Agent.

Each test plays the same agent, with the same replies of the model, on both base classes. What is to
differ has a test of its own at the end, and a row in docs/livekit.md.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import (
    Agent,
    AgentSession,
    AgentTask,
    RunContext,
    StopResponse,
    ToolError,
    TurnHandlingOptions,
    function_tool,
    llm,
    mock_tools,
)
from livekit.agents.llm import ToolFlag, ToolResult, Toolset

from caal_node.agent import CaalAgent
from caal_node.core.events import ToolCallEnded
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    plain_settings,
)
from caal_node.tools.effects import effect
from caal_node.tools.pipeline import Gates
from tests.stand_ins.before_call import BeforeCall
from tests.stand_ins.plain_beside_ours import CALL, OURS, Make, having, play, same


def returning(value: Any) -> Make:
    @function_tool
    async def act() -> Any:
        """Act."""
        return value

    return having(act)


def raising(error: Exception) -> Make:
    @function_tool
    async def act() -> str:
        """Act."""
        raise error

    return having(act)


class TestResults:
    @pytest.mark.parametrize(
        "value",
        [None, True, 3, 2.5, "", "a\n\n  b  \n", '{"a": null,  "b": 1}', "x" * 9_000, ("a", 1)],
    )
    async def test_a_value_is_told_as_it_is(self, value: Any) -> None:
        played = await same(returning(value), CALL, "Done.")
        if isinstance(value, str):
            assert played.results == [(value, False)]

    async def test_what_livekit_takes_for_no_result_is_none(self) -> None:
        played = await same(returning(object()), CALL, "Done.")
        assert played.results == [("the tool returned an invalid output", True)]

    @pytest.mark.parametrize("reply_required", [True, False])
    async def test_a_tool_result_asks_for_a_reply_or_for_none(self, reply_required: bool) -> None:
        value = ToolResult("Sent.", reply_required=reply_required)
        played = await same(returning(value), CALL, "Done.")
        assert ("assistant", "Done.") in played.history or not reply_required

    async def test_stop_response_ends_the_turn_in_silence(self) -> None:
        played = await same(raising(StopResponse()), CALL, "Never said.")
        assert len(played.model.requests) == 1

    async def test_an_agent_is_handed_over_to(self) -> None:
        class Other(Agent):
            async def on_enter(self) -> None:
                self.session.say("Other here.")

        played = await same(returning((Other(instructions="x"), "Moving on.")), CALL, "Bye.")
        assert ("handoff", "other") in played.history


class TestErrors:
    async def test_a_tool_error_reaches_the_model_whole_and_in_the_authors_words(self) -> None:
        words = "There is no such lamp.\n\n  Known are: " + ", ".join(map(str, range(200)))
        played = await same(raising(ToolError(words)), CALL, "Sorry.")
        assert played.results == [(words, True)]

    async def test_an_exception_is_logged_with_its_traceback(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        played = await same(raising(KeyError("lamp")), CALL, "Sorry.")
        assert played.results == [("An internal error occurred", True)]
        logged = [record for record in caplog.records if record.exc_info]
        assert len(logged) == 2, "once by each"
        assert all("in act" in caplog.handler.format(record) for record in logged)

    async def test_wrong_arguments_are_told_as_livekit_tells_them(self) -> None:
        @function_tool
        async def act(minutes: int) -> str:
            """Act."""
            return f"{minutes}"

        wrong, right = ScriptedCall("act", {"minutes": "ten"}), ScriptedCall("act", {"minutes": 10})
        played = await same(having(act), [wrong], [right], "Done.")
        assert played.results[1] == ("10", False)

    async def test_a_tool_that_is_not_async_fails_as_it_does_there(self) -> None:
        @function_tool
        def act() -> str:
            """Act."""
            return "x"

        await same(having(act), CALL, "Sorry.")


class TestDeclarations:
    async def test_calls_of_one_reply_that_only_read_run_side_by_side(self) -> None:
        opened = asyncio.Event()

        @function_tool
        @effect("read")
        async def set_one() -> str:
            """Wait for the other."""
            await asyncio.wait_for(opened.wait(), 10)
            return "one"

        @function_tool
        @effect("read")
        async def set_two() -> str:
            """Open."""
            opened.set()
            return "two"

        calls = [ScriptedCall("set_one"), ScriptedCall("set_two")]
        played = await same(having(set_one, set_two), calls, "Both.")
        assert not any(failed for _, failed in played.results)

    async def test_a_tool_may_take_as_long_as_it_takes(self) -> None:
        @function_tool
        async def act() -> str:
            """Act."""
            await asyncio.sleep(0.2)
            return "late"

        model = ScriptedModel(CALL, "Done.")
        agent = CaalAgent(
            settings=plain_settings(CAAL_TOOL_TIMEOUT="0.05"), tiers={}, warm=False, tools=[act]
        )
        async with AgentConversation(agent, model) as talk:
            assert (await talk.say("go")).calls[0].outcome == "ok"

    async def test_a_raw_schema_and_a_run_context(self) -> None:
        schema = {
            "name": "act",
            "description": "Act.",
            "parameters": {"type": "object", "properties": {"gate": {"type": "string"}}},
        }

        @function_tool(raw_schema=schema)
        async def act(raw_arguments: dict[str, object], context: RunContext[Any]) -> str:
            return f"{raw_arguments} {context.function_call.name} {context.speech_handle.id[:7]}"

        call = ScriptedCall("act", {"gate": "north", "more": 1})
        played = await same(having(act), [call], "Open.")
        assert played.results == [("{'gate': 'north', 'more': 1} act speech_", False)]

    @pytest.mark.parametrize("mode", ["allow", "reject", "replace", "confirm"])
    async def test_what_becomes_of_a_duplicate(self, mode: Any) -> None:
        @function_tool(on_duplicate=mode)
        async def act(minutes: int) -> str:
            """Act."""
            await asyncio.sleep(0.02)
            return f"{minutes}"

        calls = [ScriptedCall("act", {"minutes": n}) for n in (1, 2)]
        await same(having(act), calls, "Done.")

    async def test_a_cancellable_tool_brings_livekits_own_two(self) -> None:
        @function_tool(flags=ToolFlag.CANCELLABLE, name="act", description="Act now.")
        async def anything(context: RunContext[Any]) -> str:
            return "done"

        played = await same(having(anything), CALL, "Done.")
        assert len(played.model.requests[0].tools) == 3
        assert played.model.requests[0].tools[0]["function"]["description"] == "Act now."

    async def test_a_tool_that_is_hidden_on_entering_is_hidden(self) -> None:
        @function_tool(flags=ToolFlag.IGNORE_ON_ENTER)
        async def act() -> str:
            """Act."""
            return "done"

        def make(base: type[Agent], **options: Any) -> Agent:
            class Greeter(base):  # type: ignore[misc, valid-type]
                async def on_enter(self) -> None:
                    await self.session.generate_reply(instructions="Greet.")

            return Greeter(instructions="Help.", tools=[act], **options)

        played = await same(make, "Welcome.", CALL, "Done.")
        assert [len(request.tools) for request in played.model.requests] == [0, 1, 1]

    async def test_progress_is_told_before_the_result(self) -> None:
        @function_tool
        async def act(context: RunContext[Any]) -> str:
            """Act."""
            await context.update("half way")
            return "whole"

        played = await same(having(act), CALL, "Half.", "Whole.")
        assert ("assistant", "Whole.") in played.history

    async def test_a_tool_may_lead_a_conversation_of_its_own(self) -> None:
        class Ask(AgentTask[str]):
            def __init__(self) -> None:
                super().__init__(instructions="Ask.")

            async def on_enter(self) -> None:
                await self.session.say("Which colour?")

            @function_tool
            async def choose(self, colour: str) -> None:
                """Choose a colour."""
                self.complete(colour)

        @function_tool
        async def act(context: RunContext[Any]) -> str:
            """Act."""
            return f"The person wants {await Ask()}."

        choice = [ScriptedCall("choose", {"colour": "blue"})]
        played = await same(having(act), CALL, choice, "Blue.", words=("go", "blue"))
        assert ("The person wants blue.", False) in played.results

    async def test_tools_of_a_toolset_of_the_session_and_of_a_mixin(self) -> None:
        class Lamps(Toolset):
            @function_tool
            async def act(self, lamp: str) -> str:
                """Act."""
                return f"{lamp} is on"

        class Timers:
            timers: list[int]

            @function_tool
            async def set_timer(self, minutes: int) -> str:
                """Start a timer."""
                self.timers = [minutes]
                return str(self.timers)

        def make(base: type[Agent], **options: Any) -> Agent:
            class Home(Timers, base):  # type: ignore[misc, valid-type]
                pass

            return Home(instructions="Help.", tools=[Lamps(id="lamps")], **options)

        calls = [ScriptedCall("act", {"lamp": "hall"}), ScriptedCall("set_timer", {"minutes": 3})]
        played = await same(make, calls, "Done.")
        assert sorted(played.results) == [("[3]", False), ("hall is on", False)]


class TestHooksOfTheAgent:
    async def test_instructions_and_conversation_are_updated(self) -> None:
        def make(base: type[Agent], **options: Any) -> Agent:
            class Knowing(base):  # type: ignore[misc, valid-type]
                async def on_enter(self) -> None:
                    await self.update_instructions("New words.")
                    chat_ctx = self.chat_ctx.copy()
                    chat_ctx.add_message(role="user", content="I am Kim.")
                    await self.update_chat_ctx(chat_ctx)

            return Knowing(instructions="Old words.", **options)

        played = await same(make, "Hello Kim.")
        texts = [item.text for item in played.model.requests[0].items if hasattr(item, "text")]
        assert texts == ["New words.", "I am Kim.", "go"]

    async def test_entering_leaving_and_the_persons_turn(self) -> None:
        log: list[str] = []

        def make(base: type[Agent], **options: Any) -> Agent:
            class Polite(base):  # type: ignore[misc, valid-type]
                async def on_enter(self) -> None:
                    log.append("enter")
                    await self.session.say("Hello.")

                async def on_exit(self) -> None:
                    log.append("exit")

            return Polite(instructions="Help.", **options)

        played = await same(make, "Fine.")
        assert log == ["enter", "exit"] * 2
        assert ("assistant", "Hello.") in played.history

    async def test_a_node_of_ones_own_around_the_agents(self) -> None:
        def make(base: type[Agent], **options: Any) -> Agent:
            class Adding(base):  # type: ignore[misc, valid-type]
                async def llm_node(self, chat_ctx: Any, tools: Any, settings: Any) -> Any:
                    async for chunk in super().llm_node(chat_ctx, list(tools), settings):
                        yield chunk
                    yield " Over."

            return returning("x")(Adding, **options)

        played = await same(make, CALL, "Done.")
        assert played.history[-1] == ("assistant", "Done. Over.")

    async def test_a_conversation_that_is_handed_in(self) -> None:
        chat_ctx = llm.ChatContext.empty()
        chat_ctx.add_message(role="user", content="I am Kim.")
        chat_ctx.add_message(role="assistant", content="Hello Kim.")

        def make(base: type[Agent], **options: Any) -> Agent:
            return base(instructions="Help.", chat_ctx=chat_ctx, tools=None, **options)

        played = await same(make, "Kim.")
        texts = [item.text for item in played.model.requests[0].items if hasattr(item, "text")]
        assert "I am Kim." in texts

    async def test_the_rounds_of_a_turn_have_livekits_limit(self) -> None:
        played = await same(returning("again"), *[CALL] * 4, "Enough.")
        assert len(played.model.requests) == 5

    @pytest.mark.parametrize("steps", [1, 6])
    async def test_and_the_one_that_the_session_gives(self, steps: int) -> None:
        replies = [*[CALL] * (steps + 1), "Enough."]
        played = await same(returning("again"), *replies, max_tool_steps=steps)
        assert len(played.model.requests) == steps + 2


class Kitchen(CaalAgent):
    """An agent as somebody might write it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**OURS, **options})
        self.timers: list[float] = []

    @function_tool
    async def act(self, minutes: float = 1) -> str:
        """Start a timer.

        Example: ten minutes -> {"minutes": 10}
        """
        self.timers.append(minutes)
        return f"It runs for {minutes:g} minutes."


class Quiet(Kitchen):
    @function_tool
    async def act(self, minutes: float = 1) -> str:
        """Start a timer."""
        return (await super().act(minutes)).upper()


class TestCallingOnesOwnTools:
    async def test_a_method_is_a_plain_function_to_the_author(self) -> None:
        agent = Kitchen()
        assert await agent.act(minutes=3) == "It runs for 3 minutes."
        assert await agent.act(4) == "It runs for 4 minutes."
        assert await Kitchen.act(agent, 5) == "It runs for 5 minutes."
        assert agent.timers == [3, 4, 5]

    async def test_a_tool_of_the_agents_list_is_one_too(self) -> None:
        agent = Kitchen()
        tool = llm.ToolContext(agent.tools).function_tools["act"]
        assert await tool(minutes=2) == "It runs for 2 minutes."

    async def test_a_subclass_calls_the_method_of_its_parent(self) -> None:
        model = ScriptedModel([ScriptedCall("act", {"minutes": 2})], "It runs.")
        async with AgentConversation(Quiet(), model) as talk:
            (call,) = (await talk.say("two minutes")).calls
            assert call.outcome == "ok"
            results = [i for i in talk.history if isinstance(i, llm.FunctionCallOutput)]
        assert results[0].output == "IT RUNS FOR 2 MINUTES."

    async def test_livekits_assertions_and_mocks(self) -> None:
        model = ScriptedModel([ScriptedCall("act", {"minutes": 2})], "Two.", CALL, "Mocked.")
        session: AgentSession[Any] = AgentSession(
            llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
        )
        agent = Kitchen()
        async with session:
            await session.start(agent)
            result = await session.run(user_input="two minutes")
            result.expect.next_event().is_function_call(name="act", arguments={"minutes": 2})
            result.expect.next_event().is_function_call_output(output="It runs for 2 minutes.")
            result.expect.next_event().is_message(role="assistant")
            result.expect.no_more_events()
            with mock_tools(Kitchen, {"act": lambda **given: f"mocked {given}"}):
                result = await session.run(user_input="again")
            result.expect.contains_function_call_output(output="mocked {}")
        assert agent.timers == [2]


class TestUpdateTools:
    async def test_the_table_and_the_next_request_have_the_new_tools(self) -> None:
        @function_tool
        async def water(plant: str) -> dict[str, Any]:
            """Water a plant.

            Example: the fern -> {"plant": "fern"}
            """
            return {"plant": plant, "left": None}

        agent = Kitchen()
        model = ScriptedModel([ScriptedCall("water", {"plant": "fern"})], "Done.")
        async with AgentConversation(agent, model) as talk:
            assert [entry.exposed for entry in agent.table] == ["act"]
            await agent.update_tools([*agent.tools, water])
            assert [entry.exposed for entry in agent.table] == ["act", "water"]
            assert agent.examples()["water"][0].arguments == {"plant": "fern"}
            await talk.say("water the fern")
            output = next(i.output for i in talk.history if isinstance(i, llm.FunctionCallOutput))
            assert output == '{"plant":"fern","left":null}'
            await agent.update_tools([water])
            assert [entry.exposed for entry in agent.table] == ["water"]
            rest = agent.tools
            rest.remove(water)
            assert water in agent.tools
            await agent.update_tools(rest)
            assert len(agent.table) == 0

    async def test_before_the_session_it_is_the_table_of_the_first_turn(self) -> None:
        agent = Kitchen()
        await agent.update_tools([])
        async with AgentConversation(agent, ScriptedModel("Hello.")) as talk:
            await talk.say("hello")
            assert len(agent.table) == 0


class TestWhatDiffersAndSaysSo:
    """The rows of docs/livekit.md."""

    @pytest.mark.parametrize(
        ("value", "line"),
        [
            ({"a": None, "b": [True, 1.5], "c": "é"}, '{"a":null,"b":[true,1.5],"c":"é"}'),
            ([{"n": n, "none": None} for n in range(900)], None),
            ({("a", 1): "no JSON key"}, "{('a', 1): 'no JSON key'}"),
        ],
        ids=["dict", "long list", "no JSON"],
    )
    async def test_dicts_and_lists_are_json_and_whole(self, value: Any, line: str | None) -> None:
        for tool in (returning(value), returning(ToolResult(value))):
            played = await play(CaalAgent, tool, [CALL, "Done."])
            ((told, failed),) = played.results
            assert not failed
            assert line is None or told == line
            assert line is not None or told.count('"none":null') == 900

    async def test_bounded_tools_are_cut_and_have_a_deadline(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        @function_tool
        async def act(how: str) -> Any:
            """Act."""
            if how == "long":
                return {"text": "x" * 9_000, "none": None}
            if how == "late":
                await asyncio.sleep(5)
            if how == "told":
                raise ToolError("my own words")
            raise KeyError(how)

        calls = [[ScriptedCall("act", {"how": how})] for how in ("long", "late", "told", "hunter2")]

        class Bounded(CaalAgent):
            own_tools = "bounded"

        settings = plain_settings(CAAL_TOOL_TIMEOUT="0.05")
        agent = Bounded(settings=settings, tiers={}, warm=False, tools=[act])
        async with AgentConversation(agent, ScriptedModel(*calls, "Done.")) as talk:
            await talk.say("go")
            told = [i.output for i in talk.history if isinstance(i, llm.FunctionCallOutput)]
            outcomes = [event.outcome for event in talk.events_of(ToolCallEnded)]
        assert len(told[0]) <= 6_000
        assert "none" not in told[0]
        assert told[2] == "my own words"
        assert outcomes == ["ok", "timeout", "error", "error"]
        assert "in act" in caplog.text, "the traceback"
        assert "hunter2" not in caplog.text

    async def test_the_owners_gates_hold_for_own_tools(self) -> None:
        from caal_node.core.errors import ToolRefused

        async def never(*_: Any) -> None:
            raise ToolRefused("not now")

        async with AgentConversation(
            Kitchen(gates=Gates(middleware=[BeforeCall(never)])), ScriptedModel(CALL, "No.")
        ) as talk:
            assert (await talk.say("go")).calls[0].outcome == "refused"

    async def test_a_secret_is_taken_out_of_an_error(self) -> None:
        secret = "a-key-of-twenty-letters"  # noqa: S105 - the test's own
        agent_of = raising(ToolError(f"401 for {secret}"))
        settings = plain_settings(CAAL_API_KEY=secret)
        agent = agent_of(CaalAgent, **{**OURS, "settings": settings})
        assert isinstance(agent, CaalAgent)
        async with AgentConversation(agent, ScriptedModel(CALL, "Sorry.")) as talk:
            await talk.say("go")
            told = [i.output for i in talk.history if isinstance(i, llm.FunctionCallOutput)]
        assert told == ["401 for ***"]
