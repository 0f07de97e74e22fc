"""One shape for a workflow, whichever API told of it and whatever n8n's version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from n8n.core.json_values import mapping, mappings, sequence
from n8n.core.workflow_tool import Example, Skipped, SkipReason, WorkflowTool
from n8n.discovery.input_schema import TRIGGER_TYPE, build_inputs
from n8n.discovery.tool_names import Candidate
from n8n.discovery.webhook_node import Webhook, is_webhook, read_webhook
from n8n.notes.parser import Notes, parse_notes, visible

DESCRIPTION_CHARS = 300
"""What of a description goes into the prompt. 21 workflows of a real registry hold 38,120
characters of notes: uncut, every first prompt would carry some ten thousand tokens of them."""

_UUID = re.compile(r"^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")


@dataclass(frozen=True, slots=True)
class Draft:
    """A tool that has not got its name yet."""

    candidate: Candidate
    tool: WorkflowTool


def excluded(workflow: Mapping[str, Any]) -> Skipped | None:
    """Why a workflow is no tool, as far as a listing tells; None when it may be one."""
    settings = mapping(workflow.get("settings"))
    if workflow.get("isArchived"):
        return _skipped(workflow, "archived", "it is archived")
    if not workflow.get("active"):
        return _skipped(workflow, "inactive", "it is not active: publish it in n8n")
    if workflow.get("availableInMCP") is False or settings.get("availableInMCP") is False:
        return _skipped(workflow, "not_available_in_mcp", "its setting `Available in MCP` is off")
    return None


def normalise(workflow: Mapping[str, Any]) -> list[Draft] | Skipped:
    """A workflow of the public API, or the `workflow` of get_workflow_details."""
    if (out := excluded(workflow)) is not None:
        return out
    nodes = published_nodes(workflow)
    if nodes is None:
        message = "the instance does not show its published version"
        return _skipped(workflow, "unpublished", message)
    workflow_id = str(workflow.get("id") or "")
    hooks = [
        read_webhook(node, workflow_id, _wired(workflow, str(node.get("name"))))
        for node in nodes
        if is_webhook(node)
    ]
    if not hooks:
        return _skipped(workflow, "no_webhook", "it has no Webhook node that could be called")
    reachable = [hook for hook in hooks if hook.path is not None]
    if not reachable:
        message = "its webhook's path is an expression: give it a fixed path"
        return _skipped(workflow, "path_is_an_expression", message)
    if len(hooks) == 1:
        return [_draft(workflow, hook, hooks, nodes) for hook in reachable]
    run = _followers(workflow)
    return [
        _draft(workflow, hook, hooks, _run_by(run, hook.node_name, nodes)) for hook in reachable
    ]


def title_of(workflow: Mapping[str, Any]) -> str:
    return " ".join(visible(str(workflow.get("name") or workflow.get("id") or "")).split())


def _skipped(workflow: Mapping[str, Any], reason: SkipReason, message: str) -> Skipped:
    return Skipped(str(workflow.get("id") or ""), title_of(workflow), reason, message)


def published_nodes(workflow: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The nodes that run, not those on the canvas; None when they cannot be told.

    n8n up to 1.x has one set of nodes, and activeVersionId is absent or null. From 2.0 on the
    published version is apart: inline (`activeVersion.nodes`), or said to be the same as the draft
    (`sameAsDraft`, or equal version ids).
    """
    active = mapping(workflow.get("activeVersion"))
    if isinstance(active.get("nodes"), list):
        return mappings(active["nodes"])
    if active.get("sameAsDraft") is True:
        return mappings(workflow.get("nodes"))
    active_id = workflow.get("activeVersionId")
    if active_id is None or active_id == workflow.get("versionId"):
        return mappings(workflow.get("nodes"))
    return None


