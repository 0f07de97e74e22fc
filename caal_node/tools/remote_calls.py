"""Runs calls of remote tools: as function tools of LiveKit's, and for callers outside of a room."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

from livekit.agents import Agent, RunContext, ToolError, function_tool
from livekit.agents.llm import RawFunctionTool, ToolResult

from caal_node.core.errors import SpokenOver, ToolFailure
from caal_node.core.events import (
    QuestionAsked,
    QuestionEnd,
    QuestionEnded,
    TierName,
    ToolProgress,
)
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Caller
from caal_node.tools.caller_of_call import caller_of, request_of
from caal_node.tools.front_end_answers import (
    FORM_CHARS,
    FieldValue,
    FrontEndAnswers,
    form_answer,
    form_fields,
    room_of,
)
from caal_node.tools.pipeline import Pipeline, error_text
from caal_node.tools.source import Arguments, ToolSource, VerbatimResult
from caal_node.tools.spoken_question import SpokenQuestion, read_answer
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import is_search
from mcp_bridge.core.elicitation import Accepted, Answer, Declined, Dismissed, Field, Question

# Results whose sentence a person is to hear as it stands, as LiveKit is to have them.


def said(result: VerbatimResult, context: RunContext[Any]) -> Any:
    """Say the sentence, and return what LiveKit gives to the model, which need not answer.

    Where the person has interrupted the call's speech, or the sentence is empty, nothing is said.
    """
    if context.speech_handle.interrupted:
        return result.value
    if result.words:
        context.session.say(result.words)
    return ToolResult(result.value, reply_required=False)


def result_of(failure: ToolFailure, redact: Callable[[str], str]) -> VerbatimResult | ToolResult:
    """Return a failure's error for the model with its sentence for the person.

    Raises:
        ToolError: there is no such sentence, so the model is to speak of the error.
    """
    if isinstance(failure, SpokenOver):  # the model answers what was said over it instead
        return ToolResult(error_text(failure), reply_required=False)
    if failure.words is None:
        raise ToolError(error_text(failure)) from failure
    return VerbatimResult(error_text(failure), redact(failure.words))


# What one call says to the conversation: its progress as events, its questions to the person.
#
# A tool's source asks from a task of its own, but LiveKit lets only the tool's task hold the
# conversation. So `RoomCallConversation.run` runs the call beside that task, which asks what comes
# up meanwhile. LiveKit's AgentTask holds the conversation while the tool waits: what the person
# says next is the answer, and neither interrupts the call nor goes to the model. A yes or no is
# read as one to a call is (`spoken_question.py`), other answers by the functions at the end. A
# front end may show a form meanwhile (`front_end_answers.py`): the first answer counts.

T = TypeVar("T")
_OpenQuestion: TypeAlias = tuple[Question, asyncio.Future[Answer]]
_AnsweredBy: TypeAlias = Literal["words", "form", ""]
_ENDS: Final[Mapping[type[Answer], QuestionEnd]] = {
    Accepted: "accepted",
    Declined: "declined",
    Dismissed: "dismissed",
}

MAX_TRIES: Final = 2
"""Tries for each field: whoever was not understood twice is not asked a third time."""
MAX_CHOICES: Final = 5
"""Choices of a field that are read out; nobody keeps more in mind."""
_CANCEL: Final = re.compile(r"\s*(never ?mind|cancel( (it|that))?|stop|forget (it|that))\W*", re.I)
_NUMBER: Final = re.compile(r"-?\d+(?:[.,]\d+)?")
_WORD: Final = re.compile(r"[\w']+")


class RoomCallConversation:
    """The `CallConversation` of one call that a model has made in a LiveKit session."""

    def __init__(
        self,
        entry: ToolEntry,
        context: RunContext[Any],
        pipeline: Pipeline,
    ) -> None:
        self._entry: Final = entry
        self._context: Final = context
        self._pipeline: Final = pipeline
        self._questions: Final[asyncio.Queue[_OpenQuestion | None]] = asyncio.Queue()
        """None says that the call has ended."""

    def report_progress(self, done: float, total: float | None, message: str) -> None:
        """Emit a progress event, and have a server's words said where the call takes long."""
        spec, call_id = self._entry.spec, self._context.function_call.call_id
        message = self._pipeline.redact(message)
        if spec.tier == "mcp":  # n8n's are names of nodes
            self._pipeline.note_progress(call_id, message)
        progress = done, total, message
        self._pipeline.events.emit(
            ToolProgress(call_id, self._entry.exposed, spec.tier, spec.source, *progress)
        )

    async def ask(self, question: Question) -> Answer:
        """Hand the question to the tool's task, and wait for the person's answer."""
        if question.url:
            return Declined()  # nobody can be sent to a page by voice
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        spoken = replace(question, message=self._pipeline.redact(question.message))
        self._questions.put_nowait((spoken, answer))
        return await answer

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run `call` to its end, and ask the person whatever its source asks meanwhile."""
        running = asyncio.create_task(call, name=f"caal-call:{self._entry.exposed}")
        running.add_done_callback(lambda _: self._questions.put_nowait(None))
        try:
            while (asked := await self._questions.get()) is not None:
                await self._ask_person(*asked)
            return await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _ask_person(self, question: Question, answer: asyncio.Future[Answer]) -> None:
        if answer.done():
            return  # nobody needed it any more while another question was asked
        if self._context.speech_handle.interrupted:
            answer.set_result(Dismissed())  # LiveKit lets nothing be asked for it any more
            return
        context, was_asked = self._context, False
        question_id = secrets.token_hex(8)
        names = context.function_call.call_id, self._entry.exposed, question_id

        def on_asked() -> None:
            nonlocal was_asked
            was_asked = True
            form.open()
            fields = form_fields(question)
            self._pipeline.events.emit(QuestionAsked(*names, question.message, fields))

        def fill_in(message: Mapping[str, Any]) -> bool:
            if (filled := form_answer(question, message)) is None:
                return False
            task.answer(filled, "form")
            return True

        task = QuestionTask(question, context.session.current_agent, on_asked)
        form = FrontEndAnswers(
            room_of(context.session),
            caller_of(context).participant,
            {"call_id": names[0], "question_id": question_id},
            FORM_CHARS,
            fill_in,
        )
        answer.add_done_callback(lambda _: task.answer(Declined(), ""))
        ended = QuestionEnded(*names, "cancelled")
        try:
            given = await task  # it waits until no other question is open
            if task.by:
                ended = QuestionEnded(*names, _ENDS[type(given)], task.by)
        finally:
            if was_asked:
                self._pipeline.events.emit(ended)
            await form.aclose()
        if not answer.done():
            answer.set_result(given)


class QuestionTask(SpokenQuestion[Answer]):
    """Asks for the question's fields in turn. Await it in the tool's task.

    Optional fields are left to the server's defaults, unless nothing else is asked.
    """

    def __init__(self, question: Question, agent: Agent, on_asked: Callable[[], None]) -> None:
        """`on_asked` is called once the question is really asked."""
        super().__init__(agent)
        self.by: _AnsweredBy = ""
        """What has answered; "" where nothing has."""
        self._question: Final = question
        self._on_asked: Final = on_asked
        required = [field for field in question.fields if field.required]
        self._open_fields: Final[list[Field]] = required or list(question.fields[:1])
        self._asks_several: Final = len(self._open_fields) > 1
        self._content: Final[dict[str, FieldValue]] = {}
        self._tries = 0

    def answer(self, answer: Answer, by: _AnsweredBy) -> None:
        """End the question with that answer, unless it has ended."""
        if not self.done():
            self.by = by
            self.complete(answer)
            self.fall_silent()

    def begin(self) -> None:
        self._on_asked()
        self.say(self._question.message)
        if self._asks_several:
            self.say(_question_for(self._open_fields[0]))

    def take(self, words: str, *, over_question: bool) -> None:
        if reply := self._take_answer(words, over_question=over_question):
            self.say(reply)

    def ask_again(self) -> None:
        message = self._question.message
        asked = _question_for(self._open_fields[0]) if self._asks_several else message
        self.say(f"{sentence('say_again')} {asked}")

    def _take_answer(self, words: str, *, over_question: bool = False) -> str | None:
        """Use the person's words, and return the next question, if there is one."""
        if is_cancellation(words):
            return self.answer(Dismissed(), "words")
        if not self._open_fields:
            match read_answer(words, self._question.message):
                case "no" | "correction":
                    return self.answer(Declined(), "words")
                case "yes" if not over_question:
                    return self.answer(Accepted({}), "words")
                case _:  # unclear, or a yes to what nobody has heard out
                    return self._repeat(self._question.message if over_question else "")
        if (value := field_value(self._open_fields[0], words, self._question.message)) is None:
            return self._repeat(_question_for(self._open_fields[0]))
        self._content[self._open_fields.pop(0).name] = value
        self._tries = 0
        if self._open_fields:
            return _question_for(self._open_fields[0])
        return self.answer(Accepted(self._content), "words")

    def _repeat(self, question: str) -> str | None:
        self._tries += 1
        if self._tries == MAX_TRIES:
            return self.answer(Dismissed(), "words")
        return f"{sentence('say_again')} {question}".strip()


