"""Launchers that may have to download what they start, so that a first start takes minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mcp_bridge.security.programs import plain_name

_RUNNERS: Final = frozenset(
    (
        *("npx", "npm", "pnpm", "yarn", "bunx", "bun", "deno"),
        *("uvx", "uv", "pipx", "poetry", "pdm"),
        *("docker", "podman", "dnx", "go", "cargo"),
    )
)
OFFLINE: Final[Mapping[str, str]] = {
    "UV_OFFLINE": "1",
    "npm_config_offline": "true",
    "YARN_ENABLE_NETWORK": "0",
    "PIP_NO_INDEX": "1",
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
    "HF_HUB_OFFLINE": "1",
}
"""Variables by which runners, and what they start, fetch nothing; docker, bun, deno, dnx, pdm and
poetry have none."""
_BEHIND: Final = frozenset(("cmd", "env", "wsl"))
"""These start what their arguments say."""


def package_runner(command: str, args: Sequence[str]) -> str:
    """Gives the name of the package runner that a command is; "" where it is none."""
    name = plain_name(command)
    if name in _BEHIND:
        name = next((word for one in args if (word := plain_name(one)) in _RUNNERS), "")
    return name if name in _RUNNERS else ""
