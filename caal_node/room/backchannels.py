"""What a listener says in passing does not interrupt the agent.

LiveKit pauses the agent when somebody speaks, and goes on when no words come of it. So the words of
a backchannel are taken out of what speech to text hears. Its own model for this, `mode="adaptive"`,
runs in a cloud, and its `min_words` would lose "stop".
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# LiveKit leaves the event types of its sessions open, so they are half unknown.

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from livekit.agents import AgentSession, AgentStateChangedEvent, UserStateChangedEvent
from livekit.agents.stt import SpeechEvent, SpeechEventType

from caal_node.language.backchannels import is_backchannel

_WORDS: Final = (
    SpeechEventType.INTERIM_TRANSCRIPT,
    SpeechEventType.PREFLIGHT_TRANSCRIPT,
    SpeechEventType.FINAL_TRANSCRIPT,
)


class BackchannelFilter:
    """Drops the words of backchannels that begin over the speech of `agent`.

    Where its reply asks something, nothing is dropped: "right" may be the answer.
    """

    def __init__(self, agent: object) -> None:
        self._agent: Final = agent
        self._session: AgentSession[Any] | None = None
        self._asks = False
        self._is_paused = False
        """Whether LiveKit has paused the agent since somebody speaks."""
        self._over_speech: bool | None = None
        """Whether all that was spoken since the last words came began over the agent's speech;
        None while nobody has spoken."""

    def begin(self, session: AgentSession[Any]) -> None:
        self._session = session
        session.on("user_state_changed", self._on_user_state)
        session.on("agent_state_changed", self._on_agent_state)

    def end(self) -> None:
        if (session := self._session) is not None:
            session.off("user_state_changed", self._on_user_state)
            session.off("agent_state_changed", self._on_agent_state)
        self._session = self._over_speech = None

    def note_sentence(self, text: str) -> None:
        """Look at a sentence of the reply that is being spoken."""
        self._asks |= "?" in text

    def around(self, stt_node: Callable[..., Any]) -> Any:
        """Return `stt_node` without the words that are dropped."""

        async def heard(audio: Any, model_settings: Any) -> AsyncGenerator[SpeechEvent]:
            events = stt_node(audio, model_settings)
            if inspect.isawaitable(events):
                events = await events
            if events is not None:
                async for event in events:
                    if not self._is_dropped(event):
                        yield event

        return heard

    def _is_dropped(self, event: SpeechEvent) -> bool:
        if event.type not in _WORDS or not event.alternatives:
            return False
        over = self._over_speech
        if event.type is SpeechEventType.FINAL_TRANSCRIPT:
            self._over_speech = None
        session = self._session
        return (
            bool(over)
            and not self._asks
            and session is not None
            and session.current_agent is self._agent
            and is_backchannel(event.alternatives[0].text)
        )

    def _on_user_state(self, event: UserStateChangedEvent) -> None:
        if event.new_state == "speaking" and self._session is not None:
            over = self._is_paused or self._session.agent_state == "speaking"
            self._over_speech = over and self._over_speech is not False

    def _on_agent_state(self, event: AgentStateChangedEvent) -> None:
        user_speaks = self._session is not None and self._session.user_state == "speaking"
        self._is_paused = (
            user_speaks and event.old_state == "speaking" and event.new_state == "listening"
        )
        if event.new_state == "thinking":
            self._asks = False
