"""Run benches one after the other, each in a process of its own.

Run: `python -m tests.bench [NAME ...]`; without a name, all of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Final

NAMES: Final = (
    "turn_trace",
    "reply_parser",
    "facts",
    "context_room",
    "mcp_bridge_calls",
    "websocket_bridge",
    "discovery",
    "node_cpu",
    "call_rules",
    "claims",
    "call_grounds",
    "loop_stall",
    "cue_latency",
    "prompt_tokens",
    "injection",
    "small_models",
)
"""From the quickest to the one that takes an hour."""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    names: list[str] = options.parse_args().names or list(NAMES)
    if unknown := sorted(set(names) - set(NAMES)):
        options.error(f"no bench named {', '.join(unknown)}; there are {', '.join(NAMES)}")
    failed: list[str] = []
    for name in names:
        # A busy machine's figures say little, so each stands beside the load it was taken under.
        print(
            f"\n== {name} (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores) ==", flush=True
        )
        # A process each: what one bench has loaded must not be in another's figures.
        if subprocess.run([sys.executable, "-m", f"tests.bench.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
