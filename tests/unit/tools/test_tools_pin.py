"""Calls that need the PIN: how it is heard, how often it may be tried, and where it never is."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the types of its speech to text open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import logging
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from livekit.agents import Agent, AgentSession, function_tool, llm, stt
from livekit.agents.voice import io
from pydantic import SecretStr

from caal_node.agent import CaalAgent
from caal_node.cli.checks.tools import policy_findings
from caal_node.config.settings import Settings, load_settings
from caal_node.control.messages import CallFailure, CallTool
from caal_node.core.errors import ConfigError
from caal_node.core.events import (
    ConfirmationAsked,
    ConfirmationEnded,
    Event,
    ToolCallEnded,
    UserSaid,
    to_json,
)
from caal_node.core.items import PIN_SAID
from caal_node.core.paths import wrong_pins
from caal_node.policy.policy import Policy
from caal_node.policy.rule import Rule
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel
from caal_node.tools.middleware import confirmation as confirmation_question
from caal_node.tools.middleware.confirmation import (
    MAX_S,
    PIECES_S,
    SILENCE_S,
    ConfirmationReply,
    PinQuestion,
)
from caal_node.tools.middleware.standard import standard_middleware
from caal_node.tools.pin import (
    FIRST_LOCK_S,
    FREE_TRIES,
    LONGEST_LOCK_S,
    MAX_READ_CHARS,
    CountedTry,
    Pin,
    PinTries,
)
from tests.stand_ins.question_session import Session
from tests.stand_ins.recorded_spans import recorded_spans
from tests.stand_ins.virtual_loop import run

PIN: Final = "1234"
PHRASE: Final = "Blue horse, seven!"
ENGLISH: Final = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN: Final = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
UNTIL_S: Final = 20.0
UNUSED: Final = PinTries(Path("unused"))


# How it is heard.


@pytest.mark.parametrize(
    "words",
    [
        *("1234", "12 34", "1-2-3-4", "1, 2, 3, 4.", "1,234", "12:34", "１２３４", "١٢٣٤"),
        *("one two three four", "One, two, three, four!", "one two 34", "Eins zwei drei vier."),
        *("It's one two three four.", "Yes, 1234 please", "eins zwo drei vier"),
    ],
)
def test_a_pin_is_heard_as_people_say_and_write_it(words: str) -> None:
    assert Pin(PIN, UNUSED).fits(words)


@pytest.mark.parametrize(
    "words", ["", "yes", "123", "12345", "4321", "one two three", "x" * MAX_READ_CHARS + PIN]
)
def test_other_words_are_not_the_pin(words: str) -> None:
    assert not Pin(PIN, UNUSED).fits(words)


@pytest.mark.parametrize("words", ["blue horse seven", "BLUE HORSE 7", "  Blue-horse; seven."])
def test_a_phrase_is_heard_whatever_its_case_and_marks(words: str) -> None:
    assert Pin(PHRASE, UNUSED).fits(words)


@pytest.mark.parametrize("words", ["blue horse", "a blue horse seven", "blue horse eight", "7"])
def test_a_phrase_is_said_as_a_whole_and_alone(words: str) -> None:
    assert not Pin(PHRASE, UNUSED).fits(words)


@given(
    pin=st.lists(st.integers(0, 9), min_size=4, max_size=12),
    forms=st.lists(st.sampled_from([str.lower, str.title, str.upper]), min_size=12, max_size=12),
    kinds=st.lists(st.sampled_from("ewd"), min_size=12, max_size=12),
    between=st.sampled_from([" ", ", ", " - ", ". ", "  "]),
    other=st.lists(st.integers(0, 9), max_size=12),
)
def test_each_way_to_say_the_digits_is_the_pin_and_no_other_digits_are(
    pin: list[int],
    forms: list[Callable[[str], str]],
    kinds: list[str],
    between: str,
    other: list[int],
) -> None:
    own = Pin("".join(map(str, pin)), UNUSED)
    words = {"e": ENGLISH, "w": GERMAN, "d": "0123456789"}
    said = between.join(
        form(words[kind][digit]) for digit, form, kind in zip(pin, forms, kinds, strict=False)
    )
    assert own.fits(said)
    assert own.is_tried(said)
    assert own.may_be_in(said)
    assert own.fits(" ".join(ENGLISH[each] for each in other)) is (other == pin)


@given(st.text(max_size=200))
def test_words_without_a_digit_are_no_try(text: str) -> None:
    own = Pin(PIN, UNUSED)
    if own.fits(text):
        assert own.is_tried(text)
    assert own.is_tried(text) is own.may_be_in(text)


@pytest.mark.parametrize(
    ("given_pin", "fault"),
    [
        ("123", "write 4 to 64 digits, or a phrase of 6 to 64 letters"),
        ("short", "write 4 to 64 digits"),
        ("1" * 65, "write 4 to 64 digits"),
        ("one two", "write at least 4 digits"),
        ("no way out", "would be taken for a yes or a no"),
        ("go ahead please", "would be taken for a yes or a no"),
    ],
)
def test_a_pin_that_cannot_be_one_is_an_error_that_does_not_show_it(
    given_pin: str, fault: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^CAAL_PIN: .*{fault}") as wrong:
        Pin.of(load_settings({"CAAL_PIN": given_pin}, Path("none.toml")))
    assert given_pin not in str(wrong.value)


def test_nobody_finds_the_pin_by_what_is_redacted() -> None:
    settings = Settings(pin=SecretStr(PIN))
    assert PIN not in settings.secrets
    assert PIN not in repr(settings)


# How often it may be tried.


class Wall:
    """A clock on the wall."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_wrong_pins_lock_it_for_longer_and_longer(tmp_path: Path) -> None:
    wall = Wall()
    tries = PinTries(tmp_path / "state" / "tries", wall)
    for number in range(FREE_TRIES):
        assert await tries.locked_s() == 0
        counted = await tries.count()
        assert counted == CountedTry(True, FIRST_LOCK_S if number == FREE_TRIES - 1 else 0)
    locks: list[float] = []
    for _ in range(8):
        locks.append(await tries.locked_s())
        wall.now += locks[-1] - 1
        assert not (await tries.count()).may_be_compared, "it is locked"
        wall.now += 1
        assert (await tries.count()).may_be_compared
    assert locks[:3] == [FIRST_LOCK_S, 2 * FIRST_LOCK_S, 4 * FIRST_LOCK_S]
    assert locks[-1] == LONGEST_LOCK_S
    await tries.forget()
    assert await tries.locked_s() == 0


