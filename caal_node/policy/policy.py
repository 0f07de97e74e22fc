"""The owner's policy: of each call, whether it runs, and which line says so.

The first rule that fits a call decides; where none does, the mode decides. The same policy can be
read from `caal.toml` (`caal_node.policy.reader`) or written in code:

    Policy(rules=[Rule("deny", tools=["unlock_*"], attributes={"role": "guest"})])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from caal_node.core.events import TierName
from caal_node.core.tool_spec import EFFECTS, Caller, CallOrigin, Effect, ToolSpec
from caal_node.policy.limit_rules import LimitRule
from caal_node.policy.rule import Action, AnyOf, Rule

Mode: TypeAlias = Literal["house", "open", "read-only"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
Outside: TypeAlias = Literal["remote", "all", "off"]
"""Whose calls need a yes where only a tool's words have asked for them: n8n's and MCP's, the
agent's own as well, or nobody's."""
OUTSIDE: Final[tuple[Outside, ...]] = get_args(Outside)
REMEMBERED: Final = 16_384
"""Tools, and judgements, that are remembered; a very large catalogue has 5,000 tools."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of one call."""

    action: Action
    line: str
    """What decided: `caal.toml, line 12`, or `mode house: destructive`."""
    effect: Effect
    """What the call may do at worst, as the owner sees it."""
    is_personal: bool = False
    """Whether somebody else might get another answer."""
    by_rule: bool = False
    """Whether a rule decided, and not the mode."""


@dataclass(frozen=True, slots=True)
class _ToolRules:
    """What is the same in each call of one tool."""

    effect: Effect
    rules: tuple[_Matcher, ...]
    """Those that fit the tool, up to the first that fits every caller."""


