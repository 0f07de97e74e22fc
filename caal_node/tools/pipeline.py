"""The one way of a call from its arguments to its result, the same for every tier.

1. The call takes its turn among the calls of its reply (`call_scheduler.py`).
2. Its arguments are checked (`argument_check.py`), and it waits for earlier calls that it conflicts
   with.
3. It goes through the owner's middleware (`call_middleware.py`), which may refuse it, and runs
   under a deadline.
4. Its value becomes one line of text for the model, is redacted, and is kept as tool data.
5. Its outcome is noted for those who report it to people, and logged.

The agent's own tools go the same way without what plain LiveKit does not do to them: their deadline
is a long one, and neither their results nor their errors are changed (`run_own`).

`Gates` holds an owner's rules: what may refuse, delay or redact a call.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias, cast

from livekit.agents import RunContext, StopResponse, ToolError
from livekit.agents.llm import ToolResult

from caal_node.context.one_line_json import to_line
from caal_node.context.token_estimate import PromptTools
from caal_node.context.tool_data import ENTRY_CHARS, ToolDataCache, WrittenLine
from caal_node.core.errors import (
    CaalError,
    InvalidArguments,
    ToolBroke,
    ToolFailure,
    ToolOutside,
    ToolTimeout,
    UnknownTool,
    WriteTimeout,
    failing_line,
)
from caal_node.core.events import REASON_CHARS, CallReport, Decision, Events, Outcome
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Caller, tool_reads
from caal_node.models.strategies.tool_relevance import relevance_of
from caal_node.network.guard import refusal_in
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.telemetry.spans import tool_span
from caal_node.tools.argument_check import check_arguments, check_choices, check_units
from caal_node.tools.call_middleware import CallMiddleware, ToolCallRequest, run_through
from caal_node.tools.call_scheduler import CallScheduler, CallUnderWay, OpenCalls
from caal_node.tools.caller_of_call import caller_of, request_of
from caal_node.tools.redaction import Redaction
from caal_node.tools.source import Arguments, VerbatimResult
from caal_node.tools.table import ToolEntry
from caal_node.tools.undo import UndoHistory

# Lets a person speak while a tool runs: they are answered at once, and the tool goes on.
#
# LiveKit waits five seconds for the tools of a reply that was interrupted, and answers nothing
# meanwhile. A call that has reported progress (`RunContext.update`) is not waited for: its result
# joins the history when it is there, and is told at the next pause. So an interruption is what a
# call reports its progress for.

STILL_RUNNING: Final = "The tool call is still in progress."
"""The model reads it as the call's result until there is one. LiveKit writes the same words where a
request is sent before they are in the history, so the prompt's beginning stays as it is."""


WATCHED_AFTER_S: Final = 0.2
"""Seconds of a call before its speech is watched. Most calls are over by then, and a wait of that
length is not noticed."""


@asynccontextmanager
async def not_waited_for_when_spoken_over(
    context: RunContext[Any] | None,
) -> AsyncGenerator[None]:
    """Wait for a call's turn and do its work inside; None is a call outside of a conversation."""
    if context is None:
        yield
        return
    watching: list[asyncio.Task[None]] = []

    def watch() -> None:
        name = "caal-spoken-over"
        watching.append(asyncio.create_task(_report_when_spoken_over(context), name=name))

    later = asyncio.get_running_loop().call_later(WATCHED_AFTER_S, watch)
    try:
        yield
    finally:
        later.cancel()
        for task in watching:
            task.cancel()
        if watching:
            await asyncio.gather(*watching, return_exceptions=True)


async def _report_when_spoken_over(context: RunContext[Any]) -> None:
    never = asyncio.get_running_loop().create_future()
    await context.speech_handle.wait_if_not_interrupted([never])
    if not getattr(context, "_updates", ()):  # else the tool has reported something by itself
        await context.update(STILL_RUNNING, template="{message}", silent=True)


logger = logging.getLogger("caal_node.tools")

