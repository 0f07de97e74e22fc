"""Reads the `[tools]` table of `caal.toml` as a policy. What is wrong is a fault, and no exception.

A fault names file, line and fix. Two rules that say different things of the same calls are one
too, as nobody can tell which the owner meant.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast, get_args

from pydantic import ConfigDict, Field

from caal_node.core.addresses import parse_reference
from caal_node.core.errors import ConfigError
from caal_node.core.events import TierName
from caal_node.core.given_table import GivenTable
from caal_node.core.tool_spec import EFFECTS, CallOrigin, Effect
from caal_node.policy.limit_rules import (
    GLOB_CHARS_MAX,
    GLOBS_MAX,
    MOST,
    RULES_MAX,
    LimitRule,
    Part,
    read_limit_rules,
)
from caal_node.policy.places import Places
from caal_node.policy.policy import (
    MODES,
    OUTSIDE,
    Mode,
    Outside,
    Policy,
)
from caal_node.policy.rule import CONDITIONS, Action, Rule, covers

MAX_RULES: Final = 200
"""Rules, and lines of effects. A house has some ten; each one is compared with those before it."""
MAX_GLOBS: Final = 64
"""Globs of one condition."""
GLOB_CHARS: Final = 200
"""Characters of one glob. No exposed name has more than 64, no room's name more than 256."""
SHOWN_CHARS: Final = 60
"""Characters of a wrong value that a fault quotes."""
TABLE: Final = "tools"
_KEYS: Final = (
    *("mode", "dry_run", "outside", "second_look_model"),
    *("effects", "rules", "limits"),
)
_REMOVED: Final[Mapping[str, str]] = {
    "second_look": "delete it: second_look_model alone has calls that change something judged",
    "second_look_results": "delete it: what was found is not judged any more",
}
"""Keys of earlier versions, and what to do instead."""
_RULE_KEYS: Final = (*CONDITIONS, "attributes", "then")
_THEN: Final[Mapping[str, Action]] = {
    "allow": "allow",
    "deny": "deny",
    "confirm": "confirm",
    "pin": "pin",
    "dry-run": "dry_run",
}
_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "tier": get_args(TierName),
    "effect": EFFECTS,
    "origin": get_args(CallOrigin),
}
"""Conditions that are words of a list, and no globs."""


class _Wrong(Exception):
    """A value does not fit; the text says what to write."""


def read_policy(table: object, places: Places) -> Policy:
    """Return the policy of the value of `tools` in a settings file.

    What is wrong in it becomes `faults` of the policy, and the rest is read nevertheless.
    """
    reader = _Reader(places)
    return reader.policy(table)


