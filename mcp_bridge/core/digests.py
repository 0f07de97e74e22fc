"""Digests by which a server's configuration and its tools are known again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence

from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import ToolDefinition


def config_digest(config: ServerConfig) -> str:
    """Of what a server is started or reached by. Two rooms with one digest could share it."""
    names = ("transport", "command", "args", "env", "cwd", "url", "headers")
    values = {name: getattr(config, name) for name in names}
    return _digest(
        {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}  # pyright: ignore[reportUnknownArgumentType] # JSON, whatever it holds
    )


def definitions_digest(tools: Sequence[ToolDefinition]) -> str:
    """Of everything that a model or a host reads of these tools."""
    return _digest([dataclasses.asdict(tool) for tool in tools])


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
