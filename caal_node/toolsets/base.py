"""What an author of a toolset derives from: `ConfiguredToolset`, its options and its services.

    class ShelfOptions(ToolsetOptions):
        file: OptionPath = Field(description="The file with your books")

    class Shelf(ConfiguredToolset):
        NAME = "shelf"
        SUMMARY = "Says which books you have."
        Options = ShelfOptions

        @tool("read")
        async def find_book(self, title: str) -> str: ...

It is a LiveKit `Toolset`, so that `Agent(tools=[Shelf(ShelfOptions(file=...))])` works without
anything else of this package. In a `CaalAgent` its calls go through the owner's policy, have a
deadline, and give short results.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# LiveKit leaves the types of its tools open, so they are half unknown.

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Protocol, cast

from livekit.agents import function_tool
from livekit.agents.llm import FunctionTool, RawFunctionTool, Toolset
from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr, ValidationInfo
from tzlocal import get_localzone

from caal_node.core.errors import ConfigError, InvalidArguments
from caal_node.core.events import CueKind, Event, Events
from caal_node.core.paths import from_home, state_folder
from caal_node.core.tool_spec import Effect
from caal_node.tools.effects import CallTerms, effect, terms_of, with_terms
from mcp_bridge.embedding.embedders import Embedder

BASE: Final = "base"
"""The key, in pydantic's validation context, of the folder that relative paths start from."""


def _from_base(path: Path, info: ValidationInfo) -> Path:
    context = cast("Mapping[str, Path]", info.context or {})
    return context.get(BASE, Path()) / from_home(str(path), info.field_name or "path")


OptionPath = Annotated[Path, AfterValidator(_from_base)]
"""A path of an option. A relative one starts from the folder of `caal.toml`."""


class ToolsetOptions(BaseModel):
    """The options of a toolset: the keys of its table `[toolsets.NAME]` in `caal.toml`.

    The description of a field is the question that `caal-node tools add` asks; a field without a
    default has to be answered. A `SecretStr` is asked for without an echo, and kept in `.env`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True
    )


class Announcer(Protocol):
    """Speaks to the people of a room by itself, outside of any answer."""

    @property
    def place(self) -> str:
        """The room's name, "" where the conversation has no room."""
        ...

    async def announce(self, words: str, *, cue: CueKind | None = None) -> bool:
        """Wait until nobody speaks, play the cue, and say the words.

        Returns:
            Whether somebody was there to hear it. Where nobody is, nothing is said.
        """
        ...

    async def ask(self, request: str) -> bool:
        """Wait until nobody speaks, and begin a turn with a request as the person's words.

        The owner's policy holds in it as in every turn.

        Returns:
            Whether there was a conversation to begin it in.
        """
        ...

    def on_arrival(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell`, on the event loop, when somebody comes into the room.

        Returns:
            A function that ends this.
        """
        ...


class NoAnnouncer:
    """The announcer of a toolset that nobody has given one: nobody hears it."""

    place = ""

    async def announce(self, words: str, *, cue: CueKind | None = None) -> bool:
        return False

    async def ask(self, request: str) -> bool:
        return False

    def on_arrival(self, tell: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


def _home_zone() -> tzinfo:
    """Return the time zone that the variable TZ names, or else the machine's."""
    try:
        return get_localzone()
    except (LookupError, ValueError, OSError):
        if not (named := os.environ.get("TZ")):
            return UTC  # the machine's own files name no zone that there is
    raise ConfigError(f"TZ: {named[:40]} is no time zone; write one such as Europe/Oslo")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ToolsetServices:
    """What a toolset gets of the conversation that it works in."""

    state: Path = field(default_factory=lambda: state_folder() / "toolsets")
    """The folder for what the toolset itself keeps. It may not exist yet."""
    timezone: tzinfo = field(default_factory=_home_zone)
    """The home's: what TZ names, such as Europe/Oslo, or else the machine's."""
    now: Callable[[], datetime] = _utc_now
    """Returns the time, with its zone."""
    announcer: Announcer = field(default_factory=NoAnnouncer)
    events: Events = field(default_factory=Events)
    """The conversation's."""
    embedder: Embedder | None = None
    """Makes vectors of texts, where the owner has turned an embedding on."""

    def emit(self, event: Event) -> None:
        """Tell everybody who listens to the conversation's events."""
        self.events.emit(event)


class ConfiguredToolset(Toolset):
    """A set of tools that `caal.toml` turns on and sets up.

    LiveKit calls `setup` when the agent enters a session and `aclose` when it leaves; both may be
    overridden, and then call the ones here. One object may be set up again after it was closed.

    Raises:
        ConfigError: the options cannot work, or a library is missing; the message says what to do.
    """

    NAME: ClassVar[str]
    """The name of its entry point, of its table in `caal.toml`, and of its source in lists."""
    SUMMARY: ClassVar[str]
    """One sentence for `caal-node tools add`: what a person can ask for."""
    EXTRA: ClassVar[str] = ""
    """The extra of its distribution that brings its libraries, if it needs any."""
    Options: ClassVar[type[ToolsetOptions]] = ToolsetOptions

    def __init__(
        self, options: ToolsetOptions | None = None, services: ToolsetServices | None = None
    ) -> None:
        # First, as LiveKit looks at every attribute for tools.
        self.options: Any = self.Options() if options is None else options
        self.services: Final = services or ToolsetServices()
        super().__init__(id=self.NAME)
        for each in self.tools:
            if isinstance(each, (FunctionTool, RawFunctionTool)):
                with_terms(each, replace(terms_of(each) or CallTerms(), source=self.NAME))

    async def check(self) -> str:
        """Try what the options name, and say in a sentence what was found.

        Raises:
            ConfigError, ToolFailure: it does not work; the message says what to do.
        """
        return "nothing to check"

    async def spoken_names(self) -> Sequence[str]:
        """Return names that are said to these tools, such as rooms, those that matter most first.

        Speech recognition is told of them. A failure leaves them out.
        """
        return ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of the options that are secrets; no tool's words may hold them."""
        values = (getattr(self.options, name) for name in self.Options.model_fields)
        return tuple(each.get_secret_value() for each in values if isinstance(each, SecretStr))


TEXT_CHARS: Final = 4_000
"""Characters of a text that a tool is given: four minutes of speech. It bounds the work of all that
looks for words in it."""


def tool(
    worst: Effect,
    *,
    timeout_s: float | None = None,
    remembered: bool = True,
    text_chars: int = TEXT_CHARS,
) -> Callable[[Callable[..., Any]], FunctionTool[..., Any]]:
    """Make a method of a toolset a tool.

    Its docstring is what the model reads, with each parameter's description under `Args:`, and
    with up to three lines such as `Example: what is left to buy -> {"list": "shopping"}`.

    Args:
        worst: What its calls may do at worst, for the owner's policy.
        timeout_s: Seconds that a call may take, where that is more than the usual 20.
        remembered: Whether results are kept for later turns ("the second one").
        text_chars: The most characters that an argument may have; a call with more is refused
            before anything is done with it.
    """

    def make(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        names = tuple(inspect.signature(function).parameters)

        @functools.wraps(function)
        async def bounded(*given: Any, **named: Any) -> Any:
            for name, value in (*zip(names, given, strict=False), *named.items()):
                if isinstance(value, str) and len(value) > text_chars:
                    raise InvalidArguments(f"{name}: at most {text_chars} characters; shorten it.")
            return await function(*given, **named)

        terms = CallTerms(timeout_s=timeout_s, remembered=remembered)
        return function_tool(effect(worst)(with_terms(bounded, terms)))

    return make
