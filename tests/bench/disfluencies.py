"""Spoken requests with hesitations, repetitions, corrections, restarts, and requests taken back.

Run: `python -m tests.bench.disfluencies FOLDER [--held-out] [--limit N] [--as-heard]`. FOLDER keeps
what was heard and the model's replies, so a second run asks only what is new.

`disfluent_requests.json` has twenty requests of each kind; `|` is a pause of 0.3 to 1.2 s. Every
second one is held out. Each is spoken by a piper voice, the same request without the disfluency
too, every other pair by that voice made higher. Silero's voice activity cuts the sound into what
Whisper hears, and LiveKit's detector, with our delays, decides where the turn ends.

A real `CaalAgent` with a small model (the 0.5B of the demo) is given the turns. Where a pause has
ended a turn too early, the words before it are an earlier turn without an answer: the person speaks
on before a local model has read them. `right` is the right tool with the right arguments and no
other, where a request was taken back no call at all; `twice` counts requests for which a tool that
writes was called more than once, `taken back` those of which a call was made nevertheless.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from livekit import rtc
from livekit.agents import AgentSession, TurnHandlingOptions
from livekit.agents.stt import STT
from livekit.agents.tts import TTS
from livekit.agents.vad import VAD, VADEventType
from livekit.agents.voice.agent_session import SessionConnectOptions
from livekit.local_inference import EOT, EOT_MAX_SAMPLES

from caal_node.factories import END_S, PAUSE_S
from caal_node.language.disfluency import as_meant, is_taken_back
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.models.llm import LLM
from caal_node.speech import make_stt, make_tts, make_vad
from caal_node.testing import plain_settings
from caal_node.weights import QWEN_CODER_05B, present
from tests.bench import agent_ways
from tests.bench.asked_ways import PATIENT, REPLY_TOKENS
from tests.bench.end_of_turn import ENGLISH, LOOK, RATE_HZ, Samples
from tests.bench.recorded_replies import RecordedBackend
from tests.bench.small_models import SLOW
from tests.bench.spoken_requests import Called, Requests, Spoken, is_right, load
from tests.bench.table import print_table

KINDS: Final = ("filled", "repeated", "repaired", "restarted", "taken_back")
PAUSES_S: Final = (0.3, 0.5, 0.7, 0.9, 1.2)
HIGHER: Final = 1.15
"""The second voice: the only one that this machine has, its pitch raised by so much."""
ROOM_S: Final = 2.5
"""Silence behind the last word, longer than the longest wait for the end of a turn."""
ROOM_LEVEL: Final = 8.0
SILENCE_S: Final = 0.55
"""Silence that ends a stretch for Silero's detector; Whisper begins then."""
QUIET: Final = 300
"""Of 32768: what is below it at the ends of a piece is the voice's own silence."""


@dataclass(frozen=True, slots=True)
class Utterance:
    number: int
    kind: str
    say: str
    """With `|` where the pause is."""
    wanted: tuple[Called, ...]


@dataclass(frozen=True, slots=True)
class Turns:
    """What was heard of one utterance."""

    texts: Sequence[str]
    """A turn each; more than one where a pause has ended a turn."""


def utterances(*, held_out: bool) -> Iterator[tuple[Utterance, Utterance]]:
    """Yield each utterance and its fluent twin."""
    data = json.loads(Path(__file__).with_name("disfluent_requests.json").read_text("utf-8"))
    for number, row in enumerate(data["requests"]):
        if (number % 2 == 1) != held_out:
            continue
        made = tuple((call["name"], call["arguments"]) for call in row["calls"])
        wanted = () if row["kind"] == "taken_back" else made
        yield (
            Utterance(number, row["kind"], row["say"], wanted),
            Utterance(number, row["kind"], row["fluent"], made),
        )


