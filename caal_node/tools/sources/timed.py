"""A source with a deadline of its own for each call, which reports how long calls take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from caal_node.core.errors import ToolTimeout
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import Arguments, CallConversation, ToolProvider
from caal_node.tools.sources.wrapper import WrapperSource

SPARE_S: Final = 1.0
"""Seconds by which the pipeline's deadline is later, so that this one is what ends a call."""


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
