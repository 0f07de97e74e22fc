"""Finds out when a person and the agent speak in a session, and how long other models' requests
take, for the trace.

Requests of our own `LLM` are told where they are made (`caal_node.models.timed_backend`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its models and sessions open, so they are half unknown.

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from livekit.agents import (
    AgentSession,
    AgentStateChangedEvent,
    ConversationItemAddedEvent,
    llm,
)
from livekit.agents.metrics import LLMMetrics

from caal_node.core.events import AgentVoice, ModelRequestEnded, PersonSpoke, Timing
from caal_node.models.llm import LLM


class TurnTiming:
    """Tells `tell` the timing of what happens in `session`, until `close`.

    `now` is the wall clock in seconds, as LiveKit notes times of speech by it.
    """

    def __init__(
        self,
        session: AgentSession[Any],
        tell: Callable[[Timing], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._session: Final = session
        self._tell: Final = tell
        self._now: Final = now
        self._model: llm.LLM | None = None
        session.on("agent_state_changed", self._on_agent_state)
        session.on("conversation_item_added", self._on_item)

    def follow(self, model: llm.LLM) -> None:
        """Tell of the requests to `model`, where it is one of another LiveKit plugin."""
        if not isinstance(model, LLM):
            self._model = model
            model.on("metrics_collected", self._on_metrics)

    def close(self) -> None:
        self._session.off("agent_state_changed", self._on_agent_state)
        self._session.off("conversation_item_added", self._on_item)
        if self._model is not None:
            self._model.off("metrics_collected", self._on_metrics)

    def _on_agent_state(self, event: AgentStateChangedEvent) -> None:
        if "speaking" in (event.new_state, event.old_state):
            output = self._session.output
            heard = output.audio is not None and output.audio_enabled
            self._tell(AgentVoice(event.new_state == "speaking", heard))

    def _on_item(self, event: ConversationItemAddedEvent) -> None:
        item = event.item
        if not isinstance(item, llm.ChatMessage) or item.role != "user":
            return
        began = item.metrics.get("started_speaking_at")
        ended = item.metrics.get("stopped_speaking_at")
        if began is None or ended is None:
            return
        transcribed_s = item.metrics.get("transcription_delay")
        self._tell(
            PersonSpoke(
                spoke_ms=_ms(ended - began),
                silent_ms=_ms(self._now() - ended),
                transcribed_ms=None if transcribed_s is None else _ms(transcribed_s),
            )
        )

    def _on_metrics(self, metrics: object) -> None:
        if isinstance(metrics, LLMMetrics):
            self._tell(
                ModelRequestEnded(
                    took_ms=_ms(metrics.duration),
                    first_ms=_ms(metrics.ttft) if metrics.ttft >= 0 else None,
                    outcome="closed" if metrics.cancelled else "ok",
                    prompt_tokens=metrics.prompt_tokens or None,
                    cached_tokens=metrics.prompt_cached_tokens if metrics.prompt_tokens else None,
                    completion_tokens=metrics.completion_tokens or None,
                )
            )


def _ms(seconds: float) -> int:
    """Return milliseconds. A clock that was set back gives none."""
    return max(0, round(seconds * 1000))
