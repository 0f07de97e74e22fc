"""What presence makes of a real AgentSession without a room."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pytest
from livekit import rtc
from livekit.agents import (
    Agent,
    AgentSession,
    AgentStateChangedEvent,
    ConversationItemAddedEvent,
    RunContext,
    SpeechCreatedEvent,
    UserStateChangedEvent,
    function_tool,
    llm,
)
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions
from livekit.agents.voice import SpeechHandle, io

from caal_node.config.settings import load_settings
from caal_node.config.switches import Switches
from caal_node.core.events import (
    CallReport,
    CueKind,
    CuePlayed,
    Event,
    Outcome,
    Spoken,
    ToolCallEnded,
    ToolCallStarted,
    ToolsTold,
    TurnEnded,
    UserSaid,
)
from caal_node.core.tool_spec import Effect, ToolSpec
from caal_node.room.cues import Samples, render
from caal_node.room.done_cue import DoneCue, tells_nothing
from caal_node.room.presence import Presence, ToolOrigin
from caal_node.tools.table import ToolTable
from tests.stand_ins.virtual_clock import VirtualClock


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = "c1"


Reply: TypeAlias = str | Sequence[Call]


class ScriptedLLM(llm.LLM):
    """A LiveKit model that knows nothing of this project: presence works beside any.

    It gives `replies` in turn; `on_request` is called before each.
    """

    def __init__(self, *replies: Reply, on_request: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.replies = list(replies)
        self.on_request = on_request

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        **_: Any,
    ) -> llm.LLMStream:
        self.on_request()
        reply = self.replies.pop(0)
        return _Scripted(
            self, reply, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options
        )


class _Scripted(llm.LLMStream):
    def __init__(self, of: ScriptedLLM, reply: Reply, **options: Any) -> None:
        self._reply = reply
        super().__init__(of, **options)

    async def _run(self) -> None:
        if isinstance(self._reply, str):
            delta = llm.ChoiceDelta(role="assistant", content=self._reply)
        else:
            calls = [
                llm.FunctionToolCall(
                    name=call.name, arguments=json.dumps(call.arguments), call_id=call.call_id
                )
                for call in self._reply
            ]
            delta = llm.ChoiceDelta(role="assistant", tool_calls=calls)
        self._event_ch.send_nowait(llm.ChatChunk(id="scripted", delta=delta))


STEP_DEADLINE_S = 10.0


class Recorder:
    """A cue sink that keeps what it was given."""

    def __init__(self) -> None:
        self.did: list[CueKind | str] = []

    def play(self, samples: Samples) -> None:
        kinds: tuple[CueKind, ...] = ("tool", "agent", "error", "tick", "done")
        self.did += [kind for kind in kinds if np.array_equal(render(kind), samples)]

    def stop(self) -> None:
        self.did.append("stop")

    async def aclose(self) -> None:
        pass


class Speaker(io.AudioOutput):
    """An output that nothing is played on."""

    def __init__(self) -> None:
        super().__init__(label="test", capabilities=io.AudioOutputCapabilities(pause=False))

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        pass

    def flush(self) -> None:
        pass

    def clear_buffer(self) -> None:
        pass


class Helper(Agent):
    """Tools that end when the test lets them."""

    def __init__(self) -> None:
        super().__init__(instructions="Help.")
        self.working = asyncio.Event()
        self.may_end = asyncio.Event()

    @function_tool
    async def quick(self, city: str = "") -> str:
        """Answer at once."""
        return f"fine in {city}"

    @function_tool
    async def lamp(self, state: str) -> str:
        """Switch the lamp."""
        return '{"ok": true, "state": "on"}'

    @function_tool
    async def broken(self) -> str:
        """Fail."""
        raise ValueError("a secret detail")

    @function_tool
    async def slow(self) -> str:
        """Take as long as the test wants."""
        self.working.set()
        await self.may_end.wait()
        return "done"

    @function_tool
    async def background(self, ctx: RunContext) -> str:
        """Tell of itself, then go on."""
        await ctx.update("I am on it")
        self.working.set()
        await self.may_end.wait()
        return "done"

    @function_tool
    async def delegate(self) -> str:
        """Hand on."""
        return "delegated"


@dataclass
class Scene:
    session: AgentSession[None]
    presence: Presence
    agent: Helper
    told: list[Event]
    sink: Recorder
    clock: VirtualClock
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    async def say(self, text: str, *, typed: bool = True) -> None:
        modality: Literal["text", "audio"] = "text" if typed else "audio"
        async with asyncio.timeout(STEP_DEADLINE_S):
            await self.session.run(user_input=text, input_modality=modality)

    @asynccontextmanager
    async def saying(self, text: str) -> AsyncIterator[None]:
        """A turn that is under way, its slow tool working; the block lets it end."""
        turn = asyncio.create_task(self.say(text))
        async with asyncio.timeout(STEP_DEADLINE_S):
            await self.agent.working.wait()
        try:
            yield
        finally:
            self.agent.may_end.set()
            await turn

    def kinds(self) -> list[str]:
        return [event.type for event in self.told]

    def ended(self) -> list[ToolCallEnded]:
        return [event for event in self.told if isinstance(event, ToolCallEnded)]


def origin(name: str) -> ToolOrigin:
    return ToolOrigin("agent", "Helper")


@asynccontextmanager
async def scene(
    *replies: Reply,
    describe: Callable[[str], ToolOrigin] = origin,
    listener: Callable[[Event], None] | None = None,
    silent: bool = False,
    switches: Switches | None = None,
    done_cue: DoneCue | None = None,
) -> AsyncIterator[Scene]:
    model = ScriptedLLM(*replies)
    session: AgentSession[None] = AgentSession(
        llm=model, vad=None, turn_handling={"turn_detection": None}
    )
    told: list[Event] = []
    outcomes: dict[str, Outcome] = {}
    sink, clock = Recorder(), VirtualClock()
    presence = Presence(
        session,
        describe=describe,
        report_of=lambda call_id: outcomes.get(call_id) and CallReport(outcomes[call_id]),
        listeners=[listener, told.append] if listener else [told.append],
        sink=None if silent else sink,
        switches=switches,
        done_cue=done_cue,
        clock=clock,
    )
    model.on_request = presence.note_request
    agent = Helper()
    await session.start(agent)
    try:
        yield Scene(session, presence, agent, told, sink, clock, outcomes)
    finally:
        agent.may_end.set()
        await session.aclose()
        await presence.aclose()


def user_state(old: str, new: str) -> UserStateChangedEvent:
    return UserStateChangedEvent.model_validate({"old_state": old, "new_state": new})


def agent_state(old: str, new: str) -> AgentStateChangedEvent:
    return AgentStateChangedEvent.model_validate({"old_state": old, "new_state": new})


async def test_a_turn_with_a_tool_emits_its_events_in_order() -> None:
    async with scene([Call("quick", {"city": "Bonn"})], "It is fine.") as it:
        await it.say("weather?")
        assert it.told == [
            UserSaid("weather?"),
            ToolCallStarted("c1", "quick", "agent", "Helper", {"city": "Bonn"}),
            CuePlayed("tool"),
            ToolCallEnded("c1", "quick", "agent", "ok", 0),
            TurnEnded(rounds=1, requests=2, duration_ms=0),
        ]
        assert "tool" in it.sink.did


async def test_a_turn_without_a_tool_makes_no_sound() -> None:
    async with scene("Hello.") as it:
        await it.say("hi")
        assert it.told == [UserSaid("hi"), TurnEnded(0, 1, 0)]
        assert it.sink.did == []


async def test_two_calls_of_one_reply_are_one_cue_and_one_round() -> None:
    async with scene([Call("quick"), Call("quick", call_id="c2")], "Both.") as it:
        await it.say("weather?")
        assert it.kinds().count("tool_call_started") == 2
        assert it.kinds().count("cue") == 1
        assert it.told[-1] == TurnEnded(1, 2, 0)


async def test_each_round_has_its_cue() -> None:
    async with scene([Call("quick")], [Call("delegate", call_id="c2")], "Done.") as it:
        await it.say("go")
        assert [e for e in it.told if isinstance(e, CuePlayed)] == [
            CuePlayed("tool"),
            CuePlayed("agent"),
        ]
        assert it.told[-1] == TurnEnded(2, 3, 0)


async def test_a_tool_that_raises_is_an_error_with_its_cue_and_without_its_words() -> None:
    async with scene([Call("broken")], "Sorry.") as it:
        await it.say("go")
        assert [e.outcome for e in it.ended()] == ["error"]
        assert CuePlayed("error") in it.told
        assert "secret" not in repr(it.told)


@pytest.mark.parametrize("outcome", ["timeout", "refused"])
async def test_a_better_known_outcome_wins_over_done(outcome: Outcome) -> None:
    async with scene([Call("quick")], "Sorry.") as it:
        it.outcomes["c1"] = outcome
        await it.say("go")
        assert [e.outcome for e in it.ended()] == [outcome]
        assert CuePlayed("error") in it.told


async def test_a_name_in_no_table_is_no_call_and_no_sound() -> None:
    async with scene([Call("no_such_tool")], "Sorry.") as it:
        await it.say("go")
        assert it.told == [UserSaid("go"), TurnEnded(1, 2, 0)]


async def test_a_long_call_ticks_and_its_length_is_reported() -> None:
    async with scene([Call("slow")], "Done.") as it:
        async with it.saying("go"):
            it.clock.advance(9)
            assert it.sink.did == ["tool", "tick", "tick"]
        assert it.kinds().count("cue") == 3
        assert [e.duration_ms for e in it.ended()] == [9000]
        assert it.told[-1] == TurnEnded(1, 2, 9000)
        it.clock.advance(60)
        assert it.sink.did.count("tick") == 2


@pytest.mark.parametrize("audible", [True, False])
async def test_only_an_answer_that_sounds_cuts_the_cue(audible: bool) -> None:
    async with scene([Call("slow")], "Done.") as it, it.saying("go"):
        it.session.output.audio = Speaker() if audible else None
        it.session.emit("agent_state_changed", agent_state("thinking", "speaking"))
        assert it.sink.did == (["tool", "stop"] if audible else ["tool"])
        it.session.output.audio = None  # there is no voice here to answer with


async def test_the_person_cuts_a_cue_that_sounds_and_no_tick_follows_while_they_speak() -> None:
    async with scene([Call("slow")], "Done.") as it, it.saying("go"):
        it.session.emit("user_state_changed", user_state("listening", "speaking"))
        assert it.sink.did == ["tool", "stop"]
        it.clock.advance(60)
        assert it.sink.did == ["tool", "stop"]


async def test_a_cough_only_delays_the_tick() -> None:
    async with scene([Call("slow")], "Done.") as it, it.saying("go"):
        it.clock.advance(3)
        it.session.emit("user_state_changed", user_state("listening", "speaking"))
        it.session.emit("user_state_changed", user_state("speaking", "listening"))
        it.clock.advance(3.9)
        assert it.sink.did == ["tool"]
        it.clock.advance(0.2)
        assert it.sink.did == ["tool", "tick"]


async def test_a_call_in_the_background_neither_ticks_nor_loses_its_end() -> None:
    async with scene([Call("background")], "I am on it.", "Here it is.") as it:
        turn = asyncio.create_task(it.say("go"))
        async with asyncio.timeout(STEP_DEADLINE_S):
            await it.agent.working.wait()
        it.clock.advance(60)
        assert "tick" not in it.sink.did
        it.agent.may_end.set()
        await turn
        assert [e.outcome for e in it.ended()] == ["ok"]


async def test_the_turn_does_not_end_while_speech_only_pauses() -> None:
    async with scene([Call("slow")], "Done.") as it:
        async with it.saying("go"):
            it.session.emit("agent_state_changed", agent_state("speaking", "listening"))
            assert "turn_ended" not in it.kinds()
        assert it.kinds().count("turn_ended") == 1


async def test_words_that_nothing_answers_open_no_turn() -> None:
    async with scene() as it:
        item = llm.ChatMessage(role="user", content=["hm"])
        it.session.emit("conversation_item_added", ConversationItemAddedEvent(item=item))
        assert it.told == [UserSaid("hm")]
    assert it.told == [UserSaid("hm")]


async def test_tools_shown_with_words_are_told_once_these_are_said_and_never_with_a_guess() -> None:
    told = ToolsTold("words", ("set_light",), 60)
    async with scene() as it:
        for early in ("guess", "words"):
            it.presence.note_told(early, told)
        assert it.told == []
        item = llm.ChatMessage(role="user", content=["light"], id="words")
        it.session.emit("conversation_item_added", ConversationItemAddedEvent(item=item))
        assert it.told == [UserSaid("light"), told]
        late = llm.ChatMessage(role="user", content=["more"], id="late")
        it.session.emit("conversation_item_added", ConversationItemAddedEvent(item=late))
        it.presence.note_told("late", told)
        assert it.told[2:] == [UserSaid("more"), told]


async def test_words_in_the_middle_of_a_turn_end_it_and_its_sounds() -> None:
    async with scene([Call("slow")], "Done.") as it, it.saying("go"):
        item = llm.ChatMessage(role="user", content=["something else"])
        it.session.emit("conversation_item_added", ConversationItemAddedEvent(item=item))
        assert it.told[-2:] == [TurnEnded(0, 1, 0), UserSaid("something else")]
        it.clock.advance(60)
        assert it.sink.did == ["tool"]


async def test_a_greeting_is_no_turn_and_its_requests_count_for_none() -> None:
    async with scene("Welcome.", "Hello.") as it:
        async with asyncio.timeout(STEP_DEADLINE_S):
            await it.session.generate_reply(instructions="Greet.")
        await it.say("hi")
        assert it.told == [UserSaid("hi"), TurnEnded(0, 1, 0)]


def early_answer(it: Scene) -> SpeechHandle:
    """An answer begun while the person may still go on: created, not scheduled."""
    speech = SpeechHandle.create()
    event = SpeechCreatedEvent(user_initiated=True, source="generate_reply", speech_handle=speech)
    it.session.emit("speech_created", event)
    it.presence.note_request()
    return speech


async def discard(speech: SpeechHandle) -> None:
    speech._mark_done()  # as LiveKit does with an answer that nobody wants any more
    await speech


async def test_an_early_answer_that_is_discarded_is_a_request_and_no_turn() -> None:
    async with scene("Hello.") as it:
        await discard(early_answer(it))
        await it.say("hi")
        assert it.told == [UserSaid("hi"), TurnEnded(0, 2, 0)]


async def test_an_early_answer_to_the_next_words_does_not_hold_the_turn_open() -> None:
    async with scene([Call("slow")], "Done.") as it:
        async with it.saying("go"):
            early = early_answer(it)
        assert it.kinds()[-1] == "turn_ended"
        await discard(early)
        assert it.kinds().count("turn_ended") == 1


async def test_a_listener_that_fails_stops_neither_the_others_nor_the_call() -> None:
    def fails(event: Event) -> None:
        raise TypeError("listener")

    async with scene([Call("quick")], "Fine.", listener=fails) as it:
        await it.say("go")
        assert it.kinds() == [
            "user",
            "tool_call_started",
            "cue",
            "tool_call_ended",
            "turn_ended",
        ]


async def test_an_unknown_origin_does_not_stop_the_call() -> None:
    def fails(name: str) -> ToolOrigin:
        raise TypeError(name)

    async with scene([Call("quick", {"city": "Bonn"})], "Fine.", describe=fails) as it:
        async with asyncio.timeout(STEP_DEADLINE_S):
            result = await it.session.run(user_input="go")
        output = result.expect.contains_function_call_output(output="fine in Bonn")
        assert output.event().item.is_error is False


async def test_a_sink_that_fails_does_not_stop_the_call() -> None:
    async with scene([Call("quick")], "Fine.") as it:
        it.sink.play = fail  # type: ignore[method-assign]
        await it.say("go")
        assert it.kinds() == ["user", "tool_call_started", "tool_call_ended", "turn_ended"]


def fail(samples: Samples) -> None:
    raise RuntimeError("no room")


async def test_without_a_sink_no_cue_is_reported() -> None:
    async with scene([Call("broken")], "Sorry.", silent=True) as it:
        await it.say("go")
        assert "cue" not in it.kinds()
        assert "tool_call_ended" in it.kinds()


async def test_cues_that_are_off_are_neither_heard_nor_reported_and_come_back() -> None:
    switches = Switches(load_settings({}))
    turns = ([Call("broken")], "Sorry.", [Call("quick", call_id="c2")], "It is fine.")
    async with scene(*turns, switches=switches) as it:
        switches.switch(False, {})
        await it.say("go")
        assert "cue" not in it.kinds()
        assert set(it.sink.did) <= {"stop"}
        switches.switch(True, {})
        await it.say("weather?")
        assert it.kinds().count("cue") == 1
        assert "tool" in it.sink.did


EFFECTS: dict[str, Effect] = {"lamp": "write", "quick": "read", "broken": "write"}


class Lamps:
    table = ToolTable(
        ToolSpec("agent", "Helper", name, name, "", {"type": "object"}, effect=effect)
        for name, effect in EFFECTS.items()
    )


LAMP = [Call("lamp", {"state": "on"})]


async def test_an_order_that_worked_at_once_ends_with_a_sound_and_no_answer() -> None:
    done = DoneCue(Lamps(), Switches(load_settings({})))
    async with scene(LAMP, "It is on.", done_cue=done) as it:
        await it.say("turn on the lamp", typed=False)
        assert it.sink.did == ["tool"], "the two sounds are heard apart"
        it.clock.advance(1.0)
        assert it.sink.did == ["tool", "done"]
        assert [event.kind for event in it.told if isinstance(event, CuePlayed)] == ["tool", "done"]
        items = it.session.history.items
        assert items[-1].type == "function_call_output", "it is in the history"
        assert not any(getattr(item, "role", "") == "assistant" for item in items)


@pytest.mark.parametrize(
    ("words", "calls", "typed"),
    [
        ("turn on the lamp", LAMP, True),
        ("turn on the lamp and tell me the weather", LAMP, False),
        ("turn on the lamp", [*LAMP, Call("quick", {"city": "Bonn"}, "c2")], False),
        ("turn on the lamp", [Call("broken")], False),
        ("is the lamp on?", LAMP, False),
    ],
)
async def test_in_doubt_there_is_an_answer(words: str, calls: Reply, typed: bool) -> None:
    done = DoneCue(Lamps(), Switches(load_settings({})))
    async with scene(calls, "My answer.", done_cue=done) as it:
        await it.say(words, typed=typed)
        assert "done" not in it.sink.did
        assert getattr(it.session.history.items[-1], "text_content", "") == "My answer."


async def test_who_has_switched_the_sounds_off_hears_an_answer() -> None:
    switches = Switches(load_settings({}))
    switches.switch(False, {})
    async with scene(
        LAMP, "It is on.", switches=switches, done_cue=DoneCue(Lamps(), switches)
    ) as it:
        await it.say("turn on the lamp", typed=False)
        assert getattr(it.session.history.items[-1], "text_content", "") == "It is on."


@pytest.mark.parametrize(
    ("result", "arguments", "nothing"),
    [
        ("ok", "{}", True),
        ("", "{}", True),
        ('{"status":"success","lamp":"desk"}', '{"lamp":"desk"}', True),
        ('{"status":"success","lamp":"desk"}', '{"lamp":"kitchen"}', False),
        ("Set to 21 degrees.", "{}", False),
        ('{"id":5}', "{}", False),
        ('["lamp"]', "{}", False),
    ],
)
def test_a_result_that_tells_nothing(result: str, arguments: str, nothing: bool) -> None:
    assert tells_nothing(result, arguments) is nothing


async def test_a_silent_tool_is_reported_and_not_heard() -> None:
    switches = Switches(load_settings({"CAAL_CUES": '{"silent_tools": ["bro*"]}'}))
    turns = ([Call("broken")], "Sorry.", [Call("quick", call_id="c2")], "It is fine.")
    async with scene(*turns, switches=switches) as it:
        await it.say("go")
        assert "tool_call_ended" in it.kinds()
        assert "cue" not in it.kinds()
        await it.say("weather?")
        assert it.kinds().count("cue") == 1


async def test_what_rings_is_heard_while_cues_are_off() -> None:
    switches = Switches(load_settings({}))
    async with scene(switches=switches) as it:
        switches.switch(False, {})
        assert it.presence.play_announced("ring") > 0
        assert it.told == [CuePlayed("ring")]


async def test_the_nodes_own_events_go_to_the_same_listeners() -> None:
    async with scene() as it:
        it.presence.emit(Spoken("Hello."))
        assert it.told == [Spoken("Hello.")]


async def test_after_closing_nothing_is_emitted_or_due() -> None:
    async with scene([Call("slow")], "Done.") as it:
        async with it.saying("go"):
            await it.presence.aclose()
            told = list(it.told)
            assert told[-1] == TurnEnded(0, 1, 0)
            assert it.clock.pending == 0
            assert it.sink.did[-1] == "stop"
        assert it.told == told


async def test_a_session_that_closes_in_a_call_leaves_no_open_turn_and_no_timer() -> None:
    async with scene([Call("slow")], "Done.") as it:
        turn = asyncio.create_task(it.say("go"))
        async with asyncio.timeout(STEP_DEADLINE_S):
            await it.agent.working.wait()
            closing = asyncio.create_task(it.session.aclose())
            it.agent.may_end.set()
            await closing
        await asyncio.gather(turn, return_exceptions=True)
        assert it.kinds().count("tool_call_ended") == 1
        assert it.kinds().count("turn_ended") == 1
        assert it.clock.pending == 0


async def test_it_can_join_a_session_in_the_middle_of_a_turn() -> None:
    async with scene([Call("slow")], [Call("quick", call_id="c2")], "Done.") as it:
        told: list[Event] = []
        turn = asyncio.create_task(it.say("go"))
        async with asyncio.timeout(STEP_DEADLINE_S):
            await it.agent.working.wait()
        joined = Presence(it.session, describe=origin, listeners=[told.append], clock=it.clock)
        it.agent.may_end.set()
        await turn
        await joined.aclose()
        # The first call began before it was there, and the turn is another's to end.
        assert [event.type for event in told] == ["tool_call_started", "tool_call_ended"]


async def test_it_joins_in_silence_while_the_person_speaks() -> None:
    async with scene([Call("quick")], "Done.") as it:
        sink = Recorder()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AgentSession, "user_state", "speaking")
            joined = Presence(it.session, describe=origin, sink=sink, clock=it.clock)
        await it.say("go")
        await joined.aclose()
        assert sink.did == ["stop"]
