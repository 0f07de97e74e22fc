"""Switches on what holds for a whole process. Importing or running an agent changes none of it.

Every command does so first, and so should a worker program of one's own:

    settings = caal_node.guard_process()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from caal_node.config.settings import Settings, load_settings
from caal_node.network.guard import enforce
from caal_node.redaction.log_filter import redact_all_logs
from mcp_bridge.core.sanitize import drop_message_excerpts

ALLOW_CONTENT: Final = "LIVEKIT_TELEMETRY_ALLOW_PII"
"""LiveKit's variable for what users say, prompts, arguments and results in its spans; a program's
`set_tracer_provider(..., allow_pii=True)` wins over it."""


def guard_process(env: Mapping[str, str] = os.environ, path: Path | None = None) -> Settings:
    """Load settings, and guard this process by them until it ends.

    It connects only where `CAAL_NETWORK` allows, what any logger logs is redacted while an agent's
    session is open, and LiveKit's spans carry no content unless `LIVEKIT_TELEMETRY_ALLOW_PII` is 1.

    Args:
        env: Variables that win over the files.
        path: The one file of settings, in place of the user's and the working directory's.

    Returns:
        The settings.

    Raises:
        ConfigError: A setting is wrong, or the network cannot be limited here.
    """
    settings = load_settings(env, path)
    enforce(settings.network)
    redact_all_logs()
    drop_message_excerpts()
    os.environ.setdefault(ALLOW_CONTENT, "0")
    return settings
