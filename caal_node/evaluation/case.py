"""A case of a validation: something said to a model, and what a right reply to it would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from caal_node.core.items import Item

SuiteName: TypeAlias = Literal[
    "tool_call",
    "two_calls",
    "abstention",
    "argument_types",
    "tool_result",
    "reasoning",
    "streaming",
    "text_protocol",
]

Asking: TypeAlias = Literal["native", "text"]
"""How tools are asked for: with the server's own tool calls, or by the text protocol."""
WAYS: Final[tuple[Asking, ...]] = ("native", "text")

ABSENT: Final = object()
"""Stands among a parameter's right values if it may also be left out."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One call is expected: the tool, and the values that are right for each of its arguments."""

    tool: str
    arguments: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """These calls and no others are expected, in any order."""

    wanted: tuple[ExpectedCall, ...]


@dataclass(frozen=True, slots=True)
class ExpectedSpeech:
    """Speech without a call is expected. If there are `words`, one of them must be in it."""

    words: tuple[str, ...] = ()
    in_pieces: bool = False
    """Whether it must arrive as it is written, not all at once at its end."""


@dataclass(frozen=True, slots=True)
class ExpectedCleanText:
    """A call or speech is expected, whichever, without anything that nobody should hear."""


Right: TypeAlias = ExpectedCalls | ExpectedSpeech | ExpectedCleanText


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `said` goes behind the system prompt, and all the sample tools are offered."""

    name: str
    said: tuple[Item, ...]
    right: Right
    stream: bool = False
    think: bool = False
    """Whether thinking is on, where the server says that the model can think."""
    quick: bool = False
    """Whether the short run has it, too."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases of one ability."""

    name: SuiteName
    about: str
    cases: tuple[Case, ...]
    required: bool = True
    """Whether a model without it counts as not fit for tools."""

    def chosen(self, *, full: bool) -> tuple[Case, ...]:
        """Return the cases of the full run, or of the short one."""
        return self.cases if full else tuple(case for case in self.cases if case.quick)
