"""Webhook credentials as people configure them, by a webhook's path, its tool or its workflow's id.

{"lights": {"header": "X-Key", "value": "${LIGHTS_KEY}"},
 "ledger": {"user": "caal", "password": "..."},
 "doors": {"token": "a token signed beforehand"},
 "vault": {"jwt_secret": "...", "algorithm": "HS512"}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from n8n.calls.auth import ALGORITHMS, BasicAuth, HeaderAuth, JwtAuth, JwtSecretAuth, WebhookAuth
from n8n.core.errors import N8nError

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FORMS: Final = (
    "{header, value}, {user, password}, {token}, or {jwt_secret} with an algorithm or without"
)


def read_credentials(
    table: Mapping[str, Mapping[str, str]], env: Mapping[str, str]
) -> dict[str, WebhookAuth]:
    """`${NAME}` in a value is taken from `env`. Raises N8nError(config), which names the entry."""
    return {
        key.strip("/"): _one(key, {k: _filled(key, v, env) for k, v in told.items()})
        for key, told in table.items()
    }


def _one(key: str, told: Mapping[str, str]) -> WebhookAuth:
    names = set(told)
    if names == {"header", "value"}:
        if not _HEADER.fullmatch(told["header"]):
            raise N8nError("config", f"n8n_auth, {key}: `header` is no name of an HTTP header.")
        auth: WebhookAuth = HeaderAuth(told["header"], told["value"])
    elif names == {"user", "password"}:
        auth = BasicAuth(told["user"], told["password"])
    elif names == {"token"}:
        auth = JwtAuth(told["token"])
    elif "jwt_secret" in names and names <= {"jwt_secret", "algorithm"}:
        algorithm = told.get("algorithm", "HS256")
        if algorithm not in ALGORITHMS:
            choices = ", ".join(ALGORITHMS)
            raise N8nError("config", f"n8n_auth, {key}: write an algorithm of {choices}.")
        auth = JwtSecretAuth(told["jwt_secret"], algorithm)
    else:
        raise N8nError("config", f"n8n_auth, {key}: write {_FORMS}.")
    if any(not value.isprintable() for value in told.values()):
        raise N8nError(
            "config", f"n8n_auth, {key}: there is a line break in a value; copy it again."
        )
    return auth


def _filled(key: str, value: str, env: Mapping[str, str]) -> str:
    for name in _VARIABLE.findall(value):
        if not env.get(name):
            raise N8nError("config", f"n8n_auth, {key}: the variable {name} is not set.")
    return _VARIABLE.sub(lambda found: env[found[1]], value)
