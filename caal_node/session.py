"""An AgentSession as the settings ask for it: local speech, local model, this node's limits."""

from __future__ import annotations

from typing import Any

from livekit.agents import AgentSession, TurnHandlingOptions
from livekit.agents.vad import VAD

from caal_node.models.llm import LLM
from caal_node.settings import Settings
from caal_node.speech import make_stt, make_tts, make_vad


def make_llm(settings: Settings) -> LLM:
    """The model of the settings. `num_ctx` and `keep_alive` are Ollama's own; others ignore them."""
    options: dict[str, Any] = {"temperature": settings.temperature}
    if settings.api == "ollama":
        options |= {
            "think": settings.think,
            "num_ctx": settings.num_ctx,
            "keep_alive": settings.keep_alive,
        }
    return LLM(
        settings.model,
        settings.api,
        settings.model_address,
        settings.api_key.get_secret_value() if settings.api_key else None,
        **options,
    )


def voice_session(settings: Settings, *, vad: VAD | None = None) -> AgentSession[Any]:
    """A session that listens and speaks; `vad` is one that was loaded before.

    A turn ends by voice activity: LiveKit's own end-of-turn model is a cloud service.
    """
    return AgentSession(
        stt=make_stt(settings.stt),
        tts=make_tts(settings.tts),
        vad=vad or make_vad(settings.vad),
        llm=make_llm(settings),
        turn_handling=TurnHandlingOptions(turn_detection="vad"),
        max_tool_steps=tool_steps(settings),
    )


def text_session(settings: Settings) -> AgentSession[Any]:
    """A session that is typed to."""
    return AgentSession(
        llm=make_llm(settings),
        vad=None,
        turn_handling=TurnHandlingOptions(turn_detection=None),
        max_tool_steps=tool_steps(settings),
    )


def tool_steps(settings: Settings) -> int:
    """LiveKit's limit in step with ours: its `max_tool_steps` n allows n + 1 rounds of tools."""
    return settings.max_tool_rounds - 1
