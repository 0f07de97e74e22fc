"""`caal-node console` as a person has it: a terminal, a microphone and a loudspeaker."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Self

import numpy as np
import pytest
import pytest_asyncio
from livekit import rtc

from caal_node.cli.checks import Finding
from caal_node.cli.checks.room_and_sound import check_sound
from caal_node.cli.demo.scenes import load_requests
from caal_node.config.settings import Settings
from caal_node.room.cues import Samples
from caal_node.speech import fetch_local, make_stt
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel
from tests.stand_ins.virtual_sound import RATE_HZ, VirtualSound

pty = pytest.importorskip("pty", reason="the console needs a terminal of this kind")

TURN_S = 90.0
"""Seconds for loading speech and a turn, on a machine that does other things too."""
HEARD_S = 30.0
"""Seconds after which a person says it again: a busy machine cuts a request in two."""
TIMES_SAID = 3
ANSWER = "The timer runs for five minutes, and then it rings in the kitchen."
SHARE_HEARD = 0.6
"""Of the words of ANSWER. The voice has chance in it, and a word now and then is heard as another:
of 40 voicings the worst had 0.92 of them, and other answers have at most 0.25."""
QUIET_S = 1.5
LOUD = 300
"""Of 32768: speech, and no silence."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
FOREIGN = ("CAAL_", "N8N_", "OLLAMA_", "LIVEKIT_")


