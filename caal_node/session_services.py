"""The services that run beside an agent in a session: presence, cues, control and the warm-up.

LiveKit sets up and closes the agent's toolset by itself, and these services begin and end with it,
so they also run where a subclass has an `on_enter` of its own.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Protocol, TypeAlias, cast
from weakref import WeakSet

from livekit import rtc
from livekit.agents import (
    AgentSession,
    ConversationItemAddedEvent,
    NotGivenOr,
    UserInputTranscribedEvent,
    llm,
    stt,
)
from livekit.agents.metrics import LLMMetrics
from livekit.agents.utils import aio
from livekit.agents.voice.transcription.filters import filter_emoji
from livekit.agents.voice.transcription.text_transforms import TextTransforms

from caal_node.config.settings import Settings
from caal_node.config.switches import Switches
from caal_node.control.listener import AgentTools, ControlListener
from caal_node.control.messages import (
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    SwitchReport,
    SwitchRequest,
)
from caal_node.core.errors import CaalError, ModelError
from caal_node.core.events import Event, Events, SpeechFailed, Spoken, TierName, ToolsTold
from caal_node.language.hotwords import hotwords
from caal_node.models.backends.base import ServerCall, ServerResult
from caal_node.models.llm import LLM
from caal_node.models.model_connection import OnRequest
from caal_node.models.question import Question
from caal_node.redaction.log_filter import logs_redacted
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.room.announcer import SessionAnnouncer
from caal_node.room.cue_files import load_cues
from caal_node.room.cue_player import CueSink, LateCueSink, publish_cues
from caal_node.room.done_cue import DoneCue
from caal_node.room.front_end import Attributes, Transcript
from caal_node.room.hearing import Hearing
from caal_node.room.hooks import CallbackQueue, HookNotifier, Hooks
from caal_node.room.other_participants import close_to_others, keep_job_alive
from caal_node.room.presence import EventListener, Presence, ToolOrigin
from caal_node.room.read_ahead import ReadAhead
from caal_node.room.spoken_text import redacted, speakable, watched, without_markdown
from caal_node.speech.wake_word import WakeWord
from caal_node.telemetry.metrics import request_of, session_metrics
from caal_node.telemetry.spans import write_cue, write_tools
from caal_node.telemetry.trace_file import flush, write_trace
from caal_node.tools.call_scheduler import OpenCalls
from caal_node.tools.pipeline import CallOutcomes
from caal_node.tools.table import ToolTable

logger = logging.getLogger("caal_node")

OwnersListener: TypeAlias = Callable[[Event], Awaitable[None] | None]
"""It gets every event, in order, on the event loop, and must not block. It may be async: the next
event then waits for it, and the conversation does not."""


class ServedAgent(Protocol):
    """What the services need of the agent that they belong to."""

    settings: Settings
    switches: Switches
    speakable: ClassVar[bool]

    @property
    def table(self) -> ToolTable: ...

    @property
    def session(self) -> AgentSession[Any]: ...

    @property
    def model(self) -> llm.LLM: ...

    @property
    def stt(self) -> NotGivenOr[stt.STT[Any] | None]: ...

    @property
    def on_tools(self) -> AgentTools: ...

    def first_question(self, words: str | None = None) -> Question: ...

    def is_cut_behind(self, answer: str) -> bool: ...

    async def spoken_names(self) -> list[str]: ...

    def origin(self, tool: str) -> tuple[TierName, str]: ...

    async def on_reload(self, request: ReloadRequest) -> ReloadReport: ...

    async def on_model(self, request: ModelRequest) -> ModelReport: ...

    def on_switch(self, request: SwitchRequest) -> SwitchReport: ...


class SessionServices:
    """The services of one agent. `begin` and `aclose` come in pairs, once a stay in a session."""

    def __init__(
        self,
        agent: ServedAgent,
        outcomes: CallOutcomes,
        open_calls: OpenCalls,
        events: Events,
        redaction: OutgoingRedaction,
        *,
        on_event: OwnersListener | None = None,
        hooks: Hooks | None = None,
        cue_sink: CueSink | None = None,
        warm: bool = True,
    ) -> None:
        self._agent = agent
        self._outcomes = outcomes
        self._open_calls: Final = open_calls
        self._events: Final = events
        self._redaction = redaction
        trace = agent.settings.trace
        # Now, as a session's own span begins before the agent is in the session.
        self._trace = None if trace is None else write_trace(trace, redaction)
        self._hooks = None if hooks is None else HookNotifier(hooks)
        self._own_listeners: list[EventListener] = []
        self._queues: list[CallbackQueue] = []
        """Those of the owner's callbacks, which may be async."""
        if on_event is not None:
            self.add_listener(on_event)
        if self._hooks is not None:
            self._own_listeners.append(self._hooks)
            self._queues.append(self._hooks.queue)
        self._cue_sink = cue_sink
        self._wants_warming = warm
        self._cues = load_cues(agent.settings.cues.files)
        self._presence: Presence | None = None
        self._ahead: ReadAhead | None = None
        self._on_request: OnRequest | None = None
        self._exit_stack = AsyncExitStack()
        self._tools_changed: Final = asyncio.Event()
        self._redacted: WeakSet[AgentSession[Any]] = WeakSet()
        """Sessions until whose end logs are redacted."""
        answers = agent.settings.answers
        self._wake_word = WakeWord(answers.wake_word) if answers.to == "woken" else None
        self.hearing = Hearing(agent, answers, switches=agent.switches, wake_word=self._wake_word)
        """What the agent hears and leaves alone."""
        open_calls.hearing = self.hearing
        self.announcer = SessionAnnouncer(self.hearing)
        """Speaks by itself in the session that the agent is in."""
        self.warmed = asyncio.Event()
        """It is set once the warm-up is over, however that went."""

    def add_listener(self, listener: OwnersListener) -> None:
        """Call `listener` with every event from the next `begin` on."""
        self._queues.append(queue := CallbackQueue())
        self._own_listeners.append(partial(queue.call, listener))

    async def listeners_done(self) -> None:
        """Wait until the owner's async callbacks have ended."""
        await asyncio.gather(*(queue.done() for queue in self._queues))

    async def prepare(self) -> None:
        """Close the session to others in its room, and redact logs, before any source is asked.

        Raises:
            ConfigError: the wake word cannot be heard here.
        """
        session = self._agent.session
        self._redact_logs(session)
        if self._wake_word is not None:
            await asyncio.to_thread(self._wake_word.load)
        await close_to_others(
            session, open_session_host=self._agent.settings.room_sees == "everything"
        )

    def _redact_logs(self, session: AgentSession[Any]) -> None:
        """Redact what is logged until `session` has closed.

        LiveKit closes other toolsets beside ours and after it, and whatever is closed still logs.
        """
        if session in self._redacted:
            return
        self._redacted.add(session)
        redacting = ExitStack()
        redacting.enter_context(logs_redacted(self._redaction))

        def end(_: object) -> None:
            self._redacted.discard(session)
            redacting.close()

        session.once("close", end)

    async def begin(self) -> None:
        """Attach to the agent's session. What needs the room starts once the room is connected."""
        session, settings = self._agent.session, self._agent.settings
        room = _room_of(session)
        listeners = list(self._own_listeners)
        sink: CueSink | None = self._cue_sink if settings.cues.on else None
        attributes: Attributes | None = None
        for queue in self._queues:
            self._exit_stack.push_async_callback(queue.aclose)  # after presence, and its last event
        counted = session_metrics()
        listeners += [counted, write_cue]
        if self._trace is not None:
            self._exit_stack.push_async_callback(flush, self._trace)
        self._on_request = counted
        with suppress(TypeError):  # an agent without a model has no requests
            self._count_requests_of(self._agent.model, counted)
        if room is not None:
            self._run_beside("caal-job", keep_job_alive(room))
            transcript = Transcript.of_room(room, show_arguments=settings.room_sees != "names")
            self._exit_stack.push_async_callback(transcript.aclose)
            attributes = Attributes.of_room(room)
            self._exit_stack.push_async_callback(attributes.aclose)
            page = Transcript.of_page(room, lambda: session.room_io.linked_participant)
            self._exit_stack.push_async_callback(page.aclose)
            listeners += [transcript, page, attributes]
            if sink is None and settings.cues.on:
                sink = late_sink = LateCueSink()
                self._exit_stack.push_async_callback(late_sink.aclose)
                self._run_beside("caal-cues", publish_cues(room, late_sink))
            secret = settings.livekit_api_secret
            control = ControlListener(
                room,
                on_reload=self._agent.on_reload,
                on_model=self._agent.on_model,
                on_say=self.announcer.say,
                on_switch=self._agent.on_switch,
                on_tools=self._agent.on_tools,
                api_key=settings.livekit_api_key,
                api_secret=secret.get_secret_value() if secret else None,
            )
            self._exit_stack.push_async_callback(control.aclose)
        self._presence = Presence(
            session,
            describe=lambda tool: ToolOrigin(*self._agent.origin(tool)),
            report_of=self._outcomes.take,
            listeners=listeners,
            redact=self._redaction.record,
            sink=sink,
            cues=self._cues,
            switches=self._agent.switches,
            agent_tools=settings.cues.agent_tools,
            done_cue=DoneCue(self._agent, self._agent.switches) if settings.cues.done else None,
        )
        self._events.hearer = self._presence
        self._exit_stack.push_async_callback(self._presence.aclose)
        self.announcer.begin(session, room, self._presence.play_announced)
        self._exit_stack.callback(self.announcer.end)
        self._run_beside("caal-arrivals", self.announcer.watch_arrivals())
        self.hearing.begin(session)
        self._exit_stack.callback(self.hearing.end)
        session.on("conversation_item_added", self._added)
        self._exit_stack.callback(session.off, "conversation_item_added", self._added)
        session.on("user_input_transcribed", self._heard)
        self._exit_stack.callback(session.off, "user_input_transcribed", self._heard)
        ears = self._agent.stt or session.stt
        if ears and ears.capabilities.keyterms:
            self._run_beside("caal-names", self._tell_names(session))
        self._ahead = ReadAhead(self, session)
        self._exit_stack.push_async_callback(self._ahead.aclose)
        self._set_text_transforms(session)
        self._run_beside("caal-warm", self._warm(attributes))

    def note_tools(self) -> None:
        self._tools_changed.set()

    async def _tell_names(self, session: AgentSession[Any]) -> None:
        """Tell speech recognition the names that are said to the tools, whenever those change.

        The session's own keyterms stay, in front.
        """
        own, told = session.keyterms, list[str]()
        try:
            while True:
                self._tools_changed.clear()
                names = hotwords(await self._agent.spoken_names())
                if names != told:
                    session.update_options(keyterms=[*own, *names])
                    told = names
                await self._tools_changed.wait()
        finally:
            session.update_options(keyterms=own)

    async def aclose(self) -> None:
        await self._exit_stack.aclose()
        self._exit_stack = AsyncExitStack()
        self._presence = self._ahead = self._on_request = self._events.hearer = None

    def _count_requests_of(self, model: llm.LLM, counted: OnRequest) -> None:
        """Count the requests to a model of another LiveKit plugin; ours tells of its own."""
        if isinstance(model, LLM):
            return

        def count(metrics: object) -> None:
            if isinstance(metrics, LLMMetrics):
                counted(request_of(metrics))

        model.on("metrics_collected", count)
        self._exit_stack.callback(model.off, "metrics_collected", count)

    def note_request(self) -> OnRequest | None:
        """Count a request of the turn, and return who wants to know how long it takes."""
        if self._ahead is not None:
            self._ahead.request_begins()
        if self._presence is not None:
            self._presence.note_request()
        return self._on_request

    def note_server_run(self, run: ServerCall | ServerResult) -> None:
        """Report that the model's server runs a tool by itself, or has finished it."""
        if self._presence is not None:
            self._presence.server_calls.note(run)

    def note_told(self, words_id: str, told: ToolsTold) -> None:
        """Report which tools are told with a person's words."""
        write_tools(told)
        if self._presence is not None:
            self._presence.note_told(words_id, told)

    def note_reply_failed(self) -> None:
        if self._presence is not None:
            self._presence.note_reply_failed()

    async def cue_over(self) -> None:
        """Wait with the agent's voice for a cue that is still heard."""
        if self._presence is not None:
            await self._presence.cue_over()

    def note_speech_failed(self, error: Exception) -> None:
        """Report that a text to speech has given no sound, or not all of it."""
        kind = type(error).__name__  # what it says may quote the words
        logger.warning("text to speech failed: %s", kind)
        self._events.emit(SpeechFailed(kind))

    def note_reply_over(self) -> None:
        if self._ahead is not None:
            self._ahead.reply_over()
        if self._presence is not None:
            self._presence.server_calls.reply_over()

    def note_interim(self, call_id: str, text: str) -> None:
        if self._hooks is not None:
            self._hooks.note_interim(call_id, self._redaction.text(text))

    def report_speech(self, text: AsyncIterable[str]) -> AsyncIterable[str]:
        """Pass text on to TTS, and report each of its sentences as an event.

        Where the text is made speakable, `_speakable` has reported it, as a key or an address is
        not known by its shape any more once it is spelt out.
        """
        return text if self._agent.speakable else self._reported(text)

    def report_transcript(self, text: AsyncIterable[Any]) -> AsyncIterable[Any]:
        """Pass text on to the transcript, and report its sentences where no audio is spoken."""
        text = redacted(text, self._redaction.words)
        if self._agent.session.output.audio is not None:
            return text
        if self._agent.speakable:
            return filter_emoji(without_markdown(self._reported(text, as_spoken=True)))
        return self._reported(filter_emoji(without_markdown(text)))

    def _reported(
        self, text: AsyncIterable[Any], *, as_spoken: bool = False
    ) -> AsyncGenerator[Any]:
        redact = self._redaction.text
        return watched(text, self._emit_sentence, as_spoken=as_spoken, redact=redact)

    def _speakable(self, text: AsyncIterable[str]) -> AsyncGenerator[str]:
        """Make text speakable, and report its sentences: LiveKit's text transform of a session."""
        return speakable(self._reported(text, as_spoken=True))

    def _set_text_transforms(self, session: AgentSession[Any]) -> None:
        """Put our text transform before LiveKit's own filters while the agent is in the session.

        After them it would be too late: they remove the marks of a code block and leave the code,
        and they hold back a whole line that has a stray star or backtick in it. The filter that
        does so is given a bounded part of a line at once.
        """
        options = session.options

        def restore() -> None:
            options.tts_text_transforms = [
                "filter_markdown" if each is without_markdown else each
                for each in options.tts_text_transforms or ()
                if each not in ours
            ]

        ours: list[TextTransforms] = [self._speakable] if self._agent.speakable else []
        options.tts_text_transforms = ours + [
            without_markdown if each == "filter_markdown" else each
            for each in options.tts_text_transforms or ()
        ]
        self._exit_stack.callback(restore)

    def _added(self, event: ConversationItemAddedEvent) -> None:
        """Take calls back if the person wants that. While another agent leads, the words are its
        own: an answer to what it asks."""
        item = event.item
        leads = self._agent.session.current_agent is cast("object", self._agent)
        if leads and isinstance(item, llm.ChatMessage) and item.role == "user":
            self._open_calls.note_said(item.text_content or "")

    def _heard(self, event: UserInputTranscribedEvent) -> None:
        """Redact LiveKit's event of what a person said, of which it writes the caption afterwards.

        The model has the words as they were said.
        """
        if self._ahead is not None and self._agent.settings.read_ahead:
            self._ahead.heard(event.transcript, is_final=event.is_final)
        event.transcript = self._redaction.text(event.transcript)

    async def read(self, words: str) -> None:
        """Have the model's server read the conversation, with `words` at its end.

        Raises:
            ModelError: it could not be asked.
        """
        if isinstance(model := self._agent.model, LLM):
            await model.read_ahead(replace(self._agent.first_question(words), references=()))

    def is_cut_behind(self, answer: str) -> bool:
        """Say whether the next words cut the conversation that a model of ours is asked about."""
        with suppress(TypeError):  # an agent without a model may still announce something
            return isinstance(self._agent.model, LLM) and self._agent.is_cut_behind(answer)
        return False

    def _emit_sentence(self, sentence: str) -> None:
        self.hearing.note_sentence(sentence)
        self._events.emit(Spoken(sentence))

    def _run_beside(self, name: str, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work, name=name)
        self._exit_stack.push_async_callback(aio.cancel_and_wait, task)

    def rewarm(self) -> None:
        """Warm up the model beside the conversation, since another one is asked from now on."""
        self._run_beside("caal-warm", self._warm(None))

    async def _warm(self, attributes: Attributes | None) -> None:
        """Load the model with the real instructions and tools, so that no turn waits for that."""
        try:
            if self._wants_warming and isinstance(model := self._agent.model, LLM):
                with suppress(ModelError):  # `warm` says it as well, and tries the fallbacks.
                    # What the prompt holds depends on how much its server reads.
                    await model.find_strategy()
                await model.warm(self._agent.first_question())
        except CaalError as error:
            logger.warning("the model could not be warmed up: %s", error)
        except Exception:  # nobody awaits this task's result before the agent leaves
            logger.exception("the warm-up failed")
        finally:
            self.warmed.set()
            if attributes is not None:
                attributes.warmed()


def _room_of(session: AgentSession[Any]) -> rtc.Room | None:
    try:
        return session.room_io.room
    except RuntimeError:  # LiveKit raises it where the session has no room
        return None