def _question_for(field: Field) -> str:
    question = f"{field.description or field.title}?".replace(".?", "?").replace("??", "?")
    choices = ", ".join(words for _, words in field.choices[:MAX_CHOICES])
    return f"{question} {choices}." if choices else question


def is_cancellation(words: str) -> bool:
    """Say whether the person wants to leave the question."""
    return _CANCEL.fullmatch(words) is not None


def field_value(field: Field, words: str, message: str = "") -> FieldValue | None:
    """Return the field's value that the words give; None where they give none.

    `message` is what the server has asked; the words of it and of the field may be in a yes.
    """
    match field.kind:
        case "text":
            return words.strip() or None
        case "boolean":
            meaning = read_answer(words, f"{message} {_question_for(field)}")
            return meaning == "yes" if meaning in ("yes", "no") else None
        case "number" | "integer":
            return _number(words, integer=field.kind == "integer")
        case "choice":
            chosen = _chosen(field, words)
            return chosen[0] if len(chosen) == 1 else None
        case "choices":
            return _chosen(field, words) or None


def _number(words: str, *, integer: bool) -> int | float | None:
    numbers = _NUMBER.findall(words)
    if len(numbers) != 1:
        return None
    number = float(numbers[0].replace(",", "."))
    if integer:
        return int(number) if number.is_integer() else None
    return number


