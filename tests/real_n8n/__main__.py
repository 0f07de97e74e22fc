"""Install, boot, fill, test, measure: `python -m tests.real_n8n [pytest arguments]`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from n8n import N8nTools
from n8n.core.http import WINDOW_S
from tests.real_n8n.boot import Booted, running
from tests.real_n8n.edges import edges
from tests.real_n8n.figures import measured
from tests.real_n8n.install import home, install
from tests.real_n8n.seed import JWT_SECRET, WorkflowSeeder, copies, recorded, samples

TESTS: Final = (
    "tests/contract/test_n8n_replay_and_real.py",
    "tests/contract/test_n8n_page.py",
    "tests/real_n8n/check_samples.py",
    "tests/real_n8n/check_edges.py",
    "tests/real_n8n/check_live.py",
)
AT_SIZE: Final = 500
REGISTERING_S: Final = 2.0
"""Webhooks are registered a moment after their workflow is published."""
TEST_S: Final = 900


def main() -> int:
    folder = home()
    node = install(folder)
    with (
        tempfile.TemporaryDirectory(prefix="caal-n8n-", ignore_cleanup_errors=True) as data,
        running(folder, node, Path(data)) as n8n,
    ):
        print(f"n8n runs at {n8n.url}", flush=True)
        seeder = WorkflowSeeder(n8n.url, n8n.api_key, n8n.rest)
        try:
            seeder.create([*recorded(), *samples(), *edges()])
            time.sleep(REGISTERING_S)
            failed = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", *TESTS, *sys.argv[1:]],
                env={**os.environ, **environment_of(n8n)},
                timeout=TEST_S,
                check=False,
            ).returncode
            asyncio.run(figures("recorded workflows and samples", n8n))
            seeder.create(copies(AT_SIZE))
            asyncio.run(figures(f"and {AT_SIZE} more", n8n))
        finally:
            seeder.close()
    return failed


def environment_of(n8n: Booted) -> dict[str, str]:
    """Return the variables that the tests read."""
    return {
        "N8N_TEST_URL": n8n.url,
        "N8N_TEST_API_KEY": n8n.api_key,
        "N8N_TEST_MCP_TOKEN": n8n.mcp_token,
        "N8N_TEST_JWT_SECRET": JWT_SECRET,
    }


async def figures(label: str, n8n: Booted) -> None:
    async with N8nTools(n8n.url, api_key=n8n.api_key) as tools:
        await measured(label, tools)
        await measured(f"{label}, again", tools)
    print(f"waiting {WINDOW_S:g} s: n8n counts requests by MCP over so long", flush=True)
    await asyncio.sleep(WINDOW_S)
    async with N8nTools(n8n.url, n8n.mcp_token) as tools:
        await measured(label, tools)


if __name__ == "__main__":
    sys.exit(main())
