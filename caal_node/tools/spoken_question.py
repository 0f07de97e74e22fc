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
import re
import tomllib
import unicodedata
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar

from livekit import rtc
from livekit.agents import (
    NOT_GIVEN,
    Agent,
    AgentTask,
    ModelSettings,
    NotGivenOr,
    TurnHandlingOptions,
    UserStateChangedEvent,
    llm,
    stt,
)
from livekit.agents.voice import SpeechHandle
from livekit.agents.voice.turn import PreemptiveGenerationOptions

from caal_node.core.items import PIN_SAID
from caal_node.core.prompt_files import read

# Reads what a person answers to a call that is read back: a yes, a no, or neither.
#
# A yes has to be about nothing else: it holds words that say yes, words that mean nothing by
# themselves, words of the question, and no others. "Yes, unlock it" is one; "yes, we are watching
# the match" is not, and neither is "is it yes". A no may hold anything: what follows it is what the
# person wants in its place, and makes it a correction. The words are those of
# `prompts/confirmation.toml`; an answer is read in one language at a time.

Meaning: TypeAlias = Literal["yes", "no", "correction", "unclear"]

MAX_YES_WORDS: Final = 12
"""Words of the longest yes. Longer speech with the question's words in it is no answer to it."""
MAX_READ_CHARS: Final = 2_000
"""Characters that are read of an answer: two minutes of speech. A longer one is no yes."""
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_PLAIN: Final = re.compile(r"""[\w\s.,;:!'"()\-–—…]*""")
"""What a yes is written with: a symbol or a question mark may mean something else."""


@dataclass(frozen=True, slots=True)
class _Language:
    yes: tuple[tuple[str, ...], ...]
    no: tuple[tuple[str, ...], ...]
    instead: tuple[tuple[str, ...], ...]
    filler: frozenset[str]
    asks: frozenset[str]


def read_answer(words: str, question: str) -> Meaning:
    """Return what `words` mean as an answer to `question`, which was read to the person."""
    text = unicodedata.normalize("NFKC", words[:MAX_READ_CHARS]).replace("’", "'")
    said = _tokens(text)
    own = frozenset(_tokens(unicodedata.normalize("NFKC", question)))
    no = [each for each in _LANGUAGES if _holds(said, each.no) or _says_instead(said, each)]
    if no:
        plain = any(_is_made_of(said, (*each.no, *each.yes), each, own) for each in no)
        return "no" if plain else "correction"
    if len(said) > MAX_YES_WORDS or len(words) > MAX_READ_CHARS or not _PLAIN.fullmatch(text):
        return "unclear"
    if any(_is_made_of(said, each.yes, each, own) and not _asks(said, each) for each in _LANGUAGES):
        return "yes"
    return "unclear"


def _is_made_of(
    said: Sequence[str],
    phrases: Sequence[tuple[str, ...]],
    language: _Language,
    own: Collection[str],
) -> bool:
    """Say whether the words hold one of `phrases`, and else only fillers and the question's own."""
    found, at = False, 0
    while at < len(said):
        phrase = next((each for each in phrases if tuple(said[at : at + len(each)]) == each), None)
        if phrase is not None:
            found, at = True, at + len(phrase)
        elif said[at] in language.filler or said[at] in own:
            at += 1
        else:
            return False
    return found


def _asks(said: Sequence[str], language: _Language) -> bool:
    """Say whether the words begin as a question does: "do it" is none, and "do you" is one."""
    is_phrase = any(tuple(said[: len(each)]) == each for each in language.yes)
    return said[0] in language.asks and not is_phrase


def _says_instead(said: Sequence[str], language: _Language) -> bool:
    """Say whether the person corrects the call. A word such as "but" alone says nothing."""
    return len(said) > 1 and _holds(said, language.instead)


def _holds(said: Sequence[str], phrases: Sequence[tuple[str, ...]]) -> bool:
    return any(
        tuple(said[at : at + len(phrase)]) == phrase
        for phrase in phrases
        for at in range(len(said))
    )


def _tokens(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _language(table: Mapping[str, Any]) -> _Language:
    yes, no, instead = (
        tuple(sorted((tuple(_tokens(each)) for each in table[key]), key=len, reverse=True))
        for key in ("yes", "no", "instead")
    )
    return _Language(yes, no, instead, frozenset(table["filler"]), frozenset(table["asks"]))


_LANGUAGES: Final = tuple(
    _language(table)
    for name, table in tomllib.loads(read("confirmation.toml")).items()
    if name != "say"
)


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

    def words_of(self, message: llm.ChatMessage) -> str:
        """Return the person's words that a message stands for."""
        return message.text_content or ""

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
        self._untaken[message.id] = self.words_of(message)
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


class SecretQuestion(SpokenQuestion[T]):
    """A question whose answers are for itself alone. `PIN_SAID` takes the place of each, a no as
    well, before LiveKit has it: in its logs, spans, captions and events, and in the history.

    Speech is covered where it comes out of speech to text. LiveKit has no such place for what is
    typed, so the session's own `generate_reply`, through which every typed text comes, is covered
    while the question is open.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._covered: Final[list[str]] = []
        """What was said or typed, and is in no message so far."""
        self.is_typed = False
        """Whether the newest words were typed, and so come as a whole."""
        self._generate_reply: Any = None
        self._is_own = False
        """Whether the session's owner has put one of their own in its place."""

    async def on_enter(self) -> None:
        self._generate_reply = self.session.generate_reply
        self._is_own = "generate_reply" in vars(self.session)
        vars(self.session)["generate_reply"] = self._reply_to_cover
        await super().on_enter()

    async def on_exit(self) -> None:
        await super().on_exit()
        if self._is_own:
            vars(self.session)["generate_reply"] = self._generate_reply
        else:
            vars(self.session).pop("generate_reply", None)

    async def stt_node(
        self, audio: AsyncIterable[rtc.AudioFrame], model_settings: ModelSettings
    ) -> AsyncGenerator[stt.SpeechEvent]:
        async for event in Agent.default.stt_node(self, audio, model_settings):
            yield self.cover(event)

    def cover(self, event: stt.SpeechEvent) -> stt.SpeechEvent:
        """Return an event of speech to text without its words, which are kept for the question."""
        if not event.alternatives or not (text := event.alternatives[0].text):
            return event
        if event.type == stt.SpeechEventType.FINAL_TRANSCRIPT:
            self._covered.append(text)
            self.is_typed = False
        # A new one: the old one may have the words in further fields.
        covered = stt.SpeechData(event.alternatives[0].language, PIN_SAID)
        return replace(event, alternatives=[covered])

    def words_of(self, message: llm.ChatMessage) -> str:
        message.content[:] = [PIN_SAID]
        words = " ".join(self._covered)
        self._covered.clear()
        return words

    def _reply_to_cover(
        self, *, user_input: NotGivenOr[str | llm.ChatMessage] = NOT_GIVEN, **options: Any
    ) -> SpeechHandle:
        words = user_input.text_content if isinstance(user_input, llm.ChatMessage) else user_input
        if words:
            self._covered.append(words)
            self.is_typed = True
            user_input = PIN_SAID
        return self._generate_reply(user_input=user_input, **options)
