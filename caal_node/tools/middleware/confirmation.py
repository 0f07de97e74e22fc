"""A call is read back to the person, who has to say yes to exactly that.

    agent.middleware.append(Confirmation(lambda call: "my rule" if risky(call) else ""))

A yes holds for that call alone. Where nobody can be asked, as over the API, the refusal names the
call by a hash, and the same call with that hash as its `confirmation` runs.

Of a call that needs the PIN, only the right PIN is a yes: no button is, and no hash. No word of the
answer leaves the question (`SecretQuestion`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# LiveKit leaves the types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from livekit.agents import Agent, ModelSettings, RunContext, llm

from caal_node.core.counted import counted
from caal_node.core.errors import (
    CallCorrected,
    ConfirmationNeeded,
    NotConfirmed,
    PinLocked,
    RefusedWithoutYes,
)
from caal_node.core.events import ConfirmationAnswer, ConfirmationAsked, ConfirmationEnded
from caal_node.core.items import PIN_SAID
from caal_node.tools.call_middleware import CallMiddleware, Preview, Proceed, ToolCallRequest
from caal_node.tools.caller_of_call import caller_of
from caal_node.tools.front_end_answers import FrontEndAnswers, room_of
from caal_node.tools.pin import CountedTry, Pin
from caal_node.tools.read_back import arguments_hash, read_back, say
from caal_node.tools.spoken_question import (
    LOST_S,
    SecretQuestion,
    SpokenQuestion,
    read_answer,
)

# Asks a person whether a call may run, aloud, in text or by a button.
#
# A yes counts only from the person who is asked, after the whole question has been heard, and as
# long as it is about nothing else. All else runs nothing: a no or a correction at once, what is
# unclear after it was asked again, silence after some seconds.

PRESS_CHARS: Final = 1_024
"""Characters of a button's message, of which a well-formed one has about 200."""


def yes_of(message: Mapping[str, Any]) -> bool | None:
    """Return what a button's message says; None where it says neither yes nor no.

    It is `{"call_id": ..., "arguments_hash": ..., "yes": true}`, with the id and the hash of the
    event `confirmation_asked`.
    """
    agreed = message.get("yes")
    return agreed if isinstance(agreed, bool) else None


SILENCE_S: Final = 10.0
"""Seconds of silence behind the question that are a no. Who means yes says it in 3; local speech to
text needs up to 5 more on a busy machine."""
TYPED_S: Final = 45.0
"""The same where people type: reading and typing take longer."""
MAX_S: Final = 50.0
"""Seconds that one question may take from its beginning, whatever is heard meanwhile. A call that
waits for this one waits 60."""
MAX_ASKED: Final = 3
"""So often is one question said at most: again for an answer that began too early."""
MAX_UNCLEAR: Final = 2
"""Answers that say neither yes nor no. Who was asked twice is not asked a third time."""
PIECES_S: Final = 2.0
"""Seconds that a wrong PIN may still go on: digits are said in groups, with pauses in between."""


@dataclass(frozen=True, slots=True)
class ConfirmationReply:
    """What a person answered, with the words where there were any."""

    answer: ConfirmationAnswer
    by: Literal["words", "button", ""] = ""
    words: str = ""


