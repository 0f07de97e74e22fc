"""When spoken words answer a question: what begins over it, what is lost, and what never comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from livekit.agents import Agent, llm

from caal_node.tools.middleware.confirmation import (
    MAX_ASKED,
    MAX_S,
    SILENCE_S,
    TYPED_S,
    ConfirmationQuestion,
    ConfirmationReply,
)
from caal_node.tools.remote_calls import QuestionTask
from caal_node.tools.spoken_question import LOST_S, TAKEN_S
from mcp_bridge import Accepted, Answer, Declined, Dismissed, Field, Question
from tests.stand_ins.question_session import Session, Speech
from tests.stand_ins.virtual_loop import run

QUESTION = "Shall I unlock door: front?"


class Asked(ConfirmationQuestion):
    """A question in that session."""

    def __init__(self) -> None:
        self.heard_by = Session()
        self.there = True
        super().__init__(QUESTION, Agent(instructions=""), lambda: self.there, lambda: None)
        self.reply: ConfirmationReply | None = None

    @property
    def session(self) -> Any:
        return self.heard_by

    def complete(self, result: Any) -> None:
        super().complete(result)
        self.reply = result

    async def words(self, words: str, *, dropped: bool = False) -> None:
        """Speech to text has the words, and LiveKit asks for a reply, which it may drop."""
        message = llm.ChatMessage(role="user", content=[words])
        await self.on_user_turn_completed(llm.ChatContext.empty(), message)
        if not dropped:
            context: Any = llm.ChatContext([message])
            async for _ in self.llm_node(context, [], None):  # type: ignore[arg-type]
                pass

    def said(self) -> list[str]:
        return [speech.words for speech in self.heard_by.said]


def asked(story: Callable[[Asked], Any]) -> Asked:
    """A question that was asked in virtual time, after `story`."""

    async def play() -> Asked:
        question = Asked()
        await question.on_enter()
        await story(question)
        await question.on_exit()
        return question

    return run(play())


async def _spoken(question: Asked, words: str, **options: Any) -> None:
    question.heard_by.person("speaking")
    question.heard_by.person("listening")
    await question.words(words, **options)


def test_a_yes_behind_the_question_counts() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.said[-1].end()
        await _spoken(question, "Yes.")

    assert asked(story).reply == ConfirmationReply("yes", "words", "Yes.")


@pytest.mark.parametrize("interrupts", [True, False])
def test_a_yes_that_began_over_the_question_counts_once_it_was_heard(interrupts: bool) -> None:
    async def story(question: Asked) -> None:
        question.heard_by.person("speaking")
        first = question.heard_by.said[-1]
        first.interrupt() if interrupts else first.end()
        question.heard_by.person("listening")
        await question.words("Yes.")
        assert question.reply is None
        question.heard_by.said[-1].end()
        await _spoken(question, "Yes.")

    question = asked(story)
    assert question.reply == ConfirmationReply("yes", "words", "Yes.")
    assert question.said() == [QUESTION, f"Let me finish the question first. {QUESTION}"]


def test_an_early_yes_that_is_heard_late_is_early_still() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.person("speaking")
        question.heard_by.person("listening")
        question.heard_by.said[-1].end()
        question.heard_by.person("speaking")  # somebody coughs while speech is made to text
        question.heard_by.person("listening")
        await question.words("Yes.")
        assert question.reply is None

    assert asked(story).said()[-1].startswith("Let me finish")


@pytest.mark.parametrize(("words", "answer"), [("No!", "no"), ("No, the bedroom.", "correction")])
def test_a_no_over_the_question_counts_at_once(words: str, answer: Any) -> None:
    async def story(question: Asked) -> None:
        await _spoken(question, words)

    question = asked(story)
    assert question.reply == ConfirmationReply(answer, "words", words)
    assert question.heard_by.said[-1].interrupted, "the question is broken off"


def test_words_whose_reply_is_dropped_are_not_lost() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.said[-1].end()
        await _spoken(question, "No.", dropped=True)
        assert question.reply is None
        await asyncio.sleep(TAKEN_S + 0.1)

    assert asked(story).reply == ConfirmationReply("no", "words", "No.")


def test_words_in_two_pieces_are_read_as_one_answer() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.said[-1].end()
        await _spoken(question, "Yes,", dropped=True)
        await _spoken(question, "we are watching the match.")

    question = asked(story)
    assert question.reply is None
    assert question.said()[-1].startswith("Please say yes or no.")


def test_a_yes_that_goes_on_is_waited_for() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.said[-1].end()
        question.heard_by.person("speaking")
        await question.words("Yes.")
        assert question.reply is None
        question.heard_by.person("listening")
        await question.words("we are watching the match.")
        assert question.reply is None

    assert asked(story).reply is None


def test_a_yes_beside_noise_counts_once_the_noise_is_over() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.said[-1].end()
        question.heard_by.person("speaking")
        await question.words("Yes.")
        question.heard_by.person("listening")
        await asyncio.sleep(LOST_S + 0.1)

    assert asked(story).reply == ConfirmationReply("yes", "words", "Yes.")


def test_what_was_spoken_over_the_question_and_reached_nobody_is_asked_for_again() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.person("speaking")
        question.heard_by.person("listening")
        question.heard_by.said[-1].end()
        await asyncio.sleep(LOST_S + 0.1)

    question = asked(story)
    assert question.said() == [QUESTION, QUESTION]
    assert question.reply is None


def test_silence_behind_the_question_is_a_no() -> None:
    async def story(question: Asked) -> None:
        await asyncio.sleep(SILENCE_S + 1)
        assert question.reply is None, "the question is still being said"
        question.heard_by.said[-1].end()
        await asyncio.sleep(SILENCE_S + 0.1)

    assert asked(story).reply == ConfirmationReply("silence")


def test_one_who_types_has_longer() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.stt = None
        question.heard_by.said[-1].end()
        await asyncio.sleep(SILENCE_S + 0.1)
        assert question.reply is None
        await asyncio.sleep(TYPED_S)

    assert asked(story).reply == ConfirmationReply("silence")


def test_somebody_who_speaks_on_is_no_silence_but_has_an_end() -> None:
    async def story(question: Asked) -> None:
        question.heard_by.said[-1].end()
        question.heard_by.person("speaking")
        await asyncio.sleep(SILENCE_S + 0.1)
        assert question.reply is None
        await asyncio.sleep(MAX_S)

    assert asked(story).reply == ConfirmationReply("silence")


def test_one_who_never_hears_the_question_out_is_not_asked_for_ever() -> None:
    async def story(question: Asked) -> None:
        for _ in range(MAX_ASKED):
            await _spoken(question, "Yes.")

    question = asked(story)
    assert question.reply == ConfirmationReply("unclear")
    assert len(question.said()) == MAX_ASKED


def test_a_yes_of_somebody_else_counts_for_nothing() -> None:
    async def story(question: Asked) -> None:
        question.there = False
        for _ in range(2):
            question.heard_by.said[-1].end()
            await _spoken(question, "Yes.")

    reply = asked(story).reply
    assert reply is not None
    assert reply.answer == "unclear"


def test_a_button_answers_while_the_question_is_still_said() -> None:
    async def story(question: Asked) -> None:
        question.answer(ConfirmationReply("yes", "button"))
        question.answer(ConfirmationReply("no", "button"))  # too late

    question = asked(story)
    assert question.reply == ConfirmationReply("yes", "button")
    assert question.heard_by.said[-1].interrupted


class ServerAsks(QuestionTask):
    """A server's question in that session."""

    def __init__(self, *fields: Field) -> None:
        self.heard_by = Session()
        question = Question("live", "ask", "Which room?", fields)
        super().__init__(question, Agent(instructions=""), lambda: None)
        self.given: Answer | None = None

    @property
    def session(self) -> Any:
        return self.heard_by

    def complete(self, result: Any) -> None:
        super().complete(result)
        self.given = result


