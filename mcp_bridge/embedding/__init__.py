"""Finding tools by what a request means, beside its words. Optional: see `docs/discovery.md`."""

from mcp_bridge.embedding.kept import KeptVectors
from mcp_bridge.embedding.minilm import MiniLM
from mcp_bridge.embedding.port import Embedder, Vectors

__all__ = ["Embedder", "KeptVectors", "MiniLM", "Vectors"]
