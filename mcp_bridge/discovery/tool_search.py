"""Finds tools by globs and by words.

A pattern with `*`, `?` or `[` is a glob over the exposed name and the tool's own. Its words and
those of the request rank the names that match; its own are looked for as well, behind these.
Anything else is words, ranked by `ToolIndex`; a tool's exact name stands before everything.
Dates, times, places and sums of money in a request count as the words for them too (`value_kinds`).
Several patterns are several needs: the answer takes from each in turn, so that none hides the
others. Upper and lower case are the same.

Where vectors of the tools and of the words are given, words are ranked both by what they are and by
what they mean (`mcp_bridge/embedding`), and a tool that is near in meaning matches without a word
in common. Globs and exact names say what they want, and are looked for by their words alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from itertools import zip_longest
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.discovery.bm25 import BM25Index, FieldWeight, Vocabulary, split_terms
from mcp_bridge.embedding.semantic_index import SemanticQuery, WordSpace

# Offers a model the tool `mcp_discover` in the place of many schemas, and makes its answers.
#
# The answer names every match: of the best it tells all that a call needs, as many as fit a budget
# of bytes; of the rest it gives the names, and of what finds no room even so, the number.

DISCOVER: Final = "mcp_discover"
TOOLS_MAX: Final = 4
"""Tools that one search makes callable."""
TEXT_BYTES: Final = 4_000
"""What is told of them together: some 1,000 tokens, four tools with long arguments."""
NAMES_BYTES: Final = 400
"""The names that are told beside them: some 100 tokens, a dozen names."""
SERVER_CHARS: Final = 400
"""The names of servers in the tool's own description: twenty of them."""
_PATTERNS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "patterns": {
            "type": "array",
            "items": {"type": "string"},
            "description": "words for what is needed, or names with *, one for each need",
        }
    },
    "required": ["patterns"],
}


