"""Whether tools are searched for by meaning as well, and what is missing for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from caal_node import weights
from caal_node.cli.checks.check import Finding, in_thread, ok, warn
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.models.embedding import FETCH, make_embedder
from caal_node.models.server_embedder import ServerEmbedder
from mcp_bridge import EmbeddingUnavailable

EMBEDDING: Final = "embedding"
_WORDS: Final = "tools are searched for by words alone"


async def look_at_embedding(settings: Settings) -> Sequence[Finding]:
    """Never a failure: without it, searches go by words."""
    if settings.embedding == "off":
        return [ok(EMBEDDING, f"off: {_WORDS}")]
    if settings.embedding == "minilm" and await in_thread(
        lambda: weights.present(weights.MINILM) is None
    ):
        found = f"{weights.MINILM.title} is not in the cache: {_WORDS}"
        return [warn(EMBEDDING, found, f"Run: {FETCH}")]
    try:
        embedder = make_embedder(settings)
    except ConfigError as error:
        return [warn(EMBEDDING, f"{error}: {_WORDS}", "Correct CAAL_EMBEDDING.")]
    assert embedder is not None
    try:
        await embedder.embed(["a first text, which loads the model"])
        began = time.perf_counter()
        rows = await embedder.embed(["how warm will it be tomorrow"])
        took = (time.perf_counter() - began) * 1000
    except EmbeddingUnavailable as error:
        found, _, mend = str(error).rpartition("; ")
        return [warn(EMBEDDING, f"{found or mend}: {_WORDS}", mend if found else "See above.")]
    finally:
        if isinstance(embedder, ServerEmbedder):
            await embedder.aclose()
    return [ok(EMBEDDING, f"{embedder.name}, {rows.shape[1]} dimensions, {took:.0f} ms a request")]
