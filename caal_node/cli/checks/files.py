"""These checks look at what the settings name on this machine, and for misspelt variables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from caal_node.cli.checks.check import Finding, fail_from, in_thread, ok, warn
from caal_node.cli.chosen_agent import chosen_agent
from caal_node.config.file import unknown_variables
from caal_node.config.instructions import instructions_of
from caal_node.config.settings import FIELDS, Settings
from caal_node.core.errors import ConfigError
from caal_node.room.cue_files import load_wav

CUES: Final = "cues"
NOT_SETTINGS: Final = frozenset({"CAAL_CACHE", "CAAL_STATE", "CAAL_TEST_GGUF"})
"""These variables of the project are read elsewhere."""


async def check_settings(settings: Settings) -> Sequence[Finding]:
    unknown = [
        pair for pair in unknown_variables(os.environ, FIELDS) if pair[0] not in NOT_SETTINGS
    ]
    return [
        warn("settings", f"{name} is no setting", f"Did you mean {near}?" if near else "Unset it.")
        for name, near in unknown
    ] or [ok("settings", "every CAAL_ variable is known")]


async def check_cues(settings: Settings) -> Sequence[Finding]:
    if not settings.cues:
        return [ok(CUES, "off")]
    files = [
        (f"CAAL_CUE_{kind.upper()}", path)
        for kind, path in (
            ("tool", settings.cue_tool),
            ("agent", settings.cue_agent),
            ("error", settings.cue_error),
        )
        if path is not None
    ]
    wrong: list[Finding] = []
    for variable, path in files:
        try:
            await in_thread(lambda path=path: load_wav(path))
        except ConfigError as error:
            wrong.append(fail_from(CUES, f"{variable}: {error}"))
    return wrong or [ok(CUES, ", ".join(str(path) for _, path in files) or "built in")]


async def check_agent(settings: Settings) -> Sequence[Finding]:
    found: list[Finding] = []
    try:
        instructions_of(settings)
        found.append(ok("instructions", str(settings.instructions or "built in")))
    except ConfigError as error:
        found.append(fail_from("instructions", str(error)))
    if settings.agent is not None:
        try:
            chosen_agent(settings, None)
            found.append(ok("agent", settings.agent))
        except ConfigError as error:
            found.append(fail_from("agent", str(error)))
    return found