@pytest.mark.parametrize(("names", "again"), [(["room"], "Which room?"), (["a", "b"], "Say a?")])
def test_a_servers_question_whose_answer_reached_nobody_is_asked_again(
    names: list[str], again: str
) -> None:
    async def play() -> list[str]:
        fields = [Field(name, "text", name, f"Say {name}", required=True) for name in names]
        task = ServerAsks(*fields)
        await task.on_enter()
        task.heard_by.person("speaking")
        task.heard_by.person("listening")
        task.heard_by.said[-1].end()
        await asyncio.sleep(LOST_S + 0.1)
        await task.on_exit()
        return [speech.words for speech in task.heard_by.said]

    assert run(play())[-1] == f"Sorry, I did not get that. {again}"


@pytest.mark.parametrize(
    ("answers", "given"),
    [
        (["Yes, please."], Accepted({})),
        (["No."], Declined()),
        (["No, the bedroom."], Declined()),
        (["It's on your right.", "Yes, we are watching the match."], Dismissed()),
        (["Is it yes?", "Yes."], Accepted({})),
    ],
)
def test_a_servers_question_without_fields_takes_a_yes_to_it_alone(
    answers: list[str], given: Answer
) -> None:
    async def play() -> Answer | None:
        task = ServerAsks()
        await task.on_enter()
        for words in answers:
            task.take(words, over_question=False)
        await task.on_exit()
        return task.given

    assert run(play()) == given


def test_a_yes_over_a_servers_question_is_asked_for_again() -> None:
    async def play() -> tuple[str, Answer | None]:
        task = ServerAsks()
        await task.on_enter()
        task.take("Yes.", over_question=True)
        said = task.heard_by.said[-1].words
        task.take("Yes.", over_question=False)
        await task.on_exit()
        return said, task.given

    assert run(play()) == ("Sorry, I did not get that. Which room?", Accepted({}))


def test_a_form_ends_a_servers_question_and_words_behind_it_count_nothing() -> None:
    async def play() -> tuple[ServerAsks, list[Speech]]:
        task = ServerAsks(Field("room", "text", "Room", "", required=True))
        await task.on_enter()
        task.answer(Accepted({"room": "bath"}), "form")
        task.answer(Declined(), "words")
        await task.on_exit()
        return task, task.heard_by.said

    task, said = run(play())
    assert (task.given, task.by) == (Accepted({"room": "bath"}), "form")
    assert said[-1].interrupted, "the question is broken off"