class ConfirmationQuestion(SpokenQuestion[ConfirmationReply]):
    """Await it in the tool's task.

    Args:
        question: The call in one sentence.
        agent: Whose voice asks.
        still_there: Whether the session's person is the one who asked for the call.
        on_asked: It is called once the question is really asked.
    """

    def __init__(
        self,
        question: str,
        agent: Agent,
        still_there: Callable[[], bool],
        on_asked: Callable[[], None],
    ) -> None:
        super().__init__(agent)
        self._question: Final = question
        self._still_there: Final = still_there
        self._on_asked: Final = on_asked
        self._asked = 0
        self._unclear = 0
        self._held = ""
        """A yes that the person seems to go on from, or a PIN that is not right so far."""

    def begin(self) -> None:
        self.start_timer("end", MAX_S, lambda: self.answer(ConfirmationReply("silence")))
        self._on_asked()
        self._ask(self._question)

    def take(self, words: str, *, over_question: bool) -> None:
        words, self._held = f"{self._held} {words}".strip(), ""
        self.stop_timer("held")
        meaning = read_answer(words, self._question)
        if not self._still_there():
            meaning = "unclear"  # whoever speaks now has not asked for this
        match meaning:
            case "yes" if over_question:
                self._ask(f"{say('whole')} {self._question}")
            case "yes" if self.session.user_state == "speaking":
                self._held = words  # "Yes ... we are watching the match"
                self.start_timer("held", LOST_S, self._take_held)
            case "unclear":
                self._ask_clearly("again", words)
            case "yes" | "no" | "correction":
                self.answer(ConfirmationReply(meaning, "words", words))

    def answer(self, reply: ConfirmationReply) -> None:
        """End the question with that reply, unless it has ended."""
        if not self.done():
            self.complete(reply)
            self.fall_silent()

    def ask_again(self) -> None:
        self._ask(self._question)

    def heard_out(self) -> None:
        output = self.session.output
        heard = output.audio is not None and output.audio_enabled
        listens = bool(self._agent.stt or self.session.stt)
        self.start_timer("silence", SILENCE_S if heard and listens else TYPED_S, self._silent)

    def _ask_clearly(self, key: str, words: str) -> None:
        self._unclear += 1
        if self._unclear == MAX_UNCLEAR:
            self.answer(ConfirmationReply("unclear", "words", words))
        else:
            self._ask(f"{say(key)} {self._question}")

    def _take_held(self) -> None:
        if self.session.user_state == "speaking":
            self.start_timer("held", LOST_S, self._take_held)
        else:
            self.take("", over_question=False)

    def _ask(self, words: str) -> None:
        self.stop_timer("silence")
        self._asked += 1
        if self._asked > MAX_ASKED:
            self.answer(ConfirmationReply("unclear"))
        else:
            self.say(words)

    def _silent(self) -> None:
        if self.session.user_state == "speaking":
            self.heard_out()  # `MAX_S` ends it where somebody speaks on
        else:
            self.answer(ConfirmationReply("silence"))


class PinQuestion(SecretQuestion[ConfirmationReply], ConfirmationQuestion):
    """Asks for the PIN in place of a yes; `question` says so. Its replies have no words but those
    of a correction in which there is nothing of a PIN."""

    def __init__(
        self,
        pin: Pin,
        question: str,
        agent: Agent,
        still_there: Callable[[], bool],
        on_asked: Callable[[], None],
    ) -> None:
        super().__init__(question, agent, still_there, on_asked)
        self._pin: Final = pin
        self._counting: asyncio.Task[None] | None = None
        self._counted: CountedTry | None = None
        """What is known of the try that is under way, once it is counted."""

    def take(self, words: str, *, over_question: bool) -> None:
        held, self._held = self._held, ""
        words = f"{held} {words}".strip()
        self.stop_timer("held")
        meaning = read_answer(words, self._question)
        if meaning == "correction" and not self._pin.may_be_in(words):
            self.answer(ConfirmationReply("correction", "words", words))
        elif meaning in ("no", "correction"):
            self.answer(ConfirmationReply("no", "words", PIN_SAID))
        elif over_question:
            self._ask(f"{say('whole')} {self._question}")
        elif not self._still_there() or meaning == "yes" or not self._pin.is_tried(words):
            self._ask_clearly("pin_again", PIN_SAID)
        else:
            self._try(words, goes_on=bool(held))

    def _try(self, words: str, *, goes_on: bool) -> None:
        self._held = words
        if not goes_on:
            self._counted = None
            self._counting = asyncio.create_task(self._count(), name="caal-pin")
        elif self._counted is not None:
            self._compare(self._counted)

    async def _count(self) -> None:
        # It is counted before it is compared, and once however many pieces it has: else whoever
        # leaves before a wrong one is said to be wrong could try another.
        self._counted = await self._pin.tries.count()
        if not self.done():
            self._compare(self._counted)

    async def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
    ) -> AsyncGenerator[str]:
        async for nothing in super().llm_node(chat_ctx, tools, model_settings):
            yield nothing
        if self._counting is not None:
            await self._counting  # whoever waits for the turn waits for what comes of the PIN

    def _compare(self, counted: CountedTry) -> None:
        if counted.may_be_compared and self._pin.fits(self._held):
            self.answer(ConfirmationReply("yes", "words", PIN_SAID))
        elif self.is_typed:
            self._take_held()
        else:
            self.start_timer("held", PIECES_S, self._take_held)

    def _take_held(self) -> None:
        if self.session.user_state == "speaking":
            self.start_timer("held", PIECES_S, self._take_held)
            return
        self._held = ""
        if self._counted is not None and self._counted.locked_s:
            self.answer(ConfirmationReply("unclear", "words", PIN_SAID))
        else:
            self._ask(f"{say('pin_wrong')} {self._question}")


