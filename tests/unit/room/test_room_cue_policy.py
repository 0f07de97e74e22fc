"""Which cue when, on a clock that only the test moves."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from caal_node.core.events import Outcome
from caal_node.room.cue_policy import SPEECH_GAP_S, TICK_EVERY_S, CueAction, CuePolicy
from caal_node.room.cues import CueSet

LENGTHS = CueSet.of().lengths()


def policy() -> CuePolicy:
    return CuePolicy(LENGTHS)


def sounds_until(it: CuePolicy, end: float) -> list[tuple[float, CueAction]]:
    """Wake it whenever it wants, up to `end`; what it then did, and when."""
    heard: list[tuple[float, CueAction]] = []
    while (due := it.due) is not None and due <= end:
        heard.append((due, it.wake(due)))
    return heard


def test_a_call_is_announced_the_moment_it_is_known() -> None:
    assert policy().call_started(1.0, "a", "get_weather") == "tool"


@pytest.mark.parametrize("name", ["spawn_agent", "delegate", "run_sub_agent"])
def test_a_call_that_starts_another_agent_has_its_own_cue(name: str) -> None:
    assert policy().call_started(1.0, "a", name) == "agent"


def test_other_names_can_be_set_for_the_agent_cue() -> None:
    it = CuePolicy(LENGTHS, ["ask_expert"])
    assert it.call_started(1.0, "a", "ask_expert") == "agent"
    it.round_ended()
    assert it.call_started(2.0, "b", "delegate") == "tool"


def test_several_calls_of_one_reply_are_one_cue() -> None:
    it = policy()
    assert it.call_started(1.0, "a", "x") == "tool"
    assert it.call_started(1.0, "b", "y") is None
    assert it.call_ended(1.1, "a", "ok") is None
    assert it.call_started(1.2, "c", "delegate") is None


def test_the_next_round_has_a_cue_again() -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    it.call_ended(2.0, "a", "ok")
    it.round_ended()
    assert it.call_started(3.0, "b", "x") == "tool"


@pytest.mark.parametrize("outcome", ["error", "timeout", "refused"])
def test_a_failed_call_plays_the_error_cue(outcome: Outcome) -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    assert it.call_ended(2.0, "a", outcome) == "error"


@pytest.mark.parametrize("outcome", ["ok", "cancelled"])
def test_a_call_that_did_not_fail_ends_silently(outcome: Outcome) -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    assert it.call_ended(2.0, "a", outcome) is None


def test_a_reply_that_fails_plays_the_error_cue_unless_somebody_speaks() -> None:
    it = policy()
    assert it.reply_failed(1.0) == "error"
    assert it.due is None, "nobody waits for a call"
    it.agent_speech_started(2.0)
    assert it.reply_failed(2.5) is None
    it.agent_speech_ended(3.0)
    assert it.due is None, "the sentence was heard already"
    it.user_speech_started(4.0)
    assert it.reply_failed(4.5) is None


def test_two_failures_of_one_round_are_one_cue() -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    it.call_started(1.0, "b", "x")
    assert it.call_ended(2.0, "a", "error") == "error"
    assert it.call_ended(2.1, "b", "timeout") is None


def test_an_end_without_a_start_is_nothing() -> None:
    assert policy().call_ended(1.0, "?", "error") is None


def test_a_long_call_ticks_at_four_seconds_and_every_four_after() -> None:
    it = policy()
    it.call_started(10.0, "a", "x")
    assert sounds_until(it, 23.0) == [(14.0, "tick"), (18.0, "tick"), (22.0, "tick")]
    it.call_ended(23.0, "a", "ok")
    assert it.due is None


def test_a_short_call_never_ticks() -> None:
    it = policy()
    it.call_started(0.0, "a", "x")
    it.call_ended(3.9, "a", "ok")
    assert sounds_until(it, 60.0) == []


def test_a_second_call_does_not_delay_the_tick() -> None:
    it = policy()
    it.call_started(0.0, "a", "x")
    it.call_started(3.0, "b", "x")
    it.call_ended(3.5, "a", "ok")
    assert sounds_until(it, 5.0) == [(4.0, "tick")]


def test_a_call_that_went_to_the_background_does_not_tick_but_may_fail_aloud() -> None:
    it = policy()
    it.call_started(0.0, "a", "x")
    it.call_released("a")
    assert sounds_until(it, 60.0) == []
    it.round_ended()
    assert it.call_ended(61.0, "a", "error") == "error"


def test_no_cue_over_the_agents_words_but_after_them_if_the_call_still_runs() -> None:
    it = policy()
    it.agent_speech_started(0.0)
    assert it.call_started(1.0, "a", "x") is None
    assert it.due is None
    it.agent_speech_ended(2.0)
    assert sounds_until(it, 7.0) == [
        (2.0 + SPEECH_GAP_S, "tool"),
        (2.0 + SPEECH_GAP_S + TICK_EVERY_S, "tick"),
    ]


def test_a_call_that_ended_under_the_agents_words_is_not_announced_after_them() -> None:
    it = policy()
    it.agent_speech_started(0.0)
    it.call_started(1.0, "a", "x")
    it.call_ended(1.5, "a", "ok")
    it.agent_speech_ended(2.0)
    assert sounds_until(it, 60.0) == []


def test_an_error_cue_waits_for_the_end_of_the_agents_words() -> None:
    it = policy()
    it.agent_speech_started(0.0)
    it.call_started(1.0, "a", "x")
    assert it.call_ended(1.5, "a", "error") is None
    it.agent_speech_ended(2.0)
    assert sounds_until(it, 60.0) == [(2.0 + SPEECH_GAP_S, "error")]


def test_a_cue_that_waited_is_dropped_when_the_agent_speaks_on() -> None:
    it = policy()
    it.agent_speech_started(0.0)
    it.call_started(1.0, "a", "x")
    it.call_ended(1.5, "a", "error")
    it.agent_speech_ended(2.0)
    it.agent_speech_started(2.1)
    it.agent_speech_ended(9.0)
    assert sounds_until(it, 60.0) == []


def test_a_cue_that_waited_into_the_next_round_is_that_rounds_too() -> None:
    it = policy()
    it.agent_speech_started(0.0)
    it.call_started(1.0, "a", "x")
    it.round_ended()
    it.agent_speech_ended(2.0)
    assert sounds_until(it, 3.0) == [(2.0 + SPEECH_GAP_S, "tool")]
    assert it.call_started(3.0, "b", "x") is None


def test_the_agents_answer_cuts_a_cue_that_sounds() -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    assert it.agent_speech_started(1.1) == "stop"
    assert it.agent_speech_started(1.2) is None


def test_an_answer_after_the_cue_has_nothing_to_cut() -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    assert it.agent_speech_started(2.0) is None


def test_barge_in_cuts_the_cue_and_leaves_nothing_pending() -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    assert it.user_speech_started(1.1) == "stop"
    assert it.due is None
    assert it.call_ended(1.5, "a", "error") is None
    it.user_speech_ended(2.0)
    assert sounds_until(it, 60.0) == []


def test_a_person_who_only_coughed_hears_that_it_still_works_four_seconds_later() -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    it.user_speech_started(3.0)
    it.user_speech_ended(3.5)
    assert sounds_until(it, 8.0) == [(7.5, "tick")]


def test_a_call_that_begins_under_the_persons_words_is_not_announced_late() -> None:
    it = policy()
    it.user_speech_started(0.0)
    assert it.call_started(0.5, "a", "x") is None
    it.user_speech_ended(1.0)
    assert sounds_until(it, 6.0) == [(5.0, "tick")]


def test_what_the_person_left_behind_makes_no_sound() -> None:
    it = policy()
    it.call_started(1.0, "a", "x")
    it.abandon()
    assert sounds_until(it, 60.0) == []
    assert it.call_ended(61.0, "a", "error") is None
    assert it.call_started(62.0, "b", "x") == "tool"


def test_nothing_ticks_while_a_call_waits_for_the_persons_answer() -> None:
    it = policy()
    it.call_started(0.0, "a", "unlock_door")
    it.question_began()
    it.agent_speech_started(1.0)
    it.agent_speech_ended(3.0)
    it.user_speech_started(5.0)
    it.user_speech_ended(6.0)
    it.call_started(7.0, "b", "unlock_gate")
    assert sounds_until(it, 60.0) == []
    it.question_ended(60.0)
    assert sounds_until(it, 65.0) == [(60.0 + TICK_EVERY_S, "tick")]


class AnyOrder(RuleBasedStateMachine):
    """Everything that can happen, in any order, at any pace."""

    def __init__(self) -> None:
        super().__init__()
        self.it = policy()
        self.now = 0.0
        self.agent = self.user = False
        self.waited: set[str] = set()
        self.round_sounds = 0
        self.last_sound = self.last_speech_end = -100.0
        self.sounding_until = -100.0
        self.calls = 0

    def heard(self, act: CueAction) -> None:
        if act is None or act == "stop":
            return
        assert not self.agent
        assert not self.user
        assert act in LENGTHS
        if act in ("tool", "agent"):
            self.round_sounds += 1
            assert self.round_sounds <= 1
        if act == "tick":
            assert self.waited
            assert self.now - max(self.last_sound, self.last_speech_end) >= TICK_EVERY_S - 1e-6
        self.last_sound = self.now
        self.sounding_until = max(self.sounding_until, self.now) + LENGTHS[act]

    @rule(name=st.sampled_from(["get_time", "delegate"]))
    def start(self, name: str) -> None:
        self.calls += 1
        self.waited.add(f"c{self.calls}")
        self.heard(self.it.call_started(self.now, f"c{self.calls}", name))

    @precondition(lambda self: self.waited)
    @rule(data=st.data(), outcome=st.sampled_from(["ok", "error", "timeout", "cancelled"]))
    def end(self, data: st.DataObject, outcome: Outcome) -> None:
        call = data.draw(st.sampled_from(sorted(self.waited)))
        self.waited.discard(call)
        act = self.it.call_ended(self.now, call, outcome)
        assert act in (None, "error")
        if outcome in ("ok", "cancelled"):
            assert act is None
        self.heard(act)

    @precondition(lambda self: self.waited)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(sorted(self.waited)))
        self.waited.discard(call)
        self.it.call_released(call)

    @rule()
    def round_ends(self) -> None:
        self.it.round_ended()
        self.round_sounds = 0

    @rule()
    def go_on_to_something_else(self) -> None:
        self.waited.clear()
        self.it.abandon()
        self.round_sounds = 0
        assert self.it.due is None

    @rule(who=st.sampled_from(["agent", "user"]))
    def speech_changes(self, who: str) -> None:
        begins = not getattr(self, who)
        setattr(self, who, begins)
        if begins:
            started = getattr(self.it, f"{who}_speech_started")
            act = started(self.now)
            if self.now < self.sounding_until:
                assert act == "stop"
            self.sounding_until = -100.0
        else:
            self.last_speech_end = self.now
            getattr(self.it, f"{who}_speech_ended")(self.now)

    @rule(seconds=st.floats(0.01, 9))
    def time_passes(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := self.it.due) is not None and due <= end:
            assert due >= self.now
            self.now = due
            self.heard(self.it.wake(due))
            assert self.it.due is None or self.it.due > due
        self.now = end

    @invariant()
    def nothing_is_due_under_speech_or_without_a_reason(self) -> None:
        if self.agent or self.user:
            assert self.it.due is None
        elif self.waited:
            assert self.it.due is not None


AnyOrder.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase
