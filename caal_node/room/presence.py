"""Shows people what a session does: cues for the ear, events for everything else.

It listens to a LiveKit AgentSession and changes nothing in it, unless a sound takes the place of an
answer (`done_cue.py`). LiveKit's executor runs the calls
and emits `tool_execution_updated`; only this module turns it into cues and events.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

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

from caal_node.config.setting_tables import AGENT_TOOLS
from caal_node.config.switches import Switches
from caal_node.core.events import (
    REASON_CHARS,
    CallReport,
    CueKind,
    CuePlayed,
    Event,
    Outcome,
    TierName,
    ToolCallEnded,
    ToolCallStarted,
    ToolsTold,
    TurnEnded,
    UserSaid,
)
from caal_node.models.backends.base import ServerCall, ServerResult
from caal_node.room.cue_player import Clock, CuePlayer, CueSink
from caal_node.room.cue_policy import CuePolicy
from caal_node.room.cues import CueSet
from caal_node.room.done_cue import DoneCue

# Tracks the calls and turns of a session, and makes their events.

SERVER_SOURCE: Final = "model server"
"""The source, in events, of tools that the model's server runs by itself."""


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """The origin of a tool. `source` is the agent's class, `n8n`, or an MCP server's name."""

    tier: TierName
    source: str


Describe: TypeAlias = Callable[[str], ToolOrigin]
"""It returns the origin of the tool with an exposed name."""
ReportOf: TypeAlias = Callable[[str], CallReport | None]
"""It returns how the call of an id ended, where more is known of that than LiveKit knows."""

_OUTCOMES: Final[dict[str, Outcome]] = {"done": "ok", "error": "error", "cancelled": "cancelled"}


@dataclass(frozen=True, slots=True)
class _RunningCall:
    tool: str
    tier: TierName
    began: float


_UNFIT: Final = "Error parsing arguments for "
"""How LiveKit begins what it says of a call whose arguments did not fit."""


class CallTracker:
    """The calls that LiveKit runs in one session, by id. `now` is a time in seconds."""

    def __init__(self, describe: Describe, report_of: ReportOf) -> None:
        self._describe = describe
        self._report_of = report_of
        self._running: dict[str, _RunningCall] = {}

    @property
    def under_way(self) -> bool:
        return bool(self._running)

    def started(self, now: float, call: llm.FunctionCall) -> ToolCallStarted:
        origin = self._describe(call.name)
        self._running[call.call_id] = _RunningCall(call.name, origin.tier, now)
        return ToolCallStarted(
            call.call_id,
            call.name,
            origin.tier,
            origin.source,
            arguments_of(call.arguments),
        )

    def ended(
        self, now: float, call_id: str, status: str, message: str | None = None
    ) -> ToolCallEnded | None:
        """Return the event for LiveKit's `status`, or None for a call whose start is unknown.

        Args:
            message: LiveKit's words, or those of what the tool raised. Only its own are told: they
                say why a call never reached its tool.
        """
        if (call := self._running.pop(call_id, None)) is None:
            return None
        outcome = _OUTCOMES[status]
        report = self._report_of(call_id)
        if report is None:
            unfit = outcome == "error" and message and message.startswith(_UNFIT)
            why = " ".join(message.split())[:REASON_CHARS] if message and unfit else ""
            report = CallReport(outcome, reason=why)
        if outcome != "cancelled":
            # A cancelled call stays cancelled, whatever outcome was noted while it was stopped.
            outcome = report.outcome
        duration_ms = round((now - call.began) * 1000)
        return ToolCallEnded(
            *(call_id, call.tool, call.tier, outcome, duration_ms, report.decisions),
            reason=report.reason,
            result=report.result,
        )


class ServerCallTracker:
    """The calls of one session that the model's server runs by itself.

    `now` returns seconds. `begin(call_id, tool)` and `end(call_id, outcome)` play the cues, and
    `emit` takes the events.
    """

    def __init__(
        self,
        now: Callable[[], float],
        emit: Callable[[Event], None],
        begin: Callable[[str, str], None],
        end: Callable[[str, Outcome], None],
    ) -> None:
        self._now = now
        self._emit = emit
        self._begin = begin
        self._end = end
        self._open: dict[str, tuple[str, float]] = {}

    def note(self, run: ServerCall | ServerResult) -> None:
        """Take the start or the result of a call."""
        if isinstance(run, ServerCall):
            self._open[run.id] = (run.name, self._now())
            self._begin(run.id, run.name)
            arguments = arguments_of(run.arguments)
            self._emit(ToolCallStarted(run.id, run.name, "mcp", SERVER_SOURCE, arguments))
        else:
            self._close(run.id, "error" if run.failed else "ok")

    def reply_over(self) -> None:
        """End the calls that are still open as cancelled, since the reply's stream has ended."""
        for call_id in list(self._open):
            self._close(call_id, "cancelled")

    def _close(self, call_id: str, outcome: Outcome) -> None:
        if (call := self._open.pop(call_id, None)) is not None:
            tool, began = call
            duration_ms = round((self._now() - began) * 1000)
            self._emit(ToolCallEnded(call_id, tool, "mcp", outcome, duration_ms))
            self._end(call_id, outcome)


