"""The plan gate: calls that conflict run one after the other, in the model's order.

LiveKit starts all calls of one reply at once. Each takes its place in the line as it comes, and
then waits for those in front of it that it conflicts with (`mcp_bridge.core.call_conflicts`);
all others it passes by. So no two calls in conflict run at once, and none starts later than it
would one by one.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Final

from caal_node.errors import ToolTimeout
from caal_node.tools.gates import Arguments
from caal_node.tools.table import Entry
from mcp_bridge.core.call_conflicts import CallAccess, conflict, mentioned_paths, resolved_path

logger = logging.getLogger("caal_node.tools")

WAIT_S: Final = 60.0
"""For earlier calls: three that each take all the time they have. Nobody listens for longer."""
LOOK_UP_S: Final = 1.0
"""To follow the links of a path. A disk that takes longer (a network's that is away) is not waited
for; the call then counts for its whole source."""
_READS: Final = frozenset(
    """check count describe find get is list look lookup query read search show tell what when
    where which who""".split()  # noqa: SIM905 - a list of words reads better as words
)
_CHANGES: Final = frozenset(
    """add and append archive book buy cancel change clear close complete create delete do draft
    drop edit execute insert lock make mark merge move open order pause pay play post put remove
    rename replace reset run save send set share start stop store submit sync then toggle transfer
    turn unlock update upload write""".split()  # noqa: SIM905 - as above
)
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


class Line:
    """The calls of one agent that run or wait, in their order."""

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self._wait_s: Final = wait_s
        self._places: Final[list[_Place]] = []

    def __call__(self, entry: Entry, arguments: Arguments, call_id: str) -> _Place:
        return _Place(self._places, entry, arguments, self._wait_s)


class _Place:
    """One call's place. Leaving it lets those behind go on."""

    def __init__(
        self, places: list[_Place], entry: Entry, arguments: Arguments, wait_s: float
    ) -> None:
        self.entry: Final = entry
        self.left: Final = asyncio.Event()
        self._places: Final = places
        self._arguments: Final = arguments
        self._wait_s: Final = wait_s
        self._access: CallAccess | None = None

    def __enter__(self) -> None:
        self._places.append(self)

    def __exit__(self, *_: object) -> None:
        self._places.remove(self)
        self.left.set()

    async def come(self) -> None:
        """Raises: ToolTimeout: an earlier call did not end."""
        before = self._places[: self._places.index(self)]
        if not before:
            return
        try:
            async with asyncio.timeout(self._wait_s):
                await self._wait_for([p for p in before if await self._conflicts(p)])
        except TimeoutError:
            raise ToolTimeout(
                f"{self.entry.exposed} was not called, as an earlier call has not ended."
            ) from None

    async def _wait_for(self, places: list[_Place]) -> None:
        waiting = [place for place in places if not place.left.is_set()]
        if waiting:
            names = ", ".join(place.entry.exposed for place in waiting)
            logger.info("tool %s waits for %s", self.entry.exposed, names)
        for place in waiting:
            await place.left.wait()

    async def _conflicts(self, other: _Place) -> bool:
        return conflict(await other.access(), await self.access())

    async def access(self) -> CallAccess:
        """What the call uses. Found out when another call asks: alone, a call needs no plan."""
        if self._access is None:
            self._access = await _access(self.entry, self._arguments)
        return self._access


async def _access(entry: Entry, arguments: Arguments) -> CallAccess:
    writes = not _reads(entry)
    said = mentioned_paths(arguments, writes=writes)
    source = f"{entry.spec.tier} {entry.spec.source}"
    if not said.paths:
        return CallAccess(source, writes)
    try:
        async with asyncio.timeout(LOOK_UP_S):
            paths = await asyncio.to_thread(lambda: tuple(map(resolved_path, said.paths)))
    except TimeoutError:
        return CallAccess(source, writes)
    return CallAccess(source, writes, paths, said.whole)


def _reads(entry: Entry) -> bool:
    """Whether the call is known to change nothing.

    An MCP server says so itself. Methods and workflows are the house's own, and their names are
    believed: `get_weather` reads, `get_and_delete` does not.
    """
    if entry.spec.read_only is not None or entry.spec.tier == "mcp":
        return entry.spec.read_only is True
    words = [word.lower() for word in _WORD.findall(entry.spec.name)]
    return bool(words) and words[0] in _READS and not _CHANGES.intersection(words)