def shorten(text: str, limit: int = DESCRIPTION_CHARS) -> str:
    """At most `limit` characters, one line, cut after a sentence if one ends in the second half."""
    flat = " ".join(text[: 4 * limit].split())
    if len(flat) <= limit:
        return flat
    ends = [m.end() for m in _SENTENCE_END.finditer(flat[: limit + 1]) if m.end() <= limit]
    if ends and ends[-1] > limit // 2:
        return flat[: ends[-1]]
    return flat[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def _draft(
    workflow: Mapping[str, Any],
    hook: Webhook,
    hooks: list[Webhook],
    nodes: list[Mapping[str, Any]],
) -> Draft:
    workflow_id, title = str(workflow.get("id") or ""), title_of(workflow)
    about = parse_notes(str(workflow.get("description") or ""))
    notes = parse_notes(hook.notes) if hook.notes.strip() else about
    full = notes.description or about.description or title
    inputs = build_inputs(hook, notes, nodes, workflow)
    examples, problems = _fitting(notes, inputs.schema)
    wanted = title if len(hooks) == 1 else f"{title}_{_hook_word(hook)}"
    version = workflow.get("activeVersionId") or workflow.get("versionId")
    tool = WorkflowTool(
        name="",
        workflow_id=workflow_id,
        node_id=hook.node_id,
        version_id=str(version) if version else None,
        title=title,
        description=shorten(full),
        full_description=full,
        input_schema=inputs.schema,
        examples=examples,
        method=hook.method,
        path=hook.path or "",
        response_mode=hook.response_mode,
        auth_kind=hook.auth_kind,
        places=inputs.places,
        origins=inputs.origins,
        spoken_field=notes.spoken_field,
        takes_s=notes.takes_s,
        answers_nothing=hook.answers_nothing or _responds_without_data(nodes),
        problems=problems,
    )
    return Draft(
        Candidate(f"{workflow_id}:{hook.node_id}", wanted, str(workflow.get("createdAt") or "")),
        tool,
    )


def _followers(workflow: Mapping[str, Any]) -> Mapping[str, set[str]]:
    """Node name -> names of the nodes that its outputs go to, in the published version."""
    return {
        name: {
            str(target.get("node"))
            for outputs in mapping(kinds).values()
            for output in sequence(outputs)
            for target in mappings(output)
        }
        for name, kinds in _connections(workflow).items()
    }


def _wired(workflow: Mapping[str, Any], name: str) -> frozenset[int]:
    """Which outputs of a node lead to another one."""
    outputs = sequence(mapping(_connections(workflow).get(name)).get("main"))
    return frozenset(i for i, targets in enumerate(outputs) if mappings(targets))


def _connections(workflow: Mapping[str, Any]) -> Mapping[str, Any]:
    version = mapping(workflow.get("activeVersion"))
    return mapping(version.get("connections")) or mapping(workflow.get("connections"))


def _run_by(
    followers: Mapping[str, set[str]], first: str, nodes: list[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The nodes that a webhook's request reaches, and every trigger: a sibling tells types."""
    reached: set[str] = set()
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += followers.get(name, ())
    return [n for n in nodes if n.get("name") in reached or n.get("type") == TRIGGER_TYPE]


def _fitting(
    notes: Notes, schema: Mapping[str, Any]
) -> tuple[tuple[Example, ...], tuple[str, ...]]:
    """The examples that could be calls, and all problems."""
    required = set(schema.get("required", ()))
    fitting: list[Example] = []
    problems = list(notes.problems)
    for example in notes.examples:
        if missing := sorted(required - example.arguments.keys()):
            problems.append(f"the example {example.utterance[:60]!r} lacks {', '.join(missing)}")
        else:
            fitting.append(example)
    return tuple(fitting), tuple(problems)


def _hook_word(hook: Webhook) -> str:
    last = [p for p in (hook.path or "").split("/") if p and not p.startswith(":")]
    word = "_".join(p for p in last if not _UUID.match(p))
    return word or hook.node_name


def _responds_without_data(nodes: list[Mapping[str, Any]]) -> bool:
    return any(
        node.get("type") == "n8n-nodes-base.respondToWebhook"
        and mapping(node.get("parameters")).get("respondWith") == "noData"
        and not node.get("disabled")
        for node in nodes
    )
