"""Which tools stand at a prompt's front, where all together are more than it should hold.

A prompt's front is read once and must not change, so this is settled when the tools are listed.
Whatever is left out is on demand: it is told where the conversation grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from caal_node.context.token_estimate import TOOLS_TOKENS
from caal_node.policy.globs import AnyOf
from caal_node.tools.table import ToolEntry, ToolTable

FLOOD: Final = 3
"""Times the budget. A source that adds some tools between two reloads does not come near it, and
more would fit into no prompt."""
OWN_PART: Final = 4
"""The agent's own methods stay at the front where a quarter of the budget is enough for them."""


class HidesTools(Protocol):
    """A policy, as far as prompts go."""

    def hide(self, entry: ToolEntry, /) -> bool:
        """Say whether the model is not to see a tool."""
        ...


@dataclass(frozen=True, slots=True)
class PromptHead:
    """Which tools a conversation's prompts have at their front."""

    max_tokens: int
    """Estimated tokens that the schemas of all tools may have together."""
    pinned: Sequence[str] = ()
    """Globs over exposed names that are always at the front."""
    policies: HidesTools | None = None

    def hides(self, entry: ToolEntry) -> bool:
        return self.policies is not None and self.policies.hide(entry)

    def names(
        self,
        table: ToolTable,
        search: str,
        before: frozenset[str] | None,
        *,
        reloaded: bool,
        most: int | None,
    ) -> frozenset[str] | None:
        """Return the exposed names; see `head_names`. `most` is a further limit to the tokens."""
        return head_names(
            table,
            search,
            max_tokens=self.max_tokens if most is None else min(self.max_tokens, most),
            pinned=self.pinned,
            hides=self.hides,
            before=before,
            reloaded=reloaded,
        )


def head_names(
    table: ToolTable,
    search: str,
    *,
    max_tokens: int,
    pinned: Sequence[str] = (),
    hides: Callable[[ToolEntry], bool] = lambda _: False,
    before: frozenset[str] | None = None,
    reloaded: bool = True,
) -> frozenset[str] | None:
    """Return the exposed names at the front of every prompt; None where all tools stand there.

    They are the search tool, what is pinned or answers from documents, and the agent's own methods
    where those are few.

    Args:
        search: The exposed name of the search tool.
        max_tokens: Estimated tokens that the schemas of all tools may have together.
        pinned: Globs over exposed names. They count whatever tokens they need.
        hides: Which tools no prompt shows; they need no room.
        before: What was returned for the table that this one replaces.
        reloaded: Whether the owner, or a session's start, has asked for this table. A change that
            comes on its way leaves the front as it is, unless it is a flood.
    """
    if before is not None and not reloaded:
        return frozenset(name for name in before if name == search or name in table)
    shown = [entry for entry in table if not hides(entry)]
    tokens = _tokens(table, shown)
    if tokens <= (max_tokens if reloaded else FLOOD * max_tokens):
        return None
    pins = AnyOf(pinned)
    # What answers from the owner's documents is also called in place of a reply.
    head = {e.exposed for e in shown if pins.fits(e.exposed) or e.spec.answers}
    own = [entry for entry in shown if entry.spec.tier == "agent"]
    if _tokens(table, own) <= max_tokens // OWN_PART:
        head |= {entry.exposed for entry in own}
    return None if len(head) == len(shown) else frozenset((search, *head))


def _tokens(table: ToolTable, entries: Sequence[ToolEntry]) -> int:
    sizes = [table.schema_tokens[entry.exposed] for entry in entries]
    return TOOLS_TOKENS + sum(sizes) if sizes else 0