class Terminal:
    """A caal-node command on a pseudo-terminal; `screen` is all that it has shown."""

    def __init__(self, *arguments: str, folder: Path, env: Mapping[str, str]) -> None:
        self._arguments, self._folder = arguments, folder
        clean = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self._env = {**clean, "TERM": "xterm", "COLUMNS": "120", **env}
        self.shown = bytearray()

    async def __aenter__(self) -> Self:
        self._own, theirs = pty.openpty()
        self._process: Process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "caal_node.cli", *self._arguments),
            cwd=self._folder,
            env=self._env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._own, False)
        asyncio.get_running_loop().add_reader(self._own, self._read)
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._own)
        os.close(self._own)
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    @property
    def screen(self) -> str:
        return _CONTROL.sub("", self.shown.decode(errors="replace"))

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    async def shows(self, text: str) -> None:
        await until(lambda: text in self.screen, lambda: self.screen[-3000:])

    async def ended(self) -> int:
        async with asyncio.timeout(TURN_S):
            return await self._process.wait()

    async def interrupted(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return await self.ended()

    def _read(self) -> None:
        try:
            self.shown += os.read(self._own, 65_536)
        except BlockingIOError:
            return
        except OSError:  # the other side has ended
            asyncio.get_running_loop().remove_reader(self._own)


async def until(true: Callable[[], bool], told: Callable[[], str] = str) -> None:
    if not await came_true(true, TURN_S):
        pytest.fail(told())


async def came_true(true: Callable[[], bool], seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            while not true():  # noqa: ASYNC110 - another process's doing has no event here
                await asyncio.sleep(0.1)
    except TimeoutError:
        return False
    return True


@pytest_asyncio.fixture
async def sound() -> AsyncIterator[VirtualSound]:
    with tempfile.TemporaryDirectory(prefix="caal") as folder:
        async with VirtualSound(Path(folder)) as sound:
            yield sound


def answer(asked: Asked) -> Reply:
    """Run a timer on request, and say so."""
    body = asked.json
    last = body["messages"][-1]
    if body.get("options", {}).get("num_predict") == 1:
        return ["."]
    if last["role"] == "tool":
        return [ANSWER]
    return [Call("set_timer", {"minutes": 5})]


def settings(server: StandInModel) -> dict[str, str]:
    return {
        "OLLAMA_HOST": server.url,
        "CAAL_MODEL": server.model,
        "CAAL_TOOL_CALLS": "native",
    }


def said_to(server: StandInModel) -> str:
    """What the person's last words were, as the model got them."""
    messages = [m for asked in server.chats for m in asked.json["messages"] if m["role"] == "user"]
    return messages[-1]["content"] if messages else ""


async def say_until_heard(
    sound: VirtualSound, samples: Samples, server: StandInModel, terminal: Terminal
) -> None:
    """Say it, and again where it was misheard, as a person would; the run's summary tells of it."""

    def heard() -> bool:
        return "five minutes" in said_to(server).lower()

    for _ in range(TIMES_SAID - 1):
        await sound.say(samples)
        if await came_true(heard, HEARD_S):
            return
        warnings.warn(f"said again: {said_to(server)!r} was heard", stacklevel=1)
    await sound.say(samples)
    await until(heard, lambda: said_to(server) + terminal.screen[-3000:])


def share_heard(words: str) -> float:
    """How much of ANSWER stands in `words`, from 0 to 1, with 5 for five."""
    said, heard = (
        set(re.findall(r"[\w']+", t.lower().replace("five", "5"))) for t in (ANSWER, words)
    )
    return len(said & heard) / len(said)


def was_heard(samples: Samples) -> bool:
    """Whether there was speech, and then a pause."""
    end = samples[-int(QUIET_S * RATE_HZ) :]
    return bool(samples.size > end.size and _level(samples) > LOUD > _level(end))


def _level(samples: Samples) -> int:
    return int(np.abs(samples.astype(np.int32)).max(initial=0))


async def words_of(samples: Samples) -> str:
    stt = await asyncio.to_thread(make_stt, "local")
    assert stt is not None
    frame = rtc.AudioFrame(samples.tobytes(), RATE_HZ, 1, samples.size)
    event = await stt.recognize(frame)
    await stt.aclose()
    return event.alternatives[0].text


@pytest.mark.speech
@pytest.mark.alone
async def test_a_spoken_request_is_heard_and_the_answer_comes_out_of_the_loudspeaker(
    sound: VirtualSound, tmp_path: Path
) -> None:
    await asyncio.to_thread(fetch_local, stt="local", tts="local")
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    request = load_requests("spare")[0]  # "Set a timer for five minutes."
    async with (
        StandInModel(answer=answer) as server,
        Terminal(
            "console",
            folder=tmp_path,
            env={**settings(server), "CAAL_AGENT": "mine:Kitchen", **sound.env},
        ) as terminal,
    ):
        await terminal.shows("shortcuts")
        await sound.listened_to()
        await say_until_heard(sound, request.samples, server, terminal)
        await until(lambda: was_heard(sound.heard()), lambda: terminal.screen[-3000:])
        words = await words_of(sound.heard())
        assert share_heard(words) >= SHARE_HEARD, words
        assert "set_timer" in terminal.screen
        assert await terminal.interrupted() == 0, terminal.screen[-3000:]
    assert "Traceback" not in terminal.screen
    assert "LIVEKIT_API_KEY" not in terminal.screen


def test_in_a_pipe_it_says_what_to_use_instead(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "caal_node.cli", "console", "--text"]
    done = subprocess.run(
        command, input="hello", cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith("in a pipe, run: caal-node chat")
    assert "Traceback" not in done.stderr


MINE = '''
from caal_node import CaalAgent
from livekit.agents import Plugin, function_tool

def register(name):
    Plugin.register_plugin(type("Own", (Plugin,), {})(name, "1.0", name))

def voice():
    register("imported-with-the-voice")
    from livekit.plugins import openai
    return openai.TTS(api_key="none")

class Late(CaalAgent):
    def __init__(self, **options):
        register("imported-with-the-agent")
        super().__init__(**options)

    @function_tool
    async def set_timer(self, minutes: float) -> str:
        """Start a timer."""
        register("imported-by-a-tool")
        return " ".join(plugin.title for plugin in Plugin.registered_plugins)

class Kitchen(CaalAgent):
    @function_tool
    async def set_timer(self, minutes: float) -> str:
        """Start a timer."""
        return f"{minutes:g} minutes"

class Broken(CaalAgent):
    def __init__(self, **options):
        raise OSError("the map is missing")
'''


@pytest.mark.parametrize("wrong", ["OSError('PortAudio library not found')", "ImportError('no')"])
async def test_typing_needs_no_portaudio(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "sounddevice.py").write_text(f"raise {wrong}\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    async with StandInModel(answer=answer) as server:
        env = {**settings(server), "CAAL_AGENT": "mine:Kitchen", "PYTHONPATH": path}
        env |= {"CAAL_STT": "none", "CAAL_TTS": "none", "CAAL_VAD": "none"}
        async with Terminal("console", "--text", folder=tmp_path, env=env) as terminal:
            await terminal.shows("Type to talk")
            terminal.type("five minutes please\r")
            await terminal.shows("rings in the kitchen.")
            assert await terminal.interrupted() == 0, terminal.screen[-3000:]
    assert "Traceback" not in terminal.screen


async def test_what_is_typed_before_the_prompt_reads_keys_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    async with StandInModel(answer=answer) as server:
        env = {**settings(server), "CAAL_AGENT": "mine:Kitchen"}
        env |= {"CAAL_STT": "none", "CAAL_TTS": "none", "CAAL_VAD": "none"}
        async with Terminal("console", "--text", folder=tmp_path, env=env) as terminal:
            terminal.type("five minutes please\r")
            await terminal.shows("Type to talk")
            await terminal.shows("rings in the kitchen.")
            assert said_to(server) == "five minutes please"
            assert await terminal.interrupted() == 0, terminal.screen[-3000:]


async def test_plugins_are_imported_whenever_a_persons_code_does_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    async with StandInModel(answer=answer) as server:
        env = {**settings(server), "CAAL_AGENT": "mine:Late", "CAAL_STT": "none"}
        env |= {"CAAL_TTS": "mine:voice"}
        async with Terminal("console", "--text", folder=tmp_path, env=env) as terminal:
            await terminal.shows("Type to talk")
            await until(lambda: bool(server.chats))  # the agent has begun
            terminal.type("five minutes please\r")
            await terminal.shows("rings in the kitchen.")
            results = [m for m in server.chats[-1].json["messages"] if m["role"] == "tool"]
            for when in ("with-the-voice", "with-the-agent", "by-a-tool"):
                assert f"imported-{when}" in results[-1]["content"]
            assert await terminal.interrupted() == 0, terminal.screen[-3000:]
    assert "Traceback" not in terminal.screen


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"CAAL_AGENT": "mine:Broken"}, "the map is missing"),
        ({"CAAL_AGENT": "mine:Nobody"}, "mine has no class Nobody"),
        ({"OLLAMA_HOST": "127.0.0.1:9"}, "ollama serve"),
        ({"CAAL_API": "livekit", "CAAL_MODEL": "mine:voice"}, "not a LiveKit LLM"),
    ],
)
async def test_what_goes_wrong_ends_the_console_with_its_reason(
    tmp_path: Path, env: dict[str, str], said: str
) -> None:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    no_speech = {"CAAL_STT": "none", "CAAL_TTS": "none", "CAAL_VAD": "none"}
    async with StandInModel(answer=answer) as server:
        env = {**settings(server), **no_speech, **env}
        async with Terminal("console", "--text", folder=tmp_path, env=env) as terminal:
            if env["OLLAMA_HOST"] != server.url:
                await terminal.shows("[y/N]")
                terminal.type("n\r")
            assert await terminal.ended() == 1
            assert said in " ".join(terminal.screen.split())


