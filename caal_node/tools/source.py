"""What a remote tier is to the node: it lists tools, runs one, and closes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from caal_node.core.tool_spec import ToolSpec
from mcp_bridge import Answer, Question, ServerStatus


@dataclass(frozen=True, slots=True)
class Listing:
    """What a tier offers now, and which of its sources could not be listed, with the reason."""

    specs: tuple[ToolSpec, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])


@runtime_checkable
class Polled(Protocol):
    """A tier that is to be listed afresh by itself every so often."""

    @property
    def poll_s(self) -> float:
        """Seconds between two looks; 0: never."""
        ...


@runtime_checkable
class Growing(Protocol):
    """A tier whose own calls can make more of its tools callable."""

    def grown(self) -> Listing | None:
        """What there is now, once after a call has changed it; else None."""
        ...


@runtime_checkable
class Searched(Protocol):
    """A tier that has tools which the model is not offered until it looks for them."""

    async def everything(self) -> tuple[ToolSpec, ...]:
        """Specs of all that `call` takes; a tool that is only there for the search is none."""
        ...


@runtime_checkable
class Serving(Protocol):
    """A tier whose tools come from MCP servers."""

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """Every configured one, in the file's order."""
        ...


class CallConversation(Protocol):
    """Whom a call is made for."""

    def progressed(self, done: float, total: float | None, message: str) -> None:
        """The tool's source tells how far it is."""
        ...

    async def asked(self, question: Question) -> Answer:
        """The tool's source asks the person. Cancelled where the answer has lost its use."""
        ...


@runtime_checkable
class Conversing(Protocol):
    """A tier whose sources tell and ask in the middle of a call."""

    async def call_for(
        self, spec: ToolSpec, arguments: Mapping[str, Any], caller: CallConversation
    ) -> Any:
        """As `Tier.call`."""
        ...


@runtime_checkable
class Changing(Protocol):
    """A growing tier whose tools can also become others by themselves."""

    def watch(self, changed: Callable[[], None]) -> None:
        """`changed` is called, on the event loop, whenever `grown` has something to give."""
        ...


class ToolSource(Protocol):
    async def discover(self) -> Listing:
        """Look at every source afresh. Never raises for a dead source: it is listed as failed."""
        ...

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        """Run one tool; gives a JSON value or text, or either as `Verbatim`.

        Raises:
            ToolFailure: in the kind that fits.
        """
        ...

    async def aclose(self) -> None: ...
