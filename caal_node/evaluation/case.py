"""What a case is: something said to a model, and what a right reply to it would be."""

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

ABSENT: Final = object()
"""Among a parameter's right values: it may also be left out."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One call: the tool, and the values that are right for each of its arguments."""

    tool: str
    arguments: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """These calls and no others, in any order."""

    wanted: tuple[ExpectedCall, ...]


@dataclass(frozen=True, slots=True)
class ExpectedSpeech:
    """Speech without a call. One of `words` must be in it, in any case; none: any words do."""

    words: tuple[str, ...] = ()
    in_pieces: bool = False
    """It must arrive as it is written, not all at once at its end."""


@dataclass(frozen=True, slots=True)
class ExpectedCleanText:
    """A call or speech, whichever, without anything that nobody should hear."""


Right: TypeAlias = ExpectedCalls | ExpectedSpeech | ExpectedCleanText


@dataclass(frozen=True, slots=True)
class Case:
    """`said` goes behind the system prompt; all the sample tools are offered."""

    name: str
    said: tuple[Item, ...]
    right: Right
    stream: bool = False
    think: bool = False
    """Ask with thinking on, where the server says that the model can think."""
    quick: bool = False
    """Part of the short run, too."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases of one ability."""

    name: SuiteName
    about: str
    cases: tuple[Case, ...]
    required: bool = True
    """Whether a model without it counts as not fit for tools."""

    def chosen(self, *, full: bool) -> tuple[Case, ...]:
        return self.cases if full else tuple(case for case in self.cases if case.quick)
