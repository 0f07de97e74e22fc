"""The embedding that the settings ask for, so that tools are searched for by meaning too.

It runs in this process (MiniLM), or on a model's server: Ollama's `/api/embed`, or OpenAI's
`/embeddings`.

Ollama: https://docs.ollama.com/api/embed. OpenAI-compatible servers (llama.cpp, vLLM, LM Studio
and others): https://platform.openai.com/docs/api-reference/embeddings.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np

from caal_node import weights
from caal_node.config.settings import Settings
from caal_node.core.addresses import ollama_url, server_url
from caal_node.core.errors import ConfigError, ModelError, ModelReplyError
from caal_node.models.backends.http_transport import HttpTransport, TransportDeadlines
from caal_node.models.model_settings import is_elsewhere
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.weights import cache
from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.core.sanitize import redact as without_values
from mcp_bridge.embedding.embedders import Embedder, MiniLM, Vectors, unit
from mcp_bridge.embedding.semantic_index import VectorCache

logger = logging.getLogger("caal_node.tools")

EmbeddingApi: TypeAlias = Literal["ollama", "openai"]

BATCH: Final = 8
"""Texts of one request. With 4,096 dimensions each the answer has 0.8 MB, under its cap."""
MAX_CHARS: Final = 4_096
"""Characters of one text."""
FETCH: Final = f"python -m caal_node.weights {weights.MINILM.key}"
MAX_DIMENSIONS: Final = 16_384
ANSWER_S: Final = 60.0
"""Seconds, since a server may load the model first. Who waits for a search gives up before."""


class ServerEmbedder:
    """An `mcp_bridge.Embedder`. It has to be closed, and can be used again afterwards."""

    def __init__(
        self,
        model: str,
        *,
        api: EmbeddingApi,
        base_url: str,
        api_key: str | None = None,
        keep_alive: int | str | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        """
        Args:
            base_url: Written like OLLAMA_HOST, or CAAL_BASE_URL; the scheme may be left out.
            keep_alive: How long Ollama keeps the model after a request.
            redact: It returns what the server may read of a text. It is called in a thread.

        Raises:
            ConfigError: the address or the key cannot be used.
        """
        try:
            base_url = (
                ollama_url(base_url) if api == "ollama" else server_url(base_url, ("http", "https"))
            )
        except ValueError as error:
            raise ConfigError(f"CAAL_EMBEDDING: {error}") from error
        self.name: Final = f"{api}:{model}@{base_url}"
        self._api: Final = api
        self._redact: Final = redact
        self._fixed: Final[Mapping[str, Any]] = (
            {"model": model, "truncate": True}
            | ({} if keep_alive is None else {"keep_alive": keep_alive})
            if api == "ollama"
            else {"model": model, "encoding_format": "float"}
        )
        fix = f"run: ollama pull {model}" if api == "ollama" else "correct CAAL_EMBEDDING"
        self._new_transport: Final = lambda: HttpTransport(
            base_url,
            model=model,
            api_key=api_key,
            deadlines=TransportDeadlines(between=ANSWER_S),
            start="start it, or correct CAAL_EMBEDDING",
            fix=fix,
        )
        self._transport = self._new_transport()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        rows = [
            await self._batch(await self._shown(texts[start : start + BATCH]))
            for start in range(0, len(texts), BATCH)
        ]
        if len({part.shape[1] for part in rows}) != 1:
            raise EmbeddingUnavailable(f"{self.name} gave vectors of different lengths")
        return np.concatenate(rows)

    async def aclose(self) -> None:
        transport, self._transport = self._transport, self._new_transport()
        await transport.aclose()

    async def _shown(self, texts: Sequence[str]) -> list[str]:
        """Return what the server reads of some texts."""
        redact = self._redact
        if redact is None:
            return [text[:MAX_CHARS] for text in texts]
        # Twice as much is looked through, as a cut may halve what is to be found.
        heads = [text[: 2 * MAX_CHARS] for text in texts]
        return await asyncio.to_thread(lambda: [redact(head)[:MAX_CHARS] for head in heads])

    async def _batch(self, texts: Sequence[str]) -> Vectors:
        path = "/api/embed" if self._api == "ollama" else "/embeddings"
        try:
            answer = await self._transport.fetch(
                "POST", path, {**self._fixed, "input": list(texts)}
            )
        except ModelError as error:
            why = str(error)
            if isinstance(error, ModelReplyError) and error.status == 404:
                url = f"{self._transport.address}{path}"
                why = f"{url} does not exist there (HTTP 404); correct CAAL_EMBEDDING"
            raise EmbeddingUnavailable(why) from error
        try:
            # It may be a megabyte of numbers, so it is not parsed on the event loop.
            return await asyncio.to_thread(_parsed, answer, self._api, len(texts))
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
            raise EmbeddingUnavailable(f"{self.name} answered with no vectors") from error


def _parsed(answer: bytes, api: EmbeddingApi, count: int) -> Vectors:
    """Read the vectors. Raises ValueError, KeyError, TypeError, RecursionError or OverflowError if
    there are none."""
    body = cast("dict[str, Any]", json.loads(answer))
    if api == "ollama":
        rows: Any = body["embeddings"]
    else:
        # They are taken in the order of the texts, whatever the order of the answer.
        rows = [row["embedding"] for row in sorted(body["data"], key=lambda row: row["index"])]
    vectors = np.array(rows, np.float32)
    if (
        vectors.ndim != 2
        or len(vectors) != count
        or not 0 < vectors.shape[1] <= MAX_DIMENSIONS
        or not np.isfinite(vectors).all()
        or not vectors.any(axis=1).all()
    ):
        raise ValueError("not one vector for each text")
    return unit(vectors)


def make_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder, or None if it is off or has no weights. Nothing is downloaded here.

    Raises:
        ConfigError: the server's address or the key cannot be used.
    """
    chosen = settings.embedding
    if chosen == "off":
        return None
    if chosen == "minilm":
        if (folder := weights.present(weights.MINILM)) is None:
            logger.warning(
                "%s is not in the cache, so tools are searched for without a model; run: %s",
                weights.MINILM.title,
                FETCH,
            )
            return None
        return _minilm(folder)
    api = chosen.api or settings.api
    asked = settings.with_model(chosen)
    key = asked.api_key
    redact = None
    if settings.redaction.local_models or is_elsewhere(asked):
        by_value = partial(without_values, secrets=settings.secrets)
        redact = OutgoingRedaction(settings.redaction, by_value).text
    return ServerEmbedder(
        chosen.model,
        api="ollama" if api == "ollama" else "openai",
        base_url=asked.model_address,
        api_key=key.get_secret_value() if key else None,
        keep_alive=settings.keep_alive,
        redact=redact,
    )


def kept_vectors() -> VectorCache:
    """Return where tools' vectors are kept between runs: beside the catalogue of MCP tools."""
    return VectorCache(cache.root() / "mcp")


@lru_cache(maxsize=2)
def _minilm(folder: Path) -> MiniLM:
    """Load it once for the whole process, since it has a thread, and weights."""
    return MiniLM(folder)
