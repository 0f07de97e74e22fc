"""Over a thousand random schedules: no cue is over anything, and the answer keeps its distance."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from caal_node.room.cue_policy import SPEECH_GAP_S
from tests.bench.cue_timeline import draw, hard_turn
from tests.stand_ins.cue_room import CueRoom, Span, random_room

SEEDS = range(1_000)
EXACT = 1e-9


def overlapping(one: list[Span], other: list[Span]) -> list[tuple[Span, Span]]:
    return [
        (a, b) for a in one for b in other if a.start < b.end - EXACT and b.start < a.end - EXACT
    ]


def too_close(room: CueRoom) -> list[tuple[Span, Span]]:
    """The cues behind which the agent begins to speak too soon."""
    return [
        (cue, words)
        for cue in room.cues
        for words in room.agent
        if cue.end <= words.start + EXACT and words.start - cue.end < SPEECH_GAP_S - EXACT
    ]


def test_no_two_sounds_overlap_and_none_is_over_anybodys_words() -> None:
    kinds = set[str]()
    for seed in SEEDS:
        room = random_room(seed)
        kinds |= {cue.what for cue in room.cues}
        assert all(a.end <= b.start + EXACT for a, b in pairwise(room.cues)), seed
        assert not overlapping(room.cues, room.you), (seed, overlapping(room.cues, room.you))
        assert not overlapping(room.cues, room.agent), (seed, overlapping(room.cues, room.agent))
        assert not too_close(room), (seed, too_close(room))
    assert kinds == {"tool", "agent", "error", "tick", "done", "ring"}, "the schedules are hard"


def test_the_picture_of_the_docs_is_a_run_of_the_player() -> None:
    picture = Path(__file__).parents[3] / "docs/pictures/cues.svg"
    assert picture.read_text(encoding="utf-8") == draw(hard_turn())
