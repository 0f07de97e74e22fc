"""How often tools may be called: the rules of `[[tools.limits]]` in caal.toml, read and judged.

    [[tools.limits]]
    tools = ["send_*"]
    per_hour = 5
    each = "participant"

A rule covers the calls that all of its `tools`, `rooms`, `participants` and `effect` fit; what is
left out fits everything. `each` says what is counted apart: without it all calls that the rule
covers have one count together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias, cast, get_args

from caal_node.core.errors import ConfigError
from caal_node.core.tool_spec import Caller, Effect
from caal_node.policy.places import Places

Part: TypeAlias = Literal["tool", "room", "participant"]
"""What calls are counted apart by."""

MOST: Final = 1_000
"""Calls of one period at most, as the time of each is kept: nobody hears more in an hour."""
RULES_MAX: Final = 100
"""Rules of one file. A house has some five."""
GLOBS_MAX: Final = 100
GLOB_CHARS_MAX: Final = 200
_GLOBS: Final = ("tools", "rooms", "participants")
_PERIODS: Final = ("per_turn", "per_minute", "per_hour")
_PARTS: Final[tuple[Part, ...]] = get_args(Part)
_KEYS: Final = (*_GLOBS, "effect", *_PERIODS, "each")
_EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)
PATH: Final = ("tools", "limits")


@dataclass(frozen=True, slots=True)
class LimitRule:
    """How often the calls that it covers may run. In code: `LimitRule(per_hour=5, tools=["x_*"])`.

    `tools`, `rooms` and `participants` are globs of tools' names, rooms' names and participants'
    identities; a caller of whom none is known has an empty one.
    """

    per_turn: int | None = None
    per_minute: int | None = None
    per_hour: int | None = None
    tools: Sequence[str] = ("*",)
    rooms: Sequence[str] = ("*",)
    participants: Sequence[str] = ("*",)
    effect: Sequence[Effect] = _EFFECTS
    each: Sequence[Part] = ()
    line: str = field(default="a limit in code", compare=False)
    """Its place, by which decisions name it. A rule that moves within its file stays the same."""

    def __post_init__(self) -> None:
        for name in ("tools", "rooms", "participants", "effect", "each"):
            if isinstance(value := getattr(self, name), str):
                raise ValueError(f'{name}={value!r}: write a list, such as ["{value}"]')
            object.__setattr__(self, name, tuple(value))
        given = [most for most in (self.per_turn, self.per_minute, self.per_hour) if most]
        if not given or not all(1 <= most <= MOST for most in given):
            raise ValueError(f"give per_turn, per_minute or per_hour, each from 1 to {MOST}")

    def fits_tool(self, names: Iterable[str], effect: Effect) -> bool:
        """Say whether calls of a tool may count that is known by `names` (`ToolSpec.known_as`)."""
        return effect in self.effect and any(_fits(name, self.tools) for name in names)

    def fits_caller(self, caller: Caller) -> bool:
        """Say whether calls for `caller` may count."""
        return _fits(caller.room, self.rooms) and _fits(caller.participant, self.participants)

    def count_of(self, tool: str, caller: Caller) -> tuple[str, ...]:
        """Return which of the rule's counts a call belongs to.

        Calls of the control API are never counted together with those of a conversation.
        """
        parts = {"tool": tool, "room": caller.room, "participant": caller.participant}
        origin = "api" if caller.origin == "api" else ""
        return (origin, *(parts[part] for part in self.each))


def read_limit_rules(table: object, places: Places) -> tuple[LimitRule, ...]:
    """Read the value of the key `limits` in `[tools]`, as a TOML file gives it.

    Raises:
        ConfigError: One line names file, line and key, and what to write.
    """
    if not isinstance(table, list):
        where = places.where(*PATH)
        raise ConfigError(f"{where}, tools.limits: write each rule below a line [[tools.limits]].")
    rules = cast("list[object]", table)
    if len(rules) > RULES_MAX:
        where = places.where(*PATH, RULES_MAX)
        raise ConfigError(f"{where}, tools.limits: keep at most {RULES_MAX} rules.")
    return tuple(_rule(rule, _RulePlaces(places, number)) for number, rule in enumerate(rules))


class _RulePlaces:
    """The places of one rule's keys."""

    def __init__(self, places: Places, number: int) -> None:
        self._places: Final = places
        self._number: Final = number

    @property
    def line(self) -> str:
        return self._places.where(*PATH, self._number)

    def error(self, key: str, fix: str) -> ConfigError:
        where = self._places.where(*PATH, self._number, *([key] if key else []))
        name = f"tools.limits, {key}" if key else "tools.limits"
        return ConfigError(f"{where}, {name}: {fix}")


