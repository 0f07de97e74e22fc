"""The index of a set of tools by meaning: it is built beside the callers, and queried by them.

Two texts of each tool are embedded, and their vectors are added up. The short text has the words of
the tool's name, its description and the names of its parameters; the long one has the parameters'
descriptions too. The short one says what a tool is for, and the long one tells it from others like
it; together they find more than either.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.core.computing import computed
from mcp_bridge.core.errors import BridgeError, EmbeddingUnavailable
from mcp_bridge.core.files import read_capped, replace_file
from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.embedding.embedders import Embedder, Vectors, unit

# Vectors that are made once for each text, and kept in memory and on disk.
#
# The disk has one file for each embedder, in numpy's .npz format: the SHA-256 of the embedder's
# name, those of the texts, and the vectors as float16, which moves a cosine by less than 0.001.
# Rows stand in the order of their last use, and the oldest go first. A damaged file is reported and
# made anew: losing one costs only the time to embed.

logger = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 16 << 20
"""It holds 20,000 texts of 384 dimensions."""
_FORMAT_BYTES: Final = 1_024
"""More than the .npz format adds to the numbers."""
_DIGEST_BYTES: Final = 32

BATCH: Final = 4
"""Texts are embedded so many at a time. A request waits for the batch before it, which takes 0.3 s
on a slow core."""
BATCH_S: Final = 60.0
"""The deadline of a batch: a server may have to load the model first."""
WRITE_EVERY: Final = 64
"""New vectors are written to disk in such steps, so that a short session leaves some."""
_SAME_MODEL: Final = 0.98
"""From this cosine of a text's cached and fresh vectors on, the model counts as the same. float16
and the rounding of other processors leave 0.999."""


class VectorCache:
    """Reads and writes vectors on disk, which blocks. A bad disk is logged and never raises."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)

    def read(self, embedder: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of those of `texts` that are known, by text."""
        rows = self._load(embedder)
        known = ((text, rows.get(_digest(text))) for text in texts)
        return {text: unit(row.astype(np.float32)) for text, row in known if row is not None}

    def add(self, embedder: str, vectors: Mapping[str, Vectors]) -> None:
        """Keep `vectors`, by text and all of one length, beside those that are there."""
        if not vectors:
            return
        new = {_digest(text): row.astype("<f2") for text, row in vectors.items()}
        (shape,) = {row.shape for row in new.values()}
        # What another process has added meanwhile stays.
        rows = {
            digest: row
            for digest, row in self._load(embedder).items()
            if row.shape == shape and digest not in new
        } | new
        max_rows = (MAX_FILE_BYTES - _FORMAT_BYTES) // (_DIGEST_BYTES + 2 * shape[0])
        kept = list(rows.items())[-max_rows:]
        data = BytesIO()
        np.savez(
            data,
            embedder=np.frombuffer(_digest(embedder), np.uint8),
            digests=np.frombuffer(b"".join(digest for digest, _ in kept), np.uint8),
            rows=np.stack([row for _, row in kept]),
        )
        path = self._path(embedder)
        try:
            replace_file(path, data.getvalue())
        except OSError as error:
            logger.warning("the vectors %s cannot be written (%s)", path, error.strerror)

    def _path(self, embedder: str) -> Path:
        return self._folder / f"{_digest(embedder).hex()[:16]}.vectors"

    def _load(self, embedder: str) -> dict[bytes, Any]:
        """Return the float16 rows of a file by their texts' digests."""
        path = self._path(embedder)
        try:
            data = read_capped(path, MAX_FILE_BYTES)
            with np.load(BytesIO(data), allow_pickle=False) as arrays:
                whole = sum(member.file_size for member in arrays.zip.infolist()) <= MAX_FILE_BYTES
                if not whole or arrays["embedder"].tobytes() != _digest(embedder):
                    raise ValueError("it is too large, or another embedder's")
                digests, rows = arrays["digests"].tobytes(), arrays["rows"]
            if rows.ndim != 2 or rows.dtype != "<f2" or len(digests) != len(rows) * _DIGEST_BYTES:
                raise ValueError("digests and rows do not belong together")
        except FileNotFoundError:
            return {}
        except OSError as error:
            logger.warning("the vectors %s cannot be read (%s)", path, error.strerror)
            return {}
        except Exception:  # numpy and zipfile raise errors of many kinds for a damaged file
            logger.warning("the file of vectors %s is damaged; it is made anew", path)
            return {}
        starts = range(0, len(digests), _DIGEST_BYTES)
        return dict(zip((digests[at : at + _DIGEST_BYTES] for at in starts), rows, strict=True))


class CachingEmbedder:
    """An embedder that makes each vector once; without a `cache` on disk, once a run."""

    def __init__(self, embedder: Embedder, cache: VectorCache | None) -> None:
        self._embedder: Final = embedder
        self._cache: Final = cache
        self._vectors: Mapping[str, Vectors] = {}
        """The vectors of the texts that were asked for last, by text."""

    async def vectors(self, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the texts' vectors by text. Those of other texts are forgotten, except on disk.

        Raises:
            EmbeddingUnavailable, TimeoutError: They cannot be embedded.
            Exception: The embedder raised it.
        """
        found = {text: self._vectors[text] for text in texts if text in self._vectors}
        found |= await self._cached([text for text in texts if text not in found])
        missing = [text for text in texts if text not in found]
        unwritten: dict[str, Vectors] = {}
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            unwritten |= zip(batch, await self.embed(batch, BATCH_S), strict=True)
            if len(unwritten) >= WRITE_EVERY or start + BATCH >= len(missing):
                await self._write(unwritten)
                found, unwritten = found | unwritten, {}
        self._vectors = {text: found[text] for text in texts}
        if missing:
            logger.info("%d texts of tools embedded: %s", len(missing), self._embedder.name)
        return self._vectors

    async def embed(self, texts: Sequence[str], deadline_s: float) -> Vectors:
        """Return a fresh row for each text, whatever is cached.

        Raises:
            EmbeddingUnavailable, TimeoutError: They cannot be embedded.
            Exception: The embedder raised it.
        """
        async with asyncio.timeout(deadline_s):
            rows = await self._embedder.embed(texts)
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise EmbeddingUnavailable(f"{self._embedder.name} gave no row for each text")
        return rows

    async def _cached(self, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the vectors on disk, if the model is still the one that made them.

        To see that, one text is embedded again, which also loads the model before a request.
        """
        if (cache := self._cache) is None or not texts:
            return {}
        cached = await asyncio.to_thread(cache.read, self._embedder.name, texts)
        if not cached:
            return {}
        text, old = next(iter(cached.items()))
        (new,) = await self.embed([text], BATCH_S)
        if new.shape == old.shape and float(new @ old) >= _SAME_MODEL:
            return cached
        logger.warning("%s makes other vectors than before; all are made anew", self._embedder.name)
        return {}

    async def _write(self, vectors: Mapping[str, Vectors]) -> None:
        if self._cache is not None:
            await asyncio.to_thread(self._cache.add, self._embedder.name, dict(vectors))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


# Ranking of tools by words and by meaning together.
#
# A tool's score is what BM25 says, as a share of the most that one word could bring, plus its
# cosine to the request. Two things make the cosines better: what all tools have in common is taken
# off every vector, which spreads models that put every text near every other (Mu and Viswanath,
# https://arxiv.org/abs/1702.01417); and the request is moved towards the tools that come first by
# then, as these share words with others like them (Rocchio's feedback). The numbers here are among
# the best by recall@10 on the spoken requests of `tests/bench`, chosen with BFCL's in sight
# (`tests/bench/discovery.py`).


@dataclass(frozen=True, slots=True)
class VectorWeights:
    """How much vectors of one kind count."""

    cosine: float
    """The weight of a cosine beside BM25's share."""
    min_cosine: float
    """From this cosine on, a tool matches that shares no word with the request."""
    min_score: float
    """The score of the best tool below which none is told with a person's words."""


SENTENCES: Final = VectorWeights(2.5, 0.08, 0.85)
"""Of a model that reads sentences. With a larger `min_cosine`, the household's requests lose right
tools; with a smaller one, they gain only wrong ones. It lets three more tools match each of them.
"""
WORDS: Final = VectorWeights(1.0, 0.2, 0.52)
"""Of the table of words. Chosen on the household's requests, those that need no
tool, and every second one of SLURP's development set."""
_PRIOR_TOOLS: Final = 10
"""The common part is a mean over the tools and so many zero vectors: the mean of two or three tools
alone is what they are, and not what they have in common."""
_FEEDBACK_TOOLS: Final = 5
_FEEDBACK_WEIGHT: Final = 0.5
"""The request is moved towards so many tools, by this much."""
MAX_SEMANTIC_MATCHES: Final = 10
"""At most so many tools match in this way: the nearest."""


class ToolVectors:
    """The vectors of a set of tools, without what they have in common. It is immutable.

    Args:
        rows: One vector for each tool, of unit length.
    """

    def __init__(self, rows: Vectors, weights: VectorWeights = SENTENCES) -> None:
        self.weights: Final = weights
        self._common: Final[Vectors] = rows.sum(axis=0) / np.float32(len(rows) + _PRIOR_TOOLS)
        self.rows: Final = unit(rows - self._common)

    def hybrid_scores(
        self, word_scores: NDArray[np.float64], max_word_score: float, request: Vectors
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the tools' scores, and which tools match.

        Args:
            word_scores: BM25's score of each tool; a tool above 0 matches, whatever it means.
            max_word_score: The most that one word can bring in BM25.
            request: The request's vector.
        """
        shares = word_scores / max_word_score
        request = unit(request - self._common)
        cosines = self.rows @ request
        matches = word_scores > 0
        candidates = np.where(matches | (cosines < self.weights.min_cosine), -np.inf, cosines)
        nearest = np.argsort(-candidates, kind="stable")[:MAX_SEMANTIC_MATCHES]
        matches[nearest[np.isfinite(candidates[nearest])]] = True
        weight = self.weights.cosine
        first = np.argsort(-(shares + weight * cosines), kind="stable")[:_FEEDBACK_TOOLS]
        moved = unit(request + np.float32(_FEEDBACK_WEIGHT) * self.rows[first].mean(axis=0))
        return shares + weight * (self.rows @ moved), matches


REQUEST_S: Final = 1.0
"""The deadline of a request's vector, past which the search goes by words: a person is waiting."""
MAX_LATE: Final = 3
"""After so many late vectors in a row, the embedder is left alone for a while."""
LATE_PAUSE_S: Final = 60.0
"""The length of that while. A machine that is busy now has time later, and each try costs a person
`REQUEST_S`."""
MAX_SHORT_CHARS: Final = 1_000
MAX_LONG_CHARS: Final = 700
"""These are some 200 and 150 word pieces, 0.1 s of one core each; what follows repeats itself."""
_DESCRIPTION_CHARS: Final = 120
"""The cap of one parameter's description."""
_WORD_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")


@dataclass(frozen=True, slots=True)
class SemanticQuery:
    """What a search knows beside words: the tools' vectors, and those of the requests by text."""

    tools: ToolVectors
    requests: Mapping[str, Vectors]


class WordSpace:
    """The tools' vectors by the table of words, which needs no model. It is immutable."""

    def __init__(self, tools: Sequence[ToolInfo]) -> None:
        texts = [tool_texts(tool) for tool in tools]
        distinct = list(dict.fromkeys(text for of_tool in texts for text in of_tool))
        rows = dict(zip(distinct, embed_words(distinct), strict=True))
        self._tools: Final = _tool_vectors(texts, rows, WORDS) if texts else None

    def query(self, texts: Sequence[str]) -> SemanticQuery | None:
        """Return what is needed to find `texts`; one without a known word goes by words alone."""
        if self._tools is None or not texts:
            return None
        rows = zip(texts, embed_words(texts), strict=True)
        return SemanticQuery(self._tools, {text: row for text, row in rows if row.any()})


class SemanticIndex:
    """Holds the vectors of one set of tools at a time. Use it on one event loop, and close it.

    A failure is logged once, and leaves the searches to words until the tools change.

    Args:
        cache: Keeps vectors between runs; with None they are made anew.
        request_s: The deadline of a request's vector, in seconds.
        late_pause_s: The pause after too many late vectors, in seconds.
    """

    def __init__(
        self,
        embedder: Embedder,
        cache: VectorCache | None = None,
        *,
        request_s: float = REQUEST_S,
        late_pause_s: float = LATE_PAUSE_S,
    ) -> None:
        self._embedder: Final = CachingEmbedder(embedder, cache)
        self._request_s: Final = request_s
        self._late_pause_s: Final = late_pause_s
        self._tools: tuple[ToolInfo, ...] = ()
        self._vectors: ToolVectors | None = None
        self._late_in_a_row = 0
        self._paused_until = 0.0
        self._building: asyncio.Task[None] | None = None

    def set_tools(self, tools: tuple[ToolInfo, ...]) -> None:
        """Begin to build the index of `tools`, in place of any others."""
        if tools is self._tools:
            return
        self._tools, self._vectors = tools, None
        self._late_in_a_row, self._paused_until = 0, 0.0
        previous, self._building = self._building, None
        if previous is not None:
            previous.cancel()
        if tools or previous is not None:
            self._building = asyncio.create_task(
                self._build(tools, previous), name="mcp-semantic-index"
            )

    async def query(
        self, tools: tuple[ToolInfo, ...], texts: Sequence[str], *, wait_s: float = 0.0
    ) -> SemanticQuery | None:
        """Return what is needed to find `texts` among `tools`; None means to go by the table.

        Args:
            wait_s: The longest wait for the tools' own vectors, where they are still being made.
        """
        if not texts or tools is not self._tools:
            return None
        if wait_s and self._building is not None and not self._building.done():
            await asyncio.wait({self._building}, timeout=wait_s)
        paused = asyncio.get_running_loop().time() < self._paused_until
        if (vectors := self._vectors) is None or tools is not self._tools or paused:
            return None
        try:
            rows = await self._embedder.embed(texts, self._request_s)
        except TimeoutError:
            self._count_late()
            return None
        except Exception as error:  # a host's embedder may raise anything
            self._give_up(vectors, _reason(error))
            return None
        if rows.shape[1] != vectors.rows.shape[1]:
            self._give_up(vectors, "its vectors have another length than before")
            return None
        self._late_in_a_row = 0
        return SemanticQuery(vectors, dict(zip(texts, rows, strict=True)))

    async def aclose(self) -> None:
        """Forget the tools, and end the work for them."""
        self._tools, self._vectors = (), None
        if self._building is not None:
            self._building.cancel()
            await asyncio.gather(self._building, return_exceptions=True)

    async def _build(
        self, tools: tuple[ToolInfo, ...], previous: asyncio.Task[None] | None
    ) -> None:
        if previous is not None:
            await asyncio.gather(previous, return_exceptions=True)
        if not tools:
            return
        try:
            texts = await computed(lambda: [tool_texts(tool) for tool in tools])
            distinct = list(dict.fromkeys(text for of_tool in texts for text in of_tool))
            rows = await self._embedder.vectors(distinct)
            vectors = await computed(_tool_vectors, texts, rows)
        except Exception as error:  # a host's embedder may raise anything
            self._give_up(None, _reason(error))
            return
        if tools is self._tools:
            self._vectors = vectors

    def _count_late(self) -> None:
        self._late_in_a_row += 1
        if self._late_in_a_row == 1:
            logger.warning("no vector of a request within %g s: by words", self._request_s)
        if self._late_in_a_row < MAX_LATE:
            return
        self._paused_until = asyncio.get_running_loop().time() + self._late_pause_s
        if self._late_in_a_row == MAX_LATE:
            logger.warning(
                "tools are searched for by words for %g s at a time: the embedder is too slow",
                self._late_pause_s,
            )

    def _give_up(self, vectors: ToolVectors | None, reason: str) -> None:
        """Search by words alone until the tools change, if `vectors` are still theirs."""
        if self._vectors is vectors:
            self._vectors = None
            logger.warning("tools are searched for without a model: %s", reason)


def _tool_vectors(
    texts: Sequence[Sequence[str]],
    rows: Mapping[str, Vectors],
    weights: VectorWeights = SENTENCES,
) -> ToolVectors:
    sums = [np.sum([rows[text] for text in of_tool], axis=0) for of_tool in texts]
    return ToolVectors(unit(np.stack(sums)), weights)


def _reason(error: Exception) -> str:
    """Return a text for the log: only the bridge's own errors are known to quote nobody."""
    return str(error) if isinstance(error, BridgeError) else type(error).__name__


def tool_texts(tool: ToolInfo) -> tuple[str, ...]:
    """Return one or two texts. Tools with the same texts are one to the embedder."""
    declared: object = tool.input_schema.get("properties")
    properties: Mapping[str, object] = (
        cast("Mapping[str, object]", declared) if isinstance(declared, Mapping) else {}
    )
    utterances = (example.say for example in tool.examples)
    about = " ".join((f"{_words(tool.tool)}.", tool.description, *utterances))
    names = [_words(name) for name in properties]
    short = " ".join((about, *names))[:MAX_SHORT_CHARS].strip()
    described = list(_described_parameters(properties))
    if not described:
        return (short,)
    return short, " ".join((about, *described))[:MAX_LONG_CHARS].strip()


def _described_parameters(properties: Mapping[str, object]) -> Iterator[str]:
    for name, schema in properties.items():
        if isinstance(schema, Mapping):
            description = cast("Mapping[str, Any]", schema).get("description")
            if isinstance(description, str) and description.strip():
                yield f"{_words(name)}: {description[:_DESCRIPTION_CHARS]}"


def _words(name: str) -> str:
    return _WORD_BOUNDARY.sub(" ", name[:200]).strip()


# Vectors of texts from a table of English words: meaning that needs no model.
#
# A word's vector is the one that all-MiniLM-L6-v2 gives to the word alone, in fewer dimensions, as
# whole numbers, and the smaller the more often the word is used. A text's vector is the sum of its
# words'. This is how Model2Vec (https://github.com/MinishLab/model2vec) makes a table of a model;
# the weights of words are those of Arora et al., "A Simple but Tough-to-Beat Baseline for Sentence
# Embeddings". `python -m tests.word_vectors` makes the table, `word_vectors.npz`, of MiniLM's
# weights (Apache-2.0).

MAX_CHARS: Final = 1_024
"""Characters of a text that are read: a minute of speech, and all of a tool's."""
_TABLE: Final = Path(__file__).with_name("word_vectors.npz")
_WORD: Final = re.compile(r"[a-z]+|[0-9]+")


def embed_words(texts: Sequence[str]) -> Vectors:
    """Return one row for each text, all zeros where no word is known.

    A text of `MAX_CHARS` takes half a millisecond at most. The table is read at the first use.
    """
    places, rows = word_table()
    found = np.zeros((len(texts), rows.shape[1]), np.float32)
    for number, text in enumerate(texts):
        words = _WORD.findall(text[:MAX_CHARS].lower())
        known = [places[word] for word in words if word in places]
        found[number] = rows[known].sum(axis=0, dtype=np.int32)
    return unit(found)


@cache
def word_table() -> tuple[Mapping[str, int], NDArray[np.int8]]:
    """Return each word's place, and the words' vectors: 16,000 of 96 numbers, 1.5 MB."""
    with np.load(_TABLE, allow_pickle=False) as read:
        words = read["words"].tobytes().decode().split("\n")
        return {word: place for place, word in enumerate(words)}, read["rows"]
