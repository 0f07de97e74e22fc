"""Makes an AgentSession from the settings: with speech, the model and this node's limits."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

from livekit.agents import NOT_GIVEN, AgentSession, TurnHandlingOptions, inference
from livekit.agents.stt import STT
from livekit.agents.tts import TTS
from livekit.agents.types import NotGivenOr
from livekit.agents.vad import VAD
from livekit.agents.voice.agent_session import SessionConnectOptions
from livekit.agents.voice.turn import EndpointingOptions, InterruptionOptions
from livekit.local_inference import init_eot

from caal_node.config.settings import Settings
from caal_node.evaluation.model_profiles import ModelProfiles, StrategyChoice, choose
from caal_node.models.fallback import FallbackLLM
from caal_node.models.llm import LLM
from caal_node.speech import make_stt, make_tts, make_vad

logger = logging.getLogger("caal_node")

END_S: Final = 0.5
"""Seconds of silence that end a turn which sounds as if it were over. With these two and LiveKit's
thresholds, livekit/eot-bench counts 9.8 % of English pauses cut off, and 0.70 s until an answer
may begin; voice activity alone needs 1.0 s for as few, and cuts 21.7 % off at 0.6 s."""
PAUSE_S: Final = 1.5
"""Seconds that end one which sounds as if it went on."""


def make_llm(settings: Settings, choice: StrategyChoice | None = None) -> LLM:
    """Make the model of the settings, without its fallbacks. `choice` says how it is asked."""
    options: dict[str, Any] = {}
    if choice is not None:
        options["native_tools"] = choice.native_tools
        if choice.asking is not None:
            options["why"] = choice.why
    return LLM(settings=settings, memory=ModelProfiles, **options)


async def session_llm(settings: Settings) -> LLM:
    """Make the model of the settings with its fallbacks, each asked in the way that suits it best.

    Fallbacks that failed validation are left out. With `only_validated`, those that were not
    validated in their present version are left out too.
    """
    others = [settings.with_model(reference) for reference in settings.fallbacks.models]
    chosen, *choices = await asyncio.gather(*map(choose, [settings, *others]))
    if chosen.validity.state == "failed":
        logger.warning("%s did not pass validation: %s", settings.model, chosen.why)
    members = [make_llm(settings, chosen)]
    for other, choice in zip(others, choices, strict=True):
        if why := choice.validity.unfit(only_validated=settings.fallbacks.only_validated):
            logger.warning("the fallback %s is left out: %s", other.model, why)
        else:
            members.append(make_llm(other, choice))
    if len(members) == 1:
        return members[0]
    return FallbackLLM(members, reply_within_s=settings.fallbacks.after)


@dataclass(frozen=True, slots=True)
class SpeechModels:
    """Speech in and out. Where a part is None, the room has only text in that direction."""

    stt: STT[Any] | None
    tts: TTS[Any] | None
    vad: VAD | None


def make_voice(settings: Settings) -> SpeechModels:
    """Load the settings' speech parts. This imports for up to two seconds: not on an event loop.
    LiveKit's model for the ends of turns is loaded with the VAD that it needs.

    Raises:
        ConfigError: A part is missing; the message says how to get it.
    """
    voice = SpeechModels(make_stt(settings.stt), make_tts(settings.tts), make_vad(settings.vad))
    if voice.vad is not None:
        init_eot()
    return voice


def voice_session(
    settings: Settings, voice: SpeechModels, model: LLM | None = None, *, userdata: Any = None
) -> AgentSession[Any]:
    """Make a session that listens and speaks. `model` comes from `session_llm`; tools find
    `userdata` as `context.userdata`.

    LiveKit's turn detector decides where turns end: `v1-mini`, which runs here. Voice activity
    decides when a person interrupts, as LiveKit's model for that runs in a cloud.
    """
    return AgentSession(
        userdata=userdata,
        stt=voice.stt or NOT_GIVEN,
        tts=voice.tts or NOT_GIVEN,
        vad=voice.vad,
        llm=model or make_llm(settings),
        turn_handling=TurnHandlingOptions(
            turn_detection=inference.TurnDetector(version="v1-mini") if voice.vad else "vad",
            endpointing=EndpointingOptions(min_delay=END_S, max_delay=PAUSE_S),
            interruption=InterruptionOptions(mode="vad"),
        ),
        max_tool_steps=tool_steps(settings),
    )


def text_session(
    settings: Settings,
    model: LLM | None = None,
    *,
    userdata: Any = None,
    conn_options: NotGivenOr[SessionConnectOptions] = NOT_GIVEN,
) -> AgentSession[Any]:
    """Make a session for typed text. `model` comes from `session_llm`; tools find `userdata` as
    `context.userdata`."""
    return AgentSession(
        userdata=userdata,
        llm=model or make_llm(settings),
        conn_options=conn_options,
        vad=None,
        turn_handling=TurnHandlingOptions(turn_detection=None),
        max_tool_steps=tool_steps(settings),
    )


def tool_steps(settings: Settings) -> int:
    """Convert our limit to LiveKit's: its `max_tool_steps` n allows n + 1 rounds of tools."""
    return settings.max_tool_rounds - 1
