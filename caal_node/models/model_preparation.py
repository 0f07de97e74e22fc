"""What is done with a model before anybody speaks: warm it, probe it, and calibrate it.

`warm` has the server read the prompt's prefix. `probe` finds out whether the model calls tools the
way its server says, `find_schema_form` whether and how the server holds a reply to a schema.
`calibrate` measures how sure of a call the model has to be.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import ModelError, ModelLacksTools, ModelReplyError
from caal_node.core.items import SystemItem, ToolsItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.backends.base import (
    SCHEMA_FORMS,
    Backend,
    BackendRequest,
    LearnsDialect,
    NativeCall,
    RendersTools,
    ReplyDone,
    SchemaForm,
    TextChunk,
    Usage,
)
from caal_node.models.question import Question
from caal_node.models.reply_attempt import signal_of_error
from caal_node.models.strategies import JsonReplyStrategy
from caal_node.models.strategies.text_protocol import LogprobGate
from caal_node.reply_parser import Event, ReplyParser, TextWasThinking

WARM_UP_S: Final = 900.0
"""Seconds for the whole prefix, including the loading of the model. Nobody waits for it yet, and
what was read is lost with a request that is given up: 14 tools with examples take a 1.5B 150 s on
one core of a small machine, which is over any deadline that suits a turn."""
_OPENING: Final = UserItem("Hello.")
"""Some chat templates fail without a person's message. It stands behind all that is to be kept."""

FOUND_NATIVE: Final = "it answered a sample request with a structured call"
FOUND_TEXT: Final = "it answered a sample request without a structured call"
FOUND_DUMPS: Final = "its template shows the tools as Go structs, not as JSON"

PROBE_VERSION: Final = 1
"""Goes up when `probe` may find something else of the same model. 0 did not look at templates."""
PROBE_TOKENS: Final = 64
"""Tokens of the probe's reply: a call of one short argument takes 20 to 30 in every format."""
_PROBE_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
_PROBE: Final = BackendRequest(
    items=(
        SystemItem("You are a helpful assistant. Use the tools."),
        UserItem("What is the weather in Oslo right now?"),
    ),
    tools=(_PROBE_TOOL,),
    stream=False,
    max_tokens=PROBE_TOKENS,
)

_HELD: Final = {"code": "k7q2"}
"""A reply that no model gives by itself."""
_HELD_TOKENS: Final = 24
"""Tokens of such a reply, at most: it has ten, with blanks. Where nothing holds the model to it,
each of four questions costs so many."""
_SCHEMA_PROBE: Final = BackendRequest(
    items=(UserItem("Hello."),),
    stream=False,
    max_tokens=_HELD_TOKENS,
    schema={
        "type": "object",
        "properties": {"code": {"type": "string", "enum": [_HELD["code"]]}},
        "required": ["code"],
        "additionalProperties": False,
    },
)

_NEED_NO_TOOL: Final[Sequence[str]] = json.loads(read("needs_no_tool.json"))
SAMPLES: Final = 6
"""Tools for which a sample request is asked. They are spread over the table."""
_SAMPLE_WORDS: Final = 12
"""Words of a tool's description: a request is no longer."""
_REPLY_TOKENS: Final = 6
"""Tokens of a reply to a sample request, of which the first key takes three."""
_Sample: TypeAlias = tuple[str, ToolSchema | None]
"""A request, and the tool that it means."""
_LEAST_DIFFERENCE: Final = 1.5
"""Least difference of the two means. If it is less, the odds say nothing of this model."""


async def warm(backend: Backend, prefix: BackendRequest) -> Usage:
    """Ask for one token, so that the server keeps what it has read of `prefix`.

    `prefix` is what every later request begins with: the system prompt, the tools and the example
    turns, as they will be sent. 20 tools take 51 s on two cores, once.

    Raises:
        ModelError: the same as `Backend.ask`.
    """
    items = prefix.items
    if not items or not isinstance(items[-1], UserItem):
        items = (*items, _OPENING)
    request = replace(
        prefix,
        items=items,
        stream=False,
        schema=None,
        max_tokens=1,
        top_logprobs=0,
        first_s=WARM_UP_S,
    )
    usage = Usage()
    async for chunk in backend.ask(request):
        if isinstance(chunk, ReplyDone):
            usage = chunk.usage
    return usage


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What the short sample question has shown."""

    native: bool
    """Whether the model's own tool calls are to be used."""
    thinks_aloud: bool = False
    """Whether the answer began in thinking, of which it had the closer alone."""
    why: str = FOUND_NATIVE
    """Half a sentence for people."""


async def probe(backend: Backend) -> ProbeResult:
    """Ask one short question with one tool, to see what kind of model it is.

    Ollama reports `tools` for every model whose template mentions them, including those that write
    each call as JSON in a code fence.

    Raises:
        ModelError: the server could not be asked; nothing is known then.
    """
    if (await backend.capabilities()).tools is False:
        return ProbeResult(native=False, why=FOUND_TEXT)
    dumped = isinstance(backend, RendersTools) and await backend.dumps_tools(_PROBE)
    native, text = False, ReplyParser((_PROBE_TOOL,))
    events: list[Event] = []
    try:
        async with aclosing(backend.ask(_PROBE)) as chunks:
            async for chunk in chunks:
                native |= isinstance(chunk, NativeCall)
                if isinstance(chunk, TextChunk):
                    events += text.feed(chunk.text)
    except (ModelLacksTools, ModelReplyError) as error:
        if signal_of_error(error) is None:
            raise
    events += text.finish()
    aloud = any(isinstance(event, TextWasThinking) for event in events)
    if dumped:  # A bigger model may have guessed what the sample's one tool takes.
        return ProbeResult(native=False, thinks_aloud=aloud, why=FOUND_DUMPS)
    return ProbeResult(native, aloud, FOUND_NATIVE if native else FOUND_TEXT)


