"""These checks try where tools come from, how they are searched, and what is offered of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

import mcp_bridge
from caal_node import weights
from caal_node.agent import CaalAgent
from caal_node.cli.checks import Finding, fail, fail_from, in_thread, ok, warn
from caal_node.cli.chosen_agent import choose_front, chosen_agent
from caal_node.config.mcp_file import load_mcp_servers, missing_file
from caal_node.config.setting_tables import ToolsetTable
from caal_node.config.settings import Settings
from caal_node.context.token_estimate import PromptTools, text_tokens
from caal_node.context.window import fitting
from caal_node.core.counted import counted
from caal_node.core.errors import CaalError, ConfigError
from caal_node.models.embedding import FETCH, ServerEmbedder, make_embedder
from caal_node.policy.policy import Policy, Tool, open_to_anybody, taken_names, unused_globs
from caal_node.prompt_builder import budget_of, instructions_text, too_many_tools
from caal_node.tools.sources.configured import mcp_tier, n8n_tier
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.registry import checked, configured_toolsets, made_of
from mcp_bridge import EmbeddingUnavailable
from n8n import Discovery, N8nError

# Tries every toolset that is on.

EACH_S: Final = 20.0
"""Seconds for what one toolset's options name."""


async def check_toolsets(settings: Settings) -> list[Finding]:
    """Return a finding for each toolset that is on."""
    on = [table for table in settings.toolsets.values() if table.enabled]
    try:
        services = await asyncio.to_thread(ToolsetServices)
    except ConfigError as error:
        return [fail("toolsets", str(error), "Set TZ in .env, or unset it.")] if on else []
    found = list(await asyncio.gather(*(_finding(table, services) for table in on)))
    if all(finding.status != "fail" for finding in found):
        try:
            configured_toolsets(settings)
        except ConfigError as error:
            found.append(fail("toolsets", str(error), "Turn one of them off."))
    return found


async def _finding(table: ToolsetTable, services: ToolsetServices) -> Finding:
    try:
        toolset = made_of(table, services)
        return ok(table.name, await checked(toolset, EACH_S))
    except TimeoutError:
        return fail(table.name, f"no answer in {EACH_S:g} seconds", "See whether it is on.")
    except ConfigError as error:
        return fail(table.name, str(error), f"Run: caal-node tools add {table.name}")
    except CaalError as error:  # its options are right, and what they name does not work
        return fail(table.name, str(error), "See whether it is on, and can be reached from here.")


N8N: Final = "n8n"
# Tries n8n, every MCP server, and the search for tools.

MCP: Final = "mcp"
EMBEDDING: Final = "embedding"
FIRST_START_S: Final = 22.0
"""A server that is still being downloaded after this time is a warning; others fail before."""
MCP_S: Final = FIRST_START_S + 20.0
"""For all of it: processes that hang are closed afterwards, which may take as long again."""
_BY_WORDS: Final = "tools are searched for without a model"


async def check_n8n(settings: Settings) -> Sequence[Finding]:
    token, key = settings.n8n_mcp_token, settings.n8n_api_key
    if settings.n8n_url is None:
        if token is None and key is None:
            return [ok(N8N, "not set, so there are no workflows")]
        return [fail(N8N, "a token is set, but no address", "Set N8N_URL.")]
    try:
        tier = n8n_tier(settings)
    except ConfigError as error:
        return [fail_from(N8N, str(error), fix="Fix that table of caal.toml, or N8N_AUTH.")]
    try:
        async with tier.workflows as workflows:
            found = await workflows.discover()
    except N8nError as error:
        return [fail_from(N8N, str(error), ": ", "Check N8N_URL, N8N_MCP_TOKEN and N8N_API_KEY.")]
    return [n8n_finding(settings, found), *_idle_credentials(settings, found)]


def _idle_credentials(settings: Settings, found: Discovery) -> list[Finding]:
    """Return a finding for each entry of `n8n_auth` that no webhook is called with."""
    names = {name for tool in found.tools for name in (tool.name, tool.path, tool.workflow_id)}
    names |= {skipped.title for skipped in found.skipped}
    findings = list[Finding]()
    for key in settings.n8n_auth:
        if key.strip("/") in names:
            continue
        near = get_close_matches(key, [tool.name for tool in found.tools], n=1)
        fix = f"Did you mean {near[0]}? " if near else ""
        fix += "Name a webhook's path, a tool or a workflow's id (caal-node tools)."
        findings.append(warn(N8N, f"n8n_auth.{key} fits no workflow", fix))
    return findings


def n8n_finding(settings: Settings, found: Discovery) -> Finding:
    """Return what a look at an instance says of its workflows and of their notes."""
    skipped = Counter(workflow.reason for workflow in found.skipped)
    left = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in skipped.items())
    text = f"{settings.n8n_url}: {counted(len(found.tools), 'tool')}" + (
        f" (left out: {left})" if left else ""
    )
    problems = [f"{tool.title}: {said}" for tool in found.tools for said in tool.problems]
    if not found.tools:
        fix = "Give a workflow a webhook, publish it, and make it available in MCP."
        return warn(N8N, text, fix)
    if found.notices:
        return warn(N8N, text, found.notices[0])
    if problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        fix = "See all of them: caal-node n8n check --instance"
        return warn(N8N, f"{text}; {problems[0]}{more}", fix)
    return ok(N8N, text)


async def check_mcp(settings: Settings) -> Sequence[Finding]:
    try:
        configs = await in_thread(lambda: load_mcp_servers(settings.mcp_servers, missing_ok=True))
    except mcp_bridge.ConfigError as error:
        return [fail_from(MCP, str(error), fix="Fix that line.")]
    if absent := await in_thread(lambda: missing_file(settings.mcp_servers)):
        return [fail_from(MCP, absent)]
    if not configs:
        return [ok(MCP, f"no servers in {settings.mcp_servers}")]
    # As a room has them, but without a catalogue, which leaves known servers unconnected.
    servers = mcp_tier(settings, catalogue=None, ready_s=FIRST_START_S)
    try:
        await servers.discover()
        return [_server_finding(status) for status in servers.servers]
    finally:
        await servers.aclose()


