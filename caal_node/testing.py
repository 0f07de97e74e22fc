"""Stand-ins for testing your own agents: no model, no microphone, no room and no network.

    from caal_node.testing import (
        AgentConversation, ScriptedCall, ScriptedModel, options_given, plain_settings
    )

    async def test_the_timer_is_set() -> None:
        model = ScriptedModel([ScriptedCall("set_timer", {"minutes": 5})], "It runs.")
        with options_given(settings=plain_settings(), tiers={}):
            agent = MyAgent()
        async with AgentConversation(agent, model) as conversation:
            turn = await conversation.say("five minutes for the eggs")
        assert turn.calls[0].arguments == {"minutes": 5}
        assert turn.spoken == "It runs."

The agent, its prompts, the understanding of replies, the tools and LiveKit's executor are the real
ones; only what is outside of the process is scripted.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its speech classes open, so they are half unknown.

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions, stt, tts, utils
from livekit.agents.types import NOT_GIVEN, NotGivenOr
from livekit.agents.voice.agent_session import SessionConnectOptions

from caal_node.agent import CaalAgent
from caal_node.agent_options import options_given
from caal_node.config.settings import Settings, load_settings
from caal_node.conversation import CallRecord, Conversation, TurnRecord
from caal_node.core.events import Event
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    NativeCall,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.llm import LLM
from caal_node.models.question import Question
from caal_node.tools.source import Arguments, CallConversation, ToolListing, ToolSource

__all__ = [
    "AgentConversation",
    "CallRecord",
    "ScriptedCall",
    "ScriptedModel",
    "ScriptedReply",
    "ScriptedSTT",
    "ScriptedTTS",
    "ScriptedToolSource",
    "TurnRecord",
    "options_given",
    "plain_settings",
]

# A model, a source of tools, and speech in and out that do what a test has written.
#
# Speech needs no model of speech: words stand for sound, and silence stands for words.

SAMPLE_RATE_HZ: Final = 24_000
CHAR_S: Final = 0.06
"""Seconds of silence for a character of text: about the pace of speech."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A structured call, as a server with tool calls sends it."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


ScriptedReply: TypeAlias = str | Exception | Sequence[str | ScriptedCall]
"""A text, an error that the model's server answers with, or texts and calls in their order.

A call that the model writes as text, as small models do, is a text like any other: the reply is
understood as a real one's is.
"""


class ScriptedModel(LLM):
    """A `caal_node.LLM` whose server answers with `replies`, one a request.

    Args:
        replies: What the model says, in order. A request beyond the last one fails the test.
        native_tools: Whether tools are asked for by the server's own tool calls; False asks by
            text, so that a reply writes its calls in the text protocol.
    """

    def __init__(self, *replies: ScriptedReply, native_tools: bool = True) -> None:
        self._script: Final = _ScriptedBackend(replies)
        super().__init__("scripted", backend=self._script, native_tools=native_tools)

    async def warm(self, question: Question) -> None:
        """Do nothing: no reply of the script is for a warm-up."""

    @property
    def requests(self) -> Sequence[BackendRequest]:
        """Every request as it would have gone to the model's server, the oldest first."""
        return tuple(self._script.requests)

    @property
    def replies_left(self) -> int:
        """How many replies nobody has asked for yet."""
        return len(self._script.replies)


class _ScriptedBackend:
    """The server of a `ScriptedModel`."""

    model = "scripted"
    address = "scripted://"

    def __init__(self, replies: Sequence[ScriptedReply]) -> None:
        self.replies = list(replies)
        self.requests: list[BackendRequest] = []

    async def capabilities(self) -> Capabilities:
        return Capabilities(tools=True, thinking=False, schema=True)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        self.requests.append(request)
        if not self.replies:
            raise AssertionError("the model was asked once more than replies were written for it")
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        for number, part in enumerate([reply] if isinstance(reply, str) else reply):
            if isinstance(part, str):
                yield TextChunk(part)
            else:
                yield NativeCall(f"scripted_{number}", part.name, json.dumps(dict(part.arguments)))
        yield ReplyDone("stop", Usage())

    async def aclose(self) -> None:
        """Do nothing, as nothing is open."""


