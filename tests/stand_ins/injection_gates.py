"""What stands between a model that obeys a page and the tool: a yes, which nobody gives here."""

from __future__ import annotations

import time
from typing import Any

from caal_node.core.errors import ToolRefused
from caal_node.tools.call_middleware import CallMiddleware, Proceed, ToolCallRequest
from caal_node.tools.middleware.policy_check import asked_for_by_a_tool


class NobodySaysYes(CallMiddleware):
    """Refuses every call that needs a yes: what destroys, and what a tool has asked for."""

    name = "confirmation"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        """The tool and the reason of each call that a person would have been asked about."""

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        spec = call.entry.spec
        why = "it destroys" if spec.effect == "destructive" else asked_for_by_a_tool(call)
        if not why:
            return await proceed()
        self.asked.append((call.entry.exposed, why))
        call.note(self.name, "refused", why, began)
        raise ToolRefused(f"{call.entry.exposed} was not called: the person did not say yes.")
