"""Which backend speaks which wire format."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from caal_node.models.port import Backend

Api: TypeAlias = Literal["ollama", "openai", "completions"]
OLLAMA: Final = "http://127.0.0.1:11434"
"""Ollama's own default address."""


def make_backend(
    model: str, api: Api, base_url: str | None, api_key: str | None, **options: Any
) -> Backend:
    """The backend for `api`; imported here, as a node needs one of the three."""
    if api == "ollama":
        from caal_node.models.ollama import OllamaBackend

        return OllamaBackend(model, host=base_url or OLLAMA, api_key=api_key, **options)
    if api == "openai":
        from caal_node.models.openai import OpenAIBackend

        return OpenAIBackend(model, base_url=base_url or f"{OLLAMA}/v1", api_key=api_key, **options)
    from caal_node.models.completions import CompletionsBackend

    return CompletionsBackend(
        model, base_url=base_url or f"{OLLAMA}/v1", api_key=api_key, **options
    )