def discover_tool(servers: Sequence[str]) -> ToolInfo:
    """Gives the one tool that stands for all of `servers`."""
    named = _within(servers, SERVER_CHARS)
    more = f" and {len(servers) - len(named)} more" if len(named) < len(servers) else ""
    return ToolInfo(
        name=DISCOVER,
        server="",
        tool=DISCOVER,
        description=(
            "Find tools that are not listed yet, before saying that something cannot be done. "
            "What it finds can be called afterwards. "
            f"Sources: {', '.join(named)}{more}."
        ),
        input_schema=_PATTERNS,
        read_only=True,
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """What one search found."""

    ready: Mapping[str, str]
    """The names of the best matches that fit the budget, best first, each with what is told of
    it."""
    others: tuple[str, ...]
    """Further matching names."""
    left_out: int
    """Matches that found no room at all."""

    def answer(self) -> Mapping[str, Any]:
        """Gives the answer that the model reads."""
        if not self.ready and not self.others:
            return {"found": 0, "note": "Nothing matches. Try other words, or say it is not there."}
        told: dict[str, Any] = {"callable_now": dict(self.ready)}
        if self.others:
            told["also_match"] = list(self.others)
            told["note"] = "These are callable too; search for a name to see what it needs."
        if self.left_out:
            told["left_out"] = f"{self.left_out} more match; ask for something narrower."
        return told


def offer(
    found: Iterable[str],
    text: Callable[[str], str],
    *,
    tools_max: int = TOOLS_MAX,
    text_bytes: int = TEXT_BYTES,
    names_bytes: int = NAMES_BYTES,
) -> Offer:
    """Divides the names `found`, best first, into what fits the budget and what does not.

    Args:
        text: Gives what a model has to read of a tool before it can call it.

    A tool too large for what is left does not keep a smaller, later one out. The best match is
    always ready, however large, as nothing could be done with its name alone.
    """
    ready: dict[str, str] = {}
    rest: list[str] = []
    left = text_bytes
    for name in found:
        # What is far behind is not written at all.
        told = text(name) if len(ready) < tools_max and len(rest) < tools_max else None
        if told is not None and ((size := len(told.encode())) <= left or not ready):
            ready[name] = told
            left -= size
        else:
            rest.append(name)
    named = _within(rest, names_bytes)
    return Offer(ready, tuple(named), len(rest) - len(named))


def _within(names: Sequence[str], max_bytes: int) -> list[str]:
    """Gives the first of `names` that fit, each with two bytes of punctuation."""
    kept: list[str] = []
    for name in names:
        max_bytes -= len(name.encode()) + 2
        if max_bytes < 0:
            break
        kept.append(name)
    return kept


# The rule by which tools are told for a person's words: which ones, and how many.
#
# It goes by how far the scores lie apart. Where one tool is far ahead it is told alone, where
# several are close together all of them are, and where none scores well, none is. A request for two
# things is judged part by part, so that the better match of one part does not hide the other's.
#
# The numbers were chosen on the household's requests and on the tuning set of those that need no
# tool (`tests/bench/discovery.py`); the other sets there were only measured.

MAX_TOLD: Final = 12
"""Tools that are told with one request at most."""
_MAX_A_PART: Final = 10
"""Tools for one part of it. So many are told where many tools are nearly alike; the household's
requests have three or four with 6 as with 10."""
_MAX_PARTS: Final = 3
_SECOND_SHARE: Final = 0.4
"""The second best is told from this share of the best one's score on. Most requests that the best
tool is not for are for the second."""
_FURTHER_SHARE: Final = 0.5
_PART_WORDS: Final = 2
"""A part with fewer words is a list's last item ("tea and sugar"), and nothing to do."""
_PART_LEAST: Final = 0.45
"""The score by words from which a tool fits a part."""
LEAST_BY_WORDS: Final = 0.3
"""The score of the best tool below which none is told, where there is no vector. A word that stands
in the description of a single tool brings a third; nothing can bring more than 1 by one word."""


def fitting(scores: NDArray[np.float64], least: float) -> list[int]:
    """Gives the numbers of the tools to tell, best first; none where the best has under `least`."""
    order = np.argsort(-scores, kind="stable")[:_MAX_A_PART]
    if not len(order) or (best := float(scores[order[0]])) < least:
        return []
    shares = [0.0, _SECOND_SHARE, *[_FURTHER_SHARE] * _MAX_A_PART]
    return [
        int(number)
        for number, share in zip(order, shares, strict=False)
        if scores[number] >= share * best
    ]


def taken_in_turn(lists: Sequence[Sequence[int]]) -> list[int]:
    """Gives the numbers of all lists, each once: the first of each, then the second, and so on."""
    turns = zip_longest(*lists, fillvalue=-1)
    numbers = dict.fromkeys(number for turn in turns for number in turn)
    numbers.pop(-1, None)
    return list(numbers)


@dataclass(slots=True)
class _Part:
    text: str
    best: int


def parts_of(
    pieces: Sequence[str], scores_of: Callable[[str], NDArray[np.float64]]
) -> tuple[str, ...]:
    """Gives the parts of a request that ask for different things; none where it asks for one.

    Args:
        pieces: What stands between its joining words, in order.
        scores_of: Gives the tools' scores by words.

    A piece that no tool fits by itself, or the same tool as another one, belongs to the one before.
    """
    parts: list[_Part] = []
    for piece in pieces if len(pieces) > 1 else ():
        scores = scores_of(piece)
        best = int(scores.argmax()) if len(scores) else -1
        asks = len(piece.split()) >= _PART_WORDS and best >= 0 and scores[best] >= _PART_LEAST
        if asks and all(part.best != best for part in parts):
            parts.append(_Part(piece, best))
        elif parts:
            parts[-1].text += f" {piece}"
    return tuple(part.text for part in parts[:_MAX_PARTS]) if len(parts) > 1 else ()


# Ranks tools by the words of a request: BM25F over four fields of a tool.
#
# The weights were chosen on `tests/bench`'s spoken requests over household tools and then measured,
# unchanged, on the functions of BFCL (`tests/bench/discovery.py`).

_FIELDS: Final = (
    FieldWeight(3.0, 0.2),  # the name: few words, each chosen
    FieldWeight(1.0, 0.75),  # the description, and what people say for it
    FieldWeight(1.0, 0.75),  # the parameters' names
    FieldWeight(1.0, 0.9),  # the parameters' descriptions and choices: long where a tool takes much
)
_SATURATION: Final = 2.0
"""The usual 1.2 is for prose; a term that comes back in name, description and parameters says more
than one that comes back in one text."""
_PIECE_WEIGHT: Final = 0.5
"""The weight of a word that is known only as a piece of names (`geo` of `geolocation`)."""
_MEANT_WEIGHT: Final = 0.8
"""The weight of what an everyday word may mean, beside words that were said. From 0.5 to 1.2 it is
much the same."""
_PIECE_MIN_CHARS: Final = 3
_MAX_PIECES: Final = 8
_MAX_NAMES_A_PIECE: Final = 16
"""Bounds on looking for pieces: words of a request, and names for each word."""
_MAX_LEVELS: Final = 6
_MAX_PROPERTIES: Final = 500
"""So many levels and properties of one schema are read."""


class ToolIndex:
    """Scores tools by words. It is immutable. Building takes 0.2 ms a tool, so use a thread."""

    def __init__(self, tools: Sequence[ToolInfo], vocabulary: Vocabulary | None = None) -> None:
        self.tools: Final = tuple(tools)
        self._vocabulary: Final = vocabulary or Vocabulary()
        texts = [_field_texts(tool) for tool in self.tools]
        self._index: Final = BM25Index(texts, _FIELDS, saturation=_SATURATION)
        names = {term for name, *_ in texts for term in split_terms(name)}
        self._terms_of_names: Final = "\n".join(sorted(names))
        self.most_by_one_term: Final = self._index.most_by_one_term

    def scores(self, request: str) -> NDArray[np.float64]:
        """Gives one score for each tool, in the order given; 0.0 where nothing matches."""
        scores = np.zeros(len(self.tools))
        pieces = 0
        for term in dict.fromkeys(split_terms(request)):
            known = self._index.add_term(scores, term)
            if not known and len(term) >= _PIECE_MIN_CHARS and pieces < _MAX_PIECES:
                pieces += 1
                for whole in self._name_terms_with(term):
                    self._index.add_term(scores, whole, _PIECE_WEIGHT)
        for terms in self._vocabulary.meant(request):
            self._index.add_best(scores, terms, _MEANT_WEIGHT)
        return scores

    def _name_terms_with(self, piece: str) -> Iterator[str]:
        """Yields terms of names that contain `piece`."""
        at = self._terms_of_names.find(piece)
        for _ in range(_MAX_NAMES_A_PIECE):
            if at < 0:
                return
            start = self._terms_of_names.rfind("\n", 0, at) + 1
            end = self._terms_of_names.find("\n", at)
            yield self._terms_of_names[start : end if end >= 0 else None]
            at = self._terms_of_names.find(piece, end) if end >= 0 else -1


def _field_texts(tool: ToolInfo) -> tuple[str, str, str, str]:
    """Gives the texts of the four fields, in the order of `_FIELDS`."""
    names: list[str] = []
    words: list[str] = []
    for name, schema in _properties(tool.input_schema, _MAX_LEVELS):
        if len(names) == _MAX_PROPERTIES:
            break
        names.append(name)
        words += _words(schema)
    said = (example.say for example in tool.examples)
    # The exposed name holds the server's; where it had to be cut, the tool's own is whole.
    name = tool.name if tool.name.endswith(tool.tool) else f"{tool.name} {tool.tool}"
    return name, " ".join((tool.description, *said)), " ".join(names), " ".join(words)


def _properties(schema: object, levels: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields names and schemas of the properties, also of objects inside objects and lists."""
    if not isinstance(schema, Mapping) or levels == 0:
        return
    node = cast("Mapping[str, Any]", schema)
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in cast("Mapping[str, object]", properties).items():
            if isinstance(inner, Mapping):
                yield name, cast("Mapping[str, Any]", inner)
                yield from _properties(cast("object", inner), levels - 1)
    yield from _properties(node.get("items"), levels - 1)


def _words(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields a property's description and its choices."""
    if isinstance(said := schema.get("description"), str):
        yield said
    for holder in (schema, cast("object", schema.get("items"))):
        if isinstance(holder, Mapping):
            choices = cast("Mapping[str, object]", holder).get("enum")
            if isinstance(choices, list):
                texts: Iterable[object] = cast("list[object]", choices)
                yield from (choice for choice in texts if isinstance(choice, str))


MAX_PATTERNS: Final = 8
MAX_PATTERN_CHARS: Final = 4_096
"""The caps on what may be asked at once. A sentence is under 200 characters; a whole request of a
person, which a host may pass as it is, is rarely over 2,000."""
MAX_GLOB_CHARS: Final = 200
"""This is longer than any name."""
MAX_SPLIT_CHARS: Final = 600
"""Longer words than a minute of speech are not split into requests, and values are looked for in
their beginning alone."""
_EXACT_SCORE: Final = 1e9
"""The score of a name that matches as a whole, far above any words."""
_GLOB_SCORE: Final = 1e6
"""What is added for a name that a glob matches: its words then rank these among themselves."""
_GLOB_MARKS: Final = re.compile(r"[*?\[\]!]+")
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_ORDINAL: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tonight|tomorrow|yesterday"
_DATE: Final = re.compile(
    rf"\b(?:\d{{4}}[-/.]\d{{1,2}}(?:[-/.]\d{{1,2}})?|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}"
    rf"|{_MONTH}\s+{_ORDINAL}|{_ORDINAL}(?:\s+of)?\s+{_MONTH}|{_DAY})(?!\w)",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"\b(?:\d{1,2}(?::\d{2})?\s?[ap]\.?m\b|\d{1,2}:\d{2}\b|\d{1,2}\s?o['’]clock\b|noon\b)",
    re.IGNORECASE,
)
_MONEY: Final = re.compile(r"[$€£¥]|\b(?:dollars?|euros?|pounds|usd|eur|gbp)\b", re.IGNORECASE)
_PLACE: Final = re.compile(
    r"\b(?:in|at|near|from|to)\s+[A-Z][a-z]+\b|\b[A-Z][a-z]+,\s?[A-Z][a-zA-Z]+\b"
)
"""A capital behind such a word, or "Portland, OR"."""
_VALUE_KINDS: Final = (("date", _DATE), ("time", _TIME), ("amount", _MONEY), ("city", _PLACE))


def discover(patterns: str | Sequence[str], tools: Iterable[ToolInfo]) -> tuple[ToolInfo, ...]:
    """Gives the tools that match any pattern, best first; equals stand in the order given."""
    return ToolFinder(tuple(tools)).find(patterns)


class ToolFinder:
    """Answers many searches over one set of tools."""

    def __init__(self, tools: Sequence[ToolInfo], vocabulary: Vocabulary | None = None) -> None:
        self._vocabulary: Final = vocabulary or Vocabulary()
        self._index: Final = ToolIndex(tools, self._vocabulary)
        self._space: Final = WordSpace(self._index.tools)
        self._names: Final = [(tool.name.lower(), tool.tool.lower()) for tool in self._index.tools]
        """For each tool its exposed name, and its name at the server."""
        self._by_whole_name: Final[dict[str, list[int]]] = {}
        for number, names in enumerate(self._names):
            for name in dict.fromkeys(names):
                self._by_whole_name.setdefault(name, []).append(number)

    def patterns_of_words(self, patterns: str | Sequence[str]) -> list[str]:
        """Gives those of the patterns that may be found by what they mean."""
        return [
            pattern
            for pattern in _asked(patterns)
            if not _is_glob(pattern) and pattern.lower() not in self._by_whole_name
        ]

    def find(
        self,
        patterns: str | Sequence[str],
        meaning: SemanticQuery | None = None,
        *,
        request: str = "",
    ) -> tuple[ToolInfo, ...]:
        """Gives the tools that match any pattern, best first; equals stand in the order given.

        Args:
            meaning: The vectors of these tools, and of `patterns_of_words`; None takes those of the
                table of words.
            request: What a person said. Its words rank the names that a glob matches.
        """
        meaning = meaning or self._by_table(self.patterns_of_words(patterns))
        answers = [self._find_one(pattern, meaning, request) for pattern in _asked(patterns)]
        return tuple(self._index.tools[number] for number in taken_in_turn(answers))

    def parts_of(self, words: str) -> tuple[str, ...]:
        """Gives what tools are looked for by: what a person said, and its parts before it, if any.

        There is nothing where it asks for nothing.
        """
        asked = words.strip()
        if self._vocabulary.asks_nothing(asked):
            return ()
        if len(asked) > MAX_SPLIT_CHARS:
            return (asked,)
        return (*parts_of(self._vocabulary.pieces(asked), self._shares), asked)

    def fitting(
        self, parts: Sequence[str], meaning: SemanticQuery | None = None, *, caution: float = 1.0
    ) -> tuple[ToolInfo, ...]:
        """Gives the few tools that fit what a person said, best first; none where none does.

        Args:
            parts: `parts_of` the person's words.
            meaning: The vectors of these tools and of `parts`; None takes those of the table of
                words.
            caution: How much better than usual the best tool must fit. It is more than 1 for words
                that likely need no tool.
        """
        found: list[list[int]] = []
        meaning = meaning or self._by_table(parts)
        for part in parts:
            shares, least = self._shares(part), LEAST_BY_WORDS
            if meaning is not None and (vector := meaning.requests.get(part)) is not None:
                shares, _ = meaning.tools.hybrid_scores(shares, 1.0, vector)
                least = meaning.tools.weights.min_score
            found.append(fitting(shares, caution * least))
        return tuple(self._index.tools[number] for number in taken_in_turn(found)[:MAX_TOLD])

    def _by_table(self, texts: Sequence[str]) -> SemanticQuery | None:
        """Gives the vectors of the table of words, for texts that say something."""
        return self._space.query([text for text in texts if split_terms(text[:MAX_SPLIT_CHARS])])

    def _shares(self, words: str) -> NDArray[np.float64]:
        """Gives the tools' scores by words, as shares of the most that one word can bring."""
        asked = words[:MAX_PATTERN_CHARS]
        kinds = value_kinds(asked[:MAX_SPLIT_CHARS])
        return self._index.scores(" ".join((asked, *kinds))) / self._index.most_by_one_term

    def _find_one(self, pattern: str, meaning: SemanticQuery | None, request: str) -> list[int]:
        """Gives the numbers of the tools that match, best first."""
        words = pattern[:MAX_PATTERN_CHARS]
        first: list[int] = []
        if _is_glob(pattern):
            first += self._matching_glob(pattern[:MAX_GLOB_CHARS].lower())
            words = _GLOB_MARKS.sub(" ", words)
            scores = self._index.scores(words)
            asked_for = self._index.scores(f"{words} {request[:MAX_SPLIT_CHARS]}")
            scores[first] = asked_for[first]
        else:
            scores = self._index.scores(" ".join((words, *value_kinds(words))))
        matches = scores > 0
        if meaning is not None and (asked := meaning.requests.get(pattern)) is not None:
            scores, matches = meaning.tools.hybrid_scores(
                scores, self._index.most_by_one_term, asked
            )
        exact = self._by_whole_name.get(pattern.lower(), [])
        scores[first] += _GLOB_SCORE
        scores[exact] = _EXACT_SCORE  # equals: they keep the order given
        matches[[*exact, *first]] = True
        matching = np.flatnonzero(matches)
        order = matching[np.argsort(-scores[matching], kind="stable")]
        return [int(number) for number in order]

    def _matching_glob(self, glob: str) -> Iterator[int]:
        literal = max(_GLOB_MARKS.split(glob), key=len) if "[" not in glob else ""
        matches = re.compile(translate(glob)).match
        for number, names in enumerate(self._names):
            # Most names fall to the cheap test.
            if (literal in names[0] or literal in names[1]) and (
                matches(names[0]) or matches(names[1])
            ):
                yield number


def _asked(patterns: str | Sequence[str]) -> list[str]:
    """Gives each pattern once, within the cap, without what is empty."""
    asked = [patterns] if isinstance(patterns, str) else list(patterns)[:MAX_PATTERNS]
    return [pattern for pattern in dict.fromkeys(raw.strip() for raw in asked) if pattern]


def _is_glob(pattern: str) -> bool:
    # A question ends in "?" and is no glob.
    return "*" in pattern or "[" in pattern or ("?" in pattern and " " not in pattern)


def value_kinds(request: str) -> list[str]:
    """Gives the word for each kind of value in `request`. 4,096 characters take 6 ms at worst.

    Tools name a kind (`date`, `city`), people say a value ("on March 4th", "in Oslo"), so the two
    share no word. Dates in digits, times and signs of money are found in every language, the rest
    in English. Kinds that were tried and found nothing more are left out: durations, numbers of
    people, distances, identifiers, paths and addresses (`tests/bench/discovery.py`).
    """
    return [word for word, value in _VALUE_KINDS if value.search(request)]
