"""What is declared of a tool: what its calls may do at worst, and on which terms they run.

Each source says it in its own way, and what nobody says is `write`. An author of own tools says it
in code; `@function_tool` comes first, as it keeps what the function below it has:

    @function_tool
    @effect("destructive")
    async def wipe_notes(self) -> str: ...

A workflow says it by a tag named `read`, `write` or `destructive`, else by its method: DELETE
destroys, and GET reads where the name says so too, since GET is what n8n puts there for everything.
An MCP server's word only raises it (`caal_node.tools.sources.mcp`). The owner's policy has
the last word, either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from caal_node.core.tool_spec import EFFECTS, Answers, Effect, name_reads

# The terms on which calls of a function tool run, where its author asks for more than LiveKit's.
#
# A plain function tool runs as LiveKit runs it. One that is marked is treated as a remote tool is:
# its calls have a deadline, its results are cut to what a small model can read, and calls that
# conflict wait for each other.

T = TypeVar("T", bound=Callable[..., Any])

_TERMS_ATTRIBUTE: Final = "__caal_call_terms__"


@dataclass(frozen=True, slots=True)
class CallTerms:
    """What holds for the calls of one tool."""

    source: str = ""
    """The toolset that it belongs to; "" leaves it to the agent's class."""
    timeout_s: float | None = None
    """Seconds that a call may take, where that is more than usual."""
    remembered: bool = True
    """Whether its results are kept for later turns, so that a person can refer to them."""
    answers: Answers = ""
    """When it is called in place of a reply (`caal_node/answers/search_tools.py`)."""


def with_terms(tool: T, terms: CallTerms) -> T:
    """Mark a function or a function tool with its terms, and return it."""
    setattr(tool, _TERMS_ATTRIBUTE, terms)
    return tool


def terms_of(tool: object) -> CallTerms | None:
    """Return the terms of a function tool; None for one that runs as LiveKit runs it."""
    return cast("CallTerms | None", getattr(tool, _TERMS_ATTRIBUTE, None))


_ATTRIBUTE: Final = "__caal_effect__"


def effect(worst: Effect) -> Callable[[T], T]:
    """Mark a function tool with what its calls may do at worst.

    Raises:
        ValueError: `worst` is none of read, write and destructive.
    """
    if worst not in EFFECTS:
        raise ValueError(f"{worst!r} is no effect; write {', '.join(EFFECTS)}")

    def mark(function: T) -> T:
        setattr(function, _ATTRIBUTE, worst)
        return function

    return mark


def declared_effect(tool: object) -> Effect:
    """Return what the author of one of the agent's own tools has marked it with."""
    return cast("Effect", getattr(tool, _ATTRIBUTE, "write"))


def workflow_effect(name: str, method: str, tags: Iterable[str]) -> Effect:
    """Return what a workflow's calls may do. Of several tags the most careful one counts."""
    said = {tag.strip().casefold() for tag in tags}
    for worst in reversed(EFFECTS):
        if {worst} & said:
            return worst
    if method == "DELETE":
        return "destructive"
    return "read" if method in ("GET", "HEAD") and name_reads(name) else "write"
