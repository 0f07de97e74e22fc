"""How many connections there are, in all and from one address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final


class QuotaExceeded(Exception):
    """Full; the message says in which way."""


class ConnectionQuota:
    """A seat is taken until the connection's process is gone, not just its socket."""

    def __init__(self, most: int, most_per_client: int) -> None:
        self.most: Final = most
        self._most_per_client: Final = most_per_client
        self._taken: Final[Counter[str]] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    @contextmanager
    def taken(self, client: str) -> Generator[None]:
        """Raises: QuotaExceeded."""
        if len(self) >= self.most:
            raise QuotaExceeded(f"all {self.most} connections are in use; try again later")
        if self._taken[client] >= self._most_per_client:
            raise QuotaExceeded(f"{self._most_per_client} connections of yours are open; close one")
        self._taken[client] += 1
        try:
            yield
        finally:
            self._taken[client] -= 1
            if not self._taken[client]:
                del self._taken[client]
