"""A conversation keeps its order when the wall clock is set back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from livekit.agents import llm

from caal_node.models.clock_steps import STEP_S, ClockSteps

START_S = 1_700_000_000.0


class Clocks:
    """A wall clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.ahead_s = START_S
        self.passed_s = 0.0

    def wall(self) -> float:
        return self.ahead_s + self.passed_s

    def monotonic(self) -> float:
        return self.passed_s


def said(history: llm.ChatContext, clocks: Clocks, text: str) -> None:
    clocks.passed_s += 2.0
    role = "user" if text.startswith("q") else "assistant"
    history.add_message(role=role, content=text, created_at=clocks.wall())


def texts(history: llm.ChatContext) -> list[str | None]:
    return [item.text_content for item in history.items if isinstance(item, llm.ChatMessage)]


@given(st.lists(st.floats(min_value=STEP_S * 2, max_value=1e8), min_size=1, max_size=4))
def test_whatever_is_said_after_a_step_back_comes_last(steps_s: list[float]) -> None:
    clocks, history = Clocks(), llm.ChatContext()
    steps = ClockSteps(clocks.wall, clocks.monotonic)
    expected: list[str] = []
    for number, step_s in enumerate([0.0, *steps_s]):
        clocks.ahead_s -= step_s
        said(history, clocks, f"q{number}")
        steps.mend(history.items)
        expected.append(f"q{number}")
        assert texts(history) == expected
        said(history, clocks, f"a{number}")
        expected.append(f"a{number}")


def test_a_step_in_mid_turn_puts_the_answer_behind_its_question() -> None:
    clocks, history = Clocks(), llm.ChatContext()
    steps = ClockSteps(clocks.wall, clocks.monotonic)
    said(history, clocks, "q0")
    steps.mend(history.items)
    clocks.ahead_s -= 3600
    said(history, clocks, "a0")
    said(history, clocks, "q1")
    steps.mend(history.items)
    assert texts(history) == ["q0", "a0", "q1"]


def test_a_copy_of_the_history_is_mended_once() -> None:
    clocks, history = Clocks(), llm.ChatContext()
    steps = ClockSteps(clocks.wall, clocks.monotonic)
    said(history, clocks, "q0")
    steps.mend(history.items)
    clocks.ahead_s -= 3600
    said(history, clocks, "q1")
    copy = history.copy()
    steps.mend(copy.items, history.items, history.items)
    assert texts(copy) == texts(history) == ["q0", "q1"]
    newest = history.items[-1].created_at
    assert newest == clocks.wall()
    assert history.items[0].created_at == newest - 2.0


def test_a_clock_that_is_set_forward_or_slowed_down_changes_nothing() -> None:
    clocks, history = Clocks(), llm.ChatContext()
    steps = ClockSteps(clocks.wall, clocks.monotonic)
    for number, change_s in enumerate([0.0, 86_400.0, -STEP_S / 2]):
        clocks.ahead_s += change_s
        said(history, clocks, f"q{number}")
        stamps = [item.created_at for item in history.items]
        steps.mend(history.items)
        assert [item.created_at for item in history.items] == stamps


def test_an_old_message_that_an_author_puts_in_stays_where_it_was_put() -> None:
    clocks, history = Clocks(), llm.ChatContext()
    steps = ClockSteps(clocks.wall, clocks.monotonic)
    said(history, clocks, "q0")
    steps.mend(history.items)
    history.add_message(role="assistant", content="a of yesterday", created_at=START_S - 86_400)
    steps.mend(history.items)
    assert texts(history) == ["a of yesterday", "q0"]
