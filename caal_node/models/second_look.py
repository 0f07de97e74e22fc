"""A second request about one call before it runs: does the person want it, with these arguments?

What was said, the tool and the arguments stand in the question as quoted data, of a bounded size.
The reply is a few words that a schema holds to yes or no. The odds of these words, where the server
tells them, say how sure the answer is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from caal_node.core.items import AssistantItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import BackendRequest, Chunk, GeneratedToken, TextChunk
from caal_node.models.question import Question
from caal_node.reply_parser.escaping import escape_markers

TALK_ITEMS: Final = 6
"""Pieces of the conversation that are shown: what "the second one" means stands in the last few."""
TALK_CHARS: Final = 400
"""Characters of one of them. Six are some 600 tokens at most, two seconds on a small machine."""
DOES_CHARS: Final = 200
"""Characters of what the tool says that it does."""
ARGUMENTS_MAX: Final = 8
"""Arguments that are asked about; a call that a person has spoken has two or three."""
NAME_CHARS: Final = 64
"""Characters of an argument's name; what has a longer one is not asked about."""
VALUE_CHARS: Final = 200
"""Characters of one argument's value, as JSON."""
CANDIDATES: Final = 10
"""Candidates that are asked for each token. Both words are nearly always among them."""
WITHOUT_ODDS: Final = 0.9
"""The probability of a yes where the server tells no odds; that of a no is what is left of 1."""
_WANTED: Final = "wanted"
_WORDS: Final = {"type": "string", "enum": ["yes", "no"]}
_ANSWER: Final = re.compile(r':\s*+(?:"\s*+)?(yes|no)\b', re.IGNORECASE)
_ANSWER_BEGINS: Final = re.compile(r':\s*+(?:"\s*+)?$')
_BLANKS: Final = ' :"\n\t'


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """The call that is looked at."""

    tool: str
    does: str
    arguments: Mapping[str, Any]


def second_look_request(talk: Sequence[Item], call: ProposedCall) -> BackendRequest:
    """Write the request about `call`, which was made at the end of `talk`."""
    named = [pair for pair in call.arguments.items() if len(pair[0]) <= NAME_CHARS]
    # The schema has the names as the question shows them.
    arguments = {escape_markers(name): value for name, value in named[:ARGUMENTS_MAX]}
    shown = {
        "talk": [line for item in talk if (line := talk_line(item))][-TALK_ITEMS:],
        "tool": call.tool,
        "does": " ".join(call.does.split())[:DOES_CHARS],
        "arguments": {name: shortened(value) for name, value in arguments.items()},
    }
    data = json.dumps(shown, ensure_ascii=False, default=str)
    question = Question((SystemItem(read("second_look.md")), UserItem(data)))
    asked = dict.fromkeys((_WANTED, *(n for n in arguments if n != _WANTED)), _WORDS)
    schema = {
        "type": "object",
        "properties": asked,
        "required": list(asked),
        "additionalProperties": False,
    }
    return BackendRequest(
        question.conversation,
        schema=schema,
        # A name has up to some ten tokens, and what is around it five.
        max_tokens=16 * (1 + len(asked)),
        top_logprobs=CANDIDATES,
    )


async def read_second_look(chunks: AsyncIterable[Chunk]) -> float | None:
    """Return how likely it is that everything about the call was answered with yes.

    That is the probability of the answer that is least of a yes. None where there is no answer.
    """
    text, tokens = "", list[GeneratedToken]()
    async for chunk in chunks:
        if isinstance(chunk, TextChunk):
            text += chunk.text
            tokens += chunk.tokens
    answers = [found[1].casefold() == "yes" for found in _ANSWER.finditer(text)]
    if not answers:
        return None
    odds = _odds(tokens)
    if len(odds) != len(answers):
        odds = [WITHOUT_ODDS if yes else 1 - WITHOUT_ODDS for yes in answers]
    return min(odds)


def _odds(tokens: Sequence[GeneratedToken]) -> list[float]:
    """Return the probability of yes at each token with which an answer begins."""
    found: list[float] = []
    text = ""
    for token in tokens:
        begins = f"{text}{token.text}".rstrip(_BLANKS)
        if _ANSWER_BEGINS.search(text + _leading(token.text)) and len(begins) > len(text.rstrip()):
            yes = _share(token, "y")
            no = _share(token, "n")
            if yes + no > 0:
                found.append(yes / (yes + no))
        text += token.text
    return found


def _leading(text: str) -> str:
    return text[: len(text) - len(text.lstrip(_BLANKS))]


def _share(token: GeneratedToken, letter: str) -> float:
    """Return the summed probability of the candidates whose word begins with `letter`."""
    return sum(
        math.exp(logprob)
        for text, logprob in token.top
        if text.lstrip(_BLANKS).casefold().startswith(letter)
    )


def talk_line(item: Item) -> str:
    """Return a piece of the conversation as a look shows it; "" for what it does not show."""
    match item:
        case UserItem():
            said = f"Person: {item.text}"
        case AssistantItem():
            said = f"Assistant: {item.text}"
        case ResultItem():
            said = f"Tool {item.name}: {item.output}"
        case _:
            return ""
    said = " ".join(said[: 4 * TALK_CHARS].split())
    return said if len(said) <= TALK_CHARS else said[: TALK_CHARS - 1] + "…"


def shortened(value: Any) -> Any:
    """Return a value as it is, or the beginning of its JSON where that is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= VALUE_CHARS else text[: VALUE_CHARS - 1] + "…"
