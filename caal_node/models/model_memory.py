"""What outlives a session: how its model is asked, what its replies begin with, and how sure of a
call it has to be."""

from __future__ import annotations

from typing import Literal, Protocol


class ModelMemory(Protocol):
    """Of one model on one server. Nothing here raises: a session must go on without it."""

    async def keep(self, asking: Literal["native", "text"], why: str) -> None:
        """The next session begins with this."""
        ...

    async def thinks_aloud(self) -> bool:
        """Whether its replies were seen to begin in thinking that the prompt had opened."""
        ...

    async def keep_thinking(self, *, aloud: bool) -> None: ...

    async def bound(self, head: str) -> float | None:
        """What was kept for the prompt's head of this digest."""
        ...

    async def keep_bound(self, head: str, bound: float) -> None: ...
