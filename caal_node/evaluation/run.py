"""Every case in every way, one after the other, as a server with one slot answers them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from caal_node.context.prompt_tools import PromptTools
from caal_node.core.errors import (
    ModelContextFull,
    ModelError,
    ModelMissing,
    ModelReplyError,
    ModelSilent,
)
from caal_node.core.items import Item, SystemItem
from caal_node.evaluation.case import Case, Suite
from caal_node.evaluation.judge import fault
from caal_node.evaluation.model_session import WAYS, Asking, ModelAnswer, ask, warm_up
from caal_node.evaluation.result import Mark, Outcome
from caal_node.evaluation.sample_tools import EXAMPLES, TOOLS
from caal_node.evaluation.suites import SUITES
from caal_node.models.backends.base import Backend
from caal_node.models.question import Question
from caal_node.models.strategies import CallThresholds

logger = logging.getLogger("caal_node.evaluation")

REPLY_TOKENS: Final = 512
"""Tokens of one reply: a call takes 30, a spoken sentence 40; a model that repeats itself ends."""
THINKING_TOKENS: Final = 2048
"""Where the model is told to think first."""
FAILURES_IN_A_ROW: Final = 3
"""After so many the server is taken for broken; one may be a stream that was cut."""
_HOPELESS_STATUS: Final = frozenset({401, 403, 404})
"""A wrong key or a wrong address answers every case alike."""

OnStep: TypeAlias = Callable[[int, int, str], None]
"""Told before each case: how many are done, how many there are, and what comes."""


@dataclass(frozen=True, slots=True)
class ValidationSubject:
    """The model on trial. `thinking` is the same model, told to think."""

    backend: Backend
    thinking: Backend
    system: str
    """The system prompt that its sessions will have."""
    native_offered: bool
    """Whether the server takes tools for it at all."""


async def run(subject: ValidationSubject, *, full: bool, on_step: OnStep) -> tuple[Outcome, ...]:
    """Try every case. The order keeps the prompt's head in the server's cache.

    Raises:
        ModelError: the server cannot be asked, refuses the key, or fails time after time.
    """
    steps = list(_steps(subject, full=full))
    outcomes: list[Outcome] = []
    failures = 0
    warmed: dict[Asking, CallThresholds] = {}
    for done, (asking, suite, case) in enumerate(steps):
        if asking not in warmed:
            on_step(done, len(steps), f"{asking}: reading the head of the prompt")
            warmed[asking] = await _warm(subject, asking)
        on_step(done, len(steps), f"{asking}: {suite.name.replace('_', ' ')}")
        began = time.perf_counter()
        try:
            outcomes.append(await _tried(subject, asking, suite, case, warmed[asking]))
            failures = 0
        except ModelSilent:  # the model's fault, not its server's
            outcomes.append(_lost(began, suite, asking, case, "wrong", "no reply"))
        except ModelError as error:
            failures += 1
            if _hopeless(error) or failures >= FAILURES_IN_A_ROW:
                raise
            logger.warning("%s, %s: %s", suite.name, asking, error)
            outcomes.append(_lost(began, suite, asking, case, "failed", str(error)))
    on_step(len(steps), len(steps), "done")
    return tuple(outcomes)


def _steps(subject: ValidationSubject, *, full: bool) -> Iterator[tuple[Asking, Suite, Case]]:
    for asking in WAYS:
        if asking == "native" and not subject.native_offered:
            continue
        for suite in SUITES:
            if suite.name == "text_protocol" and asking != "text":
                continue
            for case in suite.chosen(full=full):
                yield asking, suite, case


async def _tried(
    subject: ValidationSubject, asking: Asking, suite: Suite, case: Case, thresholds: CallThresholds
) -> Outcome:
    most = THINKING_TOKENS if case.think else REPLY_TOKENS
    question = _question(subject, case.said, stream=case.stream, max_tokens=most)
    backend = subject.thinking if case.think else subject.backend
    heard = await ask(backend, asking, question, thresholds)
    mark, why = _marked(asking, suite, case, heard)
    usage = heard.usage
    return Outcome(
        suite.name, asking, case.name, mark, why, heard.seconds, usage.prompt, usage.completion
    )


async def _warm(subject: ValidationSubject, asking: Asking) -> CallThresholds:
    """Best done, as in a session: what keeps it from being done, the first case meets again."""
    try:
        return await warm_up(subject.backend, asking, _question(subject, ()))
    except ModelError as error:
        logger.warning("%s: the model could not be warmed up: %s", asking, error)
        return CallThresholds()


def _lost(began: float, suite: Suite, asking: Asking, case: Case, mark: Mark, why: str) -> Outcome:
    seconds = time.perf_counter() - began
    return Outcome(suite.name, asking, case.name, mark, why, seconds, 0, 0)


def _question(subject: ValidationSubject, said: tuple[Item, ...], **more: Any) -> Question:
    return Question((SystemItem(subject.system), *said), PromptTools(TOOLS, EXAMPLES), **more)


def _marked(asking: Asking, suite: Suite, case: Case, heard: ModelAnswer) -> tuple[Mark, str]:
    if why := fault(case.right, heard.reply, heard.pieces):
        return "wrong", why
    if heard.strayed:
        return "mended", "right only when it was asked once more, or in another way"
    if asking == "native" and heard.reply.calls and not heard.structured:
        return "mended", "the call came as text"
    if suite.name == "text_protocol" and heard.off_form:
        return "mended", "not in the form that was asked for"
    return "right", ""


def _hopeless(error: ModelError) -> bool:
    if isinstance(error, ModelMissing | ModelContextFull):
        return True
    return isinstance(error, ModelReplyError) and error.status in _HOPELESS_STATUS
