"""A typed conversation with an agent, for programs of one's own: a REPL, a gateway, a test.

    from caal_node import Conversation

    async with Conversation(MyAgent()) as conversation:
        reply = await conversation.say("five minutes for the eggs")
        print(reply.text, [call.outcome for call in reply.calls])

It is LiveKit's session without a room: the agent, its tools and LiveKit's executor are the same as
in one, so what works here works by voice.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

from livekit.agents import Agent, AgentSession, llm
from livekit.agents.types import NOT_GIVEN, NotGivenOr
from livekit.agents.voice.agent_session import SessionConnectOptions
from livekit.agents.voice.run_result import AgentHandoffEvent, ChatMessageEvent, RunResult

from caal_node.agent import CaalAgent
from caal_node.core.events import (
    Event,
    Outcome,
    Spoken,
    TierName,
    ToolCallEnded,
    ToolCallStarted,
)
from caal_node.factories import session_llm, text_session
from caal_node.models.llm import LLM
from caal_node.tools.spoken_question import SecretQuestion

logger = logging.getLogger("caal_node")

TURN_S: Final = 600.0
"""Seconds that a turn may take: a slow model on two cores with four rounds of slow tools."""
END_S: Final = 10.0
"""Seconds for ending a turn, or the conversation. LiveKit waits five for speech that goes on, and
for ever for a tool of the agent's own that does not end."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a tool, and how it ended."""

    tool: str
    tier: TierName
    source: str
    arguments: Mapping[str, Any] | None
    outcome: Outcome | None
    """None where the call still ran when the turn was over."""
    result: str | None = None
    """What the model read of it; None where it read nothing, as of a call that never ended."""
    duration_ms: int | None = None
    reason: str = ""
    """Why it failed, with the exception and its line; the model reads less of that."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What came of the words that a person said."""

    text: str
    """Everything that was said, its sentences joined by spaces."""
    calls: tuple[CallRecord, ...] = ()
    """The calls in the order in which they began."""
    events: tuple[Event, ...] = ()
    """The turn's trace: every event, as `CaalAgent(on_event=...)` is told."""

    @property
    def spoken(self) -> str:
        """The same as `text`."""
        return self.text


