"""Finding tools by what a request means, beside its words. See `docs/discovery.md`."""

from mcp_bridge.embedding.embedders import Embedder, MiniLM, Vectors
from mcp_bridge.embedding.semantic_index import VectorCache

__all__ = ["Embedder", "MiniLM", "VectorCache", "Vectors"]
