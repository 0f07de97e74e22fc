"""The one way from a call to its result, the same for every tier.

policy -> validation -> plan -> deadline -> tier -> one line for the model -> redaction -> tool data
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sized
from typing import Any, Final, cast

from caal_node.context.one_line_json import to_line
from caal_node.context.tool_data import ENTRY_CHARS, ToolDataCache
from caal_node.core.errors import ToolBroke, ToolFailure, ToolTimeout
from caal_node.tools.argument_check import check_arguments
from caal_node.tools.call_scheduler import CallScheduler
from caal_node.tools.gates import Gates
from caal_node.tools.outcomes import Outcomes, outcome_of
from caal_node.tools.table import ToolEntry

logger = logging.getLogger("caal_node.tools")

TOOL_TIMEOUT_S: Final = 20.0
"""Seconds a call may take. After 20 s of ticks a person has given up on an answer."""
RESULT_CHARS: Final = 6_000
"""Characters of a result that the model is shown: about 1,500 tokens, a fifth of its window."""


LONG_CHARS: Final = 16_384
LONG_VALUES: Final = 1_000
"""Results with more characters or values than this become lines in a thread: it takes 15 ms for
megabytes, most of an audio frame, and less than 2 ms below it."""


class Pipeline:
    """Runs calls. Holds no table: a call comes with the entry it was resolved to."""

    def __init__(
        self,
        data: ToolDataCache,
        *,
        gates: Gates | None = None,
        timeout_s: float = TOOL_TIMEOUT_S,
        result_chars: int = RESULT_CHARS,
    ) -> None:
        self.outcomes: Final = Outcomes()
        self._data = data
        self._gates = gates or Gates()
        self._plan = self._gates.plan or CallScheduler()
        self._timeout_s = timeout_s
        self._result_chars = result_chars

    async def run(
        self,
        entry: ToolEntry,
        call_id: str,
        arguments: Mapping[str, Any],
        tier: Callable[[], Awaitable[Any]],
        *,
        validate: bool = True,
        deadline: bool = True,
        plain: Callable[[Any], bool] = lambda value: True,
    ) -> Any:
        """Run one call; `tier` does the work and gives a JSON value or text.

        Args:
            validate: Whether the arguments are still to be checked against the schema.
            deadline: Whether the call may take no longer than the pipeline's time-out.
            plain: Which values become text here. Others are given back as they are.

        Returns:
            One line for the model.

        Raises:
            ToolFailure: whatever went wrong, in one of its kinds.
        """
        began = time.perf_counter()
        try:
            value = await self._through_the_gates(
                entry,
                call_id,
                arguments,
                tier,
                validate,
                self.limit_s(entry) if deadline else None,
            )
            shown = await self._shown(entry, call_id, arguments, value) if plain(value) else value
        except asyncio.CancelledError:
            self._ended(entry, call_id, "cancelled", began)
            raise
        except Exception as error:
            self._ended(entry, call_id, outcome_of(error), began)
            raise
        self._ended(entry, call_id, "ok", began)
        return shown

    def redacted(self, text: str) -> str:
        """Text that goes to people or to the model by another way than `run`."""
        return self._gates.redact(text)

    def limit_s(self, entry: ToolEntry) -> float:
        """Seconds that a call of it may take."""
        return max(self._timeout_s, entry.spec.timeout_s or 0.0)

    async def _shown(
        self, entry: ToolEntry, call_id: str, arguments: Mapping[str, Any], value: Any
    ) -> str:
        """The line for the model; the result is kept as tool data."""
        kept = value
        if _is_long(value):
            # Only the lines are made there: cancelled meanwhile, the call has left no tool data.
            line, kept = await asyncio.to_thread(_both_lines, value, self._result_chars)
        else:
            line = to_line(value, max_chars=self._result_chars)
        shown = self._gates.redact(line)
        if entry.spec.remembered and isinstance(value, dict | list | str):
            # Tool data is shown to the model later on, so it holds no more than the model may see.
            self._data.add(call_id, entry.exposed, arguments, kept if shown == line else shown)
        return shown

    async def _through_the_gates(
        self,
        entry: ToolEntry,
        call_id: str,
        arguments: Mapping[str, Any],
        tier: Callable[[], Awaitable[Any]],
        validate: bool,
        timeout_s: float | None,
    ) -> Any:
        with (turn := self._plan(entry, arguments, call_id)):
            await self._gates.policy(entry, arguments)
            if validate:
                check_arguments(entry, arguments)
            await turn.come()
            if timeout_s is not None:
                return await self._in_time(entry, tier, timeout_s)
        # It may hold a whole conversation, in which others are called: nobody waits for it.
        return await self._in_time(entry, tier, None)

    async def _in_time(
        self, entry: ToolEntry, tier: Callable[[], Awaitable[Any]], timeout_s: float | None
    ) -> Any:
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                return await tier()
        except TimeoutError as error:
            # Without the deadline's having passed it is the tool's own.
            waited = f" in {timeout_s:g} seconds" if deadline.expired() else " in time"
            raise ToolTimeout(f"{entry.exposed} gave no answer{waited}.") from error
        except ToolFailure:
            raise
        except Exception as error:
            # An exception's text may hold anything, so neither model nor log gets it.
            raise ToolBroke(f"{entry.exposed} failed with {type(error).__name__}.") from error

    def _ended(self, entry: ToolEntry, call_id: str, outcome: Any, began: float) -> None:
        self.outcomes.note(call_id, outcome)
        logger.info(
            "tool %s (%s) %s after %d ms",
            entry.exposed,
            entry.spec.tier,
            outcome,
            (time.perf_counter() - began) * 1000,
        )


def _both_lines(value: Any, max_chars: int) -> tuple[str, str]:
    """The line for the model, and the one for the tool data."""
    return to_line(value, max_chars=max_chars), to_line(value, max_chars=ENTRY_CHARS)


def _is_long(value: object) -> bool:
    """Whether it is to be read in a thread. Looks at LONG_VALUES values at most: 0.4 ms."""
    chars, count = 0, 1
    waiting: list[object] = [value]
    while waiting:
        seen = waiting.pop()
        if isinstance(seen, str):
            chars += len(seen)
        elif isinstance(seen, (dict, list)):
            count += len(cast("Sized", seen))
            if count <= LONG_VALUES:
                inner = cast("dict[Any, Any] | list[Any]", seen)
                waiting += inner.values() if isinstance(inner, dict) else inner
        if chars > LONG_CHARS or count > LONG_VALUES:
            return True
    return False
