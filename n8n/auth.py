"""Credentials of single webhooks. They go to the webhook they are for, and nowhere else; the API
key and the MCP token never go to any."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from n8n.tool import WorkflowTool


@dataclass(frozen=True, slots=True)
class HeaderAuth:
    """n8n's `Header Auth`."""

    name: str
    value: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        return {self.name: self.value}


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """n8n's `Basic Auth`."""

    user: str
    password: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}


@dataclass(frozen=True, slots=True)
class JwtAuth:
    """n8n's `JWT Auth`: a token that was signed beforehand."""

    token: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


WebhookAuth: TypeAlias = HeaderAuth | BasicAuth | JwtAuth


def auth_headers(tool: WorkflowTool, known: Mapping[str, WebhookAuth]) -> dict[str, str]:
    """Those for the webhook's path, else for the tool's name, else for the workflow's id."""
    if tool.auth_kind == "none":
        return {}
    for key in (tool.path, tool.name, tool.workflow_id):
        if (auth := known.get(key)) is not None:
            return auth.headers()
    return {}