async def test_a_new_room_has_no_new_tries(tmp_path: Path) -> None:
    wall, file = Wall(), tmp_path / "tries"
    for _ in range(FREE_TRIES):
        await PinTries(file, wall).count()
    assert await PinTries(file, wall).locked_s() == FIRST_LOCK_S
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_clock_that_is_set_back_locks_it_no_longer(tmp_path: Path) -> None:
    wall = Wall()
    tries = PinTries(tmp_path / "tries", wall)
    for _ in range(FREE_TRIES):
        await tries.count()
    wall.now -= 1_000_000
    assert await tries.locked_s() == FIRST_LOCK_S


async def test_a_pin_whose_tries_cannot_be_counted_is_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    tries = PinTries(tmp_path / "file" / "tries")
    assert await tries.locked_s()
    assert not (await tries.count()).may_be_compared
    await tries.forget()
    assert "cannot be counted" in caplog.text


async def test_tries_of_two_rooms_at_the_same_moment_are_not_both_compared(tmp_path: Path) -> None:
    file = tmp_path / "tries"
    found = await asyncio.gather(*[PinTries(file).count() for _ in range(20)])
    assert sum(each.may_be_compared for each in found) <= FREE_TRIES


# The question.

QUESTION: Final = "Shall I unlock door: front? If so, please say the PIN."


class Tries(PinTries):
    """Tries that are counted without a file, as virtual time knows no threads."""

    def __init__(self) -> None:
        super().__init__(Path("unused"))
        self.count_of = 0

    async def count(self) -> CountedTry:
        self.count_of += 1
        return CountedTry(True, FIRST_LOCK_S if self.count_of >= FREE_TRIES else 0)


