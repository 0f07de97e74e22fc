"""Connections that are accepted and not let in yet, counted by client."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from mcp_bridge.serve.bridge import MAX_HALF_OPEN, HalfOpen, client_of


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("/a/path", "/another", False),
    ],
)
def test_a_client_is_an_address_or_a_network(one: str, other: str, same: bool) -> None:
    assert (client_of(one) == client_of(other)) is same


def is_ended(theirs: socket.socket) -> bool:
    """Whether the other end of a pair was shut down."""
    theirs.setblocking(False)
    try:
        return theirs.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    made = [socket.socketpair() for _ in range(MAX_HALF_OPEN + 2)]
    yield made
    for one in made:
        for end in one:
            end.close()


def test_of_one_client_the_oldest_goes_and_the_newest_is_served(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    waiting = HalfOpen(2)
    for number in range(3):
        waiting.begin(pairs[number][0], ("192.0.2.1", number))
    waiting.begin(pairs[3][0], ("192.0.2.2", 3))
    assert [is_ended(theirs) for _, theirs in pairs[:4]] == [True, False, False, False]
    waiting.let_in(("192.0.2.1", 1))
    pairs[2][0].close()
    for number in (4, 5):
        waiting.begin(pairs[number][0], ("192.0.2.1", number))
    assert [is_ended(theirs) for _, theirs in (pairs[1], *pairs[3:6])] == [False] * 4


def test_with_many_clients_the_oldest_goes(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    waiting = HalfOpen(2)
    for number, (ours, _) in enumerate(pairs[: MAX_HALF_OPEN + 1]):
        waiting.begin(ours, (f"192.0.2.{number}", 1))
    assert is_ended(pairs[0][1])
    assert not is_ended(pairs[1][1])
    waiting.end()
    assert all(is_ended(theirs) for _, theirs in pairs[: MAX_HALF_OPEN + 1])
