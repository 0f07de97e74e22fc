"""The index of a set of tools by meaning: it is built beside the callers, and queried by them.

Two texts of each tool are embedded, and their vectors are added up. The short text has the words of
the tool's name, its description and the names of its parameters; the long one has the parameters'
descriptions too. The short one says what a tool is for, and the long one tells it from others like
it; together they find more than either.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.core.errors import BridgeError
from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.embedding.base import Embedder, Vectors, unit
from mcp_bridge.embedding.vector_cache import CachingEmbedder, VectorCache

# Ranking of tools by words and by meaning together.
#
# A tool's score is what BM25 says, as a share of the most that one word could bring, plus its
# cosine to the request. Two things make the cosines better: what all tools have in common is taken
# off every vector, which spreads models that put every text near every other (Mu and Viswanath,
# https://arxiv.org/abs/1702.01417); and the request is moved towards the tools that come first by
# then, as these share words with others like them (Rocchio's feedback). The numbers here are among
# the best by recall@10 on the spoken requests of `tests/bench`, chosen with BFCL's in sight
# (`tests/bench/discovery.py`).

_COSINE_WEIGHT: Final = 2.5
"""The weight of a cosine beside BM25's share."""
_PRIOR_TOOLS: Final = 10
"""The common part is a mean over the tools and so many zero vectors: the mean of two or three tools
alone is what they are, and not what they have in common."""
_FEEDBACK_TOOLS: Final = 5
_FEEDBACK_WEIGHT: Final = 0.5
"""The request is moved towards so many tools, by this much."""
MIN_COSINE: Final = 0.08
"""From this cosine on, a tool matches that shares no word with the request. With more, the
household's requests lose right tools; with less, they gain only wrong ones. It lets three more
tools match each of them."""
MAX_SEMANTIC_MATCHES: Final = 10
"""At most so many tools match in this way: the nearest."""


class ToolVectors:
    """The vectors of a set of tools, without what they have in common. It is immutable.

    Args:
        rows: One vector for each tool, of unit length.
    """

    def __init__(self, rows: Vectors) -> None:
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
        candidates = np.where(matches | (cosines < MIN_COSINE), -np.inf, cosines)
        nearest = np.argsort(-candidates, kind="stable")[:MAX_SEMANTIC_MATCHES]
        matches[nearest[np.isfinite(candidates[nearest])]] = True
        first = np.argsort(-(shares + _COSINE_WEIGHT * cosines), kind="stable")[:_FEEDBACK_TOOLS]
        moved = unit(request + np.float32(_FEEDBACK_WEIGHT) * self.rows[first].mean(axis=0))
        return shares + _COSINE_WEIGHT * (self.rows @ moved), matches


logger = logging.getLogger(__name__)

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
        """Return what is needed to find `texts` among `tools`; None means to go by words alone.

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
            texts = await asyncio.to_thread(lambda: [tool_texts(tool) for tool in tools])
            distinct = list(dict.fromkeys(text for of_tool in texts for text in of_tool))
            rows = await self._embedder.vectors(distinct)
            vectors = await asyncio.to_thread(_tool_vectors, texts, rows)
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
            logger.warning("tools are searched for by words alone: %s", reason)


def _tool_vectors(texts: Sequence[Sequence[str]], rows: Mapping[str, Vectors]) -> ToolVectors:
    sums = [np.sum([rows[text] for text in of_tool], axis=0) for of_tool in texts]
    return ToolVectors(unit(np.stack(sums)))


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
