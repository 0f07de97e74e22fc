"""Text to speech on this machine: a piper voice behind LiveKit's TTS class.

The voice speaks a sentence at a time, and AgentSession's own sentence adapter feeds it. piper is
GPL-3.0, so it is an extra and is imported only where it is used.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path
from typing import Any

from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions, tts, utils

from caal_node.core.errors import ConfigError
from caal_node.speech.worker_thread import ModelThread, import_library, speech_threads
from mcp_bridge.core.files import read_capped

logger = logging.getLogger("caal_node.speech")

# About ten minutes of speech. A longer text is a mistake of the model, and its rest is not spoken.
MAX_TEXT_CHARS = 10_000
# Silence in place of a text with nothing to pronounce ("..."): LiveKit takes no audio for a failure
# and would try again.
PAUSE_S = 0.02
# A voice's description is 5 kB.
MAX_CONFIG_BYTES = 1 << 20


class PiperTTS(tts.TTS[Any]):
    """A piper voice, which speaks in mono and 16 bit at its own rate.

    Constructing it imports the library (about half a second), so construct it before the event
    loop runs or in a job's prewarm function.

    Args:
        voice: The `.onnx` file; its `.onnx.json` lies beside it.
        speed: 1.0 is the voice's own speed, and 1.2 a fifth faster.
        threads: The voice uses at most so many cores.

    Raises:
        ConfigError: The extra is not installed, or the voice's files cannot be read.
    """

    def __init__(self, voice: Path, *, speed: float = 1.0, threads: int | None = None) -> None:
        self._voice = Path(voice)
        config = _read_config(self._voice)
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=False),
            sample_rate=config["audio"]["sample_rate"],
            num_channels=1,
        )
        piper = import_library("piper", "piper-tts")
        runtime = import_library("onnxruntime", "piper-tts")
        # At debug level the library logs what is spoken.
        logging.getLogger("piper.voice").setLevel(logging.INFO)

        def load() -> Any:
            options = runtime.SessionOptions()
            options.intra_op_num_threads = threads or speech_threads()
            # Threads that spin between two sentences take the core from the language model.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = runtime.InferenceSession(
                str(self._voice), sess_options=options, providers=["CPUExecutionProvider"]
            )
            return piper.PiperVoice(session=session, config=piper.PiperConfig.from_dict(config))

        self.thread: ModelThread[Any] = ModelThread("piper", load)
        self.settings: Any = piper.SynthesisConfig(
            length_scale=config.get("inference", {}).get("length_scale", 1.0) / speed
        )

    @property
    def model(self) -> str:
        return self._voice.stem

    @property
    def provider(self) -> str:
        return "piper"

    def prewarm(self) -> None:
        """Load the voice in its thread, and have it speak a word that nobody hears. It returns at
        once."""
        self.thread.warm_up(lambda voice: list(voice.synthesize("Ready.", self.settings)))

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> PiperStream:
        return PiperStream(self, text, conn_options)

    async def aclose(self) -> None:
        await self.thread.aclose()


class PiperStream(tts.ChunkedStream):
    """The audio of one text, which comes sentence by sentence as the thread makes it.

    Closing the stream returns at once; the thread stops after the sentence that it is in.
    """

    def __init__(self, speaker: PiperTTS, text: str, conn_options: APIConnectOptions) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - LiveKit leaves its type open
            tts=speaker, input_text=text, conn_options=conn_options
        )
        self._speaker = speaker

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        speaker = self._speaker
        rate = speaker.sample_rate
        output_emitter.initialize(
            request_id=utils.shortuuid("piper_"),
            sample_rate=rate,
            num_channels=1,
            mime_type="audio/pcm",
        )
        if len(text := self._input_text) > MAX_TEXT_CHARS:
            logger.warning("%d characters to speak, cut to %d", len(text), MAX_TEXT_CHARS)
            text = text[:MAX_TEXT_CHARS]
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def speak(voice: Any) -> bool:
            spoke = False
            for chunk in voice.synthesize(text, speaker.settings):
                if stop.is_set():
                    break
                loop.call_soon_threadsafe(output_emitter.push, chunk.audio_int16_bytes)
                spoke = True
            return spoke

        try:
            if not await speaker.thread.run(speak):
                output_emitter.push(bytes(2 * int(rate * PAUSE_S)))
        finally:
            stop.set()


def _read_config(voice: Path) -> dict[str, Any]:
    path = voice.with_name(f"{voice.name}.json")
    try:
        config: dict[str, Any] = json.loads(read_capped(path, MAX_CONFIG_BYTES))
        if not isinstance(config["audio"]["sample_rate"], int):
            raise TypeError("audio.sample_rate is not a number")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path}: not a piper voice's description ({error}); it must lie beside the .onnx file"
        ) from error
    if not voice.is_file():
        raise ConfigError(f"{voice}: no such file; give the path of a piper voice")
    return config
