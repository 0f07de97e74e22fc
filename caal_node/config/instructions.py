"""Reads the system prompt that the settings name."""

from __future__ import annotations

from typing import Final

from livekit.agents.llm.chat_context import Instructions

from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.core.prompt_files import read
from mcp_bridge.core.files import read_capped

MAX_BYTES: Final = 256 * 1024
"""More than any context holds."""


def instructions_of(settings: Settings) -> str:
    """Return the text of the file CAAL_INSTRUCTIONS, or the built-in prompt.

    Raises:
        ConfigError: The file cannot be read.
    """
    if (path := settings.instructions) is None:
        return read("system.md")
    try:
        return read_capped(path, MAX_BYTES).decode().strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(
            f"CAAL_INSTRUCTIONS: {path} cannot be read ({why}); "
            f"name a UTF-8 text file of at most {MAX_BYTES // 1024} KiB, or unset it"
        ) from error


def instructions_text(instructions: str | Instructions) -> str:
    """Render instructions as LiveKit does for a spoken turn."""
    if isinstance(instructions, str):
        return instructions
    return instructions.render_static(modality="audio")