def _chosen(field: Field, words: str) -> list[str]:
    """Return the choices whose words, or whose value, are said as whole words."""
    said = f" {_normalised(words)} "
    return [
        value
        for value, name in field.choices
        if any(f" {_normalised(label)} " in said for label in (name, value))
    ]


def _normalised(words: str) -> str:
    return " ".join(_WORD.findall(words.lower()))


class RemoteTool(RawFunctionTool[..., Any]):
    """LiveKit's form of a tool of a remote tier: its calls go through the pipeline."""


class ChangingTable(Protocol):
    """What is needed of the owner of the table."""

    async def run_search(self, arguments: Arguments, request: str) -> Any:
        """Run the search tool; `request` is the words that the call answers."""
        ...

    def note_used(self, name: str) -> None:
        """Hear that a call of a tool in a conversation has worked."""
        ...

    async def settled(self) -> None:
        """Wait until what a call has changed in the table is there."""
        ...


class RemoteCalls:
    """Runs the tools of sources.

    Args:
        sources: The source of each remote tier.
        table: Whose tools they are.
    """

    def __init__(
        self,
        sources: Mapping[TierName, ToolSource],
        pipeline: Pipeline,
        table: ChangingTable,
    ) -> None:
        self._sources: Final = sources
        self._pipeline: Final = pipeline
        self._table: Final = table
        self._made: dict[str, tuple[ToolEntry, RemoteTool]] = {}
        """The function tools by exposed name, each with the entry that it was made of."""

    def function_tool(self, entry: ToolEntry) -> RemoteTool | None:
        """Return the tool's form for LiveKit, the same each time; None for one of the agent's."""
        if not (entry.spec.tier in self._sources or is_search(entry.spec)):
            return None
        known = self._made.get(entry.exposed)
        if known is None or known[0] != entry:
            known = self._made[entry.exposed] = entry, self._make(entry)
        return known[1]

    def forget_others(self, table: ToolTable) -> None:
        """Forget the forms of tools that are no longer in the table."""
        made = self._made.items()
        self._made = {n: one for n, one in made if n in table or is_search(one[0].spec)}

    async def call_directly(
        self, entry: ToolEntry, call_id: str, arguments: Mapping[str, Any], caller: Caller
    ) -> Any:
        """Run a remote tool for a caller who is not the model, and return the value as it came.

        Raises:
            ToolFailure: as `Pipeline.run`.
        """
        source = self._sources[entry.spec.tier]
        execute = partial(source.call, entry.spec, arguments)
        return await self._pipeline.run(
            entry, call_id, arguments, execute, becomes_text=lambda _: False, caller=caller
        )

    def _make(self, entry: ToolEntry) -> RemoteTool:
        async def call(
            raw_arguments: dict[str, object], context: RunContext[Any]
        ) -> str | ToolResult:
            return await self._call(entry, raw_arguments, context)

        return RemoteTool(call, function_tool(call, raw_schema=dict(entry.schema["function"])).info)

    async def _call(
        self, entry: ToolEntry, arguments: Arguments, context: RunContext[Any]
    ) -> str | ToolResult:
        """Run a remote tool for the model."""
        searches = is_search(entry.spec)

        async def execute() -> Any:
            if searches:
                return await self._table.run_search(arguments, request_of(context))
            source = self._sources[entry.spec.tier]
            conversation = RoomCallConversation(entry, context, self._pipeline)
            value = await conversation.run(source.call(entry.spec, arguments, conversation))
            self._table.note_used(entry.exposed)
            await self._table.settled()  # what it has changed holds in the next request
            return value

        call_id = context.function_call.call_id
        try:
            # What a search tells of has to reach the model with every parameter.
            result = await self._pipeline.run(
                entry, call_id, arguments, execute, whole=searches, context=context
            )
        except ToolFailure as failure:
            result = result_of(failure, self._pipeline.redact)
        return said(result, context) if isinstance(result, VerbatimResult) else result