class ScriptedToolSource(ToolSource):
    """Lists `specs`, and answers each call with what `answer` gives or raises.

    Put it in the place of n8n or MCP: `CaalAgent(tiers={"n8n": ScriptedToolSource(...)})`.
    """

    def __init__(
        self, *specs: ToolSpec, answer: Callable[[ToolSpec, Arguments], Awaitable[Any]]
    ) -> None:
        self.specs = list(specs)
        """What is listed. A test may change it and reload the agent's tools."""
        self.failed: dict[str, str] = {}
        """Sources that could not be listed, with the reasons."""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """The name at the source and the arguments of every call, in order."""
        self.closed = False
        self._answer = answer

    async def discover(self) -> ToolListing:
        return ToolListing(tuple(self.specs), dict(self.failed))

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        self.calls.append((spec.name, dict(arguments)))
        return await self._answer(spec, arguments)

    async def aclose(self) -> None:
        self.closed = True


class ScriptedSTT(stt.STT[Any]):
    """Speech to text that hears `utterances`, one for each piece of sound it is given.

    Give it to a session with a VAD, as any STT that does not stream. Sound beyond the last
    utterance is heard as no words.
    """

    def __init__(self, *utterances: str) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=False, interim_results=False))
        self._utterances = list(utterances)

    async def _recognize_impl(
        self,
        buffer: utils.AudioBuffer,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.SpeechEvent:
        text = self._utterances.pop(0) if self._utterances else ""
        heard = stt.SpeechData(language="en", text=text)  # pyright: ignore[reportArgumentType]  # LiveKit makes its own type of the text
        return stt.SpeechEvent(stt.SpeechEventType.FINAL_TRANSCRIPT, alternatives=[heard])


class ScriptedTTS(tts.TTS[Any]):
    """Text to speech that is silence, as long as the words would take, and keeps the words."""

    def __init__(self) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=False),
            sample_rate=SAMPLE_RATE_HZ,
            num_channels=1,
        )
        self.spoken: list[str] = []
        """Every text that was to be spoken, in order."""

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        self.spoken.append(text)
        return _Silence(tts=self, input_text=text, conn_options=conn_options)


class _Silence(tts.ChunkedStream):
    """The silence of one text."""

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id=utils.shortuuid("scripted_"),
            sample_rate=SAMPLE_RATE_HZ,
            num_channels=1,
            mime_type="audio/pcm",
        )
        samples = int(SAMPLE_RATE_HZ * CHAR_S * len(self.input_text))
        output_emitter.push(bytes(2 * max(samples, 1)))
        output_emitter.flush()


# A `Conversation` as tests want it: with a short deadline, and with all its events.

TURN_S: Final = 20.0
"""Seconds that a turn may take before its test fails. A scripted one takes some milliseconds."""

RETRIES: Final = SessionConnectOptions(
    llm_conn_options=APIConnectOptions(retry_interval=0.1, timeout=900)
)
"""A model is asked again as often as in any session, without LiveKit's two seconds in between. The
time-out is one that no turn reaches."""

EventType = TypeVar("EventType", bound=Event)


def plain_settings(**values: str) -> Settings:
    """Settings that neither the environment nor a file has a part in, with cues off.

    `values` are variables as `.env.example` lists them, such as `CAAL_DETECTION="streamed"`.

    Raises:
        ConfigError: a value does not fit.
    """
    return load_settings({"CAAL_CUES": "off", **values}, Path("no-such-file") / "caal.toml")


class AgentConversation(Conversation):
    """A conversation with an agent under test.

    Args:
        agent: The agent to test. `tiers={}` keeps it from looking for n8n and MCP servers.
        model: What it asks: a `ScriptedModel`, or a real one. Whoever made it closes it.
        userdata: What tools find as `context.userdata`; None takes the agent's `make_userdata()`.
        turn_s: Seconds that a turn may take.
    """

    def __init__(
        self, agent: CaalAgent, model: LLM, *, userdata: Any = None, turn_s: float = TURN_S
    ) -> None:
        super().__init__(agent, model, userdata=userdata, turn_s=turn_s, conn_options=RETRIES)
        self.model: Final = model
        self.events: list[Event] = []
        """Every event since the conversation began."""
        agent.add_listener(self.events.append)

    def events_of(self, kind: type[EventType]) -> list[EventType]:
        """The events of one kind since the conversation began."""
        return [event for event in self.events if isinstance(event, kind)]