class _Reader:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._faults: list[str] = []
        self._warnings: list[str] = []

    def policy(self, table: object) -> Policy:
        if not isinstance(table, dict):
            self._fault((), _Wrong("write a table, such as [tools]"))
            return Policy(faults=tuple(self._faults))
        given = cast("dict[str, object]", table)
        self._look_for_unknown((), given, _KEYS)
        mode: Mode = "house"
        dry_run = False
        with_lines = {
            name: self._places.where(TABLE, name)
            for name in ("mode", "dry_run", "second_look_model")
            if name in given
        }
        try:
            mode = cast("Mode", _word(given.get("mode", "house"), MODES))
        except _Wrong as wrong:
            self._fault(("mode",), wrong)
        outside: Outside = "all"  # until it is known, every tool's words are taken with care
        try:
            outside = cast("Outside", _word(given.get("outside", "remote"), OUTSIDE))
        except _Wrong as wrong:
            self._fault(("outside",), wrong)
        second_look_model = ""
        try:
            second_look_model = _model(given.get("second_look_model", ""))
        except _Wrong as wrong:
            self._fault(("second_look_model",), wrong)
        if isinstance(value := given.get("dry_run", False), bool):
            dry_run = value
        else:
            self._fault(("dry_run",), _Wrong("write true or false"))
            dry_run = True  # until it is known, nothing leaves the process
        effects = self._effects(given.get("effects", {}))
        lines = {glob: self._places.where(TABLE, "effects", glob) for glob in effects}
        rules = self._rules(given.get("rules", []))
        limits: tuple[LimitRule, ...] = ()
        try:
            limits = read_limit_rules(given.get("limits", []), self._places)
        except ConfigError as error:
            self._faults.append(str(error).removesuffix("."))
        return Policy(
            rules,
            mode,
            effects,
            dry_run,
            tuple(self._faults),
            tuple(self._warnings),
            with_lines | lines,
            limits=limits,
            outside=outside,
            second_look_model=second_look_model,
        )

    def _effects(self, value: object) -> dict[str, Effect]:
        if not isinstance(value, dict):
            self._fault(("effects",), _Wrong('write a table, such as "files__read_*" = "read"'))
            return {}
        found: dict[str, Effect] = {}
        for glob, effect in self._first(cast("dict[str, object]", value).items(), "effects"):
            try:
                _glob(glob)
                worst = cast("Effect", _word(effect, EFFECTS))
            except _Wrong as wrong:
                self._fault(("effects", glob), wrong)
                continue
            if (earlier := next((each for each in found if covers(each, glob)), None)) is not None:
                self._note_covered(
                    ("effects", glob), ("effects", earlier), same=found[earlier] == worst
                )
            found[glob] = worst
        return found

    def _rules(self, value: object) -> tuple[Rule, ...]:
        if not isinstance(value, list):
            self._fault(("rules",), _Wrong("write [[tools.rules]] above each rule"))
            return ()
        found: list[tuple[int, Rule]] = []
        for number, row in self._first(enumerate(cast("list[object]", value)), "rules"):
            if (rule := self._rule(number, row)) is None:
                continue
            earlier = next(((n, each) for n, each in found if each.covers(rule)), None)
            if earlier is not None:
                same = earlier[1].then == rule.then
                twice = rule.covers(earlier[1])
                place = ("rules", earlier[0])
                self._note_covered(("rules", number), place, same=same, twice=twice)
            found.append((number, rule))
        return tuple(rule for _, rule in found)

    def _rule(self, number: int, row: object) -> Rule | None:
        path = ("rules", number)
        if not isinstance(row, dict):
            self._fault(path, _Wrong('write a table, such as {tools = ["a_*"], then = "deny"}'))
            return None
        given = cast("dict[str, object]", row)
        before = len(self._faults)
        self._look_for_unknown(path, given, _RULE_KEYS)
        if "then" not in given:
            self._fault(path, _Wrong(f"then is missing; write {_either(_THEN)}"))
        read: dict[str, Any] = {}
        for name, value in given.items():
            if name not in _RULE_KEYS:
                continue
            try:
                read[name] = _condition(name, value)
            except _Wrong as wrong:
                self._fault((*path, name), wrong)
        if len(self._faults) > before:
            return None
        return Rule(**read, line=self._places.where(TABLE, *path))

    def _first(self, rows: Any, name: str) -> Iterator[tuple[Any, object]]:
        for count, row in enumerate(rows):
            if count == MAX_RULES:
                self._fault((name,), _Wrong(f"keep at most {MAX_RULES}"))
                return
            yield row

    def _look_for_unknown(
        self, path: tuple[str | int, ...], given: Mapping[str, object], known: Collection[str]
    ) -> None:
        for key in given:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1, 0.6)
                fix = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(known)}"
                fix = _REMOVED.get(key, fix) if not path else fix
                self._fault((*path, key), _Wrong(f"there is no such key; {fix}"))

    def _note_covered(
        self,
        path: tuple[str | int, ...],
        earlier: tuple[str | int, ...],
        *,
        same: bool,
        twice: bool = False,
    ) -> None:
        """Say that a line is never reached: a fault where the earlier one says something else."""
        above = self._places.where(TABLE, *earlier)
        if same:
            self._warnings.append(
                f"{self._named(path)}: {above} says the same of all that it fits; remove one"
            )
        elif twice:
            self._fault(path, _Wrong(f"it contradicts {above}, which fits the same; remove one"))
        else:
            what = f"it is never reached, as {above} fits all that it fits"
            self._fault(path, _Wrong(f"{what}; put it above that one, or remove it"))

    def _fault(self, path: tuple[str | int, ...], wrong: _Wrong) -> None:
        self._faults.append(f"{self._named(path)}: {wrong}")

    def _named(self, path: tuple[str | int, ...]) -> str:
        words = ".".join(str(part) for part in (TABLE, *path) if isinstance(part, str))
        return f"{self._places.where(TABLE, *path)}, {_shortened(words)}"


def _condition(name: str, value: object) -> Any:
    if name == "then":
        return _THEN[_word(value, _THEN)]
    if name == "attributes":
        if not isinstance(value, dict) or not value:
            raise _Wrong('write a table, such as {role = "guest"}')
        pairs = cast("dict[str, object]", value)
        if len(pairs) > MAX_GLOBS:
            raise _Wrong(f"keep at most {MAX_GLOBS}")
        return {key: _glob(glob) for key, glob in pairs.items()}
    given = cast("list[object]", value if isinstance(value, list) else [value])
    if not given or len(given) > MAX_GLOBS:
        raise _Wrong(f"write a list of 1 to {MAX_GLOBS}, or leave the key out")
    words = _WORDS.get(name)
    return tuple(_glob(each) if words is None else _word(each, words) for each in given)


