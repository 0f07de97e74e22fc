"""Lists the agent's tools: do they fit into the model's context, and what may be called?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from caal_node.agent import CaalAgent
from caal_node.cli.checks.check import Finding, fail, ok, warn
from caal_node.cli.chosen_agent import chosen_agent
from caal_node.config.instructions import instructions_text
from caal_node.config.settings import Settings
from caal_node.context.token_estimate import PromptTools, text_tokens
from caal_node.context.window import fitting
from caal_node.core.counted import counted
from caal_node.core.errors import CaalError, ModelError
from caal_node.factories import make_llm
from caal_node.models.context_budget import budget_of, too_many_tools
from caal_node.policy.audit import Tool, open_to_anybody, taken_names, unused_globs
from caal_node.policy.policy import Policy
from caal_node.tools.tool_search import head_names

# Says what is wrong with the owner's policy, and what it leaves open to everybody.

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
    what, _, fix = text.rpartition("; ")
    fix = f"{fix.rstrip('.')}{'' if fix.endswith('?') else '.'}"
    if not is_fault:
        return warn(POLICY, what or text, fix[0].upper() + fix[1:] if what else "Fix that line.")
    stopped = "; until that is fixed, only tools that read are run"
    return fail(POLICY, f"{what or text}{stopped}", fix if what else "Fix that line.")


def _open(policy: Policy, left: Sequence[str]) -> Finding:
    names = ", ".join(left[:NAMED])
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    count = counted(len(left), "tool changes", "tools change")
    found = f"{_summary(policy)}; {count} something, and anybody may call: {names}{more}"
    if policy.mode == "house" and not policy.rules:
        return ok(POLICY, found, "Rules in caal.toml say who may: docs/safety.md.")
    fix = "Allow them by a rule, or deny them to those who may not (docs/safety.md)."
    return warn(POLICY, found, fix)


def _summary(policy: Policy) -> str:
    rules = f", {counted(len(policy.rules), 'rule')}" if policy.rules else ""
    dry = ", dry run: nothing is called" if policy.dry_run else ""
    words = {
        "house": "mode house: a call that destroys something needs a yes",
        "open": "mode open: nothing is asked",
        "read-only": "mode read-only: only tools that read are run",
    }
    return f"{words[policy.mode]}{rules}{dry}"


CONTEXT: Final = "context"


async def check_offer(settings: Settings) -> Sequence[Finding]:
    """List the tools once, and hold them against the policy and against the model's context."""
    try:
        agent = chosen_agent(settings, None)
        try:
            await agent.reload_tools()
            entries = [(entry.exposed, entry.spec) for entry in agent.table]
        finally:
            await agent.close_tools()
    except CaalError:
        # Other checks say what is wrong with the agent or its sources.
        return policy_findings(settings.tools, (), listed=False)
    checks = agent.policies.checks
    policy = checks[0].policy if checks else settings.tools
    found = policy_findings(policy, entries, listed=not agent.failed)
    return [*found, await _context_finding(settings, agent)]


async def _context_finding(settings: Settings, agent: CaalAgent) -> Finding:
    shared = budget_of(settings, await _told(settings))
    head = text_tokens(instructions_text(agent.instructions))
    tools = _at_the_front(settings, agent, shared.tools(head))
    size = _tokens(tools)
    offered = fitting(tools, shared.tools(head), _tokens, agent.search.exposed)
    if left_out := [name for name in tools.names if name not in offered.names]:
        return warn(CONTEXT, *too_many_tools(settings, shared, size, head, left_out))
    told = "as its server reports" if shared.told else "by CAAL_NUM_CTX"
    text = f"{shared.context} tokens {told}; instructions and tools take about {size + head:,}"
    if agent.search.exposed in tools.names:
        left = len(agent.table) + 1 - len(tools.names)
        text = f"{text}; {left} of {counted(len(agent.table), 'tool')} are added on demand"
    if size + head > shared.window - shared.talk:
        fix = f"For longer conversations: CAAL_NUM_CTX={shared.context_for(size, head)}."
        return ok(CONTEXT, f"{text}, so the conversation gets {shared.talk}", fix)
    return ok(CONTEXT, text)


def _at_the_front(settings: Settings, agent: CaalAgent, room: int) -> PromptTools:
    """Return the tools that every prompt shows, where its model has room for so many tokens."""
    names = head_names(
        agent.table,
        agent.search.exposed,
        max_tokens=min(settings.tool_tokens, room),
        pinned=settings.pinned_tools,
        hides=agent.policies.hide,
    )
    if names is None:
        return agent.table.prompt_tools
    schemas = agent.table.prompt_tools.only(names).schemas
    return PromptTools((agent.search.schema, *schemas))


def _tokens(tools: PromptTools) -> int:
    return tools.schema_tokens


async def _told(settings: Settings) -> int | None:
    model = make_llm(settings)
    try:
        return (await model.backend.capabilities()).context_tokens
    except ModelError:
        return None
    finally:
        await model.aclose()
