"""Says what is wrong with the owner's policy, and what it leaves open to everybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from caal_node.cli.checks.check import Finding, fail, ok, warn
from caal_node.policy.audit import Tool, open_to_anybody, taken_names, unused_globs
from caal_node.policy.policy import Policy

POLICY: Final = "policy"
NAMED: Final = 4
"""Tools that one finding names; the others are counted."""
MAX_FINDINGS: Final = 20
"""Faults, and globs without a tool, that are told of one by one."""


def policy_findings(policy: Policy, tools: Sequence[Tool], *, listed: bool) -> list[Finding]:
    """Return what there is to say; `listed` says whether every source told of its tools."""
    found = [_finding(fault, is_fault=True) for fault in policy.faults[:MAX_FINDINGS]]
    remarks = [*policy.warnings, *taken_names(policy, tools)]
    remarks += unused_globs(policy, tools) if listed else ()
    found += [_finding(remark, is_fault=False) for remark in remarks[:MAX_FINDINGS]]
    if left := open_to_anybody(policy, tools):
        found.append(_open(policy, left))
    return found or [ok(POLICY, _summary(policy))]


def _finding(text: str, *, is_fault: bool) -> Finding:
    what, _, mend = text.rpartition("; ")
    if not is_fault:
        return warn(POLICY, what or text, f"{mend.capitalize()}." if what else "See above.")
    stopped = "; until it is mended, only what reads is run"
    return fail(POLICY, f"{what or text}{stopped}", f"{mend}." if what else "Mend that line.")


def _open(policy: Policy, left: Sequence[str]) -> Finding:
    names = ", ".join(left[:NAMED])
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    count = f"{len(left)} tools change" if len(left) > 1 else "1 tool changes"
    found = f"{_summary(policy)}; {count} something, and anybody may call: {names}{more}"
    if policy.mode == "house" and not policy.rules:
        return ok(POLICY, found, "Rules in caal.toml say who may: docs/safety.md.")
    mend = "Allow them by a rule, or deny them to those who may not (docs/safety.md)."
    return warn(POLICY, found, mend)


def _summary(policy: Policy) -> str:
    rules = f", {len(policy.rules)} rules" if len(policy.rules) != 1 else ", 1 rule"
    dry = ", dry run: nothing is called" if policy.dry_run else ""
    words = {
        "house": "mode house: what destroys needs a yes",
        "open": "mode open: nothing is asked",
        "read-only": "mode read-only: only what reads is run",
    }
    return f"{words[policy.mode]}{rules if policy.rules else ''}{dry}"
