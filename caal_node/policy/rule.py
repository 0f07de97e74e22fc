"""One rule of the owner: which calls it fits, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from caal_node.core.caller import CallOrigin
from caal_node.core.events import TierName
from caal_node.core.tool_spec import Effect
from caal_node.policy.globs import all_covered, covers

Action: TypeAlias = Literal["allow", "deny", "confirm", "dry_run"]
"""What becomes of a call: it runs, is refused, waits for a person's yes, or is only told of."""

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
TOOL_CONDITIONS: Final = ("tools", "tier", "server", "effect", "annotation")
"""What a rule may ask of the tool. Each is a list, of which one has to fit."""
CALLER_CONDITIONS: Final = ("rooms", "participants", "origin")
"""What a rule may ask of the caller, beside `attributes`."""
CONDITIONS: Final = (*TOOL_CONDITIONS, *CALLER_CONDITIONS)


@dataclass(frozen=True, slots=True)
class Rule:
    """Fits a call where each of its conditions does. An empty condition fits every call.

    `tools`, `server`, `annotation`, `rooms`, `participants` and the values of `attributes` are
    globs; `tier`, `effect` and `origin` are words.
    """

    then: Action
    tools: Sequence[str] = ()
    """Exposed names, as the model and `caal-node tools` have them. A rule that does not allow also
    fits the name that a tool would have if no other had taken it, and `server__tool` of MCP."""
    tier: Sequence[TierName] = ()
    server: Sequence[str] = ()
    """The MCP server's name, `n8n`, or the agent's class."""
    effect: Sequence[Effect] = ()
    annotation: Sequence[str] = ()
    """Names of what the source claims, such as `destructiveHint`; n8n's are tags."""
    rooms: Sequence[str] = ()
    participants: Sequence[str] = ()
    """Identities. A caller of whom none is known has an empty one."""
    origin: Sequence[CallOrigin] = ()
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    """The participant must have each of them, with a value that the glob fits."""
    line: str = "a rule in code"
    """Its place, by which decisions name it."""

    def __post_init__(self) -> None:
        if self.then not in ACTIONS:
            raise ValueError(f"then={self.then!r}: write {', '.join(ACTIONS)}")
        for name in CONDITIONS:
            if isinstance(given := getattr(self, name), str):
                raise ValueError(f'{name}={given!r}: write a list, such as ["{given}"]')

    @property
    def is_personal(self) -> bool:
        """Whether it depends on who the participant is."""
        return bool(self.participants or self.attributes)

    @property
    def depends_on_caller(self) -> bool:
        """Whether it depends on anything but the tool."""
        return bool(self.is_personal or self.rooms or self.origin)

    def covers(self, later: Rule) -> bool:
        """Say whether this rule surely fits each call that `later` fits."""
        for name in CONDITIONS:
            wide: Sequence[str] = getattr(self, name)
            narrow: Sequence[str] = getattr(later, name)
            if wide and not (narrow and all_covered(narrow, wide)):
                return False
        return all(
            name in later.attributes and covers(glob, later.attributes[name])
            for name, glob in self.attributes.items()
        )
