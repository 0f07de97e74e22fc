"""How much a model's server reads, and what to say where the tools do not fit into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from caal_node.config.settings import Settings
from caal_node.context.window import ContextBudget, budget

NAMES_SHOWN: Final = 5
"""Names of tools in a message."""


def budget_of(settings: Settings, told: int | None) -> ContextBudget:
    """Return the budget of the settings' model, whose server reads `told` tokens if it says so.

    CAAL_NUM_CTX narrows it where its owner has written it.
    """
    return budget(
        told=told,
        num_ctx=settings.num_ctx if "num_ctx" in settings.model_fields_set else None,
        default=settings.num_ctx,
    )


def too_many_tools(
    settings: Settings, shared: ContextBudget, tools: int, head: int, left_out: Sequence[str]
) -> tuple[str, str]:
    """Return what is wrong and how to fix it, where `tools` tokens of tools do not fit beside
    `head` tokens of instructions and a conversation, so that those of `left_out` are not offered.
    """
    names = ", ".join(left_out[:NAMES_SHOWN])
    more = f" and {len(left_out) - NAMES_SHOWN} more" if len(left_out) > NAMES_SHOWN else ""
    found = (
        f"about {tools} tokens of tools do not fit beside a conversation into the {shared.context} "
        f"tokens that the model reads; left out: {names}{more}"
    )
    needed = shared.context_for(tools, head)
    narrowed = "num_ctx" in settings.model_fields_set or not shared.told
    raised = (
        f"set CAAL_NUM_CTX={needed}"
        if settings.api == "ollama" or narrowed
        else f"start the model's server with a context of {needed} tokens"
    )
    return found, f"{raised}, pin fewer tools, or lower CAAL_TOOL_TOKENS to have more on demand"