class Asked(PinQuestion):
    """The question in a session of the test's own."""

    def __init__(self, pin: str) -> None:
        self.heard_by = Session()
        self.tries = Tries()
        own = Pin(pin, self.tries)
        super().__init__(own, QUESTION, Agent(instructions=""), lambda: True, lambda: None)
        self.reply: ConfirmationReply | None = None

    @property
    def session(self) -> Any:
        return self.heard_by

    def complete(self, result: Any) -> None:
        super().complete(result)
        self.reply = result

    async def words(self, words: str) -> llm.ChatMessage:
        """Speech to text has the words; return the message that LiveKit makes of them."""
        self.heard_by.person("speaking")
        event = self.cover(final(words))
        self.heard_by.person("listening")
        message = llm.ChatMessage(role="user", content=[event.alternatives[0].text])
        await self.on_user_turn_completed(llm.ChatContext.empty(), message)
        async for _ in self.llm_node(llm.ChatContext([message]), [], None):  # type: ignore[arg-type]
            pass
        await asyncio.sleep(0)  # the try is counted
        await asyncio.sleep(0)
        return message

    def said(self) -> list[str]:
        return [speech.words for speech in self.heard_by.said]

    def hear_out(self) -> None:
        self.heard_by.said[-1].end()


def final(words: str) -> stt.SpeechEvent:
    data = stt.SpeechData("en", words, words=[io.TimedString(words)])  # type: ignore[arg-type]
    return stt.SpeechEvent(stt.SpeechEventType.FINAL_TRANSCRIPT, alternatives=[data])


def asked(story: Callable[[Asked], Any], pin: str = PIN) -> Asked:
    async def play() -> Asked:
        question = Asked(pin)
        await question.on_enter()
        await story(question)
        await question.on_exit()
        return question

    return run(play())


def test_the_right_pin_is_the_yes_also_behind_a_wrong_one() -> None:
    async def story(question: Asked) -> None:
        question.hear_out()
        await question.words("one two three five")
        await asyncio.sleep(PIECES_S + 0.1)
        question.hear_out()
        message = await question.words("One, two, three, four.")
        assert message.text_content == PIN_SAID

    question = asked(story)
    assert question.reply == ConfirmationReply("yes", "words", PIN_SAID)
    assert question.said() == [QUESTION, f"That was not the PIN. {QUESTION}"]


def test_a_pin_that_is_said_in_pieces_is_one_try() -> None:
    async def story(question: Asked) -> None:
        question.hear_out()
        await question.words("one two")
        await asyncio.sleep(PIECES_S - 0.1)
        assert question.tries.count_of == 1, "it is counted before it is compared"
        await question.words("three four")

    assert asked(story).reply == ConfirmationReply("yes", "words", PIN_SAID)


def test_each_wrong_pin_is_counted_and_the_last_one_ends_the_question() -> None:
    async def story(question: Asked) -> None:
        for _ in range(FREE_TRIES):
            question.hear_out()
            await question.words("four three two one")
            await asyncio.sleep(PIECES_S + 0.1)

    question = asked(story)
    assert question.reply == ConfirmationReply("unclear", "words", PIN_SAID)
    assert question.tries.count_of == FREE_TRIES


def test_one_who_leaves_before_a_wrong_pin_is_judged_has_tried_it() -> None:
    async def story(question: Asked) -> None:
        question.hear_out()
        await question.words("9 9 9 9")

    assert asked(story).tries.count_of == 1


@pytest.mark.parametrize("words", ["yes", "yes please", "perhaps", "what is that?"])
def test_words_without_a_pin_are_no_try_and_no_yes(words: str) -> None:
    async def story(question: Asked) -> None:
        for _ in range(2):
            question.hear_out()
            await question.words(words)

    question = asked(story)
    assert question.reply == ConfirmationReply("unclear", "words", PIN_SAID)
    assert question.said()[-1] == f"Please say the PIN, or no. {QUESTION}"
    assert question.tries.count_of == 0


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("No!", ConfirmationReply("no", "words", PIN_SAID)),
        ("No, 1234", ConfirmationReply("no", "words", PIN_SAID)),
        ("No, door two", ConfirmationReply("no", "words", PIN_SAID)),
        ("No, the bedroom.", ConfirmationReply("correction", "words", "No, the bedroom.")),
    ],
)
def test_a_no_ends_it_at_once_and_a_correction_keeps_only_words_without_a_digit(
    words: str, reply: ConfirmationReply
) -> None:
    async def story(question: Asked) -> None:
        await question.words(words)  # over the question

    assert asked(story).reply == reply


