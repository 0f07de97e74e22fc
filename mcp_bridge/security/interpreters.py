"""Programs that run code which stands in their arguments, or comes by their stdin.

A server is a file or a module that somebody published and named; code among the arguments is what
nobody reads. Only an interpreter's own options are looked at: what follows the script or module is
the script's, and may say `-c` or `-e` as it likes.

An option that is not in the table may have the next word for its value, or not. Both readings are
followed, since a value that was taken for the script would hide all that comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcp_bridge.security.interpreter import Interpreter
from mcp_bridge.security.interpreter_options import (
    NO_SCRIPT,
    CodeFinding,
    ReadOn,
    Step,
    loose,
    script,
    usual,
)


def findings_in(interpreter: Interpreter, words: Sequence[str]) -> Iterator[CodeFinding]:
    """The code that `interpreter` is given by the command line or by stdin, and modules."""
    places = [ReadOn(0)]
    for place in places:  # which grows meanwhile
        for step in _step(interpreter, words, place.at):
            if isinstance(step, ReadOn):
                following = ReadOn(step.at, place.sure and step.sure)
                if following not in places:
                    places.append(following)
            elif place.sure or step.code != NO_SCRIPT:
                yield step


def first_code(interpreter: Interpreter, words: Sequence[str]) -> str | None:
    """The argument that makes `interpreter` run code of the command line or of stdin; or None."""
    return next((found.code for found in findings_in(interpreter, words) if found.code), None)


def _step(interpreter: Interpreter, words: Sequence[str], at: int) -> Step:
    if at >= len(words):
        yield from script(interpreter, None)
        return
    word = words[at]
    if word in interpreter.words:
        yield CodeFinding(word)
    elif word in interpreter.runs:
        yield ReadOn(at + 1)
    elif len(word) < 2 or word[0] not in "-+":
        yield from script(interpreter, word)
        if interpreter.mixed:
            yield ReadOn(at + 1, sure=False)
    elif word == "--":
        yield from script(interpreter, next(iter(words[at + 1 :]), None))
    elif interpreter.loose:
        yield from loose(interpreter, words, at)
    else:
        yield from usual(interpreter, words, at)
