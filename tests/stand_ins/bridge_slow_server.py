"""A server for tests that has no end of things to say, or no ear: `... flood` or `... deaf`.

It tells how far it came over TCP to 127.0.0.1:$EVENTS_PORT, as the other stand-ins do.
"""

from __future__ import annotations

import os
import select
import socket
import sys

LINE = b'{"jsonrpc":"2.0","method":"notifications/message","params":"' + b"x" * 60_000 + b'"}\n'
BLOCKED_S = 0.5
"""A pipe that took nothing for this long is full, and the bridge does not empty it."""


def flood() -> int:
    """Writes until the pipe stays full; how many bytes that were."""
    os.set_blocking(1, False)
    written = 0
    rest = LINE
    while select.select([], [1], [], BLOCKED_S)[1]:
        sent = os.write(1, rest)
        written += sent
        rest = rest[sent:] or LINE
    return written


def main() -> None:
    events = socket.create_connection(("127.0.0.1", int(os.environ["EVENTS_PORT"])))
    events.sendall(f"pid {os.getpid()}\n".encode())
    if sys.argv[1] == "flood":
        events.sendall(f"blocked after {flood()}\n".encode())
    select.select([events], [], [])  # until the test, or a signal, ends it


if __name__ == "__main__":
    main()