def test_a_correction_without_the_words_of_the_phrase_is_kept() -> None:
    async def story(question: Asked) -> None:
        await question.words("No, the blue door")

    assert asked(story, PHRASE).reply == ConfirmationReply("no", "words", PIN_SAID)


def test_a_pin_over_the_question_is_neither_compared_nor_counted() -> None:
    async def story(question: Asked) -> None:
        await question.words(PIN)
        assert question.reply is None

    question = asked(story)
    assert question.said()[-1] == f"Let me finish the question first. {QUESTION}"
    assert question.tries.count_of == 0


def test_silence_and_endless_speech_are_a_no() -> None:
    async def silent(question: Asked) -> None:
        question.hear_out()
        await asyncio.sleep(SILENCE_S + 0.1)

    async def on_and_on(question: Asked) -> None:
        question.hear_out()
        await question.words("9 9 9 9")
        question.heard_by.person("speaking")
        await asyncio.sleep(MAX_S)

    assert asked(silent).reply == ConfirmationReply("silence")
    assert asked(on_and_on).reply == ConfirmationReply("silence")


def test_no_field_of_an_event_of_speech_to_text_has_the_words() -> None:
    async def story(question: Asked) -> None:
        kinds = stt.SpeechEventType
        for kind in (kinds.INTERIM_TRANSCRIPT, kinds.PREFLIGHT_TRANSCRIPT, kinds.FINAL_TRANSCRIPT):
            event = final(PIN)
            event.type = kind
            assert PIN not in repr(question.cover(event))
        empty = stt.SpeechEvent(kinds.START_OF_SPEECH)
        assert question.cover(empty) is empty

    asked(story)


def test_what_is_typed_is_covered_while_the_question_is_open() -> None:
    seen: list[Any] = []

    async def story(question: Asked) -> None:
        typed = llm.ChatMessage(role="user", content=[PIN])
        question.session.generate_reply(user_input=PIN)
        question.session.generate_reply(user_input=typed)
        question.session.generate_reply()
        seen.extend(question.heard_by.replies)

    question = asked(story)
    assert seen[:2] == [PIN_SAID, PIN_SAID]
    question.session.generate_reply(user_input="hello")
    assert question.heard_by.replies[-1] == "hello"


def test_a_session_whose_owner_replaced_its_replies_has_theirs_back() -> None:
    async def play() -> Any:
        question = Asked(PIN)
        session = vars(question.heard_by)
        own = session["generate_reply"] = object()
        await question.on_enter()
        assert session["generate_reply"] is not own
        await question.on_exit()
        return session["generate_reply"] is own

    assert run(play())


# A call of a whole conversation.

RULE: Final = '[[tools.rules]]\ntools = ["unlock_*"]\nthen = "pin"\n'


class House(CaalAgent):
    """An agent with a door, and a rule that asks for the PIN."""

    def __init__(self, folder: Path, pin: str = PIN, more: str = "", **options: Any) -> None:
        file = folder / "caal.toml"
        file.write_text(more + RULE)
        given = {"CAAL_CUES": "off", "CAAL_PIN": pin}
        self.opened: list[str] = []
        super().__init__(settings=load_settings(given, file), tiers={}, **options)

    @function_tool
    async def unlock_door(self, door: str) -> str:
        """Unlock a door."""
        self.opened.append(door)
        return "open"


def unlock(door: str = "front") -> ScriptedCall:
    return ScriptedCall("unlock_door", {"door": door})


@pytest.mark.parametrize(
    ("pin", "said"),
    [(PIN, "one two three four"), (PIN, "1234"), (PIN, "12 34"), (PHRASE, "blue HORSE seven")],
)
async def test_the_right_pin_runs_exactly_what_was_read_back(
    tmp_path: Path, pin: str, said: str
) -> None:
    agent = House(tmp_path, pin)
    async with AgentConversation(agent, ScriptedModel([unlock()], "Done.")) as talk:
        assert (await talk.say("unlock it")).text == QUESTION
        assert talk.asks_for_pin
        assert agent.opened == []
        assert (await talk.say(said)).text == "Done."
        assert not talk.asks_for_pin
        (question,) = talk.events_of(ConfirmationAsked)
        (answer,) = talk.events_of(ConfirmationEnded)
        (ended,) = talk.events_of(ToolCallEnded)
    assert agent.opened == ["front"]
    assert tries() == 0, "a right one sets the count back"
    assert question.pin
    assert (answer.answer, answer.by, ended.outcome) == ("yes", "words", "ok")
    assert ended.decisions[-1].verdict == "confirmed"
    assert "line 1" in ended.decisions[-1].line