WORDS_CHARS: Final = 120
"""Characters of the person's words that the model reads; an error's text has 300 in all."""


def destroys(call: ToolCallRequest) -> str:
    """Return why a call needs a yes where nothing is configured: it may destroy something."""
    return "built in: what destroys needs a yes" if call.entry.spec.effect == "destructive" else ""


@dataclass(frozen=True, slots=True)
class _Denied:
    """The last call that was denied, and what the person had said last by then."""

    arguments_hash: str
    request_id: str
    words: str


class Confirmation(CallMiddleware):
    """Asks the person before a call runs."""

    name: ClassVar[str] = "confirmation"

    def __init__(
        self,
        needs_yes: Callable[[ToolCallRequest], str] = destroys,
        needs_pin: Callable[[ToolCallRequest], str] = lambda _: "",
        pin: Pin | None = None,
    ) -> None:
        """Both functions return the rule by which a call needs a yes or the PIN; "" where it needs
        none. Without a `pin`, a call that needs one is refused."""
        self._needs_yes: Final = needs_yes
        self._needs_pin: Final = needs_pin
        self._pin: Final = pin
        self._denied: _Denied | None = None

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        pin_line = self._needs_pin(call)
        if not (line := pin_line or self._needs_yes(call)):
            return await proceed()
        named = arguments_hash(call.entry.exposed, call.arguments)
        question = self._question(call, pin_line)
        context = call.context
        pin = self._pin if pin_line else None
        if pin_line and (pin is None or context is None or call.caller.origin == "api"):
            call.note(self.name, "refused", line, began)
            raise RefusedWithoutYes(
                f"{call.entry.exposed} was not called: it needs the PIN, which is asked for in a "
                "conversation alone. Say so, and do not call it again."
            )
        if context is None or call.caller.origin == "api":
            agreed = call.confirmation == named
            call.note(self.name, "confirmed" if agreed else "refused", line, began)
            if agreed:
                return await proceed()
            raise ConfirmationNeeded(
                f"{call.entry.exposed} needs a yes to exactly this call.",
                question=question,
                arguments_hash=named,
            )
        if self._was_denied(named, context):
            call.note(self.name, "refused", line, began)
            raise NotConfirmed("The person has already said no to exactly this call.")
        if context.speech_handle.interrupted:
            # LiveKit lets nothing be asked on behalf of a reply that was spoken over.
            call.note(self.name, "refused", f"{line}; spoken over", began)
            raise NotConfirmed(
                "The call was not made, as the person spoke before they could be asked for a yes. "
                "Make it again if they still want it."
            )
        if pin is not None and (locked_s := await pin.tries.locked_s()):
            call.note(self.name, "refused", f"{line}; the PIN is locked", began)
            raise _locked(locked_s)
        request_id, _ = _last_said(context)
        reply = await _ask(call, context, question, named, pin)
        # What runs is what was read out, even where somebody has changed the arguments meanwhile.
        unchanged = arguments_hash(call.entry.exposed, call.arguments) == named
        # A rule may ask for the PIN only since the person was asked.
        if reply.answer == "yes" and unchanged and (pin_line or not self._needs_pin(call)):
            call.note(self.name, "confirmed", line, began)
            if pin is not None:
                await pin.tries.forget()
            return await proceed()
        call.note(self.name, "refused", f"{line}; the answer: {reply.answer}", began)
        # Behind a PIN's question the history has its cover as the person's last words.
        self._denied = _Denied(named, request_id, PIN_SAID if pin else reply.words)
        if (
            pin is not None
            and reply.answer == "unclear"
            and (locked_s := await pin.tries.locked_s())
        ):
            raise _locked(locked_s)
        raise _refusal(reply, call.redact)

    def preview(self, call: ToolCallRequest) -> Preview:
        pin_line = self._needs_pin(call)
        if not (line := pin_line or self._needs_yes(call)):
            return Preview("allowed", "no yes is needed")
        return Preview("asks", line, self._question(call, pin_line))

    def _question(self, call: ToolCallRequest, pin_line: str) -> str:
        question = read_back(call.entry.spec, call.arguments, call.redact)
        return say("pin", question=question) if pin_line else question

    def _was_denied(self, named: str, context: RunContext[Any]) -> bool:
        """Say whether the model repeats a call although the person has asked for nothing since."""
        denied = self._denied
        if denied is None or denied.arguments_hash != named:
            return False
        last_id, words = _last_said(context)
        return last_id == denied.request_id or words == denied.words