class Ear:
    """A voice that speaks, and what hears it."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._tts: TTS[Any] | None = make_tts("local")
        self._stt: STT[Any] | None = make_stt("local")
        self._vad: VAD | None = make_vad("local")
        self._detector: Final = EOT()
        folder.mkdir(parents=True, exist_ok=True)

    async def aclose(self) -> None:
        for each in (self._tts, self._stt):
            if each is not None:
                await each.aclose()

    async def hear(self, utterance: Utterance) -> Turns:
        named = hashlib.sha256(f"{utterance.number} {utterance.say}".encode()).hexdigest()[:16]
        kept = self._folder / f"{named}.json"
        if not kept.exists():
            turns = await self._turns(await self._spoken(utterance))
            kept.write_text(json.dumps({"say": utterance.say, "turns": turns}), "utf-8")
        return Turns(json.loads(kept.read_text("utf-8"))["turns"])

    async def _spoken(self, utterance: Utterance) -> Samples:
        higher = utterance.number // 2 % 2 == 1
        rng = np.random.default_rng(utterance.number)
        pieces: list[Samples] = [_room(0.5, rng)]
        for number, part in enumerate(utterance.say.split("|")):
            if number:
                pieces.append(_room(PAUSES_S[utterance.number // 2 % len(PAUSES_S)], rng))
            pieces.append(await self._piece(part.strip(), HIGHER if higher else 1.0))
        return np.concatenate([*pieces, _room(ROOM_S, rng)])

    async def _piece(self, words: str, pitch: float) -> Samples:
        assert self._tts is not None
        async with self._tts.synthesize(words) as stream:
            frames = [np.frombuffer(each.frame.data, np.int16) async for each in stream]
        found = np.concatenate(frames)
        loud = np.flatnonzero(np.abs(found.astype(np.int32)) > QUIET)
        found = found[loud[0] : loud[-1] + 1]
        step = self._tts.sample_rate / RATE_HZ * pitch
        places = np.arange(int(len(found) / step)) * step
        return np.interp(places, np.arange(len(found)), found).astype(np.int16)

    async def _turns(self, samples: Samples) -> list[str]:
        turns, words, since = list[str](), list[str](), 0.0
        for begin_s, end_s, frames in await self._stretches(samples):
            if words and begin_s > since:
                turns.append(" ".join(words))
                words = []
            assert self._stt is not None
            began = time.perf_counter()
            heard = await self._stt.recognize(frames)
            took_s = time.perf_counter() - began
            words += [text] if (text := heard.alternatives[0].text) else []
            since = end_s + max(self._wait_s(samples, end_s), SILENCE_S + took_s)
        return [*turns, " ".join(words)] if words else turns

    async def _stretches(self, samples: Samples) -> list[tuple[float, float, Any]]:
        """Return each stretch of speech as voice activity finds it: begin, end, its sound."""
        assert self._vad is not None
        stream = self._vad.stream()
        step = RATE_HZ // 50
        for at in range(0, len(samples) - step, step):
            data = np.ascontiguousarray(samples[at : at + step]).tobytes()
            stream.push_frame(rtc.AudioFrame(data, RATE_HZ, 1, step))
        stream.end_input()
        found, begin_s = list[tuple[float, float, Any]](), 0.0
        async for event in stream:
            at_s = event.samples_index / RATE_HZ
            if event.type is VADEventType.START_OF_SPEECH:
                begin_s = at_s - event.speech_duration
            elif event.type is VADEventType.END_OF_SPEECH:
                found.append((begin_s, at_s - event.silence_duration, event.frames))
        await stream.aclose()
        return found

    def _wait_s(self, samples: Samples, end_s: float) -> float:
        said = samples[: int(end_s * RATE_HZ) + LOOK][-EOT_MAX_SAMPLES:]
        ended = float(self._detector.predict(np.ascontiguousarray(said))) >= ENGLISH
        return END_S if ended else PAUSE_S


def _room(seconds: float, rng: np.random.Generator) -> Samples:
    return (rng.standard_normal(int(seconds * RATE_HZ)) * ROOM_LEVEL).astype(np.int16)


async def asked(
    model: LLM, requests: Requests, turns: Turns, *, as_heard: bool
) -> tuple[Called, ...]:
    """Return what the agent's model calls in the last of these turns."""
    if not turns.texts:
        return ()
    if not as_heard and is_taken_back(turns.texts[-1]):
        return ()  # the agent asks no model then
    texts = turns.texts if as_heard else [as_meant(text) for text in turns.texts]
    agent = agent_ways.FirstCalls(
        agent_ways.specs_of(requests),
        plain_settings(CAAL_TOOL_TOKENS=agent_ways.AT_ONCE),
        warm=False,
    )
    session: AgentSession[Any] = AgentSession(
        llm=model,
        vad=None,
        turn_handling=TurnHandlingOptions(turn_detection=None),
        conn_options=SessionConnectOptions(llm_conn_options=PATIENT),
    )
    await session.start(agent)
    try:
        if len(texts) > 1:
            earlier = agent.chat_ctx.copy()
            for text in texts[:-1]:
                earlier.add_message(role="user", content=text)
            await agent.update_chat_ctx(earlier)
        await session.run(user_input=texts[-1])
    finally:
        await session.aclose()
    return tuple(agent.calls)