def _server_finding(status: mcp_bridge.ServerStatus) -> Finding:
    name = f"{MCP} {status.name}"
    if status.state == "off":
        return ok(name, f"off: {'; '.join(status.notes) or 'so says the file'}")
    if status.state == "starting":
        text = "; ".join(status.notes) or "is not ready yet"
        return warn(
            name, text, "Leave the agent running until it is there, or run it by hand once."
        )
    if status.error is not None:
        error = f"{status.state}, over {status.transport}: {status.error}"
        return fail_from(name, error, fix="Run its command by hand to see what it says.")
    took = f", connected in {status.connect_ms} ms" if status.connect_ms is not None else ""
    version = f", MCP {status.protocol}" if status.protocol else ""
    text = (
        f"{counted(status.tools, 'tool')} over {status.transport} ({status.state}{took}{version})"
    )
    if status.held or status.added:
        fix = f"Read and accept them: caal-node tools --accept {status.name}"
        return warn(name, f"{text}; {'; '.join(status.notes)}", fix)
    if status.notes:
        fix = "Read what was left out or passed over, and fix it there."
        return warn(name, f"{text}; {'; '.join(status.notes)}", fix)
    return ok(name, text)


async def check_embedding(settings: Settings) -> Sequence[Finding]:
    """Say whether tools are searched for by meaning as well; that they are not is no failure."""
    if settings.embedding == "off":
        return [ok(EMBEDDING, f"off: {_BY_WORDS}")]
    if settings.embedding == "minilm" and await in_thread(
        lambda: weights.present(weights.MINILM) is None
    ):
        found = f"{weights.MINILM.title} is not in the cache: {_BY_WORDS}"
        return [warn(EMBEDDING, found, f"Run: {FETCH}")]
    try:
        embedder = make_embedder(settings)
    except ConfigError as error:
        return [warn(EMBEDDING, f"{error}: {_BY_WORDS}", "Correct CAAL_EMBEDDING.")]
    assert embedder is not None
    try:
        await embedder.embed(["a first text, which loads the model"])
        began = time.perf_counter()
        rows = await embedder.embed(["how warm will it be tomorrow"])
        took = (time.perf_counter() - began) * 1000
    except EmbeddingUnavailable as error:
        found, _, fix = str(error).rpartition("; ")
        return [warn(EMBEDDING, f"{found or fix}: {_BY_WORDS}", fix if found else "See above.")]
    finally:
        if isinstance(embedder, ServerEmbedder):
            await embedder.aclose()
    return [ok(EMBEDDING, f"{embedder.name}, {rows.shape[1]} dimensions, {took:.0f} ms a request")]


# What is offered: what is wrong with the owner's policy, what it leaves open to everybody, and
# whether the agent's tools fit into the model's context.

POLICY: Final = "policy"
NAMED: Final = 4
"""Tools that one finding names; the others are counted."""
MAX_FINDINGS: Final = 20
"""Faults, and globs without a tool, that are told of one by one."""


def policy_findings(policy: Policy, tools: Sequence[Tool], *, listed: bool) -> list[Finding]:
    """Return what there is to say; `listed` says whether every source told of its tools."""
    found = [_policy_finding(fault, is_fault=True) for fault in policy.faults[:MAX_FINDINGS]]
    remarks = [*policy.warnings, *taken_names(policy, tools)]
    remarks += unused_globs(policy, tools) if listed else ()
    found += [_policy_finding(remark, is_fault=False) for remark in remarks[:MAX_FINDINGS]]
    if left := open_to_anybody(policy, tools):
        found.append(_open(policy, left))
    return found or [ok(POLICY, _summary(policy))]


def _policy_finding(text: str, *, is_fault: bool) -> Finding:
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
            told = await choose_front(agent)
        finally:
            await agent.close_tools()
    except CaalError:
        # Other checks say what is wrong with the agent or its sources.
        return policy_findings(settings.tools, (), listed=False)
    checks = agent.policies.checks
    policy = checks[0].policy if checks else settings.tools
    found = policy_findings(policy, entries, listed=not agent.failed)
    return [*found, _context_finding(settings, agent, told)]


def _context_finding(settings: Settings, agent: CaalAgent, told: int | None) -> Finding:
    shared = budget_of(settings, told)
    head = text_tokens(instructions_text(agent.instructions))
    tools = PromptTools(tuple(entry.schema for entry in agent.head_entries))
    size = _tokens(tools)
    offered = fitting(tools, shared.tools(head), _tokens, agent.search.exposed)
    if left_out := [name for name in tools.names if name not in offered.names]:
        return warn(CONTEXT, *too_many_tools(settings, shared, size, head, left_out))
    by = "as its server reports" if shared.told else "by CAAL_NUM_CTX"
    text = f"{shared.context} tokens {by}; instructions and tools take about {size + head:,}"
    if agent.search.exposed in tools.names:
        left = len(agent.table) + 1 - len(tools.names)
        text = f"{text}; {left} of {counted(len(agent.table), 'tool')} are added on demand"
    if size + head > shared.window - shared.talk:
        fix = f"For longer conversations: CAAL_NUM_CTX={shared.context_for(size, head)}."
        return ok(CONTEXT, f"{text}, so the conversation gets {shared.talk}", fix)
    return ok(CONTEXT, text)


def _tokens(tools: PromptTools) -> int:
    return tools.schema_tokens
