"""`caal-node doctor`: looks at everything that is configured, and says how to mend it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from caal_node.cli.checks.call_strategy import PROBE_S, look_at_asking
from caal_node.cli.checks.check import Finding, FindingCheck, take
from caal_node.cli.checks.embedding import look_at_embedding
from caal_node.cli.checks.files import look_at_agent, look_at_cues, look_at_settings
from caal_node.cli.checks.model import look_at_model
from caal_node.cli.checks.room import look_at_livekit
from caal_node.cli.checks.speech import look_at_stt, look_at_tts, look_at_vad
from caal_node.cli.checks.tools import look_at_mcp, look_at_n8n
from caal_node.config.settings import Settings

# Deadlines in seconds: a few requests; a process that is started, may fetch itself first, and is
# asked for its tools; one's own code and the digest of 70 MB.
LOOKS: Final = (
    FindingCheck("settings", look_at_settings, 5),
    FindingCheck("model server", look_at_model, 15),
    FindingCheck("way of asking", look_at_asking, PROBE_S + 15),
    FindingCheck("livekit", look_at_livekit, 10),
    FindingCheck("n8n", look_at_n8n, 20),
    FindingCheck("mcp", look_at_mcp, 30),
    FindingCheck("embedding", look_at_embedding, 30),
    FindingCheck("cues", look_at_cues, 10),
)
AFTERWARDS: Final = (
    FindingCheck("stt", look_at_stt, 30),
    FindingCheck("tts", look_at_tts, 30),
    FindingCheck("vad", look_at_vad, 30),
    FindingCheck("agent", look_at_agent, 30),
)
"""These import people's own code in the main thread, as LiveKit's plugins need it. That may hold
the event loop for seconds, and would make the others' deadlines pass for nothing."""
_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}


async def examine(
    settings: Settings,
    looks: Sequence[FindingCheck] = LOOKS,
    afterwards: Sequence[FindingCheck] = AFTERWARDS,
) -> list[Finding]:
    """Every finding: of `looks`, taken side by side, then of `afterwards`, one by one."""
    found = list(await asyncio.gather(*(take(look, settings) for look in looks)))
    found += [await take(look, settings) for look in afterwards]
    return [check for checks in found for check in checks]


async def run_doctor(settings: Settings, *, as_json: bool = False) -> int:
    """Print the findings; the exit code is 1 when anything fails, else 0."""
    checks = await examine(settings)
    if as_json:
        rows = [dataclasses.asdict(check) for check in checks]
        print(json.dumps({"ok": _healthy(checks), "checks": rows}, ensure_ascii=False))
    else:
        Console().print(_table(checks))
    return 0 if _healthy(checks) else 1


def _healthy(checks: Sequence[Finding]) -> bool:
    return all(check.status != "fail" for check in checks)


def _table(checks: Sequence[Finding]) -> Table:
    table = Table("", "part", "found", "what to do", header_style="bold", show_edge=False)
    for check in checks:
        mark = Text(check.status, style=_STYLES[check.status])
        # As Text: brackets in a server's words are no markup.
        table.add_row(mark, Text(check.name), Text(check.found), Text(check.mend))
    return table
