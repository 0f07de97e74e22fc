"""A case of a validation: what is said to a model, what a right reply is, and how one is judged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from caal_node.core.items import Item
from caal_node.reply_parser import Reply, ToolCall

SuiteName: TypeAlias = Literal[
    "tool_call",
    "two_calls",
    "abstention",
    "argument_types",
    "tool_result",
    "dialogue",
    "reasoning",
    "streaming",
    "text_protocol",
]

Asking: TypeAlias = Literal["native", "text"]
"""How tools are asked for: with the server's own tool calls, or by the text protocol."""
WAYS: Final[tuple[Asking, ...]] = ("native", "text")
WAY_NAMES: Final = {"native": "its server's own tool calls", "text": "the text protocol"}

ABSENT: Final = object()
"""Stands among a parameter's right values if it may also be left out."""

SHOWN_CHARS: Final = 80
"""Characters of a reply in a finding: enough to see what kind of reply it was."""
PIECES_FROM_CHARS: Final = 24
"""Characters. Shorter speech may come in one piece: some servers send several tokens at once."""
_MARKERS: Final = re.compile(
    r"</?think|<\|?/?tool|\[/?TOOL_|<function|```|\"(?:arguments|parameters)\"\s*:"
    r"|\"type\"\s*:\s*\"(?:tool_call|final_answer)",
    re.IGNORECASE,
)
"""Pieces of a call, of thinking or of a protocol, which no person should hear."""
_BLANKS: Final = re.compile(r"[\s,.\-_*^/'\"’]+")


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


Right: TypeAlias = ExpectedCalls | ExpectedSpeech


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


def fault(right: Right, reply: Reply, pieces: int = 2) -> str:
    """Return what is wrong with `reply`, in a few words; "" if it is right.

    `pieces` is the number of parts in which its speech came.
    """
    if reply.problems:
        return "a call that cannot be made"
    if _MARKERS.search(reply.text):
        return f"spoke {_short(reply.text)}"
    if isinstance(right, ExpectedCalls):
        return _calls_fault(right.wanted, reply)
    return _speech_fault(right, reply, pieces)


def _speech_fault(right: ExpectedSpeech, reply: Reply, pieces: int) -> str:
    spoken = reply.text.strip()
    if reply.calls:
        return f"called {_names(reply.calls)}"
    if not spoken:
        return "said nothing"
    if right.words and not any(_says(spoken, word) for word in right.words):
        return f"said {_short(spoken)}"
    if right.in_pieces and pieces < 2 and len(spoken) >= PIECES_FROM_CHARS:
        return "its speech came in one piece"
    return ""


def _says(spoken: str, word: str) -> bool:
    """Return whether `word` is said as a word of its own: 14 is no 4."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", spoken, re.IGNORECASE) is not None


def _calls_fault(wanted: Sequence[ExpectedCall], reply: Reply) -> str:
    if not reply.calls:
        return f"called nothing, said {_short(reply.text)}" if reply.text.strip() else "no reply"
    left = list(reply.calls)
    for calling in wanted:
        named = [call for call in left if call.name == calling.tool]
        if not named:
            return f"called {_names(reply.calls)}"
        # Of the calls of that name the best is taken: where two share a tool, each has its own.
        faults = [(arguments_fault(calling.arguments, call.arguments), call) for call in named]
        worst, call = next((pair for pair in faults if not pair[0]), faults[0])
        if worst:
            return f"{calling.tool}: {worst}"
        left.remove(call)
    return f"also called {_names(left)}" if left else ""


def arguments_fault(right: Mapping[str, tuple[Any, ...]], given: Mapping[str, Any]) -> str:
    """Return the first argument that is missing, wrong, or not one of the tool's; "" if none is."""
    for name, values in right.items():
        if name not in given:
            if ABSENT not in values:
                return f"{name} is missing"
        elif not any(same(value, given[name]) for value in values if value is not ABSENT):
            return f"{name} is {_short(repr(given[name]))}"
    extra = next((name for name in given if name not in right), None)
    return f"{extra} was not said" if extra else ""


def same(wanted: Any, given: Any) -> bool:
    """Return whether two values are equal in value and kind.

    Texts are compared without regard to case, blanks and punctuation.
    """
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, int | float) and isinstance(given, int | float):
        return float(wanted) == float(given)
    if isinstance(wanted, str) and isinstance(given, str):
        return _plain(wanted) == _plain(given)
    if isinstance(wanted, list | tuple) and isinstance(given, list | tuple):
        one, other = cast("Sequence[Any]", wanted), cast("Sequence[Any]", given)
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(wanted, Mapping) and isinstance(given, Mapping):
        these, those = cast("Mapping[str, Any]", wanted), cast("Mapping[str, Any]", given)
        return these.keys() == those.keys() and all(same(these[key], those[key]) for key in these)
    return wanted is None and given is None


def _plain(text: str) -> str:
    return _BLANKS.sub("", text).casefold()


def _names(calls: Sequence[ToolCall]) -> str:
    return ", ".join(call.name for call in calls[:4])


def _short(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"
