"""A policy held against the tools that there are: what fits none, and what is open to all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from caal_node.core.caller import Caller
from caal_node.core.tool_spec import ToolSpec
from caal_node.policy.policy import Policy
from caal_node.policy.rule import AnyOf, Rule

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