class Conversation:
    """An agent in a session that is typed to. Use it as an async context manager, or close it.

    Args:
        agent: Whom to talk to; None makes a `CaalAgent` of `agent_options`. Its own `on_event` and
            `hooks` are called as in a room.
        model: What it asks, which stays its owner's to close. None takes the model of the agent's
            settings, with its fallbacks.
        userdata: What tools find as `context.userdata`; None takes the agent's `make_userdata()`.
        turn_s: Seconds that a turn may take.
        conn_options: How often LiveKit asks the model again, and when; None is LiveKit's default.
        agent_options: What `CaalAgent` takes, where no agent is given.
    """

    def __init__(
        self,
        agent: CaalAgent | None = None,
        model: LLM | None = None,
        *,
        userdata: Any = None,
        turn_s: float = TURN_S,
        conn_options: NotGivenOr[SessionConnectOptions] = NOT_GIVEN,
        **agent_options: Any,
    ) -> None:
        if agent is not None and agent_options:
            raise TypeError(f"an agent has its own {', '.join(agent_options)}; give it there")
        self.agent: Final = CaalAgent(**agent_options) if agent is None else agent
        self.greeting = TurnRecord("")
        """What the agent has said and done on entering, once the conversation is open."""
        self._model = model
        self._own_model: LLM | None = None
        self._userdata: Final = userdata
        self._turn_s: Final = turn_s
        self._conn_options: Final = conn_options
        self._session: AgentSession[Any] | None = None
        self._closed = False
        self._one_at_a_time: Final = asyncio.Lock()
        self._events: list[Event] = []
        """Those of the turn that is under way."""
        self.agent.add_listener(lambda event: self._events.append(event))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def session(self) -> AgentSession[Any]:
        """LiveKit's session.

        Raises:
            RuntimeError: the conversation has not been open yet.
        """
        if self._session is None:
            raise RuntimeError("the conversation is not open; use `async with`, or say something")
        return self._session

    @property
    def history(self) -> Sequence[llm.ChatItem]:
        """The conversation as LiveKit keeps it."""
        return self.session.history.items

    @property
    def asks_for_pin(self) -> bool:
        """Whether the next words answer a question for the PIN, and are to be shown nowhere."""
        return self._session is not None and isinstance(self._session.current_agent, SecretQuestion)

    async def open(self) -> None:
        """Connect the agent with its tools and its model. The first `say` does it, too.

        Raises:
            ConfigError: the settings name a model that cannot be used.
            TimeoutError: entering took longer than `turn_s`.
        """
        async with self._one_at_a_time:
            await self._open()

    async def say(self, text: str) -> TurnRecord:
        """Say `text`, and wait until everything that answers it is over.

        A model or a tool that fails is a sentence in the reply, as people in a room would hear it.
        Cancelling it ends the turn, as `interrupt` does.

        Raises:
            TimeoutError: the turn took longer than `turn_s`; it has been ended.
        """
        async with self._one_at_a_time:
            session = await self._open()
            speaker = session.current_agent
            async with self._turn():
                result: RunResult[Any] = session.run(user_input=text)
                await result
            return self._record(result, speaker)

    async def interrupt(self) -> None:
        """End the turn under way, with all that its model and its tools do."""
        if self._session is not None:
            await asyncio.wait([self._session.interrupt(force=True)], timeout=END_S)

    async def aclose(self) -> None:
        """End the conversation, and close the agent's tools, and the model where it made one.

        Its history can still be read.
        """
        was_closed, self._closed = self._closed, True
        if self._session is not None and not was_closed:
            try:
                async with asyncio.timeout(END_S):
                    await self._session.aclose()
            except TimeoutError:
                logger.error("a tool of the agent's own does not end; it is left running")
                await self.agent.close_tools()
        model, self._own_model = self._own_model, None
        if model is not None:
            await model.aclose()

    async def _open(self) -> AgentSession[Any]:
        if self._closed:
            raise RuntimeError("the conversation is over; begin another one")
        if self._session is not None:
            return self._session
        settings = self.agent.settings
        if self._model is None:
            self._own_model = self._own_model or await session_llm(settings)
        model = self._model or self._own_model
        userdata = self.agent.make_userdata() if self._userdata is None else self._userdata
        session = text_session(settings, model, userdata=userdata, conn_options=self._conn_options)
        self._session = session
        async with self._turn():
            result: RunResult[Any] = await session.start(self.agent, capture_run=True)  # pyright: ignore[reportUnknownVariableType]  # LiveKit left its type open
            await result
        self.greeting = self._record(result, self.agent)
        return session

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        """Gather the events of what happens inside, and end it where it is not waited for."""
        self._events.clear()
        try:
            async with asyncio.timeout(self._turn_s):
                yield
                await self.agent.listeners_done()
        except (TimeoutError, asyncio.CancelledError):
            await _in_any_case(self.interrupt())
            raise

    def _record(self, result: RunResult[Any], speaker: Agent) -> TurnRecord:
        """Return what came of a turn that `speaker` began to answer."""
        events = tuple(self._events)
        said = [event.text for event in events if isinstance(event, Spoken)]
        # An agent that it was handed over to, and a task of LiveKit's, tell no events of ours.
        for event in result.events:
            if isinstance(event, AgentHandoffEvent):
                speaker = event.new_agent
            elif isinstance(event, ChatMessageEvent) and event.item.role == "assistant":
                said += [] if speaker is self.agent else [event.item.text_content or ""]
        return TurnRecord(" ".join(said), _calls(events, self.history), events)


async def _in_any_case(ending: Awaitable[None]) -> None:
    """Wait for `ending` although this task is being cancelled."""
    task = asyncio.ensure_future(ending)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task


def _calls(events: Sequence[Event], history: Sequence[llm.ChatItem]) -> tuple[CallRecord, ...]:
    ended = {event.call_id: event for event in events if isinstance(event, ToolCallEnded)}
    results = {
        item.call_id: item.output for item in history if isinstance(item, llm.FunctionCallOutput)
    }
    return tuple(
        CallRecord(
            event.tool,
            event.tier,
            event.source,
            event.arguments,
            ended[event.call_id].outcome if event.call_id in ended else None,
            results.get(event.call_id),
            ended[event.call_id].duration_ms if event.call_id in ended else None,
            ended[event.call_id].reason if event.call_id in ended else "",
        )
        for event in events
        if isinstance(event, ToolCallStarted)
    )