async def test_the_words_of_the_answer_are_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answers = ["seven seven seven", "8 8 8 8", "my secret perhaps", "one two three four"]
    model = ScriptedModel([unlock()], "Done.", "Fine.")
    with recorded_spans() as spans:
        async with AgentConversation(House(tmp_path), model) as talk:
            await talk.say("unlock it")
            for answer in answers[1:]:
                await talk.say(answer)
            await talk.say("thanks")
            history = json.dumps(talk.session.history.to_dict())
            said = [event.text for event in talk.events_of(UserSaid)]
            events = "".join(map(to_json, talk.events))
    seen = {
        "logs": "".join(f"{vars(record)}" for record in caplog.records),
        "spans": "".join(span.to_json() for span in spans.all),
        "history": history,
        "events": events,
        "requests": repr(model.requests),
    }
    for where, text in seen.items():
        assert "unlock" in text, where
        for answer in answers:
            assert answer not in text, where
    assert said == ["unlock it", *[PIN_SAID] * 3, "thanks"]


async def test_a_wrong_pin_too_often_locks_the_next_call_too(tmp_path: Path) -> None:
    agent = House(tmp_path)
    model = ScriptedModel([unlock()], "It is locked.", [unlock()], "It still is.")
    happened = asyncio.Event()
    agent.add_listener(lambda _: happened.set())
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        for number in range(1, FREE_TRIES + 1):
            await talk.say("4321")
            await until(happened, lambda n=number: tries() == n)
        await until(happened, lambda: bool(talk.events_of(ToolCallEnded)))
        await talk.say("unlock it now")
        first, second = talk.events_of(ToolCallEnded)
        asked = len(talk.events_of(ConfirmationAsked))
        results = [item.output for item in talk.history if item.type == "function_call_output"]
    assert agent.opened == []
    assert (first.outcome, second.outcome, asked) == ("refused", "refused", 1)
    assert all("the PIN was wrong too often" in result for result in results)
    assert second.decisions[-1].line.endswith("the PIN is locked")


def tries() -> int:
    return wrong_pins().stat().st_size if wrong_pins().exists() else 0


async def until(happened: asyncio.Event, fits: Callable[[], bool]) -> None:
    async with asyncio.timeout(UNTIL_S):
        while not fits():
            happened.clear()
            await happened.wait()


@pytest.mark.parametrize("answer", ["no", "No, the back door."])
async def test_a_no_and_a_correction_run_nothing(tmp_path: Path, answer: str) -> None:
    agent = House(tmp_path)
    async with AgentConversation(agent, ScriptedModel([unlock()], "As you like.")) as talk:
        await talk.say("unlock it")
        assert (await talk.say(answer)).text == "As you like."
        results = [item.output for item in talk.history if item.type == "function_call_output"]
    assert agent.opened == []
    assert ("back door" in results[0]) is ("back" in answer)


async def test_a_call_that_is_cancelled_while_the_pin_is_asked_for_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    agent = House(tmp_path)
    happened = asyncio.Event()
    agent.add_listener(lambda _: happened.set())
    model = ScriptedModel([unlock()], "Hello.", "Yes?")
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock it")
        assert "generate_reply" in vars(talk.session)
        agent.cancel_calls()
        await until(happened, lambda: bool(talk.events_of(ConfirmationEnded)))
        await talk.say("hello")
        assert "generate_reply" not in vars(talk.session)
        (ended,) = talk.events_of(ConfirmationEnded)
        assert talk.events_of(UserSaid)[-1].text == "hello"
    assert ended.answer == "cancelled"
    assert agent.opened == []
    assert tries() == 0


