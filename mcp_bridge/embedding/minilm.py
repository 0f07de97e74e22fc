"""An embedder in this process: all-MiniLM-L6-v2, of 22 million parameters and 384 dimensions.

It reads English, and is at https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 under
Apache-2.0. A text of forty word pieces takes some 20 ms of one core.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.embedding.base import Vectors
from mcp_bridge.embedding.bert import Bert, read_tensors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NAME: Final = "all-MiniLM-L6-v2"
WEIGHTS: Final = "model.safetensors"
TOKENIZER: Final = "tokenizer.json"
MAX_PIECES: Final = 256
"""The model was trained to read so much of a text; the rest is cut off."""
MAX_CHARS: Final = 4_096
"""The cap of a text: 256 word pieces of any language have fewer characters."""
MAX_TOKENIZER_BYTES: Final = 16 << 20


class MiniLM:
    """Embeds texts, one batch at a time, in a thread of its own. It loads at its first use.

    Args:
        folder: The folder of model.safetensors and tokenizer.json.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.name: Final = NAME
        self._folder: Final = Path(folder)
        self._thread: Final = ThreadPoolExecutor(1, "minilm")
        self._loaded: tuple[Tokenizer, Bert] | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed as `Embedder.embed` says. A batch that nobody waits for is finished."""
        cut = [text[:MAX_CHARS] for text in texts]
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, cut)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        tokenizer, bert = self._loaded = self._loaded or self._load()
        rows = np.empty((len(texts), bert.dimensions), np.float32)
        for number, text in enumerate(texts):
            # The tokenizer refuses a lone surrogate.
            plain = text.encode(errors="replace").decode()
            rows[number] = bert.vector(tokenizer.encode(plain).ids)
        return rows

    def _load(self) -> tuple[Tokenizer, Bert]:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EmbeddingUnavailable(
                'the tokenizers library is not installed; run: pip install "caal-node[embedding]"'
            ) from error
        try:
            path = self._folder / TOKENIZER
            if path.stat().st_size > MAX_TOKENIZER_BYTES:
                raise ValueError(f"{TOKENIZER} is too large")
            tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
            bert = Bert(read_tensors(self._folder / WEIGHTS))
        except Exception as error:  # the library raises bare Exceptions for a bad file
            raise EmbeddingUnavailable(
                f"{self._folder}: {NAME} cannot be read "
                f"({type(error).__name__}: {str(error)[:120]}); fetch it again"
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_PIECES)  # pyright: ignore[reportUnknownMemberType]  # its keywords have no types
        return tokenizer, bert