# The deadlines of all tiers. docs/turn-taking.md lists them; `Pipeline.deadline_s` applies them.

TOOL_TIMEOUT_S: Final = 20.0
"""Seconds a call may take. After 20 s of ticks a person has given up on an answer."""
OWN_TIMEOUT_S: Final = 120.0
"""Seconds for a function tool of the agent itself that has no limit of its own. In plain LiveKit it
has none at all, and a conversation waits for ever for one that hangs."""
TURN_S: Final = 180.0
"""Seconds from a turn's first request on after which no further calls are made: the model answers
with what it has. It is three replies of a slow machine and three slow tools."""
RESULT_CHARS: Final = 6_000
"""Characters of a result that the model is shown: about 1,500 tokens, a fifth of its window."""
OWN_RESULT_CHARS: Final = 524_288
"""Characters of a result of an agent's own tool. It is more than any window of a local model holds,
and what is longer would hold the loop wherever the history is read or sent."""
LONG_CHARS: Final = 16_384
LONG_VALUES: Final = 1_000
"""Results with more characters or values than this become text in a thread: it takes 15 ms for
megabytes, most of an audio frame, and less than 2 ms below it."""
MESSAGE_MAX: Final = 300
"""Characters of an error's text that the model is shown."""
INVALID_MAX: Final = 1_100
"""Characters of one that tells what is wrong with arguments: three faults, and another tool."""
RANKED_MAX: Final = 200
"""Tools up to which their words are compared with the request; more would hold the loop for longer
than an audio frame."""
ERROR_CHARS: Final = 8_192
"""Characters of an error's text that are kept. Servers put whole pages into their errors."""
MAX_OUTCOMES: Final = 256
"""Call ids whose outcome is kept until it is asked for; far fewer run at once."""
_NO_USERDATA: Final = "AgentSession userdata is not set"
"""LiveKit's words where a tool asks for `context.userdata` and the session has none."""
_USERDATA_FIX: Final = "return it from make_userdata() of your CaalAgent"
OWN_ERROR_CHARS: Final = 65_536
"""Characters of a `ToolError` that the model is shown: twice the window of a local model. A search
of ten times as many for secrets holds the event loop for 20 ms, in a thread as well."""
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "timeout": "timeout",
    "refused": "refused",
    "needs_confirmation": "refused",
}
"""The outcome by an error's kind; every other kind is an "error"."""

Execute: TypeAlias = Callable[[], Awaitable[Any]]
"""It does a call's work, and returns a JSON value, text, or either in a `VerbatimResult`."""
Redact: TypeAlias = Callable[[str], str]
"""A redaction takes text that would go to the model, and returns what the model may see of it."""


class CallTurn(AbstractContextManager[None], Protocol):
    """A call's turn among the other calls.

    It is entered in the order of the model's calls, before anything is awaited, and left when the
    call is over, whatever ended it.
    """

    async def come(self) -> None:
        """Wait until the call may run.

        Raises:
            ToolFailure: it may not run any more.
        """
        ...


Plan: TypeAlias = Callable[[ToolEntry, Arguments, str], CallTurn]
"""A plan gives a call its turn, by the call's entry, arguments and id."""


def redact_nothing(text: str) -> str:
    """Return the text as it is."""
    return text


@dataclass(frozen=True, slots=True)
class Gates:
    """The rules of one agent's pipeline."""

    middleware: Sequence[CallMiddleware] | None = None
    """None stands for what the settings ask for (`standard_middleware`)."""
    plan: Plan | None = None
    """None makes calls wait for earlier ones that they conflict with."""
    redact: Redact = redact_nothing


class CallOutcomes:
    """Reports of calls by call id, for those who tell people of them."""

    def __init__(self) -> None:
        self._reports: OrderedDict[str, CallReport] = OrderedDict()

    def note(self, call_id: str, report: CallReport) -> None:
        """Keep the report of a call; the oldest one goes when there are too many."""
        self._reports[call_id] = report
        while len(self._reports) > MAX_OUTCOMES:
            self._reports.popitem(last=False)

    def take(self, call_id: str) -> CallReport | None:
        """Return and forget the report; None for a call that never reached the pipeline."""
        return self._reports.pop(call_id, None)


