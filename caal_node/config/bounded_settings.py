"""Loads settings for a process that is then kept to the network that they allow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from caal_node.config.settings import Settings, load_settings
from caal_node.network.guard import enforce


def bounded_settings(env: Mapping[str, str] = os.environ, path: Path | None = None) -> Settings:
    """Load settings as `load_settings` does, and keep this process to their network, for good.

    Every command does so before it connects anywhere, and every process of a room.

    Raises:
        ConfigError: A setting is wrong, or the network cannot be limited here.
    """
    settings = load_settings(env, path)
    enforce(settings.network)
    return settings
