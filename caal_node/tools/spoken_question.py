"""A question that is asked in the agent's voice, whose answer is the person's next words.

LiveKit's AgentTask holds the conversation while a tool waits. Words are lost to it in two ways,
both of which `SpokenQuestion` makes good: what begins over the question may be dropped with the
reply that was to take it (its words are kept, and taken with the next), or be kept from speech to
text while the echo canceller warms up (then the question is asked again).
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any, Final, TypeVar

from livekit.agents import (
    Agent,
    AgentTask,
    ModelSettings,
    TurnHandlingOptions,
    UserStateChangedEvent,
    llm,
)
from livekit.agents.voice import SpeechHandle
from livekit.agents.voice.turn import PreemptiveGenerationOptions

T = TypeVar("T")

LOST_S: Final = 6.0
"""Seconds after which words that were spoken over the question are no longer expected: local speech
to text takes 2 of them on a busy machine."""
TAKEN_S: Final = 1.0
"""Seconds that LiveKit has to hand words over in a reply, as it does at once or never."""


class SpokenQuestion(AgentTask[T]):
    """Await it in the tool's task. A subclass asks in `begin`, and takes words in `take`."""

    def __init__(self, agent: Agent) -> None:
        """`agent` is the one whose voice and whose events the question has."""
        # An answer that is begun early would be taken from half of what the person says.
        early = PreemptiveGenerationOptions(enabled=False)
        handling = TurnHandlingOptions(preemptive_generation=early)
        super().__init__(instructions="", tools=[], turn_handling=handling)
        self._agent: Final = agent
        self._speech: SpeechHandle | None = None
        """What was said last."""
        self._untaken: Final[dict[str, str]] = {}
        """Words by the id of their message, in their order."""
        self._taken: Final[set[str]] = set()
        self._over_question = False
        """Whether the words that are awaited or untaken began before the question was heard."""
        self._spoke_over = False
        """Whether somebody spoke over the question, and no words of it have come so far."""
        self._timers: Final[dict[str, asyncio.TimerHandle]] = {}

    @abstractmethod
    def begin(self) -> None:
        """Ask for the first time."""

    @abstractmethod
    def take(self, words: str, *, over_question: bool) -> None:
        """Take the person's words: complete the task, or ask again.

        `over_question` says that they began before the question had been heard to its end.
        """

    @abstractmethod
    def ask_again(self) -> None:
        """Ask once more, as what was spoken over the question has reached nobody."""

    def heard_out(self) -> None:
        """Note that the question has been said, or broken off by the person."""

    def say(self, words: str) -> None:
        """Say `words` in the agent's voice."""
        # Not into the history: the model would read it behind the call's result, as still open.
        self._speech = self.session.say(words, add_to_chat_ctx=False)
        self._speech.add_done_callback(self._said)

    def start_timer(self, name: str, delay_s: float, then: Any) -> None:
        """Call `then` in `delay_s` seconds, in place of an earlier timer of that name."""
        self.stop_timer(name)
        if not self.done():
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(delay_s, self._run_unless_done, then)

    def stop_timer(self, name: str) -> None:
        """Stop the timer of that name, if there is one."""
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    def fall_silent(self) -> None:
        """Break the question off and stop every timer, as the answer is there."""
        for name in list(self._timers):
            self.stop_timer(name)
        if self._speech is not None and not self._speech.done():
            self._speech.interrupt(force=True)

    @property
    def being_said(self) -> bool:
        """Whether the question has not been heard to its end."""
        return self._speech is None or not self._speech.done() or self._speech.interrupted

    async def on_enter(self) -> None:
        self.session.on("user_state_changed", self._on_user_state)
        self.begin()

    async def on_exit(self) -> None:
        self.session.off("user_state_changed", self._on_user_state)
        self.fall_silent()

    async def on_user_turn_completed(
        self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage
    ) -> None:
        """Keep spoken words, as the reply that is to take them may be dropped before it begins."""
        self._keep(new_message)
        self.start_timer("taken", TAKEN_S, self._take_kept)

    async def llm_node(
        self,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        model_settings: ModelSettings,
    ) -> AsyncGenerator[str]:
        """Take the person's words, typed or spoken, as the answer; no model is asked."""
        for message in chat_ctx.messages():
            if message.role == "user":
                self._keep(message)
        self._take_kept()
        return
        yield  # it says nothing itself; a node is a generator

    # The agent's own nodes speak and report these words as they do all others.
    def tts_node(self, text: AsyncIterable[str], model_settings: ModelSettings) -> Any:
        return self._agent.tts_node(text, model_settings)

    def transcription_node(self, text: AsyncIterable[Any], model_settings: ModelSettings) -> Any:
        return self._agent.transcription_node(text, model_settings)

    def _keep(self, message: llm.ChatMessage) -> None:
        if message.id in self._taken or message.id in self._untaken:
            return
        self._untaken[message.id] = message.text_content or ""
        self._spoke_over = False
        self._over_question |= self.being_said

    def _take_kept(self) -> None:
        self.stop_timer("taken")
        if not self._untaken or self.done():
            return
        words, over = " ".join(self._untaken.values()), self._over_question
        self._taken.update(self._untaken)
        self._untaken.clear()
        self._over_question = False
        self.take(words, over_question=over)

    def _on_user_state(self, event: UserStateChangedEvent) -> None:
        if event.new_state == "speaking":
            # Words of an earlier stretch may still be on their way.
            self._over_question |= self.being_said
            self._spoke_over |= self.being_said
        elif event.old_state == "speaking" and self._spoke_over:
            self.start_timer("lost", LOST_S, self._not_heard)

    def _not_heard(self) -> None:
        if self._spoke_over and self.session.user_state != "speaking":
            self._spoke_over = self._over_question = False
            self.ask_again()

    def _said(self, speech: SpeechHandle) -> None:
        if speech is self._speech and not self.done():
            self.heard_out()

    def _run_unless_done(self, then: Any) -> None:
        if not self.done():
            then()
