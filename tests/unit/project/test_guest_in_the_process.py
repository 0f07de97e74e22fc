"""Importing caal-node, and running an agent, leaves the rest of the process as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
DEADLINE_S = 120

PROGRAM = '''
import asyncio, importlib, logging, os, pkgutil, sys, threading
import httpx2, livekit.agents, livekit.rtc, mcp.client.streamable_http, ollama

OURS = ("caal_node", "mcp_bridge", "n8n", "__main__")


def is_fixed(name, value):
    """Functions, classes and constants; counters, caches and registries are there to be changed."""
    return not name.startswith("__") and (
        callable(value)
        or isinstance(value, (classmethod, staticmethod, property))
        or (name.isupper() and isinstance(value, (int, float, str, bytes)))
    )


def parts():
    """What is fixed in the modules and classes of others, the environment, the loggers."""
    found = {"environment": dict(os.environ)}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in OURS:
            continue
        for key, value in list(vars(module).items()):
            if is_fixed(key, value):
                found[name, key] = value
            if isinstance(value, type):
                found |= {
                    (name, key, each): inner
                    for each, inner in list(vars(value).items())
                    if is_fixed(each, inner)
                }
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.split(".")[0] not in OURS:
            found["logger", name] = (logger.level, [*logger.filters], [*logger.handlers])
    return found


def changed(before, after):
    return sorted(map(str, (
        key for key in before if after.get(key) is not before[key] and after.get(key) != before[key]
    )))


before = parts()
import caal_node
for found in pkgutil.walk_packages(caal_node.__path__, "caal_node."):
    if "__main__" not in found.name:
        importlib.import_module(found.name)
imported = parts()
print("import", changed(before, imported))

from caal_node.testing import AgentConversation, ScriptedModel, plain_settings


async def talk():
    agent = caal_node.CaalAgent(settings=plain_settings(), warm=False)
    async with AgentConversation(agent, ScriptedModel(["Hello."])) as conversation:
        await conversation.say("hi")
    client = importlib.import_module("caal_node.http_client").open_client()
    await client.aclose()


asyncio.run(talk())
print("session", changed(imported, parts()))
'''


def test_nothing_of_the_process_is_changed_by_an_import_or_a_session(tmp_path: Path) -> None:
    # Other tests of this process may have set what is looked for.
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
    own = {name: os.environ[name] for name in kept if name in os.environ}
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**own, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == ["import []", "session []"]
