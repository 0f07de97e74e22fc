"""What is known so far of a call's object that is being read."""

from __future__ import annotations

from dataclasses import dataclass, field

from caal_node.reply_parser.call_builder import OpenCall


@dataclass(slots=True)
class CallObjectState:
    marked: bool
    raw: list[str] = field(default_factory=list[str])
    committed: bool = False
    name: str | None = None
    call: OpenCall | None = None
    arguments: str | None = None
    final: bool = False
    held: str | None = None
    """Text that came before a `type` said whether it is speech."""
    made: bool = False
    problem: bool = False
    shape: bool = False
    """A key has come that says what is called, or with what."""
    foreign: bool = False
    """A key has come that no call has."""
    torn: bool = False
    """Its JSON broke off."""
