"""Which weights a server answers with, and which version it is. A finding holds for both.

It is asked over plain HTTP: Ollama's `/api/version` and `/api/tags` (formats of 0.17.4), which it
has beside its copy of OpenAI's API too; else OpenAI's list, with llama.cpp's `/props` or vLLM's
`/version` beside it.
"""

from __future__ import annotations

import asyncio
import hashlib
from importlib.metadata import version
from pathlib import PurePath
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from caal_node.config.settings import Settings
from caal_node.core.errors import ModelMissing, ModelReplyError, ModelTimeout
from caal_node.core.model_ref import CLOUD
from caal_node.evaluation.result import Identity
from caal_node.models.backends.http_transport import HttpTransport, TransportDeadlines
from caal_node.models.backends.llama_server import LlamaProps
from caal_node.models.backends.openai_server import ListedModel, ModelList
from caal_node.models.embedded_engine import require_engine
from caal_node.weights.gguf import find_gguf

FETCH: Final = TransportDeadlines(connect=3.0, first=5.0, between=5.0)
"""Deadlines of small questions that every server answers at once, also while a model writes."""
IDENTIFY_S: Final = 3.0
"""Seconds for all of them when a room opens, which waits for this."""
TEMPLATE_CHARS: Final = 12
"""Characters of a chat template's digest. Ollama's digest of a model holds its template already."""
NAMES_SHOWN: Final = 5
"""Names of other models in a message."""

M = TypeVar("M", bound=BaseModel)


class _Version(BaseModel):
    version: str


class _Tag(BaseModel):
    name: str
    digest: str = ""


class _Tags(BaseModel):
    models: list[_Tag]


async def identify(settings: Settings) -> Identity:
    """Ask the settings' server which model answers there.

    Raises:
        ModelUnreachable, ModelTimeout: nobody answers.
        ModelMissing: the server does not have the settings' model.
        ModelReplyError: it is no model server, or refuses the key.
        ConfigError: the embedded engine or its model is not here.
    """
    if settings.api == "livekit":  # A plugin's model tells nothing of its weights.
        return Identity("livekit", version("livekit-agents"), settings.model)
    if settings.api in CLOUD:
        return Identity(settings.api, "", settings.model)
    if settings.api == "embedded":
        return await asyncio.to_thread(_embedded, settings.model)
    key = settings.api_key.get_secret_value() if settings.api_key else None
    base = settings.model_address.removesuffix("/v1")
    variable = "CAAL_BASE_URL" if settings.base_url else "OLLAMA_HOST"
    transport = HttpTransport(
        base,
        model=settings.model,
        api_key=key,
        deadlines=FETCH,
        start=f"start the server (Ollama: ollama serve), or set {variable}",
        fix=f"run: ollama pull {settings.model}",
    )
    try:
        listed = (
            None if settings.api == "ollama" else await _read(transport, "/v1/models", ModelList)
        )
        if listed and listed.llama:
            return await _llama(transport, listed.llama)
        if (said := await _read(transport, "/api/version", _Version)) is not None:
            return await _ollama(transport, settings.model, said.version)
        return await _openai(transport, settings.model, listed)
    finally:
        await transport.aclose()


async def identify_in_time(settings: Settings) -> Identity:
    """Do as `identify` within `IDENTIFY_S`.

    Raises:
        ModelError, ConfigError: as `identify`; no answer in time is a ModelTimeout.
    """
    try:
        async with asyncio.timeout(IDENTIFY_S):
            return await identify(settings)
    except TimeoutError as error:
        raise ModelTimeout(f"the server did not answer in {IDENTIFY_S:g} s") from error


def _embedded(model: str) -> Identity:
    require_engine()
    path = find_gguf(model)
    return Identity("embedded", version("xllamacpp"), f"{path.name}:{path.stat().st_size}")


async def _ollama(transport: HttpTransport, model: str, release: str) -> Identity:
    tags = await _read(transport, "/api/tags", _Tags)
    listed = {tag.name: tag.digest for tag in (tags.models if tags else ())}
    name = model if model in listed else f"{model}:latest"
    if tags and name not in listed:
        raise ModelMissing(
            f"{transport.address} has no model {model}; it has: {_some(list(listed))}. "
            f"Run: ollama pull {model}"
        )
    return Identity("ollama", release, listed.get(name) or model)


async def _openai(transport: HttpTransport, model: str, listed: ModelList | None) -> Identity:
    if listed is None:
        raise ModelReplyError(
            f"{transport.address} has no list of models; correct the address, or CAAL_API"
        )
    served = next((m for m in listed.data if m.is_called(model)), None)
    if served is None:
        has = _some([m.id for m in listed.data])
        raise ModelMissing(f"{transport.address} has no model {model}; choose one of: {has}")
    said = await _read(transport, "/version", _Version)
    kind = "vllm" if served.owned_by == "vllm" else "openai-compatible"
    return Identity(kind, said.version if said else "", served.root or served.id)


async def _llama(transport: HttpTransport, served: ListedModel) -> Identity:
    props = await _read(transport, "/props", LlamaProps) or LlamaProps()
    # A digest of gigabytes is too much to ask for. Name and length tell files apart.
    name = PurePath(props.model_path or served.id).name
    size = f":{served.meta.size or 0}" if served.meta else ""
    template = hashlib.sha256(props.chat_template.encode()).hexdigest()[:TEMPLATE_CHARS]
    return Identity("llama.cpp", props.build_info or "", f"{name}{size}:{template}")


async def _read(transport: HttpTransport, path: str, kind: type[M]) -> M | None:
    """Return the answer as `kind`; None if the server has no such page or answers otherwise."""
    try:
        return kind.model_validate_json(await transport.fetch("GET", path))
    except ValidationError:
        return None
    except ModelReplyError as error:
        if error.status in (401, 403):
            raise
        return None


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more if names else "none"
