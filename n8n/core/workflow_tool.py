"""What discovery hands out: workflows as tools, and what was left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Source: TypeAlias = Literal["rest", "mcp"]
AuthKind: TypeAlias = Literal["none", "header", "basic", "jwt", "other"]
Place: TypeAlias = Literal["path", "query", "body"]
Origin: TypeAlias = Literal["schema", "param", "prose", "path", "nodes", "pinned", "trigger"]
"""Where a parameter was found: the notes' schema block, an `@param` line, a `Parameters:` line,
the webhook's path, an expression in the published nodes, the webhook's pinned data, or a sibling
Execute Workflow Trigger."""


@dataclass(frozen=True, slots=True)
class Example:
    """Words a person could say, and the arguments of the call they mean."""

    utterance: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkflowTool:
    """One webhook of one published workflow."""

    name: str
    """Unique in its discovery; matches `^[A-Za-z0-9_-]{1,64}$`."""
    workflow_id: str
    node_id: str
    version_id: str | None
    """The published version, or None where the instance does not tell."""
    title: str
    """The workflow's name as its author wrote it."""
    description: str
    """For the prompt: at most DESCRIPTION_CHARS, cut at a sentence where that is possible."""
    full_description: str
    input_schema: Mapping[str, Any]
    """JSON schema of an object."""
    examples: tuple[Example, ...]
    method: str
    path: str
    """Below `{base}/webhook/`, with `:name` where a parameter goes."""
    response_mode: str
    """n8n's own word: onReceived, lastNode, responseNode, streaming."""
    auth_kind: AuthKind
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    """Where a parameter travels when it is not the method's usual place."""
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    spoken_field: str | None = None
    """The field of the result that is to be spoken as it stands (`Speak:` in the notes)."""
    answers_nothing: bool = False
    """The author made it answer without data: an empty reply is then a success."""
    takes_s: float | None = None
    """How long the author says that a run may take (`Takes: 40 s` in the notes)."""
    problems: tuple[str, ...] = ()
    """What is wrong in the author's notes, one line each."""


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
    """A workflow that is no tool, and why."""

    workflow_id: str
    title: str
    reason: SkipReason
    message: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """One look at the instance."""

    tools: tuple[WorkflowTool, ...]
    """In the order of their names."""
    skipped: tuple[Skipped, ...]
    source: Source
    requests: int
    """HTTP requests it took (n8n allows 100 in 5 minutes at its MCP server)."""
    notices: tuple[str, ...] = ()
    """What the person who set n8n up should know; one line each."""
