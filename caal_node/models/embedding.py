"""Makes the embedding that the settings ask for, so that tools are searched for by meaning too."""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path
from typing import Final

from caal_node import weights
from caal_node.config.settings import Settings
from caal_node.models.server_embedder import ServerEmbedder
from caal_node.weights import cache
from mcp_bridge import Embedder, MiniLM, VectorCache

logger = logging.getLogger("caal_node.tools")

FETCH: Final = f"python -m caal_node.weights {weights.MINILM.key}"


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
                "%s is not in the cache, so tools are searched for by words alone; run: %s",
                weights.MINILM.title,
                FETCH,
            )
            return None
        return _minilm(folder)
    api = chosen.api or settings.api
    asked = settings.with_model(chosen)
    key = asked.api_key
    return ServerEmbedder(
        chosen.model,
        api="ollama" if api == "ollama" else "openai",
        base_url=asked.model_address,
        api_key=key.get_secret_value() if key else None,
        keep_alive=settings.keep_alive,
    )


def kept_vectors() -> VectorCache:
    """Return where tools' vectors are kept between runs: beside the catalogue of MCP tools."""
    return VectorCache(cache.root() / "mcp")


@lru_cache(maxsize=2)
def _minilm(folder: Path) -> MiniLM:
    """Load it once for the whole process, since it has a thread, and weights."""
    return MiniLM(folder)
