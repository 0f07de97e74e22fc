"""`caal-node doctor`: everything that is configured is checked, with how to fix what is wrong."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from caal_node.cli.checks import Check, Finding, run_check
from caal_node.cli.checks.local import (
    check_agent,
    check_bridge_command,
    check_cues,
    check_settings,
    check_state,
    check_stt,
    check_tts,
    check_vad,
)
from caal_node.cli.checks.model import (
    SAMPLE_S,
    SECOND_LOOK,
    check_call_strategy,
    check_model,
    check_second_look,
)
from caal_node.cli.checks.network import NETWORK, check_network
from caal_node.cli.checks.room_and_sound import SOUND, SOUND_S, check_livekit, check_sound
from caal_node.cli.checks.tools import (
    EACH_S,
    MCP_S,
    check_embedding,
    check_mcp,
    check_n8n,
    check_offer,
    check_toolsets,
)
from caal_node.cli.output import console, print_table
from caal_node.config.settings import Settings

# Deadlines in seconds: a few requests; a process that is started, may fetch itself first, and is
# asked for its tools; one's own code and the digest of 70 MB.
CHECKS: Final = (
    Check("settings", check_settings, 5),
    Check("state", check_state, 5),
    Check("model server", check_model, 15),
    Check("way of asking", check_call_strategy, SAMPLE_S + 15),
    Check(SECOND_LOOK, check_second_look, 15),
    Check("livekit", check_livekit, 10),
    Check("n8n", check_n8n, 20),
    Check("mcp", check_mcp, MCP_S),
    Check("mcp-bridge", check_bridge_command, 5),
    Check("embedding", check_embedding, 30),
    Check("toolsets", check_toolsets, EACH_S + 10),
    Check("cues", check_cues, 10),
    Check(NETWORK, check_network, 20),
    Check(SOUND, check_sound, SOUND_S + 5),
)
STT: Final = Check("stt", check_stt, 30)
TTS: Final = Check("tts", check_tts, 30)
MAIN_THREAD_CHECKS: Final = (
    STT,
    TTS,
    Check("vad", check_vad, 30),
    Check("agent", check_agent, 30),
    Check("tools", check_offer, 45),
)
"""These import people's own code in the main thread, as LiveKit's plugins need it. That may hold
the event loop for seconds, and would make the others' deadlines pass for nothing."""
_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}


async def run_checks(
    settings: Settings,
    checks: Sequence[Check] = CHECKS,
    main_thread_checks: Sequence[Check] = MAIN_THREAD_CHECKS,
) -> list[Finding]:
    """Run `checks` side by side, then `main_thread_checks` one by one; return all findings."""
    found = list(await asyncio.gather(*(run_check(check, settings) for check in checks)))
    found += [await run_check(check, settings) for check in main_thread_checks]
    return [finding for findings in found for finding in findings]


async def run_doctor(settings: Settings, *, as_json: bool = False) -> int:
    """Print the findings; the exit code is 1 when anything fails, else 0."""
    findings = await run_checks(settings)
    healthy = all(finding.status != "fail" for finding in findings)
    if as_json:
        rows = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({"ok": healthy, "checks": rows}, ensure_ascii=False))
    else:
        # What is wrong comes last, where it stays on the screen.
        order = list(_STYLES)
        print_table(
            console(), _table(sorted(findings, key=lambda finding: order.index(finding.status)))
        )
        counts = Counter(finding.status for finding in findings)
        summary = ", ".join(f"{counts[status]} {status}" for status in order)
        console().print(summary, style=_STYLES["ok" if healthy else "fail"])
    return 0 if healthy else 1


def _table(findings: Sequence[Finding]) -> Table:
    table = Table("", "part", "found", "what to do", header_style="bold", show_edge=False)
    for finding in findings:
        status = Text(finding.status, style=_STYLES[finding.status])
        # As Text: brackets in a server's words are no markup.
        table.add_row(status, Text(finding.name), Text(finding.found), Text(finding.fix))
    return table
