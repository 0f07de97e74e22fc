"""What discovery hands out: workflows as tools, and which workflows were left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

WEBHOOK_TYPE: Final = "n8n-nodes-base.webhook"
RESPOND_TYPE: Final = "n8n-nodes-base.respondToWebhook"
BODILESS_METHODS: Final = ("GET", "HEAD", "DELETE")
"""Methods whose parameters travel in the query."""

Workflow: TypeAlias = Mapping[str, Any]
"""A workflow as n8n's editor exports it, or as its APIs tell it."""
Nodes: TypeAlias = list[Mapping[str, Any]]
"""Nodes of a workflow."""
DiscoverySource: TypeAlias = Literal["rest", "mcp"]
AuthKind: TypeAlias = Literal["none", "header", "basic", "jwt", "other"]
ParameterLocation: TypeAlias = Literal["path", "query", "body"]
ParameterOrigin: TypeAlias = Literal[
    "schema",  # the notes' schema block
    "param",  # an `@param` line of the notes
    "prose",  # a `Parameters:` line of the notes
    "path",  # the webhook's path
    "nodes",  # an expression in the published nodes
    "pinned",  # the webhook's pinned data
    "trigger",  # a sibling Execute Workflow Trigger
]
NotesPart: TypeAlias = Literal["parameters", "examples", "notes"]
"""What of the notes has a problem; `notes` is any other part."""


@dataclass(frozen=True, slots=True)
class Example:
    """Words that a person could say, and the arguments of the call that they mean."""

    utterance: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkflowTool:
    """One webhook of one published workflow."""

    name: str
    """It is unique in its discovery and matches `^[A-Za-z0-9_-]{1,64}$`."""
    workflow_id: str
    node_id: str
    version_id: str | None
    """The published version; None where the instance does not tell it."""
    title: str
    """The workflow's name as its author wrote it."""
    description: str
    """For the prompt: at most DESCRIPTION_CHARS, cut at a sentence where that is possible."""
    full_description: str
    input_schema: Mapping[str, Any]
    """The JSON schema of an object."""
    examples: tuple[Example, ...]
    method: str
    path: str
    """The path below `{base}/webhook/`, with `:name` where a parameter goes."""
    response_mode: str
    """n8n's own word: onReceived, lastNode, responseNode or streaming."""
    auth_kind: AuthKind
    locations: Mapping[str, ParameterLocation] = field(default_factory=dict[str, ParameterLocation])
    """Where a parameter travels, if that is not the method's usual location."""
    origins: Mapping[str, ParameterOrigin] = field(default_factory=dict[str, ParameterOrigin])
    spoken_field: str | None = None
    """The field of the result that is to be spoken as it stands (`Speak:` in the notes)."""
    answers_nothing: bool = False
    """The author made it answer without data, so an empty reply is a success."""
    takes_s: float | None = None
    """How long the author says that a run may take (`Takes: 40 s` in the notes)."""
    problems: tuple[str, ...] = ()
    """What is wrong in the author's notes, one line each."""
    tags: tuple[str, ...] = ()
    """The workflow's tags, as its author wrote them."""
    flawed: frozenset[NotesPart] = frozenset()
    """The parts of the notes that these are about."""


SkipReason: TypeAlias = Literal[
    "inactive",
    "archived",
    "not_available_in_mcp",
    "no_webhook",
    "path_is_an_expression",
    "unpublished",
    "unreadable",
    "rate_limited",
    "timeout",
]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A workflow that does not become a tool, and the reason."""

    workflow_id: str
    title: str
    reason: SkipReason
    message: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one look at the instance found."""

    tools: tuple[WorkflowTool, ...]
    """They are in the order of their names."""
    skipped: tuple[Skipped, ...]
    source: DiscoverySource
    requests: int
    """How many HTTP requests it took (n8n allows 100 in 5 minutes at its MCP server)."""
    notices: tuple[str, ...] = ()
    """What the person who set n8n up should know; one line each."""


def placeholders(path: str) -> tuple[str, ...]:
    """Return the names of a path's parameters: `orders/:orderId` has ("orderId",)."""
    return tuple(part[1:] for part in path.split("/") if part.startswith(":") and part != ":")