@pytest.mark.parametrize("wrong", ["OSError('PortAudio library not found')", "ImportError('no')"])
async def test_a_missing_portaudio_is_one_line_with_its_fix(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "sounddevice.py").write_text(f"raise {wrong}\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    async with StandInModel(answer=answer) as server:
        env = {**settings(server), "PYTHONPATH": path}
        async with Terminal("console", folder=tmp_path, env=env) as terminal:
            assert await terminal.ended() == 1
    assert "console has no microphone" in " ".join(terminal.screen.split())
    assert "console --text" in " ".join(terminal.screen.split())
    assert "Traceback" not in terminal.screen


def doctors_sound(env: Mapping[str, str], **settings: str) -> Finding:
    """What doctor says of the sound, in an environment of its own."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        [found] = asyncio.run(check_sound(Settings.model_validate(settings)))
        return found


def test_doctor_says_what_the_console_would_hear_and_speak_with(tmp_path: Path) -> None:
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')")
    absent = doctors_sound({"PYTHONPATH": str(tmp_path)})
    assert (absent.status, absent.found.split(",")[0]) == ("warn", "PortAudio is not installed")
    assert "libportaudio2" in absent.fix
    (tmp_path / "sounddevice.py").write_text(
        "class PortAudioError(Exception): pass\n"
        "def query_devices(kind):\n"
        "    if kind == 'input': raise PortAudioError('Error querying device -1')\n"
        "    return {'name': 'Built-in'}\n"
    )
    deaf = doctors_sound({"PYTHONPATH": str(tmp_path)})
    assert (deaf.status, deaf.found) == ("warn", "no microphone was found")
    assert "console --text" in deaf.fix
    server = doctors_sound({"PYTHONPATH": str(tmp_path)}, livekit_url="ws://127.0.0.1:7880")
    assert (server.status, server.fix) == ("ok", "")


async def test_doctor_names_the_devices(sound: VirtualSound) -> None:
    found = await asyncio.to_thread(doctors_sound, sound.env)
    assert found.status == "ok"
