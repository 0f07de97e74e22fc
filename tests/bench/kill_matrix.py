"""`python -m tests.bench.kill_matrix`: processes left behind, by ending and kind of child.

The servers and their children are the same; one column goes through ServerManager, the other
through the SDK's client alone, which has no supervisor that could be killed. Counted 30 s after the
ending, or as soon as none is left.
"""

from __future__ import annotations

from tests.stand_ins.kill_matrix import ENDINGS, KINDS, SUPERVISOR_ENDINGS, left


def main() -> None:
    clients = ("bridge", "sdk")
    head = [f"{client}: {kind}" for client in clients for kind in KINDS]
    print(f"{'ending':<24} " + " ".join(f"{title:>20}" for title in head))
    total = dict.fromkeys(clients, 0)
    for ending in (*ENDINGS, *SUPERVISOR_ENDINGS):
        cells: list[int] = []
        for client in clients if ending in ENDINGS else clients[:1]:
            found = left(client, ending)
            cells += [found[kind] for kind in KINDS]
            total[client] += sum(found.values())
        print(f"{ending:<24} " + " ".join(f"{count:>20}" for count in cells), flush=True)
    print("left: " + ", ".join(f"{client} {count}" for client, count in total.items()))


if __name__ == "__main__":
    main()
