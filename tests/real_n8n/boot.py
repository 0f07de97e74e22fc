"""One n8n on a port and in a folder of its own, with its owner and its keys."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import httpx2

from tests.real_n8n.install import environment

BOOT_S: Final = 480.0
"""It takes 10 to 16 s on a quiet machine and a minute more where its database is new; five times
that where others compute on the same core."""
STOP_S: Final = 15.0
READY: Final = b"Editor is now accessible"
"""Webhooks are registered by then; the readiness probe answers before that."""
_POLL_S: Final = 0.2
_EMAIL: Final = "owner@n8n.test"


class N8nDied(Exception):
    """Raised if n8n ended, or was not ready in time; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Booted:
    url: str
    api_key: str
    mcp_token: str
    rest: httpx2.Client
    """The editor's own API, logged in as the owner."""


@contextlib.contextmanager
def running(folder: Path, node: Path, data: Path) -> Generator[Booted]:
    """Start n8n with an empty database in `data`; stop it at the end.

    Raises:
        N8nDied: it did not come up.
    """
    port, password = _free_port(), secrets.token_urlsafe(12) + "A1"
    url = f"http://127.0.0.1:{port}"
    own = {
        "N8N_PORT": str(port),
        "N8N_LISTEN_ADDRESS": "127.0.0.1",
        "N8N_USER_FOLDER": str(data),
        "WEBHOOK_URL": url,
        "N8N_SECURE_COOKIE": "false",
        "N8N_DIAGNOSTICS_ENABLED": "false",
        "N8N_VERSION_NOTIFICATIONS_ENABLED": "false",
        "N8N_TEMPLATES_ENABLED": "false",
        "N8N_PERSONALIZATION_ENABLED": "false",
        "N8N_LICENSE_AUTO_RENEW_ENABLED": "false",
        # These two ask n8n.io for lists of servers and of packages.
        "N8N_DISABLED_MODULES": "mcp-registry,community-packages",
        "N8N_RUNNERS_BROKER_PORT": str(_free_port()),
        # Seconds. On a busy machine its runner starts later than the usual 30, and is turned away.
        "N8N_RUNNERS_GRANT_TOKEN_TTL": "300",
        "N8N_INSTANCE_OWNER_MANAGED_BY_ENV": "true",
        "N8N_INSTANCE_OWNER_EMAIL": _EMAIL,
        "N8N_INSTANCE_OWNER_FIRST_NAME": "Test",
        "N8N_INSTANCE_OWNER_LAST_NAME": "Owner",
        "N8N_INSTANCE_OWNER_PASSWORD_HASH": _hashed(password, folder, node),
        "N8N_MCP_MANAGED_BY_ENV": "true",
        "N8N_MCP_ACCESS_ENABLED": "true",
    }
    with (data / "n8n.log").open("w+b") as log:
        process = subprocess.Popen(
            [str(node), str(folder / "node_modules" / "n8n" / "bin" / "n8n"), "start"],
            env={**environment(node), **own},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait(process, log)
            with httpx2.Client(base_url=url, timeout=30) as rest:
                yield _logged_in(url, rest, password)
        finally:
            _stop(process)


def _logged_in(url: str, rest: httpx2.Client, password: str) -> Booted:
    _ask(rest, "POST", "/rest/login", {"emailOrLdapLoginId": _EMAIL, "password": password})
    token = _ask(rest, "POST", "/rest/mcp/api-key/rotate", {})["apiKey"]
    scopes = _ask(rest, "GET", "/rest/api-keys/scopes", None)
    wanted = {"label": "tests", "expiresAt": None, "scopes": scopes}
    key = _ask(rest, "POST", "/rest/api-keys", wanted)["rawApiKey"]
    return Booted(url, key, token, rest)


def _ask(rest: httpx2.Client, method: str, path: str, body: Any) -> Any:
    reply = (
        rest.request(method, path, json=body) if body is not None else rest.request(method, path)
    )
    if reply.status_code >= 300:
        raise N8nDied(f"{method} {path} answered {reply.status_code}: {reply.text[:300]}")
    return reply.json()["data"]


def _hashed(password: str, folder: Path, node: Path) -> str:
    script = "process.stdout.write(require('bcryptjs').hashSync(process.env.PASSWORD, 10))"
    done = subprocess.run(
        [str(node), "-e", script],
        cwd=folder,
        env={**os.environ, "PASSWORD": password},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _wait(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline:
        said = Path(log.name).read_bytes()
        if READY in said:
            return
        if process.poll() is not None:
            break
        time.sleep(_POLL_S)
    raise N8nDied(
        f"n8n did not start:\n{Path(log.name).read_bytes()[-3000:].decode(errors='replace')}"
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the whole process group, as n8n's task runner is a child of it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
