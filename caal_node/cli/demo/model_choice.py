"""The demo asks a model of the person's own Ollama, else one that it brings along."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Final

import httpx
import ollama
from rich.console import Console

from caal_node import weights
from caal_node.config.settings import Settings
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.weights import cache

WEIGHT: Final = weights.QWEN_CODER_05B
"""It is small enough to answer in a second on two cores, and right on what the demo asks."""
OLLAMA_S: Final = 3.0
"""Seconds for Ollama to say what it has; it answers in milliseconds, or is not there."""
CONTEXT: Final = 4096
"""Tokens: instructions, tools, examples and the demo's turns take 1,500; less memory to touch."""


async def choose_model(
    settings: Settings, console: Console, open_: AsyncExitStack
) -> tuple[str, dict[str, str]]:
    """Start a model if there is none; return what to call it, and the settings that ask it.

    Raises:
        ConfigError: there is no Ollama, and the weights cannot be fetched.
    """
    env = {"CAAL_TEMPERATURE": "0"}
    host = settings.ollama_host
    if (name := await _ollama_model(settings)) is not None:
        env |= {"CAAL_MODEL": name, "CAAL_API": "ollama", "CAAL_BASE_URL": host}
        return f"{name} on the Ollama at {host}", {**env, "CAAL_TOOL_CALLS": "auto"}
    path = await asyncio.to_thread(weights.ensure, WEIGHT, console=console)
    states = cache.root() / "states"
    states.mkdir(parents=True, exist_ok=True)
    engine = await open_.enter_async_context(EmbeddedEngine(path, ctx=CONTEXT, states=states))
    await engine.recall(WEIGHT.key)
    open_.push_async_callback(engine.keep, WEIGHT.key)
    env |= {"CAAL_MODEL": engine.name, "CAAL_API": "openai", "CAAL_BASE_URL": engine.base_url}
    # These weights write their calls as text; asking them whether they do would take 3 seconds.
    return f"{WEIGHT.title}, embedded (llama.cpp)", {**env, "CAAL_TOOL_CALLS": "text"}


async def _ollama_model(settings: Settings) -> str | None:
    """Return the configured model if Ollama has it with tools, else Ollama's first with tools."""
    client = ollama.AsyncClient(settings.ollama_host, timeout=OLLAMA_S)
    try:
        names = [model.model for model in (await client.list()).models if model.model]
        for name in sorted(names, key=lambda name: name != settings.model):
            if "tools" in ((await client.show(name)).capabilities or ()):
                return name
    except (ConnectionError, ollama.ResponseError, httpx.HTTPError):  # what ollama speaks through
        return None
    return None
