"""Claude and Gemini, through LiveKit's own plugins, each an extra of this package."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The plugins leave the types of their clients half open.

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from livekit.agents import llm

from caal_node.core.addresses import CLOUD, Api
from caal_node.core.errors import ConfigError
from caal_node.models.backends.livekit import LiveKitBackend


@dataclass(frozen=True, slots=True)
class _Plugin:
    plugin: str
    key: str
    """The variable that the plugin itself reads, where CAAL_API_KEY is not set."""
    at: Callable[[Any, str], Mapping[str, Any]]
    """What the plugin's `LLM` is given for another address than its own."""


def _google_at(_plugin: Any, url: str) -> Mapping[str, Any]:
    types: Any = import_module("google.genai.types")
    return {"http_options": types.HttpOptions(base_url=url)}


_PLUGINS: Final[Mapping[Api, _Plugin]] = {
    "anthropic": _Plugin(
        "livekit.plugins.anthropic",
        "ANTHROPIC_API_KEY",
        lambda _plugin, url: {"base_url": url},
    ),
    "google": _Plugin(
        "livekit.plugins.google",
        "GOOGLE_API_KEY",
        _google_at,
    ),
}
_VERTEX: Final = "GOOGLE_GENAI_USE_VERTEXAI"
"""Google's own switch, with which it takes the machine's credentials in place of a key."""


def plugin_of(api: Api) -> Any:
    """Import LiveKit's plugin of `api`. It takes a second, and has to be in the main thread.

    Raises:
        ConfigError: the extra is not installed.
    """
    try:
        return import_module(_PLUGINS[api].plugin)
    except ImportError as error:
        raise ConfigError(
            f"CAAL_API={api} needs LiveKit's plugin; run: pip install 'caal-node[{api}]'"
        ) from error


async def load_plugin(api: Api) -> None:
    """Import the plugin of `api` without holding up the event loop of a conversation.

    Raises:
        ConfigError: the extra is not installed.
    """
    # In a thread LiveKit refuses to register the plugin, at the very end; all that it needs has
    # been imported by then, and the import in the main thread takes milliseconds.
    with suppress(ImportError, RuntimeError):
        await asyncio.to_thread(import_module, _PLUGINS[api].plugin)
    plugin_of(api)


def cloud_backend(
    model: str, api: Api, base_url: str | None, api_key: str | None, **options: Any
) -> LiveKitBackend:
    """Make the backend for a model of `api`.

    `options` may have a temperature; the newest models refuse one, so it is sent only where it is
    given.

    Raises:
        ConfigError: the extra or the key is missing.
    """
    cloud, plugin = _PLUGINS[api], plugin_of(api)
    vertex = api == "google" and os.environ.get(_VERTEX, "").lower() in ("1", "true")
    if not (api_key or os.environ.get(cloud.key) or vertex):
        raise ConfigError(f"CAAL_API={api}: no key; set CAAL_API_KEY or {cloud.key}")
    given: dict[str, Any] = {"api_key": api_key} if api_key else {}
    if base_url and base_url != CLOUD[api]:
        given |= cloud.at(plugin, base_url)
    if "temperature" in options:
        given["temperature"] = options["temperature"]
    try:
        made: llm.LLM[Any] = plugin.LLM(model=model, **given)
    except ValueError as error:
        raise ConfigError(f"CAAL_API={api}: {error}") from error
    return LiveKitBackend(made, owned=True)
