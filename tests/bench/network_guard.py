"""What keeping a process to its network costs: `python -m tests.bench.network_guard`.

Each figure is the least of rounds in processes of their own, since an audit hook stays for good and
others use the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys

MEASURE = """
import json, socket, sys, threading, time
from caal_node.network.guard import enforce
from caal_node.network.policy import parse_policy
enforce(parse_policy(sys.argv[1]))

def least_ns(work, times, rounds=15):
    took = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        for _ in range(times):
            work()
        took.append((time.perf_counter_ns() - began) / times)
    return min(took)

server = socket.create_server(("127.0.0.1", 0))
address = server.getsockname()
def accept():
    while True:
        server.accept()[0].close()
threading.Thread(target=accept, daemon=True).start()
udp = socket.socket(type=socket.SOCK_DGRAM)
sink = socket.socket(type=socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))
there = sink.getsockname()
audit = sys.audit
print(json.dumps({
    "event": least_ns(lambda: audit("some.event", 1), 100_000),
    "connection": least_ns(lambda: socket.create_connection(address).close(), 300),
    "datagram": least_ns(lambda: udp.sendto(b"x", there), 3_000),
    "lookup": least_ns(lambda: socket.getaddrinfo("localhost", 80), 300),
    "import": least_ns(lambda: __import__("json"), 10_000),
}))
"""
ROUNDS = 5
POLICIES = {"without a limit": "any", "local": "local", "a list": "127.0.0.0/8,10.0.0.0/8,nas"}


def main() -> None:
    found = {name: _measured(policy) for name, policy in POLICIES.items()}
    print(f"{'microseconds':<18}" + "".join(f"{name:>18}" for name in found))
    for what in next(iter(found.values())):
        cells = "".join(f"{row[what] / 1000:>18.3f}" for row in found.values())
        print(f"{what:<18}{cells}")


def _measured(policy: str) -> dict[str, float]:
    command = [sys.executable, "-c", MEASURE, policy]
    rounds = [
        json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
        for _ in range(ROUNDS)
    ]
    return {what: min(each[what] for each in rounds) for what in rounds[0]}


if __name__ == "__main__":
    main()