async def test_over_the_api_no_hash_stands_for_the_pin(tmp_path: Path) -> None:
    agent = House(tmp_path)
    async with AgentConversation(agent, ScriptedModel([unlock()], "Hello.")) as talk:
        await talk.say("unlock it")
        (question,) = talk.events_of(ConfirmationAsked)
        call = CallTool(
            name="unlock_door", arguments={"door": "front"}, confirmation=question.arguments_hash
        )
        refused = await agent.on_tools(call)
    assert isinstance(refused, CallFailure)
    assert refused.kind == "refused"
    assert "needs the PIN, which is asked for in a conversation alone" in refused.message
    assert agent.opened == []


async def test_a_dry_run_asks_for_no_pin(tmp_path: Path) -> None:
    agent = House(tmp_path, more="dry_run = true\n")
    async with AgentConversation(agent, ScriptedModel([unlock()], "I would have.")) as talk:
        await talk.say("unlock it")
        (ended,) = talk.events_of(ToolCallEnded)
        assert talk.events_of(ConfirmationAsked) == []
    assert ended.outcome == "dry_run"


async def test_a_yes_does_not_run_a_call_that_needs_the_pin_since_it_was_asked(
    tmp_path: Path,
) -> None:
    agent = House(tmp_path)
    (check,) = agent.policies.checks
    check.policy = Policy([Rule("confirm", line="caal.toml, line 1")])
    async with AgentConversation(agent, ScriptedModel([unlock()], "Not now.")) as talk:
        await talk.say("unlock it")
        check.policy = Policy([Rule("pin", line="caal.toml, line 1")])
        await talk.say("yes")
        (ended,) = talk.events_of(ToolCallEnded)
    assert agent.opened == []
    assert ended.outcome == "refused"


async def test_a_line_that_forbids_what_it_asked_about_is_obeyed(tmp_path: Path) -> None:
    agent = House(tmp_path)
    (check,) = agent.policies.checks
    check.policy = Policy([Rule("confirm", line="caal.toml, line 1")])
    async with AgentConversation(agent, ScriptedModel([unlock()], "Not now.")) as talk:
        await talk.say("unlock it")
        check.policy = Policy([Rule("deny", line="caal.toml, line 1")])
        await talk.say("yes")
    assert agent.opened == []


# A front end.


class Button:
    """A front end that answers as soon as the question is open."""

    messages: tuple[Mapping[str, Any], ...] = ()
    taken: ClassVar[list[bool]] = []

    def __init__(self, room: Any, person: str, names: Any, max_chars: int, take: Any) -> None:
        self._take = take

    def open(self) -> None:
        asyncio.get_running_loop().call_soon(self._press)

    def _press(self) -> None:
        Button.taken = [self._take(message) for message in self.messages]

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(
    ("messages", "taken", "opened"),
    [
        ([{"yes": True}], [False], []),
        ([{"yes": True}, {"yes": False}], [False, True], []),
        ([{"pin": "1 2 3 4"}], [True], ["front"]),
        ([{"pin": 1234}], [False], []),
    ],
)
async def test_a_button_is_no_pin_and_a_typed_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: Any, taken: Any, opened: Any
) -> None:
    monkeypatch.setattr(confirmation_question, "FrontEndAnswers", Button)
    monkeypatch.setattr(Button, "messages", tuple(messages))
    agent, happened = House(tmp_path), asyncio.Event()
    agent.add_listener(lambda _: happened.set())
    async with AgentConversation(agent, ScriptedModel([unlock()], "Done.")) as talk:
        await talk.say("unlock it")
        if opened:
            await until(happened, lambda: bool(talk.events_of(ToolCallEnded)))
        assert PIN not in "".join(map(to_json, talk.events))
    assert Button.taken == taken
    assert agent.opened == opened


# A rule without a PIN.


def test_a_rule_that_wants_a_pin_that_is_not_set_names_file_key_and_fix(tmp_path: Path) -> None:
    file = tmp_path / "caal.toml"
    file.write_text(RULE)
    check: Any = standard_middleware(load_settings({}, file))[0]
    policy: Policy = check.policy
    [fault] = policy.faults
    assert fault == (
        f"{file}, line 1, tools.rules.then: a PIN is asked for, and none is set; set CAAL_PIN in "
        '.env, or write then = "confirm"'
    )
    first, *_ = policy_findings(policy, (), listed=True)
    assert first.status == "fail"
    check = standard_middleware(load_settings({"CAAL_PIN": PIN}, file))[0]
    assert check.policy.faults == ()