class ShownTools(Protocol):
    """What is needed of the builder of prompts."""

    @property
    def shown(self) -> PromptTools: ...


class Pipeline:
    """Runs calls. It holds no table: a call comes with the entry that its name stands for."""

    def __init__(
        self,
        data: ToolDataCache,
        *,
        gates: Gates | None = None,
        redaction: Redaction | None = None,
        outgoing: OutgoingRedaction | None = None,
        events: Events | None = None,
        timeout_s: float = TOOL_TIMEOUT_S,
    ) -> None:
        """`outgoing` is for the contents of spans; without it they have none."""
        self.outcomes: Final = CallOutcomes()
        self._data = data
        self._gates = gates or Gates()
        self.redaction: Final = redaction or Redaction()
        """Knows the secrets of the process, which no text of a tool may hold."""
        self._outgoing: Final = outgoing
        self._scheduler: Final = CallScheduler()
        self.middleware: Final[list[CallMiddleware]] = list(self._gates.middleware or ())
        """The owner's rules. The owner may change the list at any time."""
        self.events: Final = events or Events()
        """What the middleware and the sources report goes there."""
        self.confirmations: Final[dict[str, str]] = {}
        """By the id of a call that comes over the API: the hash of what its caller says yes to."""
        self.undos: Final = UndoHistory()
        """What the last calls have changed, and how that is undone."""
        self.prompts: ShownTools | None = None
        """It knows the tools that the model was last shown."""
        self._timeout_s = timeout_s
        self.open_calls: Final = OpenCalls()
        """The calls under way."""
        self._progress: Final[dict[str, list[str]]] = {}
        """The progress of the calls under way, by their ids."""

    def note_progress(self, call_id: str, message: str) -> None:
        """Keep a redacted message of a tool, for the middleware of its call."""
        if (progress := self._progress.get(call_id)) is not None:
            progress[:] = [message]

    async def run(
        self,
        entry: ToolEntry,
        call_id: str,
        arguments: Arguments,
        execute: Execute,
        *,
        validate: bool = True,
        deadline: bool = True,
        becomes_text: Callable[[Any], bool] = lambda _: True,
        whole: bool = False,
        context: RunContext[Any] | None = None,
        caller: Caller | None = None,
    ) -> Any:
        """Run one call.

        Args:
            context: LiveKit's; None for a call that comes from outside the conversation.
            caller: Who makes it, where the context does not say.
            validate: Whether the arguments are checked against the whole schema; else its enums
                and bounds alone are, as LiveKit has checked the types.
            deadline: Whether the call may take no longer than `deadline_s`.
            becomes_text: Which values become text for the model; others are returned unchanged.
            whole: Whether the model is shown all of the result, however long it is.

        Returns:
            One line for the model, or a `VerbatimResult` of such a line.

        Raises:
            ToolFailure: whatever went wrong, in one of its kinds.
        """
        call = self._request(entry, call_id, arguments, context, caller)
        with self._noted(call) as (under_way, shown):
            with ExitStack() as turns:
                turn = self._turn(call, own=False)
                turns.enter_context(turn)
                self._check(call, validate)

                async def allowed() -> Any:
                    if not deadline:
                        # It may hold a whole conversation, in which other tools are called.
                        turns.close()
                    return await self._execute(entry, execute, deadline)

                async with not_waited_for_when_spoken_over(context):
                    await turn.come()
                    await self.open_calls.begin(under_way)
                    value = await run_through(self.middleware, call, allowed)
                value = self.undos.plain(call, value)
            if becomes_text(value):
                value = await self._text(
                    entry, call_id, arguments, value, whole=whole, keep=not call.is_dry
                )
                shown.append(_beginning(value))
            return value

    async def run_own(
        self,
        entry: ToolEntry,
        call_id: str,
        arguments: Arguments,
        execute: Execute,
        *,
        validate: bool,
        becomes_text: Callable[[Any], bool],
        deadline: bool = True,
        context: RunContext[Any] | None = None,
    ) -> Any:
        """Run one call of an agent's own tool as LiveKit does; see `run` for the parameters.

        The deadline is a long one, and no result of up to `OWN_RESULT_CHARS` is cut. What the tool
        raises, LiveKit gets, but for a connection that CAAL_NETWORK refuses: that is told as it is.

        Returns:
            What the tool returns, with secrets redacted, and with JSON in place of a dict or list,
            also inside of a `VerbatimResult`.
        """
        call = self._request(entry, call_id, arguments, context)
        with self._noted(call) as (under_way, shown):
            with (turn := self._turn(call, own=True)):
                self._check(call, validate)

                async def own() -> Any:
                    limit_s = self.deadline_s(entry, own=True) if deadline else None
                    timeout = asyncio.timeout(limit_s)
                    try:
                        async with timeout:
                            return await execute()
                    except TimeoutError as error:
                        if not timeout.expired():
                            raise
                        raise _no_answer(entry, limit_s) from error
                    except (ToolError, StopResponse):
                        raise
                    except Exception as error:
                        _raise_if_outside(entry, error)
                        raise

                async with not_waited_for_when_spoken_over(context):
                    await turn.come()
                    await self.open_calls.begin(under_way)
                    value = await run_through(self.middleware, call, own)
                value = self.undos.plain(call, value)
            # Of a verbatim result the sentence is redacted as well as the value.
            is_plain = isinstance(value, ToolResult) and not isinstance(value, VerbatimResult)
            result = value.output if is_plain else value
            is_data = isinstance(result, dict | list | str | VerbatimResult)
            if not (is_data and becomes_text(result)):
                return value
            text = await self._text(
                entry, call_id, arguments, result, whole=True, keep=not call.is_dry
            )
            shown.append(_beginning(text))
            return replace(value, output=text) if is_plain else text

    async def undo(
        self,
        entry: ToolEntry,
        call_id: str,
        nothing: Execute,
        *,
        becomes_text: Callable[[Any], bool],
        context: RunContext[Any],
    ) -> Any:
        """Take back the calls of the last turn that changed something, the newest first.

        Each goes through the owner's middleware as a call of its own, and the first that fails ends
        it. See `run` for the parameters and what it returns and raises.

        Args:
            entry: The tool `undo`.
            nothing: What is returned where there is nothing to undo.
        """
        calls = self.undos.last_turn()
        left = [each.entry.exposed for each in calls if each.undo is None]
        undoable = [each for each in calls if each.undo is not None]
        if not undoable:
            cannot = VerbatimResult({"undone": [], "not_undone": left}, sentence("undo_cannot"))
            execute = partial(_given, cannot) if left else nothing
            text = becomes_text
            return await self.run(entry, call_id, {}, execute, becomes_text=text, context=context)
        values, words, decisions = list[Any](), list[str | None](), list[Decision]()
        outcome: Outcome = "ok"
        for at, each in enumerate(undoable):
            try:
                value = await self.run(
                    each.entry_of_undo(entry),
                    call_id,
                    each.arguments,
                    partial(self.undos.run_undo, each),
                    validate=False,
                    becomes_text=lambda _: False,
                    context=context,
                )
            except ToolFailure as failure:
                if not values:
                    raise
                left += [other.entry.exposed for other in undoable[at:]]
                words.append(sentence(failure.spoken) if failure.words is None else failure.words)
                break
            is_said = isinstance(value, VerbatimResult)
            values.append(value.value if is_said else value)
            words.append(value.words if is_said else None)
            if (report := self.outcomes.take(call_id)) is not None:
                outcome = report.outcome
                decisions += report.decisions
        else:
            words += [sentence("undo_cannot_rest")] if left else []
        value = values[0] if len(words) == 1 else {"undone": values, "not_undone": left}
        if None not in words:
            value = VerbatimResult(value, " ".join(filter(None, words)))
        if becomes_text(value):
            value = await self._text(entry, call_id, {}, value, keep=False)
        self.outcomes.note(call_id, CallReport(outcome, tuple(decisions), "", _beginning(value)))
        return value

    def _turn(self, call: ToolCallRequest, *, own: bool) -> CallTurn:
        if (plan := self._gates.plan) is not None:
            return plan(call.entry, call.arguments, call.call_id)
        return self._scheduler.turn(call.entry, call.arguments, call.context, own=own)

    def _request(
        self,
        entry: ToolEntry,
        call_id: str,
        arguments: Arguments,
        context: RunContext[Any] | None,
        caller: Caller | None = None,
    ) -> ToolCallRequest:
        caller, confirmation = caller or caller_of(context), self.confirmations.get(call_id, "")
        known = entry, call_id, arguments, caller, context, confirmation
        hearing = self.open_calls.hearing
        return ToolCallRequest(*known, self.redact, self.events.emit, hearing=hearing)

    def _check(self, call: ToolCallRequest, validate: bool) -> None:
        request = "" if call.context is None else request_of(call.context)
        try:
            (check_arguments if validate else check_choices)(call.entry, call.arguments)
            check_units(call.entry, call.arguments, request)
        except InvalidArguments as error:
            for each in self.middleware:
                each.on_invalid(call)
            raise InvalidArguments(f"{error}{self._better_tool(call.entry, request)}") from None

    def _better_tool(self, called: ToolEntry, request: str) -> str:
        """Return which tool shares more words with the request than the one that was called."""
        shown = self.prompts.shown if self.prompts is not None else PromptTools()
        if not request or len(shown.names) > RANKED_MAX:
            return ""
        scores = relevance_of(shown).scores(request)
        best = max(scores, key=lambda name: scores[name], default="")
        if scores.get(best, 0.0) <= scores.get(called.exposed, 0.0):
            return ""
        return f". The request has more words of {best}: call that if it is meant"

    @contextmanager
    def _noted(self, call: ToolCallRequest) -> Generator[tuple[CallUnderWay, list[str]]]:
        """Note how the call inside ends, and keep secrets out of the errors it ends with.

        It gives the call, and a list, which takes what its event shows of its result.
        """
        began = time.perf_counter()
        outcome: Outcome = "cancelled"
        reason, shown = "", list[str]()
        failed: BaseException | None = None
        self._progress[call.call_id] = call.progress
        self.undos.begin(call)
        spec, exposed = call.entry.spec, call.entry.exposed
        with tool_span(spec, exposed, call.call_id, self._outgoing) as span:
            span.begin(spec, call.arguments)
            try:
                with self.open_calls.opened(call) as under_way:
                    yield under_way, shown
                outcome = "dry_run" if call.is_dry else "ok"
            except Exception as error:
                failed = error
                outcome, reason = outcome_of(error), self._reason(error)
                is_late = isinstance(error, ToolTimeout) and error.spoken == ToolTimeout.spoken
                if is_late and not tool_reads(exposed, spec.effect):
                    failed = WriteTimeout(str(error))
                    self._redact_failure(failed)
                    raise failed from error
                if isinstance(error, ToolFailure):
                    self._redact_failure(error)
                elif isinstance(error, ToolError):
                    said = self.redaction.beginning(error.message, OWN_ERROR_CHARS)
                    if (said := self._gates.redact(said)) != error.message:
                        raise ToolError(said) from None
                raise
            except asyncio.CancelledError as error:
                failed = error
                raise
            finally:
                self._progress.pop(call.call_id, None)
                self.undos.end(call, outcome, failed)
                report = CallReport(outcome, tuple(call.decisions), reason, "".join(shown))
                self.outcomes.note(call.call_id, report)
                span.end(report, failed)
                took_ms = (time.perf_counter() - began) * 1000
                logger.info("tool %s (%s) %s after %d ms", exposed, spec.tier, outcome, took_ms)

    def _reason(self, error: Exception) -> str:
        """Return one line of why a call failed; of what is no words for the model, its kind and
        the line of the author's code too."""
        said = error.message if isinstance(error, ToolError) else str(error)
        more = ""
        if not isinstance(error, ToolError | ToolFailure):
            if said == _NO_USERDATA:
                more = f"; {_USERDATA_FIX}"
            elif line := failing_line(error):
                more = f" ({line})"
            said = f"{type(error).__name__}: {said}"
        said = self._gates.redact(self.redaction.beginning(said, REASON_CHARS))
        return " ".join(said.split())[: REASON_CHARS - len(more)] + more

    def redact(self, text: str) -> str:
        """Return what people or the model may see of a text that takes another way than `run`."""
        return self._gates.redact(self.redaction.text(text))

    def _redact_failure(self, failure: ToolFailure) -> None:
        """Keep secrets out of an error's text: the model, people and logs are told of it."""
        said = self.redaction.beginning(str(failure), ERROR_CHARS)
        failure.args = (said, *failure.args[1:])
        if failure.words is not None:
            failure.words = self.redaction.beginning(failure.words, ERROR_CHARS)

    def deadline_s(self, entry: ToolEntry, *, own: bool = False) -> float:
        """Return the seconds that a call of the tool may take; `own` is one that runs as in plain
        LiveKit."""
        usual_s = max(self._timeout_s, OWN_TIMEOUT_S) if own else self._timeout_s
        return max(usual_s, entry.spec.timeout_s or 0.0)

    async def _execute(self, entry: ToolEntry, execute: Execute, has_deadline: bool) -> Any:
        timeout_s = self.deadline_s(entry) if has_deadline else None
        timeout = asyncio.timeout(timeout_s)
        try:
            async with timeout:
                return await execute()
        except TimeoutError as error:
            # Unless the deadline has passed, the time-out is the tool's own.
            raise _no_answer(entry, timeout_s if timeout.expired() else None) from error
        except (ToolError, StopResponse):
            raise
        except Exception as error:
            _raise_if_outside(entry, error)
            if isinstance(error, ToolFailure):
                raise
            # An exception's text may hold anything, so neither the model nor the log gets it; the
            # lines of the program that it went through say what is broken.
            lines = "".join(traceback.format_tb(error.__traceback__)).rstrip()
            logger.error("%s failed with %s\n%s", entry.exposed, type(error).__name__, lines)
            raise ToolBroke(f"{entry.exposed} failed with {type(error).__name__}.") from error

    async def _text(
        self,
        entry: ToolEntry,
        call_id: str,
        arguments: Arguments,
        value: Any,
        *,
        whole: bool = False,
        keep: bool = True,
    ) -> str | VerbatimResult:
        """Make the redacted line for the model, and `keep` the result as tool data."""
        words = None
        if isinstance(value, VerbatimResult):
            value, words = value.value, self.redact(value.words)
        make = self._whole if whole else self._lines
        if _is_long(value) or self.redaction.has_many:
            # Only text is made in the thread: a call cancelled meanwhile leaves no tool data.
            line, kept = await asyncio.to_thread(make, value)
        else:
            line, kept = make(value)
        shown = self._gates.redact(line)
        if keep and entry.spec.remembered and isinstance(value, dict | list | str) and value:
            # The model is shown tool data later on, so it may hold no more than the model may see.
            said = self.redaction.value(arguments)
            result: str | WrittenLine = kept if shown == line else shown
            if shown == line and kept and not whole:
                result = WrittenLine(kept)
            self._data.add_result(call_id, entry.exposed, said, result)
        return shown if words is None else VerbatimResult(shown, words)

    def _lines(self, value: Any) -> tuple[str, str]:
        """Return the line for the model, and the one for the tool data, without secrets."""
        value = self.redaction.value(value)  # before the line is cut, which would halve one
        line = self.redaction.text(to_line(value, max_chars=RESULT_CHARS))
        return line, line if len(line) <= ENTRY_CHARS else to_line(value, max_chars=ENTRY_CHARS)

    def _whole(self, value: Any) -> tuple[str, str]:
        """Return all of the value as text, and the line for the tool data, without secrets."""
        value = self.redaction.value(value)
        text = value if isinstance(value, str) else _whole_json(value, OWN_RESULT_CHARS)
        if len(text) > OWN_RESULT_CHARS:
            text = to_line(value, max_chars=OWN_RESULT_CHARS)
        text = self.redaction.text(text)
        return text, text if len(text) <= ENTRY_CHARS else to_line(value, max_chars=ENTRY_CHARS)