@dataclass(frozen=True)
class Policy:
    """Rules, a mode for what no rule fits, and the owner's last word on effects. It is immutable.

    A policy with `faults` could not be read as a whole. It refuses whatever is not known to read,
    as nobody knows what the owner has forbidden; the rules that could be read still hold.
    """

    rules: Sequence[Rule] = ()
    mode: Mode = "house"
    effects: Mapping[str, Effect] = field(default_factory=dict[str, Effect])
    """Effects by globs of names, as `Rule.tools` has them. The first glob that fits decides."""
    dry_run: bool = False
    """Whether no call runs at all: what would be allowed or asked is only told of."""
    faults: tuple[str, ...] = ()
    """What could not be read, each with its file, line and fix."""
    warnings: tuple[str, ...] = ()
    """What was read, and is of no use, each with its file, line and fix."""
    lines: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """The places of `mode`, `dry_run` and of the globs in `effects`, where they have any."""
    limits: tuple[LimitRule, ...] = ()
    """How often tools may be called. They are not judged here, as that takes a count."""
    outside: Outside = "remote"
    """An agent's own methods are left out at first, so that they run as in plain LiveKit."""
    second_look_model: str = ""
    """Another model that judges calls that change something once more before they run, as
    `[API:]MODEL[@URL]`; "" none."""
    source: Path | None = field(default=None, compare=False)
    """The file that it is read from again at a reload, whether or not it is there."""
    _known: dict[tuple[Any, ...], _ToolRules] = field(
        default_factory=dict[tuple[Any, ...], "_ToolRules"], init=False, compare=False, repr=False
    )

    _judged: dict[tuple[Any, ...], Judgement] = field(
        default_factory=dict[tuple[Any, ...], Judgement], init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode={self.mode!r}: write {', '.join(MODES)}")
        if self.outside not in OUTSIDE:
            raise ValueError(f"outside={self.outside!r}: write {', '.join(OUTSIDE)}")
        matchers = tuple(map(_Matcher, self.rules))
        effects = tuple((AnyOf([glob]), effect) for glob, effect in self.effects.items())
        object.__setattr__(self, "_matchers", matchers)
        object.__setattr__(self, "_effects", effects)

    _matchers: tuple[_Matcher, ...] = field(init=False, compare=False, repr=False)
    _effects: tuple[tuple[AnyOf, Effect], ...] = field(init=False, compare=False, repr=False)

    def traces(self, tier: TierName, judged: Judgement) -> bool:
        """Say whether a call needs a yes where only a tool's words have asked for it.

        A rule that allows a tool allows it whoever asks.
        """
        if self.mode == "open" or (judged.by_rule and judged.action == "allow"):
            return False
        return self.outside == "all" or (self.outside == "remote" and tier != "agent")

    def judge(self, exposed: str, spec: ToolSpec, caller: Caller) -> Judgement:
        """Return what becomes of the caller's call of a tool. It always has an answer."""
        tool = _key(exposed, spec)
        who = (caller.origin, caller.room, caller.participant, *caller.attributes.items())
        if (judged := self._judged.get((tool, who))) is None:
            judged = self._judge(exposed, spec, caller)
            if len(self._judged) >= REMEMBERED:
                self._judged.clear()
            self._judged[tool, who] = judged
        return judged

    def _judge(self, exposed: str, spec: ToolSpec, caller: Caller) -> Judgement:
        known = self._of_tool(exposed, spec)
        judged = self._by_rules(known, caller)
        if self.faults and judged.action != "deny" and not _surely_reads(spec, known.effect):
            return Judgement("deny", self.faults[0], known.effect)
        if self.dry_run and judged.action in ("allow", "confirm", "pin"):
            line = self.lines.get("dry_run", "dry_run")
            return Judgement("dry_run", line, known.effect, judged.is_personal)
        return judged

    def denied_to_all(self, exposed: str, spec: ToolSpec, origin: CallOrigin, room: str) -> bool:
        """Say whether no participant of a room may call the tool there.

        That a policy cannot be read denies nothing here: people are to hear of it when they ask.
        """
        known = self._of_tool(exposed, spec)
        for matcher in known.rules:
            if not matcher.fits_place(origin, room):
                continue
            if not matcher.rule.is_personal:
                return matcher.rule.then == "deny"
            if matcher.rule.then != "deny":
                return False
        return self._action_by_mode(known.effect) == "deny"

    def without_pin(self) -> Policy:
        """Return the policy where no PIN is set: each rule that asks for one is a fault."""
        faults = [
            f"{rule.line}, tools.rules.then: a PIN is asked for, and none is set; set CAAL_PIN in "
            '.env, or write then = "confirm"'
            for rule in self.rules
            if rule.then == "pin"
        ]
        return replace(self, faults=(*self.faults, *faults)) if faults else self

    def effect_of(self, exposed: str, spec: ToolSpec) -> tuple[Effect, str]:
        """Return a tool's effect, and the line that gave it; "" where its source did."""
        names = spec.known_as(exposed)
        for glob, (pattern, effect) in zip(self.effects, self._effects, strict=True):
            if any(map(pattern.fits, names)):
                return effect, self.lines.get(glob, f"effects, {glob}")
        return spec.effect, ""

    def _by_rules(self, known: _ToolRules, caller: Caller) -> Judgement:
        is_personal = False
        for matcher in known.rules:
            rule = matcher.rule
            is_personal |= rule.is_personal
            if matcher.fits_caller(caller):
                return Judgement(rule.then, rule.line, known.effect, is_personal, by_rule=True)
        return self._by_mode(known.effect, is_personal=is_personal)

    def _by_mode(self, effect: Effect, *, is_personal: bool = False) -> Judgement:
        place = self.lines.get("mode")
        line = f"mode {self.mode}: {effect}"
        action = self._action_by_mode(effect)
        return Judgement(action, f"{place}, {line}" if place else line, effect, is_personal)

    def _action_by_mode(self, effect: Effect) -> Action:
        if self.mode == "house" and effect == "destructive":
            return "confirm"
        return "deny" if self.mode == "read-only" and effect != "read" else "allow"

    def _of_tool(self, exposed: str, spec: ToolSpec) -> _ToolRules:
        key = _key(exposed, spec)
        if (known := self._known.get(key)) is not None:
            return known
        effect, _ = self.effect_of(exposed, spec)
        rules: list[_Matcher] = []
        for matcher in self._matchers:
            if matcher.fits_tool(exposed, spec, effect):
                rules.append(matcher)
                if not matcher.rule.depends_on_caller:
                    break
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[key] = known = _ToolRules(effect, tuple(rules))
        return known


def _key(exposed: str, spec: ToolSpec) -> tuple[Any, ...]:
    """Return all that rules may ask of a tool; `ToolSpec.known_as` makes its names of it."""
    names = (exposed, spec.wanted, spec.own_name)
    return (names, spec.tier, spec.source, spec.effect, spec.annotations)


def _surely_reads(spec: ToolSpec, effect: Effect) -> bool:
    """Say whether source and owner agree: a policy with faults may have lost its last word."""
    return max(EFFECTS.index(spec.effect), EFFECTS.index(effect)) == 0


class _Matcher:
    """A rule with its globs compiled."""

    def __init__(self, rule: Rule) -> None:
        self.rule: Final = rule
        self._tools: Final = AnyOf(rule.tools)
        self._server: Final = AnyOf(rule.server)
        self._annotation: Final = AnyOf(rule.annotation)
        self._rooms: Final = AnyOf(rule.rooms)
        self._participants: Final = AnyOf(rule.participants)
        self._attributes: Final = {name: AnyOf([glob]) for name, glob in rule.attributes.items()}

    def fits_tool(self, exposed: str, spec: ToolSpec, effect: Effect) -> bool:
        rule = self.rule
        # What is forbidden stays so under a new name; what is allowed is allowed under one alone.
        names = (exposed,) if rule.then == "allow" else spec.known_as(exposed)
        return bool(
            (not rule.tools or any(map(self._tools.fits, names)))
            and (not rule.tier or spec.tier in rule.tier)
            and (not rule.server or self._server.fits(spec.source))
            and (not rule.effect or effect in rule.effect)
            and (not rule.annotation or any(map(self._annotation.fits, spec.annotations)))
        )

    def fits_place(self, origin: CallOrigin, room: str) -> bool:
        rule = self.rule
        return bool(
            (not rule.origin or origin in rule.origin)
            and (not rule.rooms or self._rooms.fits(room))
        )

    def fits_caller(self, caller: Caller) -> bool:
        if not self.rule.depends_on_caller:
            return True
        return bool(
            self.fits_place(caller.origin, caller.room)
            and (not self.rule.participants or self._participants.fits(caller.participant))
            and all(
                name in caller.attributes and pattern.fits(caller.attributes[name])
                for name, pattern in self._attributes.items()
            )
        )


# A policy held against the tools that there are: what fits none, and what is open to all.

Tool: TypeAlias = tuple[str, ToolSpec]
"""An exposed name, and what is known of the tool."""

STRANGER: Final = Caller("room")
"""Somebody in a room of whom nothing is known. Rules that ask for a room, an identity or an
attribute fit them only where a glob takes everything."""


def unused_globs(policy: Policy, tools: Sequence[Tool]) -> Iterator[str]:
    """Yield a sentence with line and fix for each glob that fits none of `tools`."""
    names = [name for exposed, spec in tools for name in spec.known_as(exposed)]
    sources = sorted({spec.source for _, spec in tools})
    claims = sorted({claim for _, spec in tools for claim in spec.annotations})
    for glob in policy.effects:
        if not _fits_one(glob, names):
            yield _unused(policy.lines.get(glob, "effects"), "tool", glob)
    for rule in policy.rules:
        for kind, globs, known in (
            ("tool", rule.tools, names),
            ("server", rule.server, sources),
            ("annotation", rule.annotation, claims),
        ):
            for glob in globs:
                if not _fits_one(glob, known):
                    yield _unused(rule.line, kind, glob)


def taken_names(policy: Policy, tools: Sequence[Tool]) -> Iterator[str]:
    """Yield a sentence with line and fix for each whole name in the rules that two tools share.

    The one that was named first in the table has it; the other one is called by another name.
    """
    at_home = dict(tools)
    lines = {glob: policy.lines.get(glob, "effects") for glob in policy.effects}
    for rule in policy.rules:
        lines.update(dict.fromkeys(rule.tools, rule.line))
    for exposed, spec in tools:
        name = spec.wanted
        if exposed != name and name in at_home and name in lines:
            yield (
                f"{lines[name]}: {name} is a tool of {at_home[name].source} now, and the one of "
                f"{spec.source} is called {exposed}; write a rule for each, with its server"
            )


def open_to_anybody(policy: Policy, tools: Sequence[Tool]) -> list[str]:
    """Return the exposed names of tools that change something, and that a stranger may call.

    What a rule allows was meant to be open, and is left out, unless the rule asks nothing at all.
    """
    found: list[str] = []
    catch_alls = {rule.line for rule in policy.rules if rule.covers(Rule("allow"))}
    for exposed, spec in tools:
        judged = policy.judge(exposed, spec, STRANGER)
        meant = judged.by_rule and judged.line not in catch_alls
        if judged.action == "allow" and judged.effect != "read" and not meant:
            found.append(exposed)
    return found


def _fits_one(glob: str, names: Sequence[str]) -> bool:
    return any(map(AnyOf([glob]).fits, names))


def _unused(line: str, kind: str, glob: str) -> str:
    return f"{line}: no {kind} is named {glob}; fix the name, or remove it"
