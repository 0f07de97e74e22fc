"""Sources that wrap another one and change one thing about it. They can be nested."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from caal_node.core.errors import ToolRefused, ToolTimeout
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import (
    Arguments,
    CallConversation,
    ToolListing,
    ToolProvider,
    ToolSource,
    as_tool_source,
)
from mcp_bridge import ServerStatus

SPARE_S: Final = 1.0
"""Seconds by which the pipeline's deadline is later, so that this one is what ends a call."""
Approve: TypeAlias = Callable[
    [ToolSpec, Arguments, CallConversation | None], bool | Awaitable[bool]
]
"""It says whether a call may run. It may ask the person by `conversation.ask`, where there is one,
within the call's deadline. It runs on the event loop, so one that takes long must be async."""


class WrapperSource(ToolSource):
    """Does what the wrapped source does. Override `adapt` to change tools, `call` to change calls.

    Args:
        wrapped: A source, or any object with `discover`, `call` and `aclose`. It is closed with
            the wrapper.
    """

    def __init__(self, wrapped: ToolProvider) -> None:
        self.wrapped = as_tool_source(wrapped)

    def adapt(self, spec: ToolSpec) -> ToolSpec | None:
        """Return what one of the wrapped source's tools is given out as; None leaves it out.

        Keep `name`, by which the wrapped source is called; `wanted` is what the model sees.
        """
        return spec

    async def discover(self) -> ToolListing:
        return self._adapted(await self.wrapped.discover())

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        return await self.wrapped.call(spec, arguments, conversation)

    async def aclose(self) -> None:
        await self.wrapped.aclose()

    @property
    def poll_s(self) -> float:
        return self.wrapped.poll_s

    def wake(self, specs: Iterable[ToolSpec]) -> None:
        self.wrapped.wake(specs)

    def watch_changes(self, changed: Callable[[ToolListing], None]) -> None:
        self.wrapped.watch_changes(lambda listing: changed(self._adapted(listing)))

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.wrapped.secrets

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        return self.wrapped.servers

    def _adapted(self, listing: ToolListing) -> ToolListing:
        return ToolListing(self._adapted_specs(listing.specs), listing.failed)

    def _adapted_specs(self, specs: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
        return tuple(spec for spec in map(self.adapt, specs) if spec is not None)


class FilteredSource(WrapperSource):
    """Leaves out the tools that `keep` says no to: they are neither listed, found nor callable."""

    def __init__(self, wrapped: ToolProvider, keep: Callable[[ToolSpec], bool]) -> None:
        super().__init__(wrapped)
        self._keep = keep

    def adapt(self, spec: ToolSpec) -> ToolSpec | None:
        return spec if self._keep(spec) else None


class PrefixedSource(WrapperSource):
    """Puts a prefix in front of the name by which the model knows each tool.

    MCP tools need none, as their names begin with their server's.
    """

    def __init__(self, wrapped: ToolProvider, prefix: str) -> None:
        """`prefix` is put there as it is, with any separator, such as `"home_"`."""
        super().__init__(wrapped)
        self._prefix = prefix

    def adapt(self, spec: ToolSpec) -> ToolSpec:
        return replace(spec, wanted=f"{self._prefix}{spec.wanted}")


class TimedSource(WrapperSource):
    """Ends calls after `limit_s`, and reports each call's duration, whatever ended it.

    Args:
        limit_s: Seconds of a call; None leaves the deadline to the agent. It may be longer than
            the agent's.
        on_duration: Called on the event loop with the tool and the seconds that its call took.
    """

    def __init__(
        self,
        wrapped: ToolProvider,
        limit_s: float | None = None,
        on_duration: Callable[[ToolSpec, float], None] | None = None,
    ) -> None:
        super().__init__(wrapped)
        self._limit_s = limit_s
        self._on_duration = on_duration

    def adapt(self, spec: ToolSpec) -> ToolSpec:
        return spec if self._limit_s is None else replace(spec, timeout_s=self._limit_s + SPARE_S)

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        began = time.perf_counter()
        deadline = asyncio.timeout(self._limit_s)
        try:
            async with deadline:
                return await super().call(spec, arguments, conversation)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            limit = f"{self._limit_s:g} seconds"
            raise ToolTimeout(f"{spec.wanted} gave no answer in {limit}.") from error
        finally:
            if self._on_duration is not None:
                self._on_duration(spec, time.perf_counter() - began)


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
