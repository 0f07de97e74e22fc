"""Connections that are accepted and not let in yet, counted by client."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from mcp_bridge.serve.half_open import MAX_HALF_OPEN, HalfOpen, client_of


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


@pytest.fixture
def sockets() -> Iterator[list[socket.socket]]:
    made = [socket.socket() for _ in range(2 * MAX_HALF_OPEN)]
    yield made
    for one in made:
        one.close()


def test_one_client_waits_so_often_until_it_is_let_in_or_leaves(
    sockets: list[socket.socket],
) -> None:
    waiting = HalfOpen(2)
    assert waiting.admits(sockets[0], ("192.0.2.1", 1))
    assert waiting.admits(sockets[1], ("192.0.2.1", 2))
    assert not waiting.admits(sockets[2], ("192.0.2.1", 3))
    assert waiting.admits(sockets[3], ("192.0.2.2", 3))
    waiting.let_in(("192.0.2.1", 1))
    assert waiting.admits(sockets[2], ("192.0.2.1", 3))
    sockets[1].close()
    assert waiting.admits(sockets[4], ("192.0.2.1", 4))
    assert not waiting.admits(sockets[5], ("192.0.2.1", 5))


def test_with_many_clients_the_oldest_goes() -> None:
    waiting = HalfOpen(2)
    pairs = [socket.socketpair() for _ in range(MAX_HALF_OPEN + 1)]
    for number, (ours, _) in enumerate(pairs):
        assert waiting.admits(ours, (f"192.0.2.{number}", 1))
    assert pairs[0][1].recv(1) == b""
    pairs[1][1].setblocking(False)
    with pytest.raises(BlockingIOError):
        pairs[1][1].recv(1)
    waiting.end()
    assert all(theirs.recv(1) == b"" for _, theirs in pairs)
    for one in pairs:
        for end in one:
            end.close()
