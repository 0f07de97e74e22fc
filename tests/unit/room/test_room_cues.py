"""What a cue sounds like, measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.events import CueKind
from caal_node.room.cues import PEAK_MAX_DBFS, SAMPLE_RATE_HZ, CueSet, Samples, conform, render

KINDS: tuple[CueKind, ...] = ("tool", "agent", "error", "tick", "done", "ring")


def peak_dbfs(cue: Samples) -> float:
    return 20 * float(np.log10(np.abs(cue.astype(float)).max() / 32768))


def loudest_hz(part: Samples) -> float:
    """The strongest frequency, to about a hertz."""
    padded = SAMPLE_RATE_HZ  # zeros up to a second: bins of 1 Hz
    spectrum = np.abs(np.fft.rfft(part.astype(float), padded))
    return float(np.argmax(spectrum))


def energy_within(cue: Samples, low_hz: int, high_hz: int) -> float:
    power = np.abs(np.fft.rfft(cue.astype(float), SAMPLE_RATE_HZ)) ** 2
    return float(power[low_hz : high_hz + 1].sum() / power.sum())


def parts(cue: Samples, count: int) -> list[Samples]:
    return np.array_split(cue, count)


@pytest.mark.parametrize(
    ("kind", "length_ms"),
    [("tool", 150), ("agent", 250), ("error", 150), ("tick", 60), ("done", 120), ("ring", 880)],
)
def test_a_cue_has_its_length(kind: CueKind, length_ms: int) -> None:
    cue = render(kind)
    assert cue.dtype == np.int16
    assert cue.ndim == 1
    assert cue.size / SAMPLE_RATE_HZ * 1000 == pytest.approx(length_ms, abs=5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cue_starts_and_ends_on_zero_and_does_not_click(kind: CueKind) -> None:
    cue = render(kind).astype(float)
    assert cue[0] == 0
    assert cue[-1] == 0
    edge = SAMPLE_RATE_HZ // 1000  # the first and the last millisecond
    assert np.abs(cue[:edge]).max() < 0.05 * np.abs(cue).max()
    assert np.abs(cue[-edge:]).max() < 0.05 * np.abs(cue).max()
    # Nowhere does it jump further than its own highest tone does between two samples.
    assert np.abs(np.diff(cue)).max() < np.abs(cue).max() * 2 * np.pi * 900 / SAMPLE_RATE_HZ


@pytest.mark.parametrize("kind", KINDS)
def test_a_cue_has_no_dc(kind: CueKind) -> None:
    assert abs(render(kind).astype(float).mean()) < 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_cue_is_never_louder_than_minus_12_dbfs(kind: CueKind) -> None:
    assert peak_dbfs(render(kind)) <= PEAK_MAX_DBFS


def test_the_tick_is_softer_and_shorter_than_every_other_cue() -> None:
    tick = render("tick")
    for kind in ("tool", "agent", "error"):
        assert peak_dbfs(tick) <= peak_dbfs(render(kind)) - 6
        assert tick.size < render(kind).size


def test_the_tool_cue_rises_from_660_to_880_hz() -> None:
    first, second = parts(render("tool"), 2)
    assert loudest_hz(first) == pytest.approx(660, abs=5)
    assert loudest_hz(second) == pytest.approx(880, abs=5)


def test_the_agent_cue_is_c5_e5_g5() -> None:
    heard = [loudest_hz(part) for part in parts(render("agent"), 3)]
    assert heard == pytest.approx([523.25, 659.26, 783.99], abs=5)


def test_the_error_cue_falls_and_stays_above_300_hz() -> None:
    heard = [loudest_hz(part) for part in parts(render("error"), 5)]
    assert heard == sorted(heard, reverse=True)
    assert heard[0] - heard[-1] > 100
    assert heard[-1] > 300
    assert energy_within(render("error"), 300, 1200) > 0.99


def test_the_done_cue_rises_where_the_error_falls() -> None:
    heard = [loudest_hz(part) for part in parts(render("done"), 5)]
    assert heard == sorted(heard)
    assert heard[-1] - heard[0] > 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_cue_lies_where_small_speakers_are_good(kind: CueKind) -> None:
    assert energy_within(render(kind), 300, 1200) > 0.99


def test_a_replaced_cue_takes_the_place_of_its_kind_only() -> None:
    mine = np.array([0, 5, -5, 0], np.int16)
    cues = CueSet.of({"error": mine})
    assert cues["error"] is mine
    assert np.array_equal(cues["tool"], render("tool"))
    assert cues.lengths()["tick"] == pytest.approx(0.06)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=3000))
def test_any_sound_is_held_to_what_a_cue_promises(values: list[float]) -> None:
    cue = conform(np.array(values))
    assert cue.size == len(values)
    assert np.abs(cue.astype(float)).max() <= 32768 * 10 ** (PEAK_MAX_DBFS / 20)
    if len(values) > 1:
        assert cue[0] == cue[-1] == 0
        assert abs(cue.astype(float).mean()) < 1
