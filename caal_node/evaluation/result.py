"""What validating a model found: case by case, summed up, and what follows from it (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from caal_node.evaluation.case import WAYS, Asking, SuiteName
from caal_node.evaluation.suites import SUITES, VERSION

Mark: TypeAlias = Literal["right", "corrected", "wrong", "failed"]
"""`corrected` is right, but only because the node read a call out of the text or asked once more in
another way. `failed` means that the server gave an error in place of a reply."""

Thinking: TypeAlias = bool | str
"""A setting of CAAL_THINK: off, on, or how hard."""

WRONG_OF: Final = 4
"""A suite is passed with at most one case of four not right: a person repeats one request in four
at the worst, and the small models that people use all day reach it."""
_ASIDE: Final[frozenset[SuiteName]] = frozenset({"text_protocol", "reasoning"})
"""Suites that say nothing of which way is the better one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case gave in one way. `fault` is a few words for people, "" if it was right."""

    suite: SuiteName
    asking: Asking
    case: str
    mark: Mark
    fault: str
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    behind_call: bool = False
    """Whether words stood behind one of the server's own calls in the same reply."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many outcomes of one suite in one way were right."""

    right: int = 0
    corrected: int = 0
    total: int = 0

    @property
    def passed(self) -> bool:
        return self.total > 0 and self.total - self.right <= self.total // WRONG_OF

    def __str__(self) -> str:
        corrected = f" (+{self.corrected} corrected)" if self.corrected else ""
        return f"{self.right}/{self.total}{corrected}" if self.total else "-"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which weights on which server answer, which is what a finding holds for."""

    server: str
    """`ollama`, `llama.cpp`, `vllm`, or `openai-compatible` if the server does not say."""
    version: str
    """The server's version; "" if it does not say."""
    digest: str
    """Ollama's digest of the model, else what the server says of its file, or the model's name."""


@dataclass(frozen=True, slots=True)
class Validation:
    """A finished run of the suites over one model."""

    model: str
    api: str
    address: str
    identity: Identity
    at: str
    """When it ended: UTC, ISO 8601, to the second."""
    full: bool
    node_version: str
    native_offered: bool
    """False if the server says that the model has no tool calls, so they were not tried."""
    outcomes: tuple[Outcome, ...]
    suites_version: int = VERSION
    think: Thinking = False
    """How the model was asked to think (CAAL_THINK), which may change all that it does."""

    def tally(self, suite: SuiteName, asking: Asking) -> Tally:
        """Count the outcomes of one suite in one way."""
        return _tally(o for o in self.outcomes if (o.suite, o.asking) == (suite, asking))

    def total(self, asking: Asking) -> Tally:
        """Count the outcomes of the suites in which the ways can be compared."""
        return _tally(o for o in self.outcomes if o.asking == asking and o.suite not in _ASIDE)

    def missed(self, asking: Asking) -> tuple[SuiteName, ...]:
        """Return the required suites that `asking` did not pass."""
        return tuple(
            suite.name
            for suite in SUITES
            if suite.required and not self.tally(suite.name, asking).passed
        )

    @property
    def asking(self) -> Asking:
        """The way that works best: one that passes, then the one with more right. If they are
        alike it is the native one, whose prompt is shorter."""
        tried: tuple[Asking, ...] = WAYS if self.native_offered else ("text",)
        return max(tried, key=lambda way: (not self.missed(way), self.total(way).right))

    @property
    def passed(self) -> bool:
        return not self.missed(self.asking)

    def seconds(self, asking: Asking) -> float:
        return sum(o.seconds for o in self.outcomes if o.asking == asking)

    def prompt_tokens(self, asking: Asking) -> int:
        return sum(o.prompt_tokens for o in self.outcomes if o.asking == asking)


def _tally(outcomes: Iterable[Outcome]) -> Tally:
    marks = [outcome.mark for outcome in outcomes]
    return Tally(marks.count("right"), marks.count("corrected"), len(marks))


def to_object(validation: Validation) -> dict[str, Any]:
    """Return what `--json` prints: the result, then each suite's counts, then each case."""
    identity = validation.identity
    return {
        "model": validation.model,
        "api": validation.api,
        "address": validation.address,
        "server": identity.server,
        "server_version": identity.version,
        "digest": identity.digest,
        "think": validation.think,
        "at": validation.at,
        "node_version": validation.node_version,
        "full_suite": validation.full,
        "passed": validation.passed,
        "asking": validation.asking,
        "missed": list(validation.missed(validation.asking)),
        "native_offered": validation.native_offered,
        "suites": _suites_object(validation),
        "cases": [{**asdict(o), "seconds": round(o.seconds, 3)} for o in validation.outcomes],
    }


def _suites_object(validation: Validation) -> dict[str, dict[str, dict[str, int]]]:
    """Return suite -> way -> counts, without the ways that were not tried."""
    return {
        suite.name: {
            way: asdict(tally) for way in WAYS if (tally := validation.tally(suite.name, way)).total
        }
        for suite in SUITES
    }
