"""A source whose calls need somebody's approval."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from caal_node.core.errors import ToolRefused
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import Arguments, CallConversation, ToolProvider
from caal_node.tools.sources.wrapper import WrapperSource

Approve: TypeAlias = Callable[
    [ToolSpec, Arguments, CallConversation | None], bool | Awaitable[bool]
]
"""It says whether a call may run. It may ask the person by `conversation.ask`, where there is one,
within the call's deadline. It runs on the event loop, so one that takes long must be async."""


def may_change_something(spec: ToolSpec) -> bool:
    """Say whether a tool is not known to only read."""
    return spec.read_only is not True


class ApprovalRequiredSource(WrapperSource):
    """Asks `approve` before each call that `needs_approval`; nothing runs unless it returns True.

    A cancelled call cancels the question.
    """

    def __init__(
        self,
        wrapped: ToolProvider,
        approve: Approve,
        *,
        needs_approval: Callable[[ToolSpec], bool] = may_change_something,
    ) -> None:
        super().__init__(wrapped)
        self._approve = approve
        self._needs_approval = needs_approval

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        if self._needs_approval(spec):
            approved = self._approve(spec, arguments, conversation)
            if inspect.isawaitable(approved):
                approved = await approved
            if approved is not True:
                raise ToolRefused(f"{spec.wanted} was not called, as the call was not approved.")
        return await super().call(spec, arguments, conversation)
