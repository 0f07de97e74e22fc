"""Measures a turn, from the person's words to the end of everything that answers them."""

from __future__ import annotations

from caal_node.core.events import TurnEnded


class TurnMeter:
    """Counts a turn's requests and rounds, and its time. `now` is in seconds.

    Requests count from the end of the turn before, since LiveKit may begin an answer before the
    turn's words are known.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._rounds = 0
        self._requests = 0

    @property
    def open(self) -> bool:
        return self._began is not None

    def begin(self, now: float) -> None:
        self._began = now

    def note_request(self) -> None:
        self._requests += 1

    def note_round(self) -> None:
        self._rounds += 1

    def end(self, now: float) -> TurnEnded | None:
        """End the turn, or return None where none is open, as after a greeting."""
        began, rounds, requests = self._began, self._rounds, self._requests
        self._began, self._rounds, self._requests = None, 0, 0
        if began is None:
            return None
        return TurnEnded(rounds, requests, duration_ms=round((now - began) * 1000))
