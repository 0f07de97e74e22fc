"""The settings that a model is made of, and the values that a program gives in their place.

Both are judged alike: `LLM(num_ctx=-1)` is refused with the words that `CAAL_NUM_CTX=-1` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any, Final
from urllib.parse import urlsplit

from caal_node.config.settings import Settings
from caal_node.core.addresses import CLOUD, Api, ModelReference, is_of_this_network, ollama_url
from caal_node.core.errors import ConfigError
from caal_node.models.backends.base import Backend
from caal_node.models.backends.redacting import redacting
from caal_node.redaction.placeholders import PromptRedaction

# Makes the backend that speaks a wire format.

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
    from caal_node.models.backends.openai import CompletionsBackend

    return CompletionsBackend(
        model, base_url=base_url or f"{OLLAMA}/v1", api_key=api_key, **options
    )


OPTIONS: Final[Mapping[Api, tuple[str, ...]]] = {
    "ollama": ("think", "num_ctx", "keep_alive"),
    "embedded": ("think", "num_ctx"),
    "openai": ("think",),
}
"""Settings that not every API takes, by those that do."""
_OPTIONS: Final = frozenset(chain.from_iterable(OPTIONS.values()))
_SETTINGS: Final = frozenset(
    {"model", "api", "base_url", "api_key", "temperature", "tool_calls", *_OPTIONS}
)


def chosen_settings(settings: Settings, place: str, given: Mapping[str, Any]) -> Settings:
    """Return `settings` for the model that `given` names, with what else it has of settings.

    An API key of the settings stays with its server. `place` names who gave it, for errors.

    Raises:
        ConfigError: a value does not fit; the message names it and says what to write.
    """
    own = {name: value for name, value in given.items() if name in _SETTINGS}
    if isinstance(own.get("base_url"), str) and own.get("api", settings.api) == "ollama":
        try:
            own["base_url"] = ollama_url(own["base_url"])
        except ValueError as error:
            raise ConfigError(f"{place}(base_url): {error}.") from error
    judged = settings.with_given(place, own)
    if not own.keys() & {"model", "api", "base_url"}:
        return judged
    base_url = judged.base_url if "base_url" in own else None
    api = judged.api if "api" in own else None
    named = settings.with_model(ModelReference(judged.model, api, base_url))
    address: dict[str, Any] = {"base_url": named.base_url}
    if "api_key" not in own:
        address["api_key"] = named.api_key
    return judged.model_copy(update=address)


def backend_of(settings: Settings, place: str, given: Mapping[str, Any]) -> Backend:
    """Make the backend of `settings`. What of `given` is no setting goes to it as it is.

    Raises:
        ConfigError: an address or a key cannot be used, or `given` has what this API does not take.
    """
    options: dict[str, Any] = {"temperature": settings.temperature}
    if settings.api in CLOUD and "temperature" not in settings.model_fields_set:
        options = {}  # The newest models refuse one.
    taken = OPTIONS.get(settings.api, ())
    options |= {name: getattr(settings, name) for name in taken}
    if settings.api == "openai":
        options["server_runs_tools"] = settings.server_runs_tools
    if unfit := [name for name in given if name in _OPTIONS and name not in taken]:
        apis = " and ".join(api for api, names in OPTIONS.items() if unfit[0] in names)
        raise ConfigError(f"{place}({unfit[0]}): only the api {apis} takes it; leave it out.")
    options |= {name: value for name, value in given.items() if name not in _SETTINGS}
    key = settings.api_key.get_secret_value() if settings.api_key else None
    backend = make_backend(settings.model, settings.api, settings.model_address, key, **options)
    if settings.redaction.local_models or is_elsewhere(settings):
        # Here, as the bridge takes a second to import, and a model alone needs none of it.
        from mcp_bridge.core.sanitize import redact

        by_value = partial(redact, secrets=settings.secrets)
        return redacting(backend, PromptRedaction(settings.redaction, by_value))
    return backend


def is_elsewhere(settings: Settings) -> bool:
    """Return whether what the model of `settings` reads leaves the owner's own network.

    A model of a LiveKit plugin does, as nobody can say where it is; so does one of Ollama's cloud,
    which this machine's own Ollama passes on.
    """
    if settings.api == "embedded":
        return False
    if settings.api in CLOUD or settings.api == "livekit":
        return True
    if settings.model.endswith(("-cloud", ":cloud")):
        return True
    return not is_of_this_network(urlsplit(settings.model_address).hostname or "")
