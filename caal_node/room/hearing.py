"""What the agent hears and leaves alone: words said in passing, its own voice, talk of others.

LiveKit pauses the agent when somebody speaks, and goes on when no words come of it. So backchannels
and the agent's own words are taken out of what speech to text hears. LiveKit's own model for them,
`mode="adaptive"`, runs in a cloud, and its `min_words` would lose "stop". It has nothing against
talk that is for somebody else: here such a turn ends without an answer, and is in no history.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# LiveKit leaves the event types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import tomllib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final, Protocol

from livekit import rtc
from livekit.agents import (
    AgentSession,
    AgentStateChangedEvent,
    StopResponse,
    UserStateChangedEvent,
    llm,
)
from livekit.agents.stt import SpeechEvent, SpeechEventType

from caal_node.config.setting_tables import Answers
from caal_node.config.switches import Switches
from caal_node.core.prompt_files import read, sentence
from caal_node.language.addressee import OVERHEARD, OVERHEARD_IN_TALK, overheard
from caal_node.language.backchannels import is_backchannel
from caal_node.room.cue_player import Clock, ClockTimer

IN_TALK_S: Final = 8.0
"""Seconds behind the agent's words in which a conversation goes on."""
NOT_YOU_S: Final = 60.0
"""Seconds after "I'm not talking to you" in which only the agent's name, or talk that surely is for
it, is answered where not everything is."""
WOKEN_S: Final = 30.0
"""Seconds behind a wake word in which words are for the agent, until it answers."""
ECHO_WORDS: Final = 4
"""So many words and more may be the agent's own, heard by the microphone."""
ECHO_SHARE: Final = 0.75
"""The share of them that it has just said, in this order; the first and the last always, so that a
"stop" behind them is heard."""
WORDS_S: Final = 2.0
"""Seconds after speech in which its words are waited for. Whisper needs half a second for a
sentence; a noise has no words at all."""
TURN_S: Final = 2.0
"""Seconds after words until they are a turn, if they ever are: a pause within a turn is shorter."""
LONGEST_S: Final = 10.0
"""Seconds for which a call waits while somebody speaks; a television never stops."""
QUIET_CHARS: Final = 100
"""Characters of a turn that may be about the sounds: whoever says more says something else."""
MAX_READ_CHARS: Final = 2_000
"""Characters that are read of a turn: two minutes of speech."""
_SAID_WORDS: Final = 80
_HEARD_WORDS: Final = 60
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_TRANSCRIPTS: Final = (
    SpeechEventType.INTERIM_TRANSCRIPT,
    SpeechEventType.PREFLIGHT_TRANSCRIPT,
    SpeechEventType.FINAL_TRANSCRIPT,
)
_NOT_YOU: Final = tuple(
    tuple(phrase.split())
    for phrases in tomllib.loads(read("not_you.toml")).values()
    for phrase in phrases
)
_QUIET: Final[Mapping[str, Mapping[str, list[str]]]] = tomllib.loads(read("quiet.toml"))
_AROUND: Final = frozenset(word for words in _QUIET["around"].values() for word in words)

logger = logging.getLogger("caal_node")


class HearsWakeWord(Protocol):
    """What listens for a wake word."""

    def hears(self, frame: rtc.AudioFrame) -> bool:
        """Say whether the word ends in this frame, behind those before it."""
        ...


