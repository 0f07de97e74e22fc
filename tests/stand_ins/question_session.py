"""A session with sound, as far as a question that is asked in the agent's voice needs one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from livekit.agents import UserStateChangedEvent


class Speech:
    """What the agent says; it is over when the test says so."""

    def __init__(self, words: str) -> None:
        self.words, self.interrupted = words, False
        self._over = False
        self._callbacks: list[Callable[[Any], None]] = []

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    def done(self) -> bool:
        return self._over

    def end(self) -> None:
        self._over = True
        for callback in self._callbacks:
            callback(self)

    def interrupt(self, *, force: bool = False) -> None:
        self.interrupted = True
        self.end()


class Session:
    """A session with sound, as far as a question needs one."""

    def __init__(self) -> None:
        self.user_state: Any = "listening"
        self.output = SimpleNamespace(audio=object(), audio_enabled=True)
        self.stt: object | None = object()
        self.said: list[Speech] = []
        self.replies: list[Any] = []
        """The person's words that a reply was asked for with."""
        self._on_state: Any = None

    def generate_reply(self, *, user_input: Any) -> None:
        self.replies.append(user_input)

    def say(self, words: str, *, add_to_chat_ctx: bool) -> Speech:
        assert not add_to_chat_ctx
        self.said.append(Speech(words))
        return self.said[-1]

    def on(self, name: str, handler: Any) -> None:
        self._on_state = handler

    def off(self, name: str, handler: Any) -> None:
        self._on_state = None

    def person(self, state: Any) -> None:
        """The person begins to speak, or has stopped."""
        before, self.user_state = self.user_state, state
        self._on_state(UserStateChangedEvent(old_state=before, new_state=state))