@dataclass(slots=True)
class Count:
    """Of one kind."""

    asked: int = 0
    right: int = 0
    fluent: int = 0
    """The same requests without the disfluency."""
    twice: int = 0
    taken_back: int = 0
    split: int = 0
    """Utterances that a pause has cut into several turns."""
    misses: list[str] = field(default_factory=list[str])

    def figures(self) -> tuple[int, ...]:
        """Return them in the order of the table."""
        return (self.asked, self.right, self.fluent, self.twice, self.taken_back, self.split)

    def add(self, utterance: Utterance, turns: Turns, calls: Sequence[Called]) -> None:
        writes = [call for call in calls if call[0] not in READS]
        right = fits(utterance, calls)
        self.asked += 1
        self.right += right
        self.split += len(turns.texts) > 1
        self.twice += len(writes) > 1
        self.taken_back += bool(writes) and not utterance.wanted
        if not right:
            self.misses.append(f"{utterance.say!r}: {turns.texts} {calls}")


READS: Final = ("get_weather",)


def fits(utterance: Utterance, calls: Sequence[Called]) -> bool:
    if len(calls) != len(utterance.wanted):
        return False
    wanted = Spoken(utterance.say, utterance.wanted)
    return all(is_right(wanted, call) for call in calls)


async def run(given: argparse.Namespace) -> None:
    gguf = present(QWEN_CODER_05B)
    if gguf is None:
        sys.exit(f"no weights: python -m caal_node.weights {QWEN_CODER_05B.key}")
    every = utterances(held_out=given.held_out)
    pairs = [pair for pair in every if pair[0].kind in given.kinds]
    step = len(pairs) / min(given.limit or len(pairs), len(pairs))
    pairs = [pairs[int(at * step)] for at in range(int(len(pairs) / step))]
    ear = Ear(given.folder / "heard")
    heard = [(await ear.hear(said), await ear.hear(fluent)) for said, fluent in pairs]
    await ear.aclose()
    if given.hear:
        for (said, _), (turns, plain) in zip(pairs, heard, strict=True):
            print(f"{said.kind:10} {said.say}\n{'':10} {turns.texts}  {plain.texts}")
        return
    requests, counts = load("disfluent"), {kind: Count() for kind in KINDS}
    async with AsyncExitStack() as open_:
        engine = await open_.enter_async_context(EmbeddedEngine(gguf, ctx=4096, threads=1))
        backend = OpenAIBackend(
            engine.name, base_url=engine.base_url, temperature=0.0, deadlines=SLOW
        )
        open_.push_async_callback(backend.aclose)
        recorded = RecordedBackend(backend, given.folder / "replies")
        model = LLM(backend=recorded, native_tools=None, max_tokens=REPLY_TOKENS)
        for (said, fluent), (turns, plain) in zip(pairs, heard, strict=True):
            count = counts[said.kind]
            count.add(said, turns, await asked(model, requests, turns, as_heard=given.as_heard))
            count.fluent += fits(
                fluent, await asked(model, requests, plain, as_heard=given.as_heard)
            )
            print(f"  {recorded.asked} asked", file=sys.stderr, flush=True)
    rows = [[kind, *one.figures()] for kind, one in counts.items()]
    sums = [sum(column) for column in zip(*(one.figures() for one in counts.values()), strict=True)]
    rows.append(["all", *sums])
    if given.misses:
        print(*(miss for one in counts.values() for miss in one.misses), sep="\n")
    print_table(
        f"{len(pairs)} utterances, {engine.name}, {recorded.asked} requests asked anew",
        ("kind", "asked", "right", "fluent right", "twice", "taken back", "cut by a pause"),
        rows,
    )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--held-out", action="store_true", help="the half that is looked at once")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--limit", type=int, help="utterances, spread over all kinds")
    parser.add_argument(
        "--as-heard", action="store_true", help="without what corrections leave out"
    )
    parser.add_argument("--hear", action="store_true", help="print what is heard, and ask nothing")
    parser.add_argument("--misses", action="store_true", help="print what was not right")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(run(options()))
