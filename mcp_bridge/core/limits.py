"""What one manager allows: seconds, characters and counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_RESULT_CHARS: Final = 65_536
"""About 16,000 tokens: more than a small local model's whole window."""

_READY_S: Final = 60.0
"""The most that a server's own `connect_timeout` makes everybody wait where nobody has said how
long: an entry may have an hour, and the other servers' tools are there."""
_WORD_S: Final = 0.5
"""So much later a server that fails at its last moment has said so."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one manager and of each of its servers."""

    connect_timeout_s: float = 10.0
    """From starting the process, or the first byte, to the end of the handshake; listing the tools
    may take as long again."""
    first_start_s: float = 300.0
    """The same for the first start of a package runner (npx, uvx, docker), unless its entry says
    otherwise: it may have to download the server, and an image is some hundred megabytes."""
    call_timeout_s: float = 20.0
    """How long a server may be silent: from `call_tool` to its result, a reconnect included, or to
    a sign of progress, from which the time counts anew."""
    call_cap_s: float = 120.0
    """How long a whole call may take, whatever progress the server reports. Nobody stays on the
    line for longer."""
    answer_s: float = 45.0
    """How long a person has for a server's question: to hear it, to think and to speak."""
    idle_s: float = 30 * 60.0
    """A connection that nobody uses for so long is closed; its tools stay, and the next call
    connects again."""
    retry_first_s: float = 0.5
    """The bound of the first wait before a lost connection is made again by itself. It doubles each
    time, and each wait is any time below the bound."""
    retry_longest_s: float = 60.0
    retries: int = 8
    """Retries in a row without being asked: some three minutes, for a server that is being
    restarted. After them the next call or reload tries."""
    failures: int = 5
    """After so many failures in a row, calls are refused at once for `rest_s`, or less where the
    last one failed quickly, until one that is let through succeeds."""
    rest_s: float = 30.0
    max_result_chars: int = MAX_RESULT_CHARS
    max_tools: int = 2_000
    """For each server. Further tools are left out, and reported."""
    max_pages: int = 100
    """Pages of one server's list, for a server that pages for ever."""
    max_description_chars: int = 1_024
    max_schema_chars: int = 65_536
    """A tool whose input schema is larger is left out, and reported."""
    max_waiting: int = 64
    """Calls of one server at a time; further ones are refused at once."""

    def usual_wait_s(self, own_connect_timeouts_s: Iterable[float | None]) -> float:
        """Gives the seconds after which servers ordinarily are ready or have failed.

        Each has a `connect_timeout` of its own, or None. That a first start may take minutes does
        not count.
        """
        usual_s = self.connect_timeout_s
        longest_s = max((own or usual_s for own in own_connect_timeouts_s), default=usual_s)
        return min(2 * longest_s, max(2 * usual_s, _READY_S)) + _WORD_S