def _locked(seconds: float) -> PinLocked:
    minutes = math.ceil(seconds / 60)
    return PinLocked(
        "The call was not made, as the PIN was wrong too often. It can be tried again in "
        f"{counted(minutes, 'minute')}. Do not repeat the call."
    )


async def _ask(
    call: ToolCallRequest, context: RunContext[Any], question: str, named: str, pin: Pin | None
) -> ConfirmationReply:
    tool, person = call.entry.exposed, call.caller.participant
    was_asked = False

    def on_asked() -> None:
        nonlocal was_asked
        was_asked = True
        button.open()
        call.emit(ConfirmationAsked(call.call_id, tool, question, named, pin is not None))

    def press(message: Mapping[str, Any]) -> bool:
        if pin is not None and isinstance(typed := message.get("pin"), str) and not task.done():
            task.take(typed, over_question=False)
            return True
        if (yes := yes_of(message)) is None or (yes and pin is not None):
            return False
        task.answer(ConfirmationReply("yes" if yes else "no", "button"))
        return True

    def still_there() -> bool:
        return caller_of(context).participant == person

    asked = question, context.session.current_agent, still_there, on_asked
    task = ConfirmationQuestion(*asked) if pin is None else PinQuestion(pin, *asked)
    names = {"call_id": call.call_id, "arguments_hash": named}
    button = FrontEndAnswers(room_of(context.session), person, names, PRESS_CHARS, press)
    reply = ConfirmationReply("cancelled")
    try:
        reply = await task  # it waits until no other question is open
    finally:
        task.fall_silent()
        if was_asked:
            call.emit(ConfirmationEnded(call.call_id, tool, reply.answer, reply.by))
        await button.aclose()
    return reply


def _refusal(reply: ConfirmationReply, redact: Callable[[str], str]) -> NotConfirmed:
    said = " ".join(redact(reply.words).split())[:WORDS_CHARS]
    match reply.answer:
        case "correction":
            return CallCorrected(
                f"The call was not made. The person says: {said!r}. If that corrects the call, "
                "make the corrected call now; else answer them."
            )
        case "no":
            return NotConfirmed("The call was not made, as the person said no. Do not repeat it.")
        case "silence":
            return NotConfirmed("The call was not made, as the person did not answer.")
        case _:
            return NotConfirmed("The call was not made, as the person's answer was no clear yes.")


def _last_said(context: RunContext[Any]) -> tuple[str, str]:
    """Return the id and the words of what the person said last; empty where nothing was said."""
    for item in reversed(context.session.history.items):
        if item.type == "message" and item.role == "user":
            return item.id, item.text_content or ""
    return "", ""