async def _given(value: Any) -> Any:
    return value


def _no_answer(entry: ToolEntry, limit_s: float | None) -> ToolTimeout:
    waited = "in time" if limit_s is None else f"in {limit_s:g} seconds"
    return ToolTimeout(f"{entry.exposed} gave no answer {waited}.")


def _raise_if_outside(entry: ToolEntry, error: Exception) -> None:
    """Raises: ToolOutside: CAAL_NETWORK refused what the tool wanted to connect to."""
    if (why := refusal_in(error)) is not None:
        said = f"{entry.exposed} may not connect to where it leads: {why}."
        raise ToolOutside(said) from error


def _whole_json(value: Any, max_chars: int) -> str:
    """Return a dict or list as JSON on one line, with all that is in it.

    What JSON has no form for is written as LiveKit would, by `str`. Behind `max_chars` the rest is
    left out. It is written piece by piece, as `json.dumps` of megabytes would hold the event loop
    from a thread too.
    """
    parts, chars = list[str](), 0
    try:
        for part in _ENCODER.iterencode(value):
            parts.append(part)
            chars += len(part)
            if chars > max_chars:
                break
    except (TypeError, ValueError, RecursionError):  # keys that are tuples, or a ring
        return str(value)
    return "".join(parts)


def error_text(error: CaalError) -> str:
    """Return one line of JSON for the model: kind, message, valid names, and what to say."""
    message = " ".join(str(error).split())
    most = INVALID_MAX if error.kind == "invalid_arguments" else MESSAGE_MAX
    body: dict[str, object] = {
        "error": error.kind,
        "message": message if len(message) <= most else message[: most - 1] + "…",
    }
    if isinstance(error, UnknownTool) and error.valid:
        body["valid_names"] = list(error.valid)
    elif error.kind != "invalid_arguments" and error.spoken:
        # The model corrects and repeats a call with wrong arguments; all else a person must hear.
        words = error.words if isinstance(error, ToolFailure) else None
        body["say"] = words or sentence(error.spoken)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def outcome_of(error: BaseException) -> Outcome:
    """Return the word by which events report a call that ended with `error`."""
    if isinstance(error, StopResponse):
        return "ok"  # the tool wants silence, and has done its work
    kind = error.kind if isinstance(error, ToolFailure) else ""
    return _OUTCOMES.get(kind, "error")


def _is_long(value: object) -> bool:
    """Say whether a value is to become text in a thread. It looks at LONG_VALUES values at most."""
    values, chars = [value], 0
    for each in values:  # the list grows meanwhile
        if isinstance(each, str):
            chars += len(each)
        elif isinstance(each, dict):
            values += islice(cast("dict[str, object]", each).values(), LONG_VALUES)
        elif isinstance(each, list):
            values += islice(cast("list[object]", each), LONG_VALUES)
        if chars > LONG_CHARS or len(values) > LONG_VALUES:
            return True
    return False


def _beginning(value: Any) -> str:
    """Return the beginning of what the model reads of a result."""
    text = value.output if isinstance(value, ToolResult) else value
    return text[:REASON_CHARS] if isinstance(text, str) else ""
