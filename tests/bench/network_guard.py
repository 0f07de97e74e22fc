"""What keeping a process to its network costs: `python -m tests.bench.network_guard`.

Each round has a process for each policy, one after the other, since an audit hook stays for good.
The first table is the least of all rounds, in microseconds of CPU time. The second is how many
times as long it took as without a limit in the same round, the middle one of the rounds, with the
smallest and the largest: others use the machine, and what slows one process of a round slows all.
"""

from __future__ import annotations

import json
import statistics
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
        began = time.thread_time_ns()
        for _ in range(times):
            work()
        took.append((time.thread_time_ns() - began) / times)
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
known = ("127.0.0.1", 80)
addresses = ((f"127.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}", 80) for n in range(1 << 24))
print(json.dumps({
    "event": least_ns(lambda: audit("some.event", 1), 100_000),
    "known address": least_ns(lambda: audit("socket.connect", udp, known), 10_000),
    "new address": least_ns(lambda: audit("socket.connect", udp, next(addresses)), 3_000),
    "connection": least_ns(lambda: socket.create_connection(address).close(), 300),
    "datagram": least_ns(lambda: udp.sendto(b"x", there), 3_000),
    "lookup": least_ns(lambda: socket.getaddrinfo("localhost", 80), 300),
    "import": least_ns(lambda: __import__("json"), 10_000),
}))
"""
ROUNDS = 9
FREE = "without a limit"
POLICIES = {FREE: "any", "local": "local", "a list": "127.0.0.0/8,10.0.0.0/8,nas"}


def main() -> None:
    rounds = [{name: _measured(policy) for name, policy in POLICIES.items()} for _ in range(ROUNDS)]
    print(f"{f'least of {ROUNDS}, us':<18}" + "".join(f"{name:>18}" for name in POLICIES))
    for what in rounds[0][FREE]:
        least = (min(each[name][what] for each in rounds) for name in POLICIES)
        print(f"{what:<18}" + "".join(f"{ns / 1000:>18.3f}" for ns in least))
    guarded = [name for name in POLICIES if name != FREE]
    print(f"\n{'times as long':<18}" + "".join(f"{name:>22}" for name in guarded))
    for what in rounds[0][FREE]:
        print(f"{what:<18}" + "".join(f"{_ratio(rounds, name, what):>22}" for name in guarded))


def _ratio(rounds: list[dict[str, dict[str, float]]], name: str, what: str) -> str:
    ratios = [each[name][what] / each[FREE][what] for each in rounds]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _measured(policy: str) -> dict[str, float]:
    command = [sys.executable, "-c", MEASURE, policy]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
