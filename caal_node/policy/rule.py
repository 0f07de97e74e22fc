"""One rule of the owner: which calls it fits, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

from caal_node.core.events import TierName
from caal_node.core.tool_spec import CallOrigin, Effect

# Globs as a shell's: `*` is any text, `?` any character, `[abc]` one of them; case counts.

_MAGIC: Final = re.compile(r"[*?\[]")
_TOKEN: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.S)


class AnyOf:
    """Fits a text where at least one of some globs does.

    Most globs are whole names or end with their only `*`, and those need no regular expression.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        names: list[str] = []
        beginnings: list[str] = []
        others: list[str] = []
        for glob in globs:
            if not _MAGIC.search(glob):
                names.append(glob)
            elif glob.endswith("*") and not _MAGIC.search(glob[:-1]):
                beginnings.append(glob[:-1])
            else:
                others.append(translate(glob))
        self._names: Final = frozenset(names)
        self._beginnings: Final = tuple(beginnings)
        self._pattern: Final = re.compile("|".join(f"(?:{each})" for each in others))
        self._has_pattern: Final = bool(others)

    def fits(self, text: str) -> bool:
        """Say whether the whole text is one that a glob stands for."""
        if text in self._names or text.startswith(self._beginnings):
            return True
        return self._has_pattern and self._pattern.match(text) is not None


def all_covered(narrow: Sequence[str], wide: Sequence[str]) -> bool:
    """Say whether each text that fits one of `narrow` surely fits one of `wide`."""
    return all(any(covers(each, glob) for each in wide) for glob in narrow)


@lru_cache(maxsize=4096)
def covers(wide: str, narrow: str) -> bool:
    """Say whether each text that `narrow` fits is one that `wide` fits.

    True is certain. False also stands for a few pairs whose order of `*` and `?` differs, such as
    `?*` and `*?`.
    """
    if wide in ("*", narrow):
        return True
    wanted, given = _tokens(wide), _tokens(narrow)
    at = star = mark = 0
    has_star = False
    position = 0
    while position < len(given):
        if at < len(wanted) and wanted[at] == "*":
            has_star, star, mark = True, at, position
            at += 1
        elif at < len(wanted) and _one_covers(wanted[at], given[position]):
            at += 1
            position += 1
        elif has_star:
            mark += 1
            at, position = star + 1, mark
        else:
            return False
    return all(each == "*" for each in wanted[at:])


@lru_cache(maxsize=4096)
def _tokens(glob: str) -> tuple[str, ...]:
    end = glob.rfind("]") + 1  # behind it no "[" has an end to be looked for
    return (*_TOKEN.findall(glob[:end]), *glob[end:])


def _one_covers(wide: str, narrow: str) -> bool:
    if narrow == "*":
        return False
    if wide in ("?", narrow):
        return True
    is_character = len(narrow) == 1 and narrow != "?"
    return is_character and len(wide) > 1 and AnyOf([wide]).fits(narrow)


Action: TypeAlias = Literal["allow", "deny", "confirm", "pin", "dry_run"]
"""What becomes of a call: it runs, is refused, waits for a person's yes or PIN, or is only told
of."""

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