async def test_a_reload_finds_such_a_rule_too(tmp_path: Path) -> None:
    file = tmp_path / "caal.toml"
    settings = load_settings({}, file)
    check: Any = standard_middleware(settings)[0]
    assert check.policy.faults == ()
    file.write_text(RULE)
    await check.reload()
    assert "set CAAL_PIN" in check.policy.faults[0]


# Spoken words, through LiveKit's own speech to text.


class ScriptedSTT(stt.STT[Any]):
    """Speech to text that hears what the test says."""

    def __init__(self) -> None:
        capabilities = stt.STTCapabilities(streaming=True, interim_results=True)
        super().__init__(capabilities=capabilities)
        self.streams: list[ScriptedStream] = []
        self.opened = asyncio.Event()

    async def _recognize_impl(
        self, buffer: Any, *, language: Any = None, conn_options: Any = None
    ) -> Any:
        raise NotImplementedError

    def stream(self, *, language: Any = None, conn_options: Any = None) -> Any:
        self.streams.append(ScriptedStream(stt=self, conn_options=conn_options))
        self.opened.set()
        return self.streams[-1]

    def hear(self, words: str) -> None:
        kinds, now = stt.SpeechEventType, self.streams[-1]
        half = stt.SpeechData("en", words[: len(words) // 2])  # type: ignore[arg-type]
        now.words.put_nowait(stt.SpeechEvent(kinds.START_OF_SPEECH))
        now.words.put_nowait(stt.SpeechEvent(kinds.INTERIM_TRANSCRIPT, alternatives=[half]))
        now.words.put_nowait(final(words))
        now.words.put_nowait(stt.SpeechEvent(kinds.END_OF_SPEECH))


class ScriptedStream(stt.RecognizeStream):
    def __init__(self, **options: Any) -> None:
        self.words: asyncio.Queue[stt.SpeechEvent] = asyncio.Queue()
        super().__init__(**options)

    async def _run(self) -> None:
        while True:
            self._event_ch.send_nowait(await self.words.get())


class Microphone(io.AudioInput):
    """It is silent: the scripted speech to text needs no sound."""

    def __init__(self) -> None:
        super().__init__(label="test")

    async def __anext__(self) -> Any:
        await asyncio.Event().wait()


async def test_what_is_spoken_is_in_no_caption_event_log_span_or_history(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    heard, happened, events = ScriptedSTT(), asyncio.Event(), list[Event]()
    agent = House(tmp_path)

    def note(event: Event) -> None:
        events.append(event)
        happened.set()

    agent.add_listener(note)
    captions: list[str] = []
    with recorded_spans() as spans:
        session: Any = AgentSession[Any](
            stt=heard, llm=ScriptedModel([unlock()], "Done."), turn_detection="stt"
        )
        session.input.audio = Microphone()

        @session.on("user_input_transcribed")
        def caption(event: Any) -> None:  # pyright: ignore[reportUnusedFunction]
            captions.append(event.transcript)

        await session.start(agent, record=False)
        await until(heard.opened, lambda: len(heard.streams) == 1)
        heard.hear("unlock it")
        await until(happened, lambda: any(isinstance(each, ConfirmationAsked) for each in events))
        await until(heard.opened, lambda: len(heard.streams) == 2)
        question: Any = session.current_agent
        await question._speech  # it has been heard
        heard.hear("one two three four")
        await until(happened, lambda: any(isinstance(each, ToolCallEnded) for each in events))
        history = json.dumps(session.history.to_dict())
        await session.aclose()
    assert agent.opened == ["front"]
    seen = {
        "captions": " ".join(captions),
        "logs": "".join(f"{vars(record)}" for record in caplog.records),
        "spans": "".join(span.to_json() for span in spans.all),
        "history": history,
        "events": "".join(map(to_json, events)),
    }
    for where, text in seen.items():
        assert "unlock it" in text or where == "spans", where
        assert "one two" not in text, where
        assert PIN_SAID in text or where == "logs", where
