"""How high a model's own odds for a call are where none is meant, found out before anybody speaks.

The odds of a reply's first key part requests with a tool from those without, but where the border
lies is a matter of the tools: a 0.5B gives -4 to 2 (log odds) to small talk beside four tools and
0 to 12 beside fourteen, 1 to 7 and 7 to 14 to requests that mean one. So a few requests that need
no tool are asked, and a few that are a tool's own description; the border is in their middle. A
1.5B holds descriptions for small talk (1 to 4, small talk -3 to 8, what people say 6 to 13): then
the tools' own example utterances are asked in their place (3 to 6). Each is one short question
behind a head that the server has just read.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from statistics import fmean
from typing import Final

from caal_node.core.items import SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.backends.base import Backend, TextChunk
from caal_node.models.question import Question
from caal_node.models.strategies import CallThresholds, JsonReplyStrategy
from caal_node.models.strategies.logprob_gate import LogprobGate

_NEEDS_NONE: Final[Sequence[str]] = json.loads(read("needs_no_tool.json"))
_TOOLS: Final = 6
"""Tools whose descriptions are asked, spread over the table."""
_WORDS: Final = 12
"""Of a description: a request is no longer."""
_REPLY_TOKENS: Final = 6
"""The first key takes three."""
_APART: Final = 1.5
"""Between the two means, at least; else the odds say nothing of this model."""


async def calibrate(backend: Backend, head: Question) -> CallThresholds:
    """The bounds for the tools of `head`; those that leave a model its own choice where its odds
    say nothing, or the server tells none.

    Raises:
        ModelError: as `Backend.ask`.
    """
    without = await _margins(backend, head, _NEEDS_NONE)
    if not without:
        return CallThresholds()
    for requests in (_described(head.tools.schemas), _exemplified(head)):
        meant = await _margins(backend, head, requests)
        if meant and fmean(meant) - fmean(without) >= _APART:
            bound = (fmean(meant) + fmean(without)) / 2
            return CallThresholds(sure=bound, far=bound)
    return CallThresholds()


def _described(tools: Sequence[ToolSchema]) -> list[str]:
    step = max(1, len(tools) // _TOOLS)
    spread = itertools.islice(tools, 0, None, step)
    texts = (str(tool["function"].get("description") or "") for tool in spread)
    asked = (" ".join(text.split(".")[0].split()[:_WORDS]).lower() for text in texts)
    return [f"please {words}" for words in asked if words][:_TOOLS]


def _exemplified(head: Question) -> list[str]:
    """What people say for these tools, with the words around it that people also say: as it stands
    in the prompt it would be answered by heart."""
    said = [examples[0].utterance for examples in head.tools.examples.values() if examples]
    step = max(1, len(said) // _TOOLS)
    return [f"um, {words} please" for words in said[::step]][:_TOOLS]


async def _margins(backend: Backend, head: Question, requests: Sequence[str]) -> list[float]:
    """The odds of each request, as far as the server tells them."""
    systems = tuple(itertools.takewhile(lambda item: isinstance(item, SystemItem), head.items))
    found: list[float] = []
    for words in requests:
        question = replace(head, items=(*systems, UserItem(words)))
        request = replace(JsonReplyStrategy().request(question), max_tokens=_REPLY_TOKENS)
        gate = LogprobGate()
        async with aclosing(backend.ask(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    gate.see(chunk.tokens)
        if gate.margin is None:
            break  # it tells no odds; the others would be asked for nothing
        found.append(gate.margin)
    return found
