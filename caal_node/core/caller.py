"""Who a call of a tool is made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

CallOrigin: TypeAlias = Literal["room", "terminal", "api"]
"""A conversation in a LiveKit room, one without a room (`chat`, `console`, `Conversation`), or a
request of the control API, which nobody in a conversation has made."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The person whose words a call answers, as far as the room knows."""

    origin: CallOrigin = "terminal"
    room: str = ""
    """The room's name; "" without a room."""
    participant: str = ""
    """The participant's identity, by whose token LiveKit vouches for it; "" where none is known."""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    """The participant's attributes. Whoever makes the tokens can let participants change their own:
    docs/safety.md says what may rest on them."""

    @property
    def place(self) -> tuple[CallOrigin, str]:
        """Origin and room."""
        return self.origin, self.room
