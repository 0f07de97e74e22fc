"""One form for a workflow, whichever API told of it and whatever n8n's version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from n8n.core.json_values import mapping, mappings, sequence
from n8n.core.text import visible
from n8n.core.workflow_tool import (
    RESPOND_TYPE,
    Example,
    Nodes,
    Skipped,
    SkipReason,
    Workflow,
    WorkflowTool,
)
from n8n.discovery.example_check import fault_of, faults_of_defaults
from n8n.discovery.input_schema import TRIGGER_TYPE, build_inputs
from n8n.discovery.nodes import WebhookNode, is_webhook, passes_request_on, read_webhook
from n8n.discovery.tool_names import NameCandidate
from n8n.notes.parser import Notes, parse_notes

DESCRIPTION_CHARS = 300
"""What of a description goes into the prompt. 21 workflows of a real registry hold 38,120
characters of notes: uncut, every first prompt would carry some ten thousand tokens of them."""
MAX_TITLE_CHARS = 1_000
MAX_TAGS = 50
"""Tags of one workflow that are read, and characters of each: more than n8n's own page shows."""
MAX_TAG_CHARS = 100
MAX_NODES = 2_000
"""Nodes of one workflow that are looked at, ten times those of a large one."""
MAX_WEBHOOKS = 32
"""Webhooks of one workflow that become tools: the nodes behind each of them are looked at."""
_UUID = re.compile(r"^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")


UnnamedTool: TypeAlias = tuple[NameCandidate, WorkflowTool]
"""A tool that has not got its name yet."""


def reason_to_skip(workflow: Workflow) -> Skipped | None:
    """Say why a workflow is no tool, as far as a listing tells; None if it may be one."""
    settings = mapping(workflow.get("settings"))
    if workflow.get("isArchived"):
        return skipped_for(workflow, "archived", "it is archived")
    if not workflow.get("active"):
        return skipped_for(workflow, "inactive", "it is not active: publish it in n8n")
    if workflow.get("availableInMCP") is False or settings.get("availableInMCP") is False:
        return skipped_for(
            workflow, "not_available_in_mcp", "its setting `Available in MCP` is off"
        )
    return None


def normalise(workflow: Workflow) -> list[UnnamedTool] | Skipped:
    """Make tools of a workflow of the public API, or of the `workflow` of get_workflow_details.

    Each webhook that can be called becomes a tool.
    """
    if (skipped := reason_to_skip(workflow)) is not None:
        return skipped
    nodes = published_nodes(workflow)
    if nodes is None:
        message = "the instance does not show its published version"
        return skipped_for(workflow, "unpublished", message)
    connections = _connections(workflow)
    webhooks = [
        read_webhook(node, id_of(workflow), _connected_outputs(connections, str(node.get("name"))))
        for node in [node for node in nodes if is_webhook(node)][:MAX_WEBHOOKS]
    ]
    if not webhooks:
        return skipped_for(workflow, "no_webhook", "it has no Webhook node that could be called")
    callable_ones = [webhook for webhook in webhooks if webhook.path is not None]
    if not callable_ones:
        message = "its webhook's path is an expression: give it a fixed path"
        return skipped_for(workflow, "path_is_an_expression", message)
    if len(webhooks) == 1:
        return [_make_tool(workflow, webhook, nodes) for webhook in callable_ones]
    return [
        _make_tool(
            workflow,
            webhook,
            _reached_nodes(connections, webhook.node_name, nodes),
            suffix=f"_{_distinguishing_word(webhook)}",
        )
        for webhook in callable_ones
    ]


def nodes_behind(workflow: Workflow, tool: WorkflowTool) -> tuple[Nodes, Nodes]:
    """Return the nodes that a call of the tool reaches, and those that get its request as it came.

    Where the workflow does not tell what leads where, these are all nodes.
    """
    nodes = published_nodes(workflow) or []
    webhooks = [node for node in nodes if is_webhook(node)]
    first = next((n for n in webhooks if str(n.get("id") or n.get("name")) == tool.node_id), None)
    connections = _connections(workflow)
    if not connections or first is None:
        return nodes, nodes
    name = str(first.get("name"))
    reached = _reached_nodes(connections, name, nodes) if len(webhooks) > 1 else nodes
    passing = [node for node in nodes if node is first or passes_request_on(node)]
    given = {str(node.get("name")) for node in _reached_nodes(connections, name, passing)}
    given |= {target for source in given for target in _targets(connections, source)}
    return reached, [node for node in nodes if str(node.get("name")) in given]


def version_of(workflow: Workflow) -> str | None:
    """Return the id of the published version; None where the instance does not tell it."""
    version = workflow.get("activeVersionId") or workflow.get("versionId")
    return str(version) if version else None


def id_of(workflow: Workflow) -> str:
    return str(workflow.get("id") or "")


def title_of(workflow: Workflow) -> str:
    title = str(workflow.get("name") or workflow.get("id") or "")[:MAX_TITLE_CHARS]
    return " ".join(visible(title).split())


def published_nodes(workflow: Workflow) -> Nodes | None:
    """Return the nodes that run, not those on the canvas; None if they cannot be told.

    n8n up to 1.x has one set of nodes, and activeVersionId is absent or null. From 2.0 on the
    published version is apart: inline (`activeVersion.nodes`), or said to be the same as the draft
    (`sameAsDraft`, or equal version ids).
    """
    active = mapping(workflow.get("activeVersion"))
    if isinstance(active.get("nodes"), list):
        return mappings(active["nodes"][:MAX_NODES])
    active_id = workflow.get("activeVersionId")
    if active.get("sameAsDraft") is True or active_id in (None, workflow.get("versionId")):
        return mappings(sequence(workflow.get("nodes"))[:MAX_NODES])
    return None


