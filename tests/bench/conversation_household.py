"""A household of fourteen tools whose answers a conversation writes (tests/data/conversations)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from caal_node.core.errors import ToolBroke, ToolRefused
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.testing import ScriptedToolSource
from caal_node.tools.source import Arguments

FOLDER: Final = Path(__file__).parents[1] / "data" / "conversations"
_SLOW_S: Final = 3600.0
"""Seconds that a call takes which is to pass its deadline."""


def read_rows(name: str) -> Mapping[str, Any]:
    """Read one file of the folder."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


TOOLS: Final[Mapping[str, Mapping[str, Any]]] = {
    row["name"]: row for row in read_rows("household")["tools"]
}
PLACES: Final[tuple[str, ...]] = tuple(read_rows("household")["places"])
"""Rooms and doors, as people name them."""


class Household:
    """The tools of one conversation. `gives` has the answers of the turn that is under way."""

    def __init__(self) -> None:
        self.gives: Mapping[str, Any] = {}
        """By the tool's name: its result, `{"error": ...}`, `"refused"` or `"slow"`."""
        self.source: Final = ScriptedToolSource(*map(_spec, TOOLS.values()), answer=self._answer)

    async def _answer(self, spec: ToolSpec, arguments: Arguments) -> Any:
        given: Any = self.gives.get(spec.name)
        if given == "slow":
            await asyncio.sleep(_SLOW_S)
        if given == "refused":
            raise ToolRefused("The owner does not allow it.")
        if (error := _error_of(given)) is not None:
            raise ToolBroke(error)
        return _filled(TOOLS[spec.name]["result"], arguments) if given is None else given


def _error_of(given: Any) -> str | None:
    error: Any = cast("dict[str, Any]", given).get("error") if isinstance(given, dict) else None
    return None if error is None else str(error)


def _filled(value: Any, arguments: Arguments) -> Any:
    """Return the household's own result with the call's arguments in it."""
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {key: _filled(each, arguments) for key, each in named.items()}
    if isinstance(value, list):
        return [_filled(each, arguments) for each in cast("list[Any]", value)]
    if isinstance(value, str) and value.startswith("{"):
        return arguments.get(value.strip("{}"))
    return value


def _spec(row: Mapping[str, Any]) -> ToolSpec:
    parameters = {"type": "object", "properties": row["properties"], "required": row["required"]}
    return ToolSpec(
        tier="mcp",
        source="home",
        name=row["name"],
        wanted=row["name"],
        description=row["description"],
        parameters=parameters,
        examples=tuple(Example(each["say"], each["arguments"]) for each in row["examples"]),
        read_only=row["effect"] == "read",
        effect=row["effect"],
    )
