"""A room on a virtual clock: the real cue player, and people, an agent and tools by a schedule.

The loudspeaker plays one sound behind the other, as the track of a room does, and keeps when each
was heard. The agent speaks as LiveKit has it: never over a person, and not while a cue is heard.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from caal_node.core.events import Outcome
from caal_node.room.cue_player import CuePlayer
from caal_node.room.cue_policy import CueAction, CuePolicy
from caal_node.room.cues import SAMPLE_RATE_HZ, CueSet, Samples
from tests.stand_ins.virtual_clock import VirtualClock

CUES: Final = CueSet.of()


@dataclass
class Span:
    """Something that lasts, in seconds. It is cut where something else ends it."""

    what: str
    start: float
    end: float


class Loudspeaker:
    """A `CueSink` that keeps what was heard."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock: Final = clock
        self.heard: list[Span] = []

    def play(self, samples: Samples) -> None:
        kind = next(kind for kind, sound in CUES.sounds.items() if sound is samples)
        before = self.heard[-1].end if self.heard else 0.0
        start = max(self._clock.time(), before)
        self.heard.append(Span(kind, start, start + samples.size / SAMPLE_RATE_HZ))

    def stop(self) -> None:
        now = self._clock.time()
        for each in self.heard:
            each.end = min(each.end, now)
        self.heard = [each for each in self.heard if each.start < each.end]

    async def aclose(self) -> None:
        pass


@dataclass
class CueRoom:
    """What happens is put into `spans` by lane; the times of a schedule are absolute."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    you: list[Span] = field(default_factory=list[Span])
    agent: list[Span] = field(default_factory=list[Span])
    tools: list[Span] = field(default_factory=list[Span])

    def __post_init__(self) -> None:
        self.policy = CuePolicy(CUES.lengths())
        self.loudspeaker = Loudspeaker(self.clock)
        self._player = CuePlayer(
            self.policy,
            sink=self.loudspeaker,
            cues=CUES,
            clock=self.clock,
            on_timed_cue=lambda _: None,
        )

    @property
    def cues(self) -> list[Span]:
        return self.loudspeaker.heard

    def at(self, when: float, action: Callable[[], object]) -> None:
        def act() -> None:
            action()

        self.clock.call_at(when, act)

    def call(
        self, when: float, name: str, length: float, outcome: Outcome = "ok", call_id: str = ""
    ) -> None:
        """Have a tool called; the call takes `length` seconds."""
        call_id = call_id or f"{name}@{when}"
        span = Span(name, when, when + length)

        def start() -> None:
            self.tools.append(span)
            self._do(self.policy.call_started(self._now, call_id, name))

        self.at(when, start)
        self.at(span.end, lambda: self._do(self.policy.call_ended(self._now, call_id, outcome)))

    def round_ends(self, when: float) -> None:
        self.at(when, self.policy.round_ended)

    def done(self, when: float) -> None:
        self.at(when, lambda: self._do(self.policy.turn_done(self._now)))

    def you_say(self, when: float, length: float, *, new_turn: bool = True) -> None:
        """Speak, which interrupts the agent."""

        def start() -> None:
            if self.you and self.you[-1].end > self._now:
                return  # they speak already
            span = Span("you", self._now, self._now + length)
            self.you.append(span)
            self._do(self.policy.user_speech_started(self._now))
            self._end_agent()
            self.at(span.end, end)

        def end() -> None:
            self.policy.user_speech_ended(self._now)
            if new_turn:
                self.policy.abandon()
            self._do()

        self.at(when, start)

    def agent_says(self, when: float, what: str, length: float) -> None:
        """Have the agent speak as soon as nobody does and no cue is heard."""

        def start() -> None:
            if self._speaks(self.you) or self._speaks(self.agent):
                return  # LiveKit drops or queues it; another one comes
            if (wait := self._player.quiet_in_s()) > 0:
                self.at(self._now + wait, start)
                return
            span = Span(what, self._now, self._now + length)
            self.agent.append(span)
            self._do(self.policy.agent_speech_started(self._now))
            self.at(span.end, partial(self._agent_ends, span))

        self.at(when, start)

    def asked(self, when: float, length: float) -> None:
        """Have a call ask something for so long."""
        self.at(when, lambda: (self.policy.question_began(), self._do()))
        self.at(when + length, lambda: (self.policy.question_ended(self._now), self._do()))

    def released(self, when: float, call_id: str) -> None:
        self.at(when, lambda: (self.policy.call_released(call_id), self._do()))

    def reply_fails(self, when: float) -> None:
        self.at(when, lambda: self._do(self.policy.reply_failed(self._now)))

    def rings(self, when: float) -> None:
        """Announce something, unless somebody speaks or a cue is heard."""

        def ring() -> None:
            if not (self._speaks(self.you) or self._speaks(self.agent)):
                self._do(self.policy.announced(self._now, "ring"))

        self.at(when, ring)

    def run(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._player.close()

    @property
    def _now(self) -> float:
        return self.clock.time()

    def _do(self, action: CueAction = None) -> None:
        self._player.perform(action)

    def _speaks(self, spans: list[Span]) -> bool:
        return bool(spans) and spans[-1].end > self._now

    def _end_agent(self) -> None:
        if self._speaks(self.agent):
            self.agent[-1].end = self._now
            self.policy.agent_speech_ended(self._now)
            self._do()

    def _agent_ends(self, span: Span) -> None:
        if span.end == self._now:
            self.policy.agent_speech_ended(self._now)
            self._do()


def random_room(seed: int) -> CueRoom:
    """Return a room with some turns, each with its calls, failures and interruptions."""
    chance, room, now = random.Random(seed), CueRoom(), 0.0
    outcomes: list[Outcome] = ["ok", "ok", "ok", "error", "timeout", "refused", "cancelled"]
    for _ in range(chance.randint(1, 4)):
        room.you_say(now, length := chance.uniform(0.2, 4))
        now += length + chance.uniform(0.0, 1.5)
        began = now
        if chance.random() < 0.3:
            room.agent_says(now, "Let me look.", chance.uniform(0.3, 2))
        for _ in range(chance.randint(0, 3)):
            ends = [now]
            for n in range(chance.randint(1, 3)):
                start, length = now + chance.uniform(0, 0.05), 10 ** chance.uniform(-2, 1.5)
                call_id = f"{seed}/{now}/{n}"
                name = chance.choice(["get_weather", "set_lamp", "delegate"])
                room.call(start, name, length, chance.choice(outcomes), call_id)
                ends.append(start + length)
                if chance.random() < 0.1:
                    room.released(start + length / 2, call_id)
            if chance.random() < 0.1:
                room.asked(now, chance.uniform(1, 8))
            for _ in range(chance.randint(0, 2)):
                room.agent_says(chance.uniform(now, max(ends)), "a line", chance.uniform(0.5, 3))
            now = max(ends)
            room.round_ends(now)
            now += chance.choice([0.0, 0.02, chance.uniform(0, 2)])
        for _ in range(chance.randint(0, 2)):
            room.you_say(chance.uniform(began, now + 3), chance.uniform(0.2, 2), new_turn=False)
        match chance.choice(["answer", "answer", "answer", "done", "failed"]):
            case "answer":
                room.agent_says(now, "the answer", chance.uniform(0.5, 5))
            case "done":
                room.done(now)
            case _:
                room.reply_fails(now)
                room.agent_says(now + 0.01, "Sorry.", 1.5)
        if chance.random() < 0.3:
            room.rings(chance.uniform(began, now + 3))
        now += chance.uniform(0, 6)
    room.run(now + 60)
    return room
