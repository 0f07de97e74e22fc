"""A real Home Assistant with its demo devices: `python -m tests.real_home_assistant [ARGUMENTS]`.

It is installed from PyPI into a folder that later runs find again, booted with an empty
configuration, onboarded by its own API, and filled with rooms, names and devices that Assist may
use. Then `tests/contract/test_home_assistant_tools.py` runs against it, with pytest's arguments.
With the one argument `record`, what it answers is written to `tests/data/home_assistant/` instead,
which is what the quick tests read.

Home Assistant 2026.11 wants Python 3.14: HOME_ASSISTANT_PYTHON names one, else uv finds or fetches
it. HOME_ASSISTANT_COMMAND is a command that starts a Home Assistant which is installed already.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.real_home_assistant.boot import installed, running
from tests.real_home_assistant.furnish import furnish
from tests.real_home_assistant.owner import ANSWER_S, owner, tokens

TESTS: Final = "tests/contract/test_home_assistant_tools.py"
RECORDINGS: Final = Path(__file__).parents[1] / "data" / "home_assistant"
TEST_S: Final = 600
_CONFIG_KEYS: Final = frozenset(
    {"country", "language", "location_name", "state", "time_zone", "unit_system", "version"}
)
"""What is recorded of the configuration; the rest is of the machine that recorded it."""


async def record(url: str, token: str) -> None:
    """Write what Home Assistant answers to `tests/data/home_assistant/`."""
    async with owner(url, token) as home:
        exposed = await home.ask("homeassistant/expose_entity/list")
        names = list(exposed["exposed_entities"])
        answers: dict[str, Any] = {
            "get_config": {
                key: value
                for key, value in (await home.ask("get_config")).items()
                if key in _CONFIG_KEYS
            },
            "homeassistant/expose_entity/list": exposed,
            "config/area_registry/list": await home.ask("config/area_registry/list"),
            "config/floor_registry/list": await home.ask("config/floor_registry/list"),
            "config/device_registry/list": await home.ask("config/device_registry/list"),
            "config/entity_registry/get_entries": await home.ask(
                "config/entity_registry/get_entries", entity_ids=names
            ),
            "get_states": [
                _without_keys(each)
                for each in await home.ask("get_states")
                if each["entity_id"] in names
            ],
        }
    entries: dict[str, Any] = answers["config/entity_registry/get_entries"]
    used = {each["device_id"] for each in entries.values() if each}
    answers["config/device_registry/list"] = [
        each for each in answers["config/device_registry/list"] if each["id"] in used
    ]
    RECORDINGS.mkdir(parents=True, exist_ok=True)
    for kind, answer in answers.items():
        _write(kind.replace("/", "."), answer)
    async with httpx2.AsyncClient(timeout=ANSWER_S) as client:
        tools = await _mcp(client, url, token, "tools/list", {})
        context = next(
            each["name"] for each in tools["result"]["tools"] if "GetLiveContext" in each["name"]
        )
        wanted: dict[str, Any] = {"name": context, "arguments": {}}
        spoken = await _mcp(client, url, token, "tools/call", wanted)
    for name, answer in (("mcp.tools", tools), ("mcp.context", spoken)):
        _write(name, answer)


def _without_keys(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state without the address of its picture, which has a key."""
    kept = {key: value for key, value in state["attributes"].items() if key != "entity_picture"}
    return {**state, "attributes": kept}


def _write(name: str, answer: Any) -> None:
    text = json.dumps(answer, indent=1, ensure_ascii=False, sort_keys=True)
    (RECORDINGS / f"{name}.json").write_text(f"{text}\n")


async def _mcp(
    client: httpx2.AsyncClient, url: str, token: str, method: str, params: Any
) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await client.post(f"{url}/api/mcp/assist", json=body, headers=headers)).json()


async def _furnished(url: str) -> tuple[str, str]:
    owners, guests = await tokens(url)
    async with owner(url, owners) as home:
        await furnish(home)
    return owners, guests


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="caal-home-", ignore_cleanup_errors=True) as folder,
        running(installed(), Path(folder)) as url,
    ):
        began = time.monotonic()
        owners, guests = asyncio.run(_furnished(url))
        print(f"Home Assistant runs at {url}, furnished in {time.monotonic() - began:.0f} s")
        if sys.argv[1:] == ["record"]:
            asyncio.run(record(url, owners))
            return 0
        own = {
            "HOME_ASSISTANT_TEST_URL": url,
            "HOME_ASSISTANT_TEST_TOKEN": owners,
            "HOME_ASSISTANT_TEST_GUEST_TOKEN": guests,
        }
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", TESTS, *sys.argv[1:]],
            env={**os.environ, **own},
            timeout=TEST_S,
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
