"""Does a reply say that it cannot know or look up current facts, where a search could?

Models with a search tool at hand still answer "I don't have access to real-time information". The
words for that are in `prompts/hedging.toml`; here is how they are applied, and which tool searches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

REPLY_CHARS: Final = 1000
"""A hedge comes early. What follows half a page of answer is a remark."""
QUESTION_CHARS: Final = 400
"""Of what is searched for: search services take about as much."""

_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+|\n+")
_QUOTED: Final = re.compile(r"\"[^\"]{0,300}\"|“[^”]{0,300}”|«[^»]{0,300}»")
_MARKS: Final = str.maketrans({"’": "'", "‘": "'", "*": None, "`": None, "_": " "})

_NAME_PARTS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SEARCHES: Final = frozenset({"search", "websearch", "lookup", "google", "bing", "browse", "query"})
_WEB: Final = re.compile(
    r"\b(?:web|internet|online|google|bing|duckduckgo|ddg|brave|tavily|serp\w*|searx\w*|exa|perplexity|"
    r"websearch|search engine)\b",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(
    r"\b(?:files?|folders?|director(?:y|ies)|e-?mails?|mailbox|contacts?|calendars?|notes?|memor(?:y|ies)|"
    r"code|repositor(?:y|ies)|songs?|music|playlists?|photos?|images?|products?|database|tickets?|"
    r"history|messages?|devices?|tools?|documents?|wiki)\b",
    re.IGNORECASE,
)
_QUERY_NAMES: Final = (
    "query",
    "q",
    "question",
    "search",
    "search_query",
    "keywords",
    "text",
    "term",
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A way of hedging, or of taking back what looks like one."""

    say: re.Pattern[str]
    why: str
    needs: re.Pattern[str] | None = None
    """What the sentence must hold besides."""

    def fits(self, sentence: str) -> bool:
        return bool(self.say.search(sentence)) and (
            self.needs is None or bool(self.needs.search(sentence))
        )


class HedgeDetector:
    """Knows a hedge when it reads one."""

    def __init__(self, phrases: Sequence[Phrase], vetoes: Sequence[Phrase] = ()) -> None:
        self._phrases = tuple(phrases)
        self._vetoes = tuple(vetoes)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> HedgeDetector:
        """From a parsed TOML file with `words`, `phrases` and `vetoes`.

        Raises:
            ValueError: a phrase is no regular expression, or names words that are not there.
        """
        words: Mapping[str, str] = table.get("words", {})
        return cls(
            [_phrase(row, words) for row in table["phrases"]],
            [_phrase(row, words) for row in table.get("vetoes", ())],
        )

    def is_hedge(self, text: str) -> bool:
        """Whether `text`, a reply with no call in it, says that it cannot know what is current."""
        return self.why(text) is not None

    def why(self, text: str) -> str | None:
        """Which phrase makes `text` a hedge, in the words of its author."""
        for sentence in _SENTENCE.split(_plain(text)):
            for phrase in self._phrases:
                if phrase.fits(sentence) and not any(v.fits(sentence) for v in self._vetoes):
                    return phrase.why
        return None


def _plain(text: str) -> str:
    return _QUOTED.sub(" ", text[:REPLY_CHARS].translate(_MARKS)).lower()


def _phrase(row: Mapping[str, str], words: Mapping[str, str]) -> Phrase:
    try:
        needs = row.get("needs")
        return Phrase(
            _pattern(row["say"], words),
            row["why"],
            None if needs is None else _pattern(needs, words),
        )
    except (re.error, KeyError) as error:
        raise ValueError(f"hedging: {row.get('why', row)}: {error}") from None


def _pattern(text: str, words: Mapping[str, str]) -> re.Pattern[str]:
    # A count such as {0,30} begins with a digit, a name with a letter.
    return re.compile(re.sub(r"\{([a-z]\w*)\}", lambda m: words[m[1]], text))


def search_tool(tools: Sequence[Mapping[str, Any]]) -> str | None:
    """The name of the one tool among OpenAI-style schemas that searches the web; None for none,
    and where two are equally likely."""
    rated = [(points, _function(tool)) for tool in tools if (points := _points(tool))]
    best = max((points for points, _ in rated), default=0)
    names = [str(function["name"]) for points, function in rated if points == best]
    return names[0] if len(names) == 1 else None


def search_arguments(schema: Mapping[str, Any], question: str) -> dict[str, Any] | None:
    """The arguments with which the tool `schema` searches for `question`; None if it needs more
    than words."""
    words = " ".join(question.split())[:QUESTION_CHARS]
    name = _query(_function(schema))
    return {name: words} if words and name else None


def _function(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    function = schema.get("function", schema)
    return cast("Mapping[str, Any]", function) if isinstance(function, Mapping) else {}


def _points(tool: Mapping[str, Any]) -> int:
    """How likely a tool searches the web: 0 is not at all."""
    function = _function(tool)
    if _query(function) is None:
        return 0
    name = str(function.get("name", ""))
    parts = [part.lower() for part in _NAME_PARTS.findall(name)]
    spaced, about = " ".join(parts), str(function.get("description") or "")
    first = about.split(".")[0]
    searches = bool(_SEARCHES.intersection(parts)) or "search" in first.lower()
    if not searches or _ELSEWHERE.search(spaced):
        return 0
    if _WEB.search(spaced):
        return 3
    if _WEB.search(about) and not _ELSEWHERE.search(first):
        return 2
    return 1 if not _ELSEWHERE.search(about) and parts in (["search"], ["search", "tool"]) else 0


def _query(function: Mapping[str, Any]) -> str | None:
    """The one string parameter that takes what is searched for."""
    schema = cast("Mapping[str, Any]", function.get("parameters") or {})
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    required = [str(name) for name in cast("Sequence[Any]", schema.get("required") or ())]
    texts = [name for name, value in properties.items() if _is_text(value)]
    if len(required) == 1:
        return required[0] if required[0] in texts else None
    if required:
        return None
    named = [name for name in _QUERY_NAMES if name in texts]
    return named[0] if named else (texts[0] if len(texts) == 1 else None)


def _is_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    fields = cast("Mapping[str, Any]", schema)
    return fields.get("type") == "string" and not fields.get("enum") and "const" not in fields
