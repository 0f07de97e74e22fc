"""What holds an answer's clauses to what is known, before they are heard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Say:
    """This is spoken in the clause's place: the clause itself, a mended one, or "" for nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class NotDone:
    """The clause claims an action that no call of the turn covers; nothing of it is spoken."""

    claim: str


class SpokenCheck(Protocol):
    """Judges one clause at a time, in the order in which they are spoken."""

    def check(self, clause: str) -> Say | NotDone:
        """Say what is spoken of `clause`, which keeps its white space; this does no I/O."""
        ...
