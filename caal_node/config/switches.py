"""What is on in one conversation, and may be switched while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import Final

from caal_node.config.setting_tables import CHECKS, Checks
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError


class Switches:
    """The cues and the checks of a conversation; at first they are as the settings have them.

    Whoever plays a cue or checks a reply looks here each time.
    """

    def __init__(self, settings: Settings) -> None:
        self.can_play: Final = settings.cues.on
        """Whether the room has sounds at all."""
        self.cues: bool = settings.cues.on
        """Whether the cues of tools are played, and long waits announced. What a timer rings is
        heard in any case."""
        self.checks: Checks = settings.checks
        self._silent_tools: Final = settings.cues.silent_tools

    def is_silent(self, tool: str) -> bool:
        """Say whether a tool, by the model's name for it, always runs without sounds."""
        return any(fnmatchcase(tool, glob) for glob in self._silent_tools)

    def switch(self, cues: bool | None, checks: Mapping[str, bool]) -> None:
        """Switch cues, unless None, and the checks of these names.

        Raises:
            ConfigError: There is no such check, or the room has no track for cues; nothing changed.
        """
        if unknown := sorted(checks.keys() - set(CHECKS)):
            raise ConfigError(f"no check is named {unknown[0]}; they are {', '.join(CHECKS)}")
        if cues and not self.can_play:
            raise ConfigError("this room has no sounds: set CAAL_CUES=on and start the agent again")
        self.checks = replace(self.checks, **checks)
        self.cues = self.cues if cues is None else cues

    def as_json(self) -> dict[str, bool | dict[str, bool]]:
        """Return `cues`, and `checks` by name."""
        return {"cues": self.cues, "checks": asdict(self.checks)}