def shorten(text: str, limit: int = DESCRIPTION_CHARS) -> str:
    """Put a text on one line of at most `limit` characters.

    It is cut after a sentence if one ends in the second half, else after a word.
    """
    flat = " ".join(text[: 4 * limit].split())
    if len(flat) <= limit:
        return flat
    ends = [m.end() for m in _SENTENCE_END.finditer(flat[: limit + 1]) if m.end() <= limit]
    if ends and ends[-1] > limit // 2:
        return flat[: ends[-1]]
    return flat[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def skipped_for(workflow: Workflow, reason: SkipReason, message: str) -> Skipped:
    """Say that a workflow is no tool."""
    return Skipped(id_of(workflow), title_of(workflow), reason, message)


def _make_tool(
    workflow: Workflow, webhook: WebhookNode, nodes: Nodes, suffix: str = ""
) -> UnnamedTool:
    """Make a tool of one webhook and the nodes that its request reaches.

    `suffix` tells its name from those of the workflow's other webhooks.
    """
    workflow_id, title = id_of(workflow), title_of(workflow)
    about = parse_notes(str(workflow.get("description") or ""))
    notes = parse_notes(webhook.notes) if webhook.notes.strip() else about
    full = notes.description or about.description or title
    inputs = build_inputs(webhook, notes, nodes, workflow)
    examples, problems = _valid_examples(notes, inputs.schema)
    tool = WorkflowTool(
        name="",
        workflow_id=workflow_id,
        node_id=webhook.node_id,
        version_id=version_of(workflow),
        title=title,
        description=shorten(full),
        full_description=full,
        input_schema=inputs.schema,
        examples=examples,
        method=webhook.method,
        path=webhook.path or "",
        response_mode=webhook.response_mode,
        auth_kind=webhook.auth_kind,
        locations=inputs.locations,
        origins=inputs.origins,
        spoken_field=notes.spoken_field,
        takes_s=notes.takes_s,
        answers_nothing=webhook.answers_nothing or _responds_without_data(nodes),
        problems=problems,
        tags=_tags_of(workflow),
        flawed=notes.flawed.union(["examples"] if len(examples) < len(notes.examples) else []),
    )
    key, age = f"{workflow_id}:{webhook.node_id}", str(workflow.get("createdAt") or "")
    return NameCandidate(key, f"{title}{suffix}", age), tool


def _tags_of(workflow: Workflow) -> tuple[str, ...]:
    """Return the workflow's tags: objects with a name over the REST API, texts over MCP."""
    named = (mapping(tag).get("name", tag) for tag in sequence(workflow.get("tags"))[:MAX_TAGS])
    texts = (visible(name[:MAX_TAG_CHARS]) for name in named if isinstance(name, str))
    return tuple(text for text in (" ".join(text.split()) for text in texts) if text)


def _connections(workflow: Workflow) -> Mapping[str, Any]:
    """Return which node's outputs lead where, in the published version."""
    version = mapping(workflow.get("activeVersion"))
    return mapping(version.get("connections")) or mapping(workflow.get("connections"))


def _connected_outputs(connections: Mapping[str, Any], name: str) -> frozenset[int]:
    """Return which outputs of a node lead to another one."""
    outputs = sequence(mapping(connections.get(name)).get("main"))
    return frozenset(i for i, targets in enumerate(outputs) if mappings(targets))


def _reached_nodes(connections: Mapping[str, Any], first: str, nodes: Nodes) -> Nodes:
    """Return the nodes that a webhook's request reaches, and every trigger, which tells types."""
    reached: set[str] = set()
    names = {str(node.get("name")) for node in nodes}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in names:
            continue
        reached.add(name)
        waiting += _targets(connections, name)
    return [n for n in nodes if str(n.get("name")) in reached or n.get("type") == TRIGGER_TYPE]


def _targets(connections: Mapping[str, Any], name: str) -> list[str]:
    """Return the nodes that a node's outputs lead to."""
    outputs = mapping(connections.get(name)).values()
    every = [output for each in outputs for output in sequence(each)]
    return [str(target.get("node")) for output in every for target in mappings(output)]


def _valid_examples(
    notes: Notes, schema: Mapping[str, Any]
) -> tuple[tuple[Example, ...], tuple[str, ...]]:
    """Return the examples that could be calls, and all problems of the notes."""
    valid: list[Example] = []
    problems = [*notes.problems, *faults_of_defaults(schema)]
    for example in notes.examples:
        if (fault := fault_of(example.arguments, schema)) is None:
            valid.append(example)
        else:
            problems.append(f"the example {example.utterance[:60]!r} {fault}")
    return tuple(valid), tuple(problems)


def _distinguishing_word(webhook: WebhookNode) -> str:
    parts = [p for p in (webhook.path or "").split("/") if p and not p.startswith(":")]
    return "_".join(p for p in parts if not _UUID.match(p)) or webhook.node_name


def _responds_without_data(nodes: Nodes) -> bool:
    return any(
        node.get("type") == RESPOND_TYPE
        and mapping(node.get("parameters")).get("respondWith") == "noData"
        and not node.get("disabled")
        for node in nodes
    )