async def find_schema_form(backend: Backend) -> bool | None:
    """Find out by which field, if any, the server holds a reply to a schema; None: it is fixed.

    Many servers take a field and pay no heed to it (mlx_lm.server does with `response_format`), so
    only a reply that the schema alone explains counts.

    Raises:
        ModelError: the server could not be asked; nothing is known then.
    """
    if not isinstance(backend, LearnsDialect):
        return None
    dialect = backend.dialect
    if dialect.schema_form is None:
        found: SchemaForm | Literal["none"] = "none"
        for form in SCHEMA_FORMS:
            dialect.schema_form = form
            try:
                held = await _is_held(backend)
            except ModelError as error:
                if signal_of_error(error) is None:
                    dialect.schema_form = None
                    raise
                held = False
            if held:
                found = form
                break
        dialect.schema_form = found
    return dialect.schema_form != "none"


async def _is_held(backend: Backend) -> bool:
    text = ""
    async with aclosing(backend.ask(_SCHEMA_PROBE)) as chunks:
        async for chunk in chunks:
            text += chunk.text if isinstance(chunk, TextChunk) else ""
    try:
        return json.loads(text) == _HELD
    except (ValueError, RecursionError):
        return False


async def calibrate(backend: Backend, prefix: Question) -> float:
    """Return the call threshold for the tools of `prefix`, see `JsonReplyStrategy`.

    The odds of a reply's first key part requests with a tool from those without, but where the
    border lies is a matter of the tools: a 0.5B gives -4 to 2 (log odds) to small talk beside four
    tools and 0 to 12 beside fourteen, 1 to 7 and 7 to 14 to requests that mean a tool. So a few
    requests are asked that need no tool, and a few that are a tool's own description; the border is
    in their middle. A 1.5B takes descriptions for small talk (1 to 4, where small talk has -3 to 8
    and what people say 6 to 13): then the tools' own example utterances are asked in their place (3
    to 6). Each is one short question behind a prefix that the server has just read. Of a tool that
    is on demand the model is told in front of it, as in a turn.

    It is 0, which leaves a model its own choice, where its odds say nothing, or there are none.

    Raises:
        ModelError: the same as `Backend.ask`.
    """
    without = await _margins(backend, prefix, [(words, None) for words in _NEED_NO_TOOL])
    if not without:
        return 0.0
    for requests in (_described(prefix), _exemplified(prefix)):
        meant = await _margins(backend, prefix, requests)
        if meant and fmean(meant) - fmean(without) >= _LEAST_DIFFERENCE:
            return (fmean(meant) + fmean(without)) / 2
    return 0.0


def _described(prefix: Question) -> Sequence[_Sample]:
    """Make requests of the tools' descriptions."""
    tools = _sampled(prefix)
    step = max(1, len(tools) // SAMPLES)
    spread = itertools.islice(tools, 0, None, step)
    texts = ((tool, str(tool["function"].get("description") or "")) for tool in spread)
    asked = ((t, " ".join(text.split(".")[0].split()[:_SAMPLE_WORDS]).lower()) for t, text in texts)
    return [(f"please {words}", tool) for tool, words in asked if words][:SAMPLES]


def _exemplified(prefix: Question) -> Sequence[_Sample]:
    """Make requests of what people say for these tools, with words around it that people also say:
    as it stands in the prompt it would be answered by heart."""
    examples = prefix.tools.examples
    said = [
        (examples[tool["function"]["name"]][0].utterance, tool)
        for tool in _sampled(prefix)
        if examples.get(tool["function"]["name"])
    ]
    step = max(1, len(said) // SAMPLES)
    return [(f"um, {words} please", tool) for words, tool in said[::step]][:SAMPLES]


def _sampled(prefix: Question) -> Sequence[ToolSchema]:
    """Return the tools of which requests are made: where some are on demand, those."""
    if prefix.head is None:
        return prefix.tools.schemas
    others = [t for t in prefix.tools.schemas if t["function"]["name"] not in prefix.head.names]
    return others or prefix.tools.schemas


async def _margins(backend: Backend, prefix: Question, requests: Sequence[_Sample]) -> list[float]:
    """Return the odds of each request, as far as the server tells them."""
    systems = tuple(itertools.takewhile(lambda item: isinstance(item, SystemItem), prefix.items))
    found: list[float] = []
    for words, tool in requests:
        is_told = tool is not None and tool["function"]["name"] not in prefix.front.names
        told = (ToolsItem((tool,), {}, "sample"),) if tool is not None and is_told else ()
        question = replace(prefix, items=(*systems, *told, UserItem(words)))
        request = replace(JsonReplyStrategy().request(question), max_tokens=_REPLY_TOKENS)
        gate = LogprobGate()
        async with aclosing(backend.ask(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    gate.see(chunk.tokens)
        if gate.margin is None:
            break  # The server tells no odds; the other requests would be asked for nothing.
        found.append(gate.margin)
    return found
