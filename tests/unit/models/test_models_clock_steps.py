"""A conversation stays in order, whatever happens to the machine's clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from livekit.agents import llm

from caal_node.models.chat_context import ClockSteps

START_S = 1_000_000.0
DAY_S = 86_400.0


class Clocks:
    """A wall clock that is set, and one that is not."""

    def __init__(self) -> None:
        self.steady_s = 5.0
        self.set_by = 0.0

    def steady(self) -> float:
        return self.steady_s

    def wall(self) -> float:
        return START_S + self.steady_s + self.set_by


class Talk:
    """A conversation as LiveKit keeps it: a history, and a copy of it for each reply."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self.history = llm.ChatContext.empty()
        self.steps = ClockSteps(self.clocks.wall, self.clocks.steady)

    def message(self, role: llm.ChatRole, words: str) -> llm.ChatMessage:
        self.clocks.steady_s += 2.0
        return llm.ChatMessage(role=role, content=[words], created_at=self.clocks.wall())

    def turn(self, words: str) -> list[str | None]:
        """What the model is given for these words."""
        said = self.message("user", words)
        asked = self.history.copy()
        asked.insert(said)
        self.steps.follow(asked, self.history)
        self.history.insert(said)
        self.history.insert(self.message("assistant", f"{words}!"))
        return texts(asked)


def texts(context: llm.ChatContext) -> list[str | None]:
    return [item.text_content for item in context.items if item.type == "message"]


def said_by(count: int) -> list[str]:
    """The words of so many turns and their answers."""
    return [f"{turn}{end}" for turn in range(count) for end in ("", "!")]


@given(st.lists(st.floats(-DAY_S, DAY_S), max_size=12))
def test_however_the_clock_is_set_between_turns_the_next_words_come_last(
    jumps: list[float],
) -> None:
    talk = Talk()
    for turn, jump in enumerate(jumps):
        talk.clocks.set_by += jump
        assert talk.turn(str(turn)) == [*said_by(turn), str(turn)]
    assert texts(talk.history) == said_by(len(jumps))


def test_a_result_comes_after_its_call_when_the_clock_is_set_back_between_them() -> None:
    talk = Talk()
    talk.turn("0")
    asked = talk.history.copy()
    call = llm.FunctionCall(
        call_id="c", name="f", arguments="{}", created_at=talk.message("user", "").created_at
    )
    talk.clocks.set_by = -DAY_S
    talk.clocks.steady_s += 0.0001
    result = llm.FunctionCallOutput(
        call_id="c", output="", is_error=False, created_at=talk.clocks.wall()
    )
    talk.history.insert([call, result])
    asked.items.extend([call, result])
    talk.steps.follow(asked, talk.history)
    for context in (asked, talk.history):
        assert [item.type for item in context.items] == [
            "message",
            "message",
            "function_call",
            "function_call_output",
        ]


def test_times_are_left_alone_where_the_clock_is() -> None:
    talk = Talk()
    talk.turn("0")
    before = [item.created_at for item in talk.history.items]
    talk.clocks.set_by = DAY_S
    talk.turn("1")
    assert [item.created_at for item in talk.history.items][:2] == before
