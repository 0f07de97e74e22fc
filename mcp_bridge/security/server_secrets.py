"""What must not come back from one server: the keys of its configuration, and what it was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_bridge.core.redaction import redact
from mcp_bridge.core.server_config import ServerConfig

_TOKENS_KEPT: Final = 4
"""The one in use, and those before it, which a server may still repeat."""


class ServerSecrets:
    """Of one server. Cut a text afterwards: a cut secret would not be known for one."""

    def __init__(self, config: ServerConfig) -> None:
        self._config: Final = config
        self._without_keys: Final = config.result_redactor()
        self._sent: tuple[str, ...] = ()

    def note(self, headers: Mapping[str, str]) -> None:
        """Headers of a request that is about to be sent: a sign-in's token is in them alone."""
        if (sent := headers.get("authorization")) is None:
            return
        token = sent.partition(" ")[2] or sent
        if token not in self._sent:
            self._sent = (*self._sent, token)[-_TOKENS_KEPT:]

    def clear(self, text: str) -> str:
        """What a model reads and people hear, without what looks like a key."""
        return redact(self._without_keys(text), self._sent)

    def clear_message(self, text: str) -> str:
        """A message or a line of a log, without any value that the server was given."""
        return redact(self._config.redact(text), self._sent)
