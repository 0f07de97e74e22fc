"""What every server of OpenAI's API shares, whichever of its endpoints is asked."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError

from caal_node.core.addresses import server_url
from caal_node.core.errors import ConfigError, ModelMissing, ModelReplyError
from caal_node.models.backends.base import Capabilities, Usage
from caal_node.models.backends.http_transport import HttpTransport, TransportDeadlines
from caal_node.models.backends.lenient_types import OR_NONE, Count

DEFAULT_URL: Final = "http://127.0.0.1:8080/v1"
"""Where llama.cpp's server listens unless told otherwise."""
_NAMES_SHOWN: Final = 5


class _Details(BaseModel):
    cached_tokens: Count = None


class TokenCounts(BaseModel):
    """`usage`. llama.cpp and vLLM count what came from the cache, Ollama does not."""

    prompt_tokens: Count = None
    completion_tokens: Count = None
    prompt_tokens_details: Annotated[_Details | None, OR_NONE] = None

    def read(self, timings: LlamaTimings | None) -> Usage:
        details = self.prompt_tokens_details
        cached = (details and details.cached_tokens) or (timings and timings.cache_n)
        return Usage(self.prompt_tokens or 0, self.completion_tokens or 0, cached or 0)


class LlamaTimings(BaseModel):
    """llama.cpp's own figures; older builds count cached tokens only here."""

    cache_n: Count = None


class _Served(BaseModel):
    id: str
    owned_by: str | None = None
    max_model_len: int | None = None  # vLLM


class _Models(BaseModel):
    data: list[_Served]


class _Settings(BaseModel):
    n_ctx: int | None = None


class _TemplateCaps(BaseModel):
    supports_tools: bool | None = None


class _Props(BaseModel):
    """llama.cpp's `GET /props`."""

    default_generation_settings: _Settings = Field(default_factory=_Settings)
    chat_template: str = ""
    chat_template_caps: _TemplateCaps = Field(default_factory=_TemplateCaps)


def openai_wire(
    base_url: str | None, *, model: str, api_key: str | None, deadlines: TransportDeadlines | None
) -> HttpTransport:
    """Connections to `base_url`, whose paths begin after `/v1`; a bare host gets it appended.

    Raises:
        ConfigError: the address or the key cannot be used.
    """
    try:
        url = server_url(base_url or DEFAULT_URL, ("http", "https"))
    except ValueError as error:
        raise ConfigError(f"CAAL_BASE_URL: {error}") from error
    if url.count("/") == 2:
        url += "/v1"
    return HttpTransport(
        url,
        model=model,
        api_key=api_key,
        deadlines=deadlines or TransportDeadlines(),
        start="start the server, or set CAAL_BASE_URL",
        mend="start the server with it, or set CAAL_MODEL to one that it has",
    )


async def served_capabilities(wire: HttpTransport, model: str) -> Capabilities:
    """What the server tells of `model`; most tell little.

    Raises:
        ModelMissing: it lists its models, and this one is not among them.
        ModelError: as `Backend.capabilities`.
    """
    try:
        said: Any = await wire.fetch("GET", "/models")
        models = _Models.model_validate_json(said).data
    except ModelReplyError as error:
        if error.status != 404:
            raise
        return Capabilities()  # it has no list
    except ValidationError as error:
        raise ModelReplyError(f"{wire.address} does not answer like an OpenAI server") from error
    if len(models) == 1 and models[0].owned_by == "llamacpp":
        return await _llama_capabilities(wire)  # its one model answers to any name
    named = [m for m in models if m.id in (model, f"{model}:latest")]
    if not named:
        names = ", ".join(m.id for m in models[:_NAMES_SHOWN]) or "none"
        raise ModelMissing(f"{wire.address} has no model {model}; it has: {names}")
    return Capabilities(context_tokens=named[0].max_model_len)


async def _llama_capabilities(wire: HttpTransport) -> Capabilities:
    try:
        props = _Props.model_validate_json(await wire.fetch("GET", "/../props"))
    except (ModelReplyError, ValidationError):
        return Capabilities(schema=True)  # it was started without the endpoint
    template = props.chat_template
    return Capabilities(
        tools=props.chat_template_caps.supports_tools,
        thinking="enable_thinking" in template or "<think>" in template,
        schema=True,
        context_tokens=props.default_generation_settings.n_ctx,
    )
