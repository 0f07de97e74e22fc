"""`make conformance`: the protocol's official client suite, through our ServerManager.

Every scenario that a revision of the protocol requires is run at that revision, one after the
other: side by side, as the suite would run them, small machines miss its deadlines. The table says
how many checks each passed; the exit code is 1 where one failed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tests.stand_ins.node import NotInstalled, environment, install, obtain_node

HERE: Final = Path(__file__).parent
NODE_MAJOR: Final = 22
REVISIONS: Final = {"2025-11-25": 18, "2026-07-28": 32}
"""Revisions, and how many client scenarios each requires: fewer would be a list read wrongly."""
SCENARIO_S: Final = 90
_CLIENTS: Final = "Client scenarios"
_UNSCORED: Final = "Run and reported"
_NAME: Final = re.compile(r"^\s+- (\S+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    revision: str
    scenario: str
    passed: int
    failed: tuple[str, ...]
    """Ids of the checks that failed."""
    ok: bool
    took_s: float


class Suite:
    """The installed suite."""

    def __init__(self) -> None:
        node = obtain_node(NODE_MAJOR)
        modules = install(HERE, node)
        script = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
        self._command: Final = [str(node), str(script)]
        self._env: Final = environment(node)

    def scenarios(self, revision: str) -> list[str]:
        """The client scenarios that count for a revision."""
        told = self._run("list", "--requirements", revision).stdout
        required = told.partition(_CLIENTS)[2].partition(_UNSCORED)[0]
        found = _NAME.findall(required)
        if len(found) != REVISIONS[revision]:
            raise NotInstalled(
                f"{revision} requires {len(found)} scenarios; has the suite changed?"
            )
        return found

    def run(self, revision: str, scenario: str) -> Result:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            done = self._run(
                *("client", "--command", f"{sys.executable} -m tests.conformance.client"),
                *("--scenario", scenario, "--spec-version", revision, "--output-dir", folder),
                *("--timeout", str(SCENARIO_S * 1000)),
            )
            checks = [
                check
                for path in Path(folder).rglob("checks.json")
                for check in json.loads(path.read_text())
            ]
        failed = tuple(check["id"] for check in checks if check["status"] == "FAILURE")
        passed = sum(check["status"] == "SUCCESS" for check in checks)
        ok = done.returncode == 0 and not failed and passed > 0
        return Result(revision, scenario, passed, failed, ok, time.monotonic() - began)

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            env=self._env,
            capture_output=True,
            text=True,
            timeout=2 * SCENARIO_S,
            check=False,
        )


def main() -> int:
    """`python -m tests.conformance [REVISION | SCENARIO]...`"""
    console = Console(highlight=False)
    wanted = sys.argv[1:]
    try:
        suite = Suite()
        plan = [
            (revision, scenario)
            for revision in REVISIONS
            for scenario in suite.scenarios(revision)
            if not wanted or revision in wanted or scenario in wanted
        ]
    except NotInstalled as error:
        console.print(f"the suite cannot be run: {error}", markup=False)
        return 2
    results: list[Result] = []
    for number, (revision, scenario) in enumerate(plan, 1):
        results.append(result := suite.run(revision, scenario))
        mark = "ok" if result.ok else "FAILED " + ", ".join(result.failed)
        console.print(f"{number}/{len(plan)} {revision} {scenario}: {mark}", markup=False)
    console.print(_table(results))
    return 0 if results and all(result.ok for result in results) else 1


def _table(results: list[Result]) -> Table:
    table = Table("revision", "scenario", "passed", "failed", "s", title="MCP conformance")
    table.columns[1].no_wrap = True
    for result in results:
        failed = "-" if result.ok else ", ".join(result.failed) or "the client or the suite"
        row = (result.revision, result.scenario, str(result.passed), failed)
        table.add_row(*row, f"{result.took_s:.1f}", style="" if result.ok else "red")
    table.add_section()
    for revision, required in REVISIONS.items():
        of_it = [result for result in results if result.revision == revision]
        passed = sum(result.ok for result in of_it)
        table.add_row(revision, f"{passed} of {len(of_it)} run, {required} required", "", "", "")
    return table


if __name__ == "__main__":
    sys.exit(main())
