"""Which model the demo asks: the person's own Ollama, else an engine and weights of its own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import httpx
import ollama
from rich.console import Console

from caal_node import weights
from caal_node.cli.demo.weights import MODEL
from caal_node.config.settings import Settings
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.weights import cache

ASK_S: Final = 3.0
"""Seconds for Ollama to say what it has; it answers in milliseconds, or is not there."""
CONTEXT: Final = 4096
"""Tokens: instructions, tools, examples and the demo's turns take 1,500; less memory to touch."""


@dataclass(frozen=True, slots=True)
class DemoModel:
    """`shown` is for people; the rest are settings."""

    shown: str
    name: str
    api: str
    base_url: str
    tool_calls: str = "auto"

    def env(self) -> dict[str, str]:
        return {
            "CAAL_TOOL_CALLS": self.tool_calls,
            "CAAL_MODEL": self.name,
            "CAAL_API": self.api,
            "CAAL_BASE_URL": self.base_url,
            "CAAL_TEMPERATURE": "0",
        }


async def choose_model(settings: Settings, console: Console, open_: AsyncExitStack) -> DemoModel:
    """Raises: ConfigError: there is no Ollama, and the weights cannot be fetched."""
    if (name := await _tool_model(settings)) is not None:
        return DemoModel(
            f"{name} on the Ollama at {settings.ollama_host}", name, "ollama", settings.ollama_host
        )
    weight = MODEL
    path = await asyncio.to_thread(weights.ensure, weight, console=console)
    states = cache.root() / "states"
    states.mkdir(parents=True, exist_ok=True)
    engine = await open_.enter_async_context(EmbeddedEngine(path, ctx=CONTEXT, states=states))
    await engine.recall(weight.key)
    open_.push_async_callback(engine.keep, weight.key)
    # These weights write their calls as text; asking them whether they do would take 3 seconds.
    return DemoModel(
        f"{weight.title}, embedded (llama.cpp)", engine.name, "openai", engine.base_url, "text"
    )


async def _tool_model(settings: Settings) -> str | None:
    """The configured model if Ollama has it, else its first with tools; None: no such model."""
    client = ollama.AsyncClient(settings.ollama_host, timeout=ASK_S)
    try:
        names = [model.model for model in (await client.list()).models if model.model]
        for name in sorted(names, key=lambda name: name != settings.model):
            if "tools" in ((await client.show(name)).capabilities or ()):
                return name
    except (ConnectionError, ollama.ResponseError, httpx.HTTPError):  # what ollama speaks through
        return None
    return None
