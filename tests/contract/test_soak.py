"""The soak's own first minutes: what it measures over a day has to hold over a few sessions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
async def test_sessions_of_turns_outages_and_barge_ins_leave_nothing_behind(tmp_path: Path) -> None:
    plot = tmp_path / "soak.svg"
    command = [sys.executable, "-m", "tests.bench.soak", "--virtual", "--hours", "0.2"]
    ended = await asyncio.to_thread(
        subprocess.run,
        [*command, "--sessions", "3", "--plot", str(plot)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ET.parse(plot).findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4
    assert all(len(line.attrib["points"].split()) >= 3 for line in lines)
