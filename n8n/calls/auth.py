"""Credentials of single webhooks. They go to the webhook they are for, and nowhere else; the API
key and the MCP token never go to any.

People configure them by a webhook's path, its tool or its workflow's id:

{"lights": {"header": "X-Key", "value": "${LIGHTS_KEY}"},
 "ledger": {"user": "caal", "password": "..."},
 "doors": {"token": "a token signed beforehand"},
 "vault": {"jwt_secret": "...", "algorithm": "HS512"}}
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import jwt

from n8n.core.errors import N8nError
from n8n.core.workflow_tool import WorkflowTool

ALGORITHMS: Final = ("HS256", "HS384", "HS512")
"""Those with a passphrase; n8n's key pairs need a token that was signed beforehand."""
TOKEN_S: Final = 60
"""How long a signed token is good: for one call, and clocks that differ."""
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FORMS: Final = (
    "{header, value}, {user, password}, {token}, or {jwt_secret} with an algorithm or without"
)


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
    """n8n's `JWT Auth` with a token that was signed beforehand."""

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


def secrets_of(auth: WebhookAuth) -> tuple[str, ...]:
    """Return what nobody else may read of a credential."""
    match auth:
        case HeaderAuth():
            return (auth.value,)
        case BasicAuth():
            return (auth.password, auth.headers()["Authorization"].removeprefix("Basic "))
        case JwtAuth():
            return (auth.token,)
        case JwtSecretAuth():
            return (auth.secret,)


def auth_headers(tool: WorkflowTool, known: Mapping[str, WebhookAuth]) -> dict[str, str]:
    """Return the headers for the webhook's path, else the tool's name, else the workflow's id."""
    if tool.auth_kind == "none":
        return {}
    for key in (tool.path, tool.name, tool.workflow_id):
        if (auth := known.get(key)) is not None:
            return auth.headers()
    return {}


def read_credentials(
    table: Mapping[str, Mapping[str, str]], env: Mapping[str, str]
) -> dict[str, WebhookAuth]:
    """Read credentials as people configure them.

    `${NAME}` in a value is taken from `env`. Raises N8nError(config), which names the entry.
    """
    return {
        key.strip("/"): _read_one(key, {k: _with_variables(key, v, env) for k, v in entry.items()})
        for key, entry in table.items()
    }


def _read_one(key: str, entry: Mapping[str, str]) -> WebhookAuth:
    if any(not value.isprintable() for value in entry.values()):
        raise _malformed(key, "there is a line break in a value; copy it again.")
    match dict(entry):
        case {"header": name, "value": value, **rest} if not rest:
            if not _HEADER_NAME.fullmatch(name):
                raise _malformed(key, "`header` is no name of an HTTP header.")
            return HeaderAuth(name, value)
        case {"user": user, "password": password, **rest} if not rest:
            return BasicAuth(user, password)
        case {"token": token, **rest} if not rest:
            return JwtAuth(token)
        case {"jwt_secret": secret, **rest} if rest.keys() <= {"algorithm"}:
            algorithm = rest.get("algorithm", "HS256")
            if algorithm not in ALGORITHMS:
                raise _malformed(key, f"write an algorithm of {', '.join(ALGORITHMS)}.")
            return JwtSecretAuth(secret, algorithm)
        case _:
            raise _malformed(key, f"write {_FORMS}.")


def _with_variables(key: str, value: str, env: Mapping[str, str]) -> str:
    for name in _VARIABLE.findall(value):
        if not env.get(name):
            raise _malformed(
                key,
                f"the variable {name} is not set; write it into .env, or set it where this "
                "process starts.",
            )
    return _VARIABLE.sub(lambda found: env[found[1]], value)


def _malformed(key: str, message: str) -> N8nError:
    return N8nError("config", f"n8n_auth, {key}: {message}")
