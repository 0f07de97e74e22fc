"""The description of a tool, whichever tier it comes from, of its examples and of its callers.

Method docstrings and the notes of n8n workflows write examples in the same notation:
`Example: time in Oslo -> {"zone": "Europe/Oslo"}`. The arguments are a JSON object on the same
line; an example without an arrow means a call without arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from caal_node.core.events import TierName

Effect: TypeAlias = Literal["read", "write", "destructive"]
"""What a call may do at worst: nothing but tell, change something, or what cannot be undone."""
EFFECTS: Final[tuple[Effect, ...]] = ("read", "write", "destructive")
"""From the least to the worst."""
Answers: TypeAlias = Literal["", "first", "unsure"]
"""When a tool that knows the owner's documents is called in place of a reply: never, for every
question, or where the reply would be a guess."""
ToolSchema: TypeAlias = Mapping[str, Any]
"""`{"type": "function", "function": {"name", "description", "parameters"}}`."""

_LINE_CHARS: Final = 1_000
"""Characters of an example's line. A longer one is none; tools come from strangers too."""
_LINE: Final = re.compile(
    r"(?:-\s*+)?Example:\s*+(?P<say>\S.*?)(?<!\s)\s*+(?:->\s*+(?P<args>\{.*+(?<=\})))?$", re.I
)
EXAMPLES_MAX: Final = 3
"""Examples that are kept of one tool. Three helped a 0.5B model; each costs about 60 tokens."""
_READING_VERBS: Final = frozenset(
    """check count describe find get is list look lookup query read search show tell what when
    where which who""".split()  # noqa: SIM905 - a list of words reads better as words
)
_CHANGING_WORDS: Final = frozenset(
    """add and append archive book buy cancel change clear close complete create delete do draft
    drop edit execute insert lock make mark merge move open order pause pay play post put remove
    rename replace reset run save send set share start stop store submit sync then toggle transfer
    turn unlock update upload write""".split()  # noqa: SIM905 - as above
)
_WRITING_VERBS: Final = frozenset(
    """add append create delete edit insert remove rename send set unlock
    write""".split()  # noqa: SIM905 - as above
)
"""Words that in front of a name are hardly ever nouns: `order_status` may read."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


@dataclass(frozen=True, slots=True)
class Example:
    """Words that a person could say, and the arguments of the call that they ask for."""

    utterance: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as its source describes it."""

    tier: TierName
    source: str
    """The agent's class name, `n8n`, or the MCP server's name."""
    name: str
    """The name that the source calls the tool by."""
    wanted: str
    """The name to expose where it is free and allowed, such as `server__tool` for MCP."""
    description: str
    parameters: Mapping[str, Any]
    """The JSON schema of an object."""
    examples: tuple[Example, ...] = field(default=())
    details: str = ""
    """The whole description where `description` is cut. Searches read it, prompts never do."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each parameter was found, in words for the tool's author. It is empty where the source
    gives a schema."""
    facts: tuple[str, ...] = ()
    """Lines for the author: how the tool is called, and what is wrong with its notes."""
    timeout_s: float | None = None
    """Seconds that a call may take, where that is more than usual."""
    read_only: bool | None = None
    """Whether a call changes nothing, as its source declares; None where it declares nothing."""
    effect: Effect = "write"
    """What a policy takes its calls for. A tool of which nothing trustworthy is known writes."""
    annotations: tuple[str, ...] = ()
    """The names of what its source claims of it, such as `destructiveHint`; n8n's are tags."""
    own_name: str = ""
    """The server's own name of the tool, where `name` is another."""
    remembered: bool = True
    """Whether its results are kept for later turns, so that a person can refer to them."""
    answers: Answers = ""

    def known_as(self, exposed: str) -> tuple[str, ...]:
        """Return every name that an owner's rule may mean this tool by, `exposed` first.

        A tool whose name another one has taken is exposed under a new one. Rules that were written
        for the old one, or for its server's own name of it, still mean it.
        """
        own = f"{self.source}__{self.own_name}" if self.tier == "mcp" and self.own_name else exposed
        return tuple(dict.fromkeys((exposed, self.wanted, own)))


def _example(line: str) -> re.Match[str] | None:
    return _LINE.match(line.strip()) if len(line) <= _LINE_CHARS else None


def examples_in(text: str | None) -> tuple[Example, ...]:
    """Return the examples in `text`, in order. A line whose JSON is broken is left out."""
    found: list[Example] = []
    for line in (text or "").splitlines():
        if not (match := _example(line)):
            continue
        try:
            arguments = json.loads(match["args"] or "{}")
        except ValueError:
            continue
        found.append(Example(match["say"].strip("\"'“” "), arguments))
    return tuple(found[:EXAMPLES_MAX])


def without_examples(text: str) -> str:
    """Return `text` without its example lines, which the prompt shows elsewhere."""
    return "\n".join(line for line in text.splitlines() if not _example(line)).strip()


def name_reads(name: str) -> bool:
    """Say whether a name is one of a tool that only reads: `get_weather`, not `get_and_delete`."""
    words = [word.lower() for word in _WORD.findall(name)]
    return bool(words) and words[0] in _READING_VERBS and not _CHANGING_WORDS.intersection(words)


def name_writes(exposed: str) -> bool:
    """Say whether the model's name for a tool begins with a verb that changes something."""
    words = [word.lower() for word in _WORD.findall(exposed.rpartition("__")[2])]
    is_verb = bool(words) and words[0] in _WRITING_VERBS
    return is_verb and _READING_VERBS.isdisjoint(words)  # `send_sql_query`


def tool_reads(exposed: str, effect: Effect) -> bool:
    """Say whether a tool, by the model's name for it, only tells something."""
    return effect == "read" or name_reads(exposed.rpartition("__")[2])


# Who a call of a tool is made for.

CallOrigin: TypeAlias = Literal["room", "terminal", "api"]
"""A conversation in a LiveKit room, one without a room (`chat`, `console`, `Conversation`), or a
request of the control API, which nobody in a conversation has made."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The person whose words a call answers, as far as the room knows."""

    origin: CallOrigin = "terminal"
    room: str = ""
    """The room's name; "" without a room."""
    participant: str = ""
    """The participant's identity, by whose token LiveKit vouches for it; "" where none is known."""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    """The participant's attributes. Whoever makes the tokens can let participants change their own:
    docs/safety.md says what may rest on them."""

    @property
    def place(self) -> tuple[CallOrigin, str]:
        """Origin and room."""
        return self.origin, self.room
