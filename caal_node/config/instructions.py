"""Reads the system prompt that the settings name."""

from __future__ import annotations

from livekit.agents.llm.chat_context import Instructions

from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.core.prompt_files import read


def instructions_of(settings: Settings) -> str:
    """Return the text of the file CAAL_INSTRUCTIONS, or the built-in prompt.

    Raises:
        ConfigError: The file cannot be read.
    """
    if (path := settings.instructions) is None:
        return read("system.md")
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"CAAL_INSTRUCTIONS: {path} cannot be read ({type(error).__name__}); "
            "name a UTF-8 text file, or unset it"
        ) from error


def instructions_text(instructions: str | Instructions) -> str:
    """Render instructions as LiveKit does for a spoken turn."""
    if isinstance(instructions, str):
        return instructions
    return instructions.render_static(modality="audio")