def _glob(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _Wrong('write names in quotes, such as ["unlock_*"]')
    if len(value) > GLOB_CHARS:
        raise _Wrong(f"shorten it to {GLOB_CHARS} characters")
    return value


def _model(value: object) -> str:
    if value == "":
        return ""
    if not isinstance(value, str) or len(value) > GLOB_CHARS:
        raise _Wrong('write a model in quotes, such as "ollama:qwen3:8b"')
    if value == "same":
        raise _Wrong("name another model than the agent's: one judges its own calls by chance")
    try:
        reference = parse_reference(value)
    except ValueError as error:
        raise _Wrong(str(error)) from None
    if reference.api in ("embedded", "livekit"):
        # An engine would be started for each look, and a plugin is made by its owner's code.
        raise _Wrong("name a model of a server; an embedded one or a plugin's cannot be asked here")
    return value


def _word(value: object, words: Collection[str]) -> str:
    if not isinstance(value, str) or value not in words:
        raise _Wrong(f"{_shortened(repr(value))} does not fit; write {_either(words)}")
    return value


def _either(words: Collection[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}"


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


# The form of the table, for the schema that editors read.
#
# The reading above does without it: it goes on behind a fault, and names the line of each.

_Word = TypeVar("_Word")
_OneOrMore: TypeAlias = _Word | Annotated[list[_Word], Field(min_length=1, max_length=GLOBS_MAX)]
_Glob: TypeAlias = Annotated[str, Field(min_length=1, max_length=GLOB_CHARS_MAX)]
_Globs: TypeAlias = _OneOrMore[_Glob]
_Calls: TypeAlias = Annotated[int, Field(ge=1, le=MOST)]


class RuleTable(GivenTable):
    """A rule. It fits a call if all of its conditions do, and the first rule that fits decides."""

    tools: _Globs | None = None
    """Names of tools as `caal-node tools` lists them, or globs such as `unlock_*`."""
    tier: _OneOrMore[TierName] | None = None
    server: _Globs | None = None
    """The MCP server's name, `n8n`, or the agent's class."""
    effect: _OneOrMore[Effect] | None = None
    """What the tool does at worst."""
    annotation: _Globs | None = None
    """What the tool's source claims, such as `destructiveHint`; n8n's are tags."""
    rooms: _Globs | None = None
    """Names of rooms."""
    participants: _Globs | None = None
    """Identities of participants."""
    origin: _OneOrMore[CallOrigin] | None = None
    """Where the call comes from."""
    attributes: dict[str, _Glob] | None = None
    """Attributes that the participant must have, with a glob for the value of each."""
    then: Literal["allow", "deny", "confirm", "pin", "dry-run"]
    """What becomes of the call. pin: it needs a yes and the PIN of CAAL_PIN."""


class LimitTable(GivenTable):
    """How often the calls may run that the rule covers: per turn, minute or hour."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [key]} for key in ("per_turn", "per_minute", "per_hour")]
        }
    )

    tools: _Globs | None = None
    """Names of tools, or globs such as `send_*`."""
    rooms: _Globs | None = None
    """Names of rooms."""
    participants: _Globs | None = None
    """Identities of participants."""
    effect: _OneOrMore[Effect] | None = None
    """What the tool does at worst."""
    per_turn: _Calls | None = None
    per_minute: _Calls | None = None
    per_hour: _Calls | None = None
    each: _OneOrMore[Part] | None = None
    """What is counted apart. Without it, all calls that the rule covers have one count."""


class ToolsTable(GivenTable):
    """What may be called, and by whom; see docs/safety.md."""

    mode: Mode = "house"
    """What happens where no rule fits. house: destructive calls need a yes. open: all run.
    read-only: only tools that read run."""
    dry_run: bool = False
    """Whether no tool runs, and people only hear what would have been done."""
    outside: Outside = "remote"
    """Whose calls need a yes if only a tool's text asked for them: n8n's and MCP servers', all or
    none."""
    second_look_model: Annotated[str, Field(max_length=GLOB_CHARS_MAX)] = ""
    """Another model that judges calls that change something, `[api:]model[@url]`; empty: none."""
    effects: dict[_Glob, Effect] | None = None
    """What tools do at worst, by name or glob. The first that fits decides."""
    rules: Annotated[list[RuleTable], Field(max_length=200)] | None = None
    limits: Annotated[list[LimitTable], Field(max_length=RULES_MAX)] | None = None
