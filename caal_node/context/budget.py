"""How the tokens that a model reads are shared out between instructions, tools, talk and reply.

The talk has a floor of its own: tools alone could fill the window, and every turn would then have
forgotten all earlier ones. Where even the context is too small for both, tools are left out, the
last ones of the table first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caal_node.context.prompt_tools import PromptTools
from caal_node.context.token_estimate import TOOLS_TOKENS

WINDOW_SHARE: Final = 0.75
"""The part of a context that a whole prompt gets. The rest is for the reply and for what the
estimate misses."""
TALK_PART: Final = 4
"""The talk gets at least a quarter of a whole prompt, however many tools there are: with the
defaults 1,536 tokens, some ten spoken turns."""
REPLY_TOKENS_MAX: Final = 512
"""Tokens that are kept free for a reply: two minutes of speech."""
REPLY_PART: Final = 8
"""In a small context a reply gets an eighth of it."""
OVERESTIMATE: Final = 1.2
"""By how much the estimate of a schema's tokens is too high at least (`token_estimate`)."""
_ROUND: Final = 1_024
"""The context that is advised is a multiple of this."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """A model's context, in tokens."""

    context: int
    """What its server reads of a prompt and its reply together."""
    window: int
    """What a whole prompt may have, as estimated."""
    told: bool = False
    """Whether the server told its context; else a setting did."""

    @property
    def talk(self) -> int:
        """What the conversation gets at least."""
        return self.window // TALK_PART

    def tools(self, head: int) -> int:
        """Return how many estimated tokens of tools fit beside the talk, with `head` tokens of
        instructions."""
        return max(0, int((self.context - self._beside(head)) * OVERESTIMATE))

    def context_for(self, tools: int, head: int) -> int:
        """Return a context in which tools of so many estimated tokens fit, beside the talk that it
        would have."""
        fixed = tools / OVERESTIMATE + head + REPLY_TOKENS_MAX
        needed = math.ceil(fixed / (1 - WINDOW_SHARE / TALK_PART))
        return -(-needed // _ROUND) * _ROUND

    def _beside(self, head: int) -> int:
        return head + self.talk + min(REPLY_TOKENS_MAX, self.context // REPLY_PART)


def budget(
    *, told: int | None, num_ctx: int | None, default: int, window: int | None
) -> ContextBudget:
    """Return the budget of a model.

    Args:
        told: The context that the server told, if it did.
        num_ctx: The context that the owner has set, if they have; then no more is used.
        default: The context where there is neither.
        window: The tokens of a whole prompt that the owner has set, if they have.
    """
    sizes = [size for size in (told, num_ctx) if size]
    context = min(sizes) if sizes else default
    own = int(context * WINDOW_SHARE)
    return ContextBudget(context, min(window, context) if window else own, told=context == told)


def fitting(
    tools: PromptTools,
    most: int,
    tokens: Callable[[PromptTools], int],
    always: str,
) -> PromptTools:
    """Return those of `tools`, in their order, that have `most` tokens together as `tokens` counts.

    The first ones go before the last. The one named `always` stays, since it finds the others.
    """
    if tokens(tools) <= most:
        return tools
    left, kept = most - TOOLS_TOKENS, set[str]()
    for name in sorted(tools.names, key=lambda name: name != always):
        size = tokens(tools.only((name,))) - TOOLS_TOKENS
        if size <= left or name == always:
            kept.add(name)
            left -= size
    return tools.only(kept)
