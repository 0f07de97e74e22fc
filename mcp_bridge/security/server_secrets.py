"""Removes from what one server says the keys of its configuration, and what it was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_bridge.core.redaction import redact
from mcp_bridge.core.server_config import ServerConfig

_TOKENS_KEPT: Final = 4
"""The token in use, and those before it, which a server may still repeat."""


class ServerSecrets:
    """The secrets of one server. Cut a text afterwards: a cut secret would not be known for one."""

    def __init__(self, config: ServerConfig) -> None:
        self._config: Final = config
        self._without_keys: Final = config.result_redactor()
        self._sent: tuple[str, ...] = ()

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Notes the token in the headers of a request: a sign-in's token is nowhere else."""
        if (sent := headers.get("authorization")) is None:
            return
        token = sent.partition(" ")[2] or sent
        if token not in self._sent:
            self._sent = (*self._sent, token)[-_TOKENS_KEPT:]

    def redact_result(self, text: str) -> str:
        """Removes what looks like a key from what a model reads and people hear."""
        return redact(self._without_keys(text), self._sent)

    def redact_message(self, text: str) -> str:
        """Removes every value that the server was given from a message or a line of a log."""
        return redact(self._config.redact(text), self._sent)
