"""`python -m tests.bench.kill_matrix`: processes left behind, by ending and kind of child.

The servers and their children are the same; one column goes through ServerManager, the other
through the SDK's client alone. Counted 5 s after the ending, or as soon as none is left.
"""

from __future__ import annotations

from tests.kill_matrix import ENDINGS, KINDS, left


def main() -> None:
    clients = ("bridge", "sdk")
    head = [f"{client}: {kind}" for client in clients for kind in KINDS]
    print("ending       " + " ".join(f"{title:>20}" for title in head))
    total = dict.fromkeys(clients, 0)
    for ending in ENDINGS:
        cells: list[int] = []
        for client in clients:
            found = left(client, ending)
            cells += [found[kind] for kind in KINDS]
            total[client] += sum(found.values())
        print(f"{ending:<12} " + " ".join(f"{count:>20}" for count in cells), flush=True)
    said = ", ".join(f"{client} {count}" for client, count in total.items())
    print(f"left in {len(ENDINGS) * len(KINDS)} cases: {said}")


if __name__ == "__main__":
    main()