class Hearing:
    """What `agent` hears in the session that it is in.

    Args:
        agent: While another one leads, such as a task that asks something, all is heard.
        answers: To what it answers.
        clock: It tells the seconds; by default the event loop does.
        switches: "Be quiet while you work" switches the cues in them. Without them, or in a room
            without sounds, such words are for the model.
        wake_word: What hears the wake word, where the agent answers only behind it.
    """

    def __init__(
        self,
        agent: object,
        answers: Answers,
        clock: Clock | None = None,
        switches: Switches | None = None,
        wake_word: HearsWakeWord | None = None,
    ) -> None:
        self._agent: Final = agent
        self._wake_word: Final = wake_word
        self._woken_until = 0.0
        self._switches: Final = switches
        self._answers: Final = answers
        self._names: Final = [tuple(_words(name)) for name in answers.names]
        self._clock: Final = clock
        self._session: AgentSession[Any] | None = None
        self._said: deque[str] = deque(maxlen=_SAID_WORDS)
        self._asks = False
        """Whether the reply that is, or was last, spoken asks something."""
        self._is_paused = False
        """Whether LiveKit has paused the agent since somebody speaks."""
        self._over_speech: bool | None = None
        """Whether all that was spoken since the last words came began over the agent's speech;
        None while nobody has spoken."""
        self._spoke_until: float | None = None
        self._not_you_until = 0.0
        self._words: list[str] = []
        """What was heard since somebody began to speak."""
        self._words_known = asyncio.Event()
        """Whether nobody speaks, and the words of whoever spoke last are there."""
        self._words_known.set()
        self._words_late: ClockTimer | None = None
        self._turn_until = 0.0
        """When words that were heard will have become a turn, or nothing."""

    def begin(self, session: AgentSession[Any]) -> None:
        self._session = session
        session.on("user_state_changed", self._on_user_state)
        session.on("agent_state_changed", self._on_agent_state)

    def end(self) -> None:
        if (session := self._session) is not None:
            session.off("user_state_changed", self._on_user_state)
            session.off("agent_state_changed", self._on_agent_state)
        if self._words_late is not None:
            self._words_late.cancel()
        self._session = self._over_speech = self._words_late = None
        self._words_known.set()

    @property
    def is_hearing(self) -> bool:
        """Whether somebody speaks, or has spoken and no turn has come of it yet."""
        return not self._words_known.is_set() or self._now_s() < self._turn_until

    async def heard_out(self) -> str:
        """Return the words for the agent that are being spoken, once they are there; "" where
        nobody speaks, or what was heard has no words for the agent.

        LiveKit breaks a reply off only once there are words; until then its calls would run.
        """
        if self._words_known.is_set():
            return ""
        await self._words_known.wait()
        words = " ".join(self._words)
        return "" if not words or self.leaves_alone(words) else words

    def note_sentence(self, text: str) -> None:
        """Look at a sentence of the reply that is being spoken."""
        self._asks |= "?" in text
        self._said.extend(_words(text))

    def of_node(self, stt_node: Callable[..., Any]) -> Any:
        """Return `stt_node` without backchannels and the agent's own words over its speech.

        Where its reply asks something, no backchannel is left out: "right" may be the answer.
        """

        async def heard(audio: Any, model_settings: Any) -> AsyncGenerator[SpeechEvent]:
            if self._wake_word is not None:
                audio = self._listened(audio, self._wake_word)
            events = stt_node(audio, model_settings)
            if inspect.isawaitable(events):
                events = await events
            if events is not None:
                async for event in events:
                    is_dropped = self._is_dropped(event)
                    if event.type is SpeechEventType.FINAL_TRANSCRIPT:
                        self._note_words(event, is_dropped=is_dropped)
                    if not is_dropped:
                        yield event

        return heard

    async def _listened(
        self, audio: AsyncIterable[rtc.AudioFrame], wake_word: HearsWakeWord
    ) -> AsyncGenerator[rtc.AudioFrame]:
        async for frame in audio:
            if wake_word.hears(frame):
                self._woken_until = self._now_s() + WOKEN_S
            yield frame

    def of_turn(self, completed: Callable[..., Any]) -> Any:
        """Return `on_user_turn_completed` that ends turns which are not for the agent, and those
        that switch its sounds, which no model has to answer."""

        async def heard(turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
            self._turn_until = 0.0
            words = new_message.text_content or ""
            if self.leaves_alone(words):
                logger.info("what was heard is not for the agent, and is left alone")
                raise StopResponse
            if self._switches_sounds(words):
                raise StopResponse
            await completed(turn_ctx, new_message=new_message)

        return heard

    def leaves_alone(self, words: str) -> bool:
        """Say whether spoken words are for somebody else, as far as the settings ask that."""
        said = _words(words)
        if any(_holds(said, phrase) for phrase in _NOT_YOU):
            self._not_you_until = self._now_s() + NOT_YOU_S
            return True
        if self._answers.to == "always" or any(_holds(said, name) for name in self._names):
            self._not_you_until = 0.0
            return False
        if self._answers.to == "woken" and self._now_s() < self._woken_until:
            self._not_you_until = 0.0
            return False
        if self._now_s() < self._not_you_until:
            return self._answers.to in ("named", "woken") or overheard(words) > -OVERHEARD
        in_talk = self._spoke_until is not None and self._now_s() - self._spoke_until < IN_TALK_S
        if in_talk and self._asks:
            return False
        if self._answers.to in ("named", "woken"):
            return not in_talk
        return overheard(words) >= (OVERHEARD_IN_TALK if in_talk else OVERHEARD)

    def _switches_sounds(self, words: str) -> bool:
        """Switch the cues of the conversation if the words ask for it, and say so."""
        switches, session = self._switches, self._session
        wanted = sounds_wanted(words, self._answers.names)
        if wanted is None or switches is None or not switches.can_play or session is None:
            return False
        switches.switch(wanted, {})
        session.say(sentence("sounds_on" if wanted else "sounds_off"), add_to_chat_ctx=False)
        return True

    def _is_dropped(self, event: SpeechEvent) -> bool:
        if event.type not in _TRANSCRIPTS or not event.alternatives:
            return False
        over = self._over_speech
        if event.type is SpeechEventType.FINAL_TRANSCRIPT:
            self._over_speech = None
        session = self._session
        if not over or session is None or session.current_agent is not self._agent:
            return False
        words = event.alternatives[0].text
        return self._is_own_voice(words) or (not self._asks and is_backchannel(words))

    def _is_own_voice(self, words: str) -> bool:
        heard, said = _words(words), list(self._said)
        if not ECHO_WORDS <= len(heard) <= _HEARD_WORDS:
            return False
        matcher = SequenceMatcher(None, heard, said, autojunk=False)
        same = [
            at
            for found, _, size in matcher.get_matching_blocks()
            for at in range(found, found + size)
        ]
        ends = same[:1] == [0] and same[-1:] == [len(heard) - 1]
        return ends and len(same) >= ECHO_SHARE * len(heard)

    def _now_s(self) -> float:
        return (self._clock or asyncio.get_running_loop()).time()

    def _note_words(self, event: SpeechEvent, *, is_dropped: bool) -> None:
        if event.alternatives and not is_dropped:
            self._words.append(event.alternatives[0].text)
            self._turn_until = self._now_s() + TURN_S
        if self._session is None or self._session.user_state != "speaking":
            self._words_known.set()

    def _on_user_state(self, event: UserStateChangedEvent) -> None:
        if event.new_state == "speaking":
            if self._words_known.is_set():
                self._words.clear()
            self._words_known.clear()
            self._wait_for_words(LONGEST_S)
        elif event.old_state == "speaking":
            # A recogniser that streams has the words before the silence.
            self._wait_for_words(0.0 if self._words else WORDS_S)
        if event.new_state == "speaking" and self._session is not None:
            over = self._is_paused or self._session.agent_state == "speaking"
            self._over_speech = over and self._over_speech is not False

    def _wait_for_words(self, seconds: float) -> None:
        if self._words_late is not None:
            self._words_late.cancel()
        clock = self._clock or asyncio.get_running_loop()
        self._words_late = clock.call_at(clock.time() + seconds, self._words_known.set)

    def _on_agent_state(self, event: AgentStateChangedEvent) -> None:
        if event.new_state == "speaking":
            self._woken_until = 0.0
        user_speaks = self._session is not None and self._session.user_state == "speaking"
        was_speaking = event.old_state == "speaking"
        self._is_paused = user_speaks and was_speaking and event.new_state == "listening"
        if was_speaking:
            self._spoke_until = self._now_s()
        if event.new_state == "thinking":
            # All that was said before has been taken, or had no words in it.
            self._asks, self._over_speech = False, None


def sounds_wanted(words: str, names: Iterable[str] = ()) -> bool | None:
    """Return whether somebody asks for the sounds of tools (True) or for none (False)."""
    called = frozenset(part for name in names for part in _words(name))

    def bare(text: str) -> list[str]:
        return [word for word in _words(text) if word not in _AROUND and word not in called]

    if len(words) > QUIET_CHARS or not (said := bare(words)):
        return None
    for key, wanted in (("quiet", False), ("sounds", True)):
        if any(said == bare(phrase) for phrases in _QUIET[key].values() for phrase in phrases):
            return wanted
    return None


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:MAX_READ_CHARS].replace("’", "'").casefold())


def _holds(said: list[str], phrase: tuple[str, ...]) -> bool:
    return any(tuple(said[at : at + len(phrase)]) == phrase for at in range(len(said)))
