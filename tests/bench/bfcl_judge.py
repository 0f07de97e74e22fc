"""Whether a call is one of BFCL's possible answers (written after its description, AST category).

Right: exactly one call, of the right function, every parameter with one of the values that are
possible, none missing that must be there, none that the function does not have. Text is compared
without case, blanks and punctuation; an integer does for a float, but not a float for an integer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from caal_node.reply_parser import ToolCall
from tests.bench.bfcl_data import Answers, Question

_IDLE: Final = re.compile(r"[ ,./\-_*^'\"]")


def right_name(question: Question, calls: Sequence[ToolCall]) -> bool:
    """One call of the right function; for irrelevance, no call."""
    if question.answers is None:
        return not calls
    return len(calls) == 1 and calls[0].name in question.answers


def right_call(question: Question, calls: Sequence[ToolCall]) -> bool:
    """The right function with right arguments; for irrelevance, no call."""
    if question.answers is None:
        return not calls
    return right_name(question, calls) and _right_arguments(question.answers, calls[0])


def _right_arguments(answers: Answers, call: ToolCall) -> bool:
    possible = answers[call.name]
    if any(name not in possible for name in call.arguments):
        return False
    return all(
        any(_fits(value, call.arguments[name]) for value in values)
        if name in call.arguments
        else "" in values
        for name, values in possible.items()
    )


def _fits(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, float):
        return isinstance(given, int | float) and float(given) == wanted
    if isinstance(wanted, int):
        return isinstance(given, int) and given == wanted
    if isinstance(wanted, str):
        return isinstance(given, str) and _plain(given) == _plain(wanted)
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and _object_fits(
            cast("Mapping[str, Sequence[Any]]", wanted), cast("Mapping[str, Any]", given)
        )
    if isinstance(wanted, Sequence):
        return isinstance(given, list | tuple) and _list_fits(
            cast("Sequence[Any]", wanted), cast("Sequence[Any]", given)
        )
    return wanted is None and given is None


def _list_fits(wanted: Sequence[Any], given: Sequence[Any]) -> bool:
    return len(wanted) == len(given) and all(map(_fits, wanted, given))


def _object_fits(wanted: Mapping[str, Sequence[Any]], given: Mapping[str, Any]) -> bool:
    """Objects hold, as parameters do, the possible values of each key."""
    if any(key not in wanted for key in given):
        return False
    return all(
        any(_fits(value, given[key]) for value in values) if key in given else "" in values
        for key, values in wanted.items()
    )


def _plain(text: str) -> str:
    return _IDLE.sub("", text).lower()
