"""Makes the backend that speaks a wire format."""

from __future__ import annotations

from typing import Any, Final

from caal_node.core.addresses import CLOUD, Api
from caal_node.core.errors import ConfigError
from caal_node.models.backends.base import Backend

OLLAMA: Final = "http://127.0.0.1:11434"
"""Ollama's own default address."""


def api_of(name: str | None) -> Api | None:
    """Return the wire format of that name, for names that come from outside.

    Raises:
        ConfigError: there is none of that name, or it would run code that `name` chose.
    """
    match name:
        case None | "ollama" | "openai" | "completions" | "anthropic" | "google":
            return name
        case _:
            raise ConfigError(
                f"api {name!r}: write ollama, openai, completions, anthropic or google"
            )


def make_backend(
    model: str, api: Api, base_url: str | None, api_key: str | None, **options: Any
) -> Backend:
    """Make the backend for `api`. It is imported here, as a node needs only one of them.

    Raises:
        ConfigError: an address, a key or a factory cannot be used.
    """
    if api == "ollama":
        from caal_node.models.backends.ollama import OllamaBackend

        return OllamaBackend(model, host=base_url or OLLAMA, api_key=api_key, **options)
    if api == "openai":
        from caal_node.models.backends.openai import OpenAIBackend

        return OpenAIBackend(model, base_url=base_url or f"{OLLAMA}/v1", api_key=api_key, **options)
    if api in CLOUD:
        from caal_node.models.backends.cloud import cloud_backend

        return cloud_backend(model, api, base_url, api_key, **options)
    if api == "embedded":
        from caal_node.models.backends.embedded import EmbeddedBackend

        return EmbeddedBackend(model, **options)
    if api == "livekit":
        from livekit.agents import llm

        from caal_node.config.object_reference import call_factory
        from caal_node.models.backends.livekit import LiveKitBackend

        # Address, key and temperature are the factory's to set.
        return LiveKitBackend(call_factory(model, llm.LLM, "CAAL_MODEL"), owned=True)
    from caal_node.models.backends.completions import CompletionsBackend

    return CompletionsBackend(
        model, base_url=base_url or f"{OLLAMA}/v1", api_key=api_key, **options
    )
