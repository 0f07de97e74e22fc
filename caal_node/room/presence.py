"""What a session does, told to people: cues for the ear, events for everything else.

Listens to a LiveKit AgentSession and changes nothing in it. LiveKit's executor runs the calls and
says `tool_execution_updated`; this is the only place that turns it into sound and events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from livekit.agents import (
    AgentSession,
    AgentStateChangedEvent,
    AgentTask,
    CloseEvent,
    ConversationItemAddedEvent,
    FunctionToolsExecutedEvent,
    SpeechCreatedEvent,
    UserStateChangedEvent,
    llm,
)
from livekit.agents.voice import SpeechHandle
from livekit.agents.voice import events as lk

from caal_node.core.events import CuePlayed, Event, Outcome, UserSaid
from caal_node.room.call_tracker import CallTracker, Describe, OutcomeOf, no_outcome
from caal_node.room.clock import Clock, LoopClock
from caal_node.room.cue_player import CuePlayer
from caal_node.room.cue_policy import AGENT_TOOLS, CuePolicy
from caal_node.room.cue_sink import CueSink
from caal_node.room.cues import CueSet
from caal_node.room.server_tools import ServerTools
from caal_node.room.turn_meter import TurnMeter

EventListener: TypeAlias = Callable[[Event], None]
"""It is told of every event, in order, on the event loop, and must not block."""

_log = logging.getLogger(__name__)


class Presence:
    """Drives the cues of one session and tells its events.

    `describe` says where the tool of an exposed name comes from. `outcome_of` says how the call
    of an id ended where that is known better than LiveKit knows it (done, error or cancelled): a
    deadline and a refusal are otherwise plain errors; None leaves it to LiveKit. Without a `sink`
    nothing sounds, and no cue is told.

    Make it on the running event loop; in a session that is under way it goes on from there.
    `aclose` detaches it; the sink and the listeners belong to whoever made them.
    """

    def __init__(
        self,
        session: AgentSession[Any],
        *,
        describe: Describe,
        outcome_of: OutcomeOf = no_outcome,
        listeners: Sequence[EventListener] = (),
        sink: CueSink | None = None,
        cues: CueSet | None = None,
        agent_tools: Collection[str] = AGENT_TOOLS,
        clock: Clock | None = None,
    ) -> None:
        cues = cues or CueSet.of()
        self._session = session
        self._listeners = tuple(listeners)
        self._clock = clock or LoopClock()
        self._calls = CallTracker(describe, outcome_of)
        self._turns = TurnMeter()
        self._speeches: set[SpeechHandle] = set()
        self._aside = False
        """A task has the conversation, as where a tool asks something. Told by its handoffs: the
        task may be over when the words that ended it arrive."""
        self._policy = CuePolicy(cues.lengths(), agent_tools)
        self._player = CuePlayer(
            self._policy, sink=sink, cues=cues, clock=self._clock, tell=self._tell
        )
        self.server_tools = ServerTools(
            self._clock, self.emit, self._server_call_began, self._server_call_ended
        )
        """Calls that the model's server runs by itself; only the node knows of them."""
        self._handlers: dict[lk.EventTypes, Callable[[Any], None]] = {
            "tool_execution_updated": _safely(self._on_tool),
            "function_tools_executed": _safely(self._on_round),
            "agent_state_changed": _safely(self._on_agent_state),
            "user_state_changed": _safely(self._on_user_state),
            "conversation_item_added": _safely(self._on_item),
            "speech_created": _safely(self._on_speech),
            "close": _safely(self._on_close),
        }
        self._catch_up()
        for name, handler in self._handlers.items():
            session.on(name, handler)  # pyright: ignore[reportUnknownMemberType]  # LiveKit's bare Callable

    def note_request(self) -> None:
        """The node asks the model once more; counted for the turn."""
        self._turns.note_request()

    def emit(self, event: Event) -> None:
        """Tell each listener of `event`, such as `Spoken`, which only the node knows.

        A listener that fails is logged, and stops neither the others nor a call.
        """
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                _log.exception("a listener failed on %s", event.type)

    async def aclose(self) -> None:
        """Detach from the session, silence what sounds, end a turn that is open."""
        for name, handler in self._handlers.items():
            self._session.off(name, handler)  # pyright: ignore[reportUnknownMemberType]  # LiveKit's bare Callable
        self._handlers.clear()
        for speech in self._speeches:
            speech.remove_done_callback(self._on_speech_done)
        self._speeches.clear()
        self._player.close()
        self._end_turn()

    def _catch_up(self) -> None:
        now = self._clock.now()
        if self._session.user_state == "speaking":
            self._policy.user_speech_started(now)
        if self._session.agent_state == "speaking" and self._audible:
            self._policy.agent_speech_started(now)
        if (speech := self._session.current_speech) is not None:
            self._follow(speech)

    def _on_tool(self, event: lk.ToolExecutionUpdatedEvent) -> None:
        now = self._clock.now()
        match event.update:
            case lk.ToolCallStarted(function_call=call):
                # The sound first: it is what must not be late.
                cue = self._player.act(self._policy.call_started(now, call.call_id, call.name))
                self.emit(self._calls.started(now, call))
                self._tell(cue)
            case lk.ToolCallUpdated(call_id=call_id, silent=False):
                self._policy.call_released(call_id)
                self._player.act()
            case lk.ToolCallEnded(call_id=call_id, status=status):
                if (ended := self._calls.ended(now, call_id, status)) is not None:
                    act = self._policy.call_ended(now, call_id, ended.outcome)
                    cue = self._player.act(act)
                    self.emit(ended)
                    self._tell(cue)
            case _:
                pass

    def _server_call_began(self, call_id: str, tool: str) -> None:
        now = self._clock.now()
        self._tell(self._player.act(self._policy.call_started(now, call_id, tool)))

    def _server_call_ended(self, call_id: str, outcome: Outcome) -> None:
        now = self._clock.now()
        self._tell(self._player.act(self._policy.call_ended(now, call_id, outcome)))
        self._policy.round_ended()

    def _on_round(self, _: FunctionToolsExecutedEvent) -> None:
        self._turns.note_round()
        self._policy.round_ended()

    def _on_agent_state(self, event: AgentStateChangedEvent) -> None:
        if event.new_state == "speaking":
            if self._audible:
                self._player.act(self._policy.agent_speech_started(self._clock.now()))
        elif event.old_state == "speaking":
            self._policy.agent_speech_ended(self._clock.now())
            self._player.act()

    def _on_user_state(self, event: UserStateChangedEvent) -> None:
        if event.new_state == "speaking":
            self._player.act(self._policy.user_speech_started(self._clock.now()))
        elif event.old_state == "speaking":
            self._policy.user_speech_ended(self._clock.now())
            self._player.act()

    def _on_item(self, event: ConversationItemAddedEvent) -> None:
        item = event.item
        if isinstance(item, llm.AgentHandoff):
            self._aside = isinstance(self._session.current_agent, AgentTask)
        if not isinstance(item, llm.ChatMessage) or item.role != "user":
            return
        if self._aside and self._calls.under_way and self._turns.open:
            # It answers what a tool asks: the call goes on, and so does the turn it belongs to.
            self.emit(UserSaid(item.text_content or ""))
            return
        if self._turns.open:
            self._end_turn()
        self._policy.abandon()
        self._player.act()
        self.emit(UserSaid(item.text_content or ""))
        if self._answering:
            # Otherwise nothing is going to answer it, and there is no turn to end.
            self._turns.begin(self._clock.now())

    def _on_speech(self, event: SpeechCreatedEvent) -> None:
        self._follow(event.speech_handle)

    def _follow(self, speech: SpeechHandle) -> None:
        self._speeches.add(speech)
        speech.add_done_callback(self._on_speech_done)

    def _on_speech_done(self, speech: SpeechHandle) -> None:
        # Not the agent's state: "listening" is also said while a speech only pauses.
        self._speeches.discard(speech)
        if speech.scheduled and not self._answering:
            self._end_turn()

    @property
    def _audible(self) -> bool:
        """An answer that is only written is "spoken" too, and covers no sound."""
        output = self._session.output
        return output.audio is not None and output.audio_enabled

    @property
    def _answering(self) -> bool:
        """An answer begun while the person may still go on is not scheduled, and may never be."""
        return any(speech.scheduled for speech in self._speeches)

    def _on_close(self, _: CloseEvent) -> None:
        self._end_turn()
        self._player.close()

    def _end_turn(self) -> None:
        if (ended := self._turns.end(self._clock.now())) is not None:
            self.emit(ended)

    def _tell(self, cue: CuePlayed | None) -> None:
        if cue is not None:
            self.emit(cue)


def _safely(handler: Callable[[Any], None]) -> Callable[[Any], None]:
    """LiveKit's emitter lets some exceptions through to the call it tells of."""

    def handle(event: Any) -> None:
        try:
            handler(event)
        except Exception:
            _log.exception("presence failed on %s", event.type)

    return handle