class TurnMeter:
    """Counts a turn's requests and rounds, and its time. `now` is in seconds.

    Requests count from the end of the turn before, since LiveKit may begin an answer before the
    turn's words are known.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._rounds = 0
        self._requests = 0

    @property
    def open(self) -> bool:
        return self._began is not None

    def begin(self, now: float) -> None:
        self._began = now

    def note_request(self) -> None:
        self._requests += 1

    def note_round(self) -> None:
        self._rounds += 1

    def end(self, now: float) -> TurnEnded | None:
        """End the turn, or return None where none is open, as after a greeting."""
        began, rounds, requests = self._began, self._rounds, self._requests
        self._began, self._rounds, self._requests = None, 0, 0
        if began is None:
            return None
        return TurnEnded(rounds, requests, duration_ms=round((now - began) * 1000))


def arguments_of(arguments: str) -> dict[str, Any] | None:
    """Return the JSON object in `arguments`, or None where it holds none.

    LiveKit has repaired the JSON before it runs a call.
    """
    try:
        value: object = json.loads(arguments or "{}")
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


GUESSES_KEPT: Final = 8
"""Words that are not certain yet whose told tools are kept: as many replies as begin early."""
EventListener: TypeAlias = Callable[[Event], None]
"""It gets every event, in order, on the event loop, and must not block."""

_log = logging.getLogger(__name__)


class Presence:
    """Plays the cues of one session and emits its events.

    `describe` returns the origin of the tool with an exposed name. `report_of` returns how the
    call of an id ended, or None to leave that to LiveKit, which knows only done, error and
    cancelled: a deadline and a refusal would be plain errors. `redact` is applied to each event
    before any listener gets it. Without a `sink` no cue is played and none is reported, and
    none where `switches` have them off.

    Make it on the running event loop. It takes over the state of a session that is already running.
    `aclose` detaches it; the sink and the listeners belong to whoever made them.
    """

    def __init__(
        self,
        session: AgentSession[Any],
        *,
        describe: Describe,
        report_of: ReportOf = lambda _: None,
        listeners: Sequence[EventListener] = (),
        redact: Callable[[Event], Event] = lambda event: event,
        sink: CueSink | None = None,
        cues: CueSet | None = None,
        switches: Switches | None = None,
        agent_tools: Collection[str] = AGENT_TOOLS,
        done_cue: DoneCue | None = None,
        clock: Clock | None = None,
    ) -> None:
        cues = cues or CueSet.of()
        self._session = session
        self._switches = switches
        self._done_cue = None if sink is None else done_cue
        self._request = ""
        self._turn_calls: list[llm.FunctionCall] = []
        self._turn_ended: list[ToolCallEnded] = []
        self._asked = False
        """Whether something was asked in this turn, by an AgentTask."""
        self._listeners = tuple(listeners)
        self._redact = redact
        self._clock = clock or asyncio.get_running_loop()
        self._calls = CallTracker(describe, report_of)
        self._turns = TurnMeter()
        self._open_speeches: set[SpeechHandle] = set()
        self._task_leads = False
        """Whether an AgentTask leads the conversation, as when a tool asks something. Handoffs say
        so, as the task itself may be over when the words that ended it arrive."""
        self._words_id = ""
        """The words that were said last."""
        self._told: dict[str, ToolsTold] = {}
        """What is told with words that are not certain yet, by their ids."""
        self._lengths = cues.lengths()
        self._policy = CuePolicy(self._lengths, agent_tools)
        self._player = CuePlayer(
            self._policy,
            sink=sink,
            cues=cues,
            switches=switches,
            clock=self._clock,
            on_timed_cue=self._emit_cue,
        )
        self.server_calls = ServerCallTracker(
            self._clock.time, self.emit, self._server_call_began, self._server_call_ended
        )
        """The calls that the model's server runs by itself, of which only the node knows."""
        self._handlers: dict[lk.EventTypes, Callable[[Any], None]] = {
            "tool_execution_updated": _safely(self._on_tool),
            "function_tools_executed": _safely(self._on_round),
            "agent_state_changed": _safely(self._on_agent_state),
            "user_state_changed": _safely(self._on_user_state),
            "conversation_item_added": _safely(self._on_item),
            "speech_created": _safely(self._on_speech),
            "close": _safely(self._on_close),
        }
        self._take_over_state()
        for name, handler in self._handlers.items():
            session.on(name, handler)  # pyright: ignore[reportUnknownMemberType]  # LiveKit's bare Callable

    def note_request(self) -> None:
        """Count a request of the node to its model for the turn."""
        self._turns.note_request()

    def note_told(self, words_id: str, told: ToolsTold) -> None:
        """Emit what is told with words of an id, as soon as these are in the conversation.

        Of words that were guessed early, and then changed, nothing is emitted.
        """
        if words_id == self._words_id:
            self.emit(told)
            return
        self._told[words_id] = told
        for old in list(self._told)[:-GUESSES_KEPT]:
            del self._told[old]

    def note_reply_failed(self) -> None:
        """Play the error cue, as the node's model gave no reply."""
        self._emit_cue(self._player.perform(self._policy.reply_failed(self._clock.time())))

    async def cue_over(self) -> None:
        """Wait until no cue is heard, and the gap behind it is over. Then the agent may speak."""
        while (wait_s := self._player.quiet_in_s()) > 0:  # noqa: ASYNC110 - its time is known
            await asyncio.sleep(wait_s)

    def play_announced(self, kind: CueKind) -> float:
        """Play the cue of an announcement now, and return its length in seconds; 0 without one."""
        cue = self._player.perform(self._policy.announced(self._clock.time(), kind))
        self._emit_cue(cue)
        return 0.0 if cue is None else self._lengths[kind]

    def emit(self, event: Event) -> None:
        """Pass `event` to each listener. Some, such as `Spoken`, only the node knows.

        A listener that fails is logged, and stops neither the others nor a call.
        """
        try:
            event = self._redact(event)
        except Exception as error:  # nobody may be told what could not be redacted
            _log.error("%s could not be redacted, and is not told: %r", event.type, type(error))
            return
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                _log.exception("a listener failed on %s", event.type)

    async def aclose(self) -> None:
        """Detach from the session, stop the cues, and end the open turn."""
        for name, handler in self._handlers.items():
            self._session.off(name, handler)  # pyright: ignore[reportUnknownMemberType]  # LiveKit's bare Callable
        self._handlers.clear()
        for speech in self._open_speeches:
            speech.remove_done_callback(self._on_speech_done)
        self._open_speeches.clear()
        self._player.close()
        self._end_turn()

    def _take_over_state(self) -> None:
        now = self._clock.time()
        if self._session.user_state == "speaking":
            self._policy.user_speech_started(now)
        if self._session.agent_state == "speaking" and self._audible:
            self._policy.agent_speech_started(now)
        if (speech := self._session.current_speech) is not None:
            self._follow(speech)

    def _on_tool(self, event: lk.ToolExecutionUpdatedEvent) -> None:
        now = self._clock.time()
        match event.update:
            case lk.ToolCallStarted(function_call=call):
                # The cue comes first, as it must not be late.
                cue = None
                if self._switches is None or not self._switches.is_silent(call.name):
                    started = self._policy.call_started(now, call.call_id, call.name)
                    cue = self._player.perform(started)
                self.emit(self._calls.started(now, call))
                self._emit_cue(cue)
            case lk.ToolCallUpdated(call_id=call_id, silent=False):
                self._policy.call_released(call_id)
                self._player.perform()
            case lk.ToolCallEnded(call_id=call_id, status=status, message=said):
                if (ended := self._calls.ended(now, call_id, status, said)) is not None:
                    action = self._policy.call_ended(now, call_id, ended.outcome)
                    cue = self._player.perform(action)
                    self._turn_ended.append(ended)
                    self.emit(ended)
                    self._emit_cue(cue)
            case _:
                pass

    def _server_call_began(self, call_id: str, tool: str) -> None:
        now = self._clock.time()
        self._emit_cue(self._player.perform(self._policy.call_started(now, call_id, tool)))

    def _server_call_ended(self, call_id: str, outcome: Outcome) -> None:
        now = self._clock.time()
        self._emit_cue(self._player.perform(self._policy.call_ended(now, call_id, outcome)))
        self._policy.round_ended()

    def _on_round(self, event: FunctionToolsExecutedEvent) -> None:
        self._turns.note_round()
        self._policy.round_ended()
        self._turn_calls += event.function_calls
        done, calls = self._done_cue, self._turn_calls
        if done is None or not self._may_end_with_a_cue(event):
            return
        if done.fits(self._request, calls, self._turn_ended):
            event.cancel_tool_reply()
            self._emit_cue(self._player.perform(self._policy.turn_done(self._clock.time())))

    def _may_end_with_a_cue(self, event: FunctionToolsExecutedEvent) -> bool:
        """Say whether somebody who spoke, and waits for an answer of the model, hears a cue."""
        waits = event.has_tool_reply and bool(self._open_speeches)
        asked = event.has_agent_handoff or self._asked
        return (
            waits
            and not asked
            and not self._policy.user_speaks
            and all(
                speech.input_details.modality == "audio" and not speech.interrupted
                for speech in self._open_speeches
            )
        )

    def _on_agent_state(self, event: AgentStateChangedEvent) -> None:
        if event.new_state == "speaking":
            if self._audible:
                self._player.perform(self._policy.agent_speech_started(self._clock.time()))
        elif event.old_state == "speaking":
            self._policy.agent_speech_ended(self._clock.time())
            self._player.perform()

    def _on_user_state(self, event: UserStateChangedEvent) -> None:
        if event.new_state == "speaking":
            self._player.perform(self._policy.user_speech_started(self._clock.time()))
        elif event.old_state == "speaking":
            self._policy.user_speech_ended(self._clock.time())
            self._player.perform()

    def _on_item(self, event: ConversationItemAddedEvent) -> None:
        item = event.item
        if isinstance(item, llm.AgentHandoff):
            self._task_leads = isinstance(self._session.current_agent, AgentTask)
            self._asked = True
            if self._task_leads:
                self._policy.question_began()
            else:
                self._policy.question_ended(self._clock.time())
            self._player.perform()
        if not isinstance(item, llm.ChatMessage) or item.role != "user":
            return
        if self._task_leads and self._calls.under_way and self._turns.open:
            # The words answer a tool's question: its call goes on, and so does the call's turn.
            self._said(item)
            return
        if self._turns.open:
            self._end_turn()
        self._policy.abandon()
        self._player.perform()
        self._request, self._asked = item.text_content or "", False
        self._said(item)
        if self._answering:
            # Without an answer to come there would be nothing to end the turn.
            self._turns.begin(self._clock.time())

    def _said(self, words: llm.ChatMessage) -> None:
        self._words_id = words.id
        self.emit(UserSaid(words.text_content or ""))
        if (told := self._told.pop(words.id, None)) is not None:
            self.emit(told)

    def _on_speech(self, event: SpeechCreatedEvent) -> None:
        self._follow(event.speech_handle)

    def _follow(self, speech: SpeechHandle) -> None:
        self._open_speeches.add(speech)
        speech.add_done_callback(self._on_speech_done)

    def _on_speech_done(self, speech: SpeechHandle) -> None:
        # The agent's state does not show it: it is "listening" also while a speech only pauses.
        self._open_speeches.discard(speech)
        if speech.scheduled and not self._answering:
            self._end_turn()

    @property
    def _audible(self) -> bool:
        """Whether speech is heard. LiveKit also calls an answer spoken that is only written."""
        output = self._session.output
        return output.audio is not None and output.audio_enabled

    @property
    def _answering(self) -> bool:
        """Whether an answer is certain: one that LiveKit began early may never be scheduled."""
        return any(speech.scheduled for speech in self._open_speeches)

    def _on_close(self, _: CloseEvent) -> None:
        self._end_turn()
        self._player.close()

    def _end_turn(self) -> None:
        self._turn_calls.clear()
        self._turn_ended.clear()
        if (ended := self._turns.end(self._clock.time())) is not None:
            self.emit(ended)

    def _emit_cue(self, cue: CuePlayed | None) -> None:
        if cue is not None:
            self.emit(cue)


def _safely(handler: Callable[[Any], None]) -> Callable[[Any], None]:
    """Log a handler's exceptions, as LiveKit's emitter would pass some on to the running call."""

    def handle(event: Any) -> None:
        try:
            handler(event)
        except Exception:
            _log.exception("presence failed on %s", event.type)

    return handle
