"""Answers in place of a tool: what would have been done is told, and nothing is.

The tool's source is not asked, whether the tool reads or writes and wherever it runs, so nothing
leaves the process for it: no request, no question of a server to the person, no progress. What
still runs is `mcp_discover`, the search among tools that are listed already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from caal_node.tools.call_middleware import CallMiddleware, Preview, Proceed, ToolCallRequest
from caal_node.tools.read_back import would_have
from caal_node.tools.source import VerbatimResult
from caal_node.tools.tool_search import is_search

IsDry: TypeAlias = Callable[[ToolCallRequest], str]
"""It returns why a call is only told of, such as `caal.toml, line 3`; "" for one that runs."""
DRY_RUN: Final = "no tool is called, people hear what would have been done"
"""What an owner reads of it."""
MESSAGE: Final = (
    "This is a dry run. Nothing was done, and there is no result. The person was told what would "
    "have been done; never say that it was done."
)
"""What the model reads of the call."""


def words_of(call: ToolCallRequest) -> str:
    """Return one sentence of what a call would have done, as a person is asked about one."""
    return would_have(call.entry.spec, call.arguments, call.redact)


class DryRun(CallMiddleware):
    """Answers calls that are only to be told of.

    Args:
        is_dry: Which calls these are.
        words: It makes the sentence that the person hears.
    """

    name = "dry_run"

    def __init__(
        self, is_dry: IsDry, *, words: Callable[[ToolCallRequest], str] = words_of
    ) -> None:
        self._is_dry: Final = is_dry
        self._words: Final = words

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        if not (line := self._line(call)):
            return await proceed()
        words = self._words(call)
        call.note(self.name, "dry_run", line, began)
        return VerbatimResult(_result(call), words)

    def preview(self, call: ToolCallRequest) -> Preview:
        if not (line := self._line(call)):
            return Preview("allowed", "no dry run")
        return Preview("dry_run", line, self._words(call))

    def _line(self, call: ToolCallRequest) -> str:
        return "" if is_search(call.entry.spec) else self._is_dry(call)


def _result(call: ToolCallRequest) -> Mapping[str, Any]:
    return {
        "dry_run": True,
        "done": False,
        "message": MESSAGE,
        "would_have": {"tool": call.entry.exposed, "arguments": dict(call.arguments)},
    }
