"""Credentials of single webhooks. They go to the webhook they are for, and nowhere else; the API
key and the MCP token never go to any."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import jwt

from n8n.core.workflow_tool import WorkflowTool

ALGORITHMS: Final = ("HS256", "HS384", "HS512")
"""Those with a passphrase; n8n's key pairs need a token that was signed beforehand."""
TOKEN_S: Final = 60
"""How long a signed token is good: for one call, and clocks that differ."""


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


@dataclass(frozen=True, slots=True)
class JwtSecretAuth:
    """n8n's `JWT Auth` with a passphrase: each call signs a token of its own."""

    secret: str = field(repr=False)
    algorithm: str = "HS256"

    def headers(self) -> dict[str, str]:
        now = int(time.time())
        claims = {"iss": "caal-node", "iat": now, "exp": now + TOKEN_S}
        return {"Authorization": f"Bearer {jwt.encode(claims, self.secret, self.algorithm)}"}


WebhookAuth: TypeAlias = HeaderAuth | BasicAuth | JwtAuth | JwtSecretAuth


def auth_headers(tool: WorkflowTool, known: Mapping[str, WebhookAuth]) -> dict[str, str]:
    """Those for the webhook's path, else for the tool's name, else for the workflow's id."""
    if tool.auth_kind == "none":
        return {}
    for key in (tool.path, tool.name, tool.workflow_id):
        if (auth := known.get(key)) is not None:
            return auth.headers()
    return {}