def _rule(given: object, places: _RulePlaces) -> LimitRule:
    if not isinstance(given, dict):
        raise places.error("", "write a table such as {per_hour = 5}.")
    table = cast("dict[str, object]", given)
    for key in table:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, 1, 0.6)
            fix = f"Did you mean {near[0]}?" if near else f"The keys are {', '.join(_KEYS)}."
            raise places.error(key, f"there is no such key. {fix}")
    periods = [period for period in _PERIODS if period in table]
    quotas = {period: _quota(table[period], period, places) for period in periods}
    if not quotas:
        raise places.error("", "write per_turn, per_minute or per_hour.")
    most = quotas.get("per_hour", MOST)
    for shorter in ("per_turn", "per_minute"):
        if (less := quotas.get(shorter, 0)) > most:
            raise places.error(
                shorter,
                f"{less} is more than per_hour = {most} allows, so it is never reached. "
                "Lower it, or take it away.",
            )
    globs = {key: _globs(table[key], key, places) for key in _GLOBS if key in table}
    effect = _choices(table.get("effect", list(_EFFECTS)), "effect", _EFFECTS, places)
    each = _choices(table["each"], "each", _PARTS, places) if "each" in table else ()
    return LimitRule(
        quotas.get("per_turn"),
        quotas.get("per_minute"),
        quotas.get("per_hour"),
        tools=globs.get("tools", ("*",)),
        rooms=globs.get("rooms", ("*",)),
        participants=globs.get("participants", ("*",)),
        effect=cast("tuple[Effect, ...]", effect),
        each=cast("tuple[Part, ...]", each),
        line=places.line,
    )


def _quota(most: object, period: str, places: _RulePlaces) -> int:
    if not isinstance(most, int) or isinstance(most, bool):
        raise places.error(period, "write a whole number.")
    if most < 1:
        raise places.error(period, "write 1 or more. A rule that denies the tools forbids them.")
    if most > MOST:
        raise places.error(period, f"write at most {MOST}, or take it away for no limit.")
    return most


def _globs(given: object, key: str, places: _RulePlaces) -> tuple[str, ...]:
    globs = _texts(given)
    if not globs or len(globs) > GLOBS_MAX or any(len(glob) > GLOB_CHARS_MAX for glob in globs):
        size = f"at most {GLOBS_MAX}, of at most {GLOB_CHARS_MAX} characters"
        raise places.error(key, f'write a list of names such as ["send_*"], {size}.')
    return globs


def _choices(given: object, key: str, known: Sequence[str], places: _RulePlaces) -> tuple[str, ...]:
    chosen = _texts(given)
    if not chosen or not set(chosen) <= set(known):
        raise places.error(key, f"write {', '.join(known[:-1])} or {known[-1]}, or a list of them.")
    return chosen


def _texts(value: object) -> tuple[str, ...]:
    """Return a text, or a list of texts, as a tuple; () for anything else."""
    given = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = tuple(each for each in given if isinstance(each, str) and each)
    return texts if len(texts) == len(given) else ()


def _fits(name: str, globs: Sequence[str]) -> bool:
    return any(glob == "*" or fnmatchcase(name, glob) for glob in globs)
