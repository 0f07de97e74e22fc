"""A source of tools lists tools, runs them, and closes.

`CaalAgent(tiers={"mcp": source})` takes any object with `discover`, `call` and `aclose`. A subclass
of `ToolSource` can do more: every further ability is a method whose default does nothing. The
sources and the wrappers around sources are in `caal_node.tools.sources`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from livekit.agents.llm import ToolResult

from caal_node.core.tool_spec import ToolSpec
from mcp_bridge.core.elicitation import Answer, Question
from mcp_bridge.core.tools import ServerStatus

Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools that a source has now, and why parts of it could not be listed."""

    specs: tuple[ToolSpec, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    """The reason by the name of what failed, such as an MCP server."""
    new: tuple[str, ...] = ()
    """Tools that a known server has added, and that nobody has accepted yet."""


@dataclass
class VerbatimResult(ToolResult):
    """A call's result whose author wrote the sentence that a person is to hear as it stands.

    The model is then not asked for an answer of its own. In a plain LiveKit agent it is its value
    alone, of which the model speaks.
    """

    words: str

    @property
    def value(self) -> Any:
        """The result itself."""
        return self.output


@dataclass
class Undoable(ToolResult):
    """A call's result with a way to take the call back, once, when the user says "undo that".

    An agent has the tool `undo` if the return type of one of its function tools names this class
    (`caal_node/tools/undo.py`). A plain LiveKit agent gets the value alone, as LiveKit has no undo.
    """

    undo: Callable[[], Awaitable[Any]]
    """It takes the call back, and returns what a tool returns, such as "I've deleted the note.".
    Where the state has changed since, it raises a `ToolFailure` and changes nothing."""
    words: str | None = None
    """As in a `VerbatimResult`; without them the model answers."""

    @property
    def value(self) -> Any:
        """The result itself."""
        return self.output


class CallConversation(Protocol):
    """The conversation that a call is made for."""

    def report_progress(self, done: float, total: float | None, message: str) -> None:
        """Tell people how far the call has come; `done` grows, in units of the source's choice."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Ask the person, and wait. It is cancelled when nobody needs the answer any more."""
        ...


class ToolProvider(Protocol):
    """The least that an object needs in order to be a source of tools; see `ToolSource`."""

    async def discover(self) -> ToolListing: ...

    async def call(self, spec: ToolSpec, arguments: Arguments, /) -> Any: ...

    async def aclose(self) -> None: ...


class ToolSource(ABC):
    """The base class of all sources of tools."""

    @abstractmethod
    async def discover(self) -> ToolListing:
        """List the tools afresh.

        What cannot be reached is reported as failed in the listing, and raises nothing.
        """

    @abstractmethod
    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        """Run one tool, and return a JSON value or text, or either in a `VerbatimResult`.

        Args:
            conversation: Where the call can report progress and ask the person; None for a call
                that nobody in a conversation has asked for.

        Raises:
            ToolFailure: in the kind that fits.
        """

    async def aclose(self) -> None:
        """Release what the source holds. It may be called without any `discover` before it."""
        return

    @property
    def poll_s(self) -> float:
        """Seconds between two listings that the agent makes by itself; 0 for none."""
        return 0.0

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys and tokens that the source uses now; no tool's words may hold them."""
        return ()

    def wake(self, specs: Iterable[ToolSpec]) -> None:
        """Begin to prepare for calls of these tools, as the model is told of them just now.

        It returns at once; what goes wrong is for the call to say.
        """
        return

    def watch_changes(self, changed: Callable[[ToolListing], None]) -> None:
        """Call `changed`, on the event loop, with each listing that a call or an event has changed.

        A change that a call makes is to be reported before the call returns.
        """
        return

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """The state of each configured MCP server, in the order of the configuration file."""
        return ()


def as_tool_source(provider: ToolProvider) -> ToolSource:
    """Return `provider` itself where it is a `ToolSource`, else a source that uses it."""
    return provider if isinstance(provider, ToolSource) else _ProvidedSource(provider)


class _ProvidedSource(ToolSource):
    """An object that has only the three methods of a `ToolProvider`."""

    def __init__(self, provider: ToolProvider) -> None:
        self._provider = provider

    async def discover(self) -> ToolListing:
        return await self._provider.discover()

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        return await self._provider.call(spec, arguments)

    async def aclose(self) -> None:
        await self._provider.aclose()
