"""The limit of an instance's MCP server is kept, whoever asks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from n8n.core.http import MAX_REQUESTS, WINDOW_S, RateLimiter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_kept_back_is_there_for_others() -> None:
    limiter = RateLimiter(10, 300, clock=Clock())
    assert [limiter.acquire(keep_back=3) == 0 for _ in range(8)].count(True) == 7
    assert [limiter.acquire() == 0 for _ in range(4)].count(True) == 3


def test_the_wait_it_names_is_enough() -> None:
    clock = Clock()
    limiter = RateLimiter(2, 300, clock=clock)
    limiter.acquire()
    clock.now = 100
    limiter.acquire()
    assert limiter.acquire() == 200
    clock.now = 300
    assert limiter.acquire() == 0
    assert limiter.acquire() == 100


@given(st.lists(st.floats(0, 200), max_size=400))
def test_no_window_has_more_requests_than_allowed(gaps: list[float]) -> None:
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    sent: list[float] = []
    for gap in gaps:
        clock.now += gap / 50
        if limiter.acquire() == 0:
            sent.append(clock.now)
    for start in sent:
        assert sum(start <= t < start + WINDOW_S for t in sent) <= MAX_REQUESTS
