"""What keeps a workflow from being a good voice tool, and how its author fixes it.

The checks: can a model tell what it does and what it takes, does it answer in time with something
to say, and only to those who may ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from n8n.core.json_values import mapping, mappings
from n8n.core.workflow_tool import (
    BODILESS_METHODS,
    RESPOND_TYPE,
    WEBHOOK_TYPE,
    Nodes,
    Skipped,
    SkipReason,
    Workflow,
    WorkflowTool,
)
from n8n.discovery.nodes import inputs_read_by, may_read_all, mentions, takes_whole_request
from n8n.discovery.normalise import DESCRIPTION_CHARS, assign_names, id_of, nodes_behind, normalise

FindingLevel: TypeAlias = Literal["error", "warning", "advice"]
_Problems: TypeAlias = Iterator[tuple[FindingLevel, str, str]]
"""What one check says: how grave it is, what is wrong, how to fix it."""

CALL_GIVEN_UP_S: Final = 20.0
"""When a call is given up unless its notes say `Takes:`."""
_NOTES: Final = "open the Webhook node, Settings, Notes"
_FULL_RESPONSE: Final = "fullResponse"
"""A web request with this option answers with a `body` of its own, which is read like a request's.
"""
_WAIT_TYPE: Final = "n8n-nodes-base.wait"
_UNIT_SECONDS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_SKIP_MENDS: Final[Mapping[SkipReason, str]] = {
    "not_available_in_mcp": "switch on Settings > Available in MCP, if it is meant to be spoken to",
    "no_webhook": "begin it with a Webhook node; forms, chats and schedules cannot be called",
    "path_is_an_expression": "give its Webhook node a fixed path",
    "unpublished": "publish it, or give N8N_API_KEY, which shows published versions",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one tool.

    An `error` means that it cannot be called or never answers, a `warning` that it will be called
    wrongly or heard badly, an `advice` that it works, and could be better.
    """

    level: FindingLevel
    workflow: str
    where: str
    """The webhook's path, or the node."""
    message: str
    fix: str
    tool: str = ""
    """The name that a model calls the tool by; empty for a workflow that is none."""


@dataclass(frozen=True, slots=True)
class Check:
    """What some workflows would be as tools, under the names that they would have."""

    tools: tuple[WorkflowTool, ...]
    findings: tuple[Finding, ...]


def check(
    workflows: Iterable[Workflow],
    names: Mapping[str, str] | None = None,
    slowest_s: Mapping[str, float] | None = None,
) -> Check:
    """Check workflows as the editor exports them or an API tells them, of one instance.

    `names` are those that tools already have, `slowest_s` how long each workflow's slowest known
    run took, by its id. Whether a workflow is active does not matter here.
    """
    published = [{**workflow, "active": True, "isArchived": False} for workflow in workflows]
    made = [normalise(workflow) for workflow in published]
    unnamed = [tool for one in made if not isinstance(one, Skipped) for tool in one]
    given = assign_names((candidate for candidate, _ in unnamed), names)
    tools = [replace(tool, name=given[candidate.key]) for candidate, tool in unnamed]
    waiting = iter(tools)
    findings: list[Finding] = []
    for workflow, one in zip(published, made, strict=True):
        if isinstance(one, Skipped):
            fix = _SKIP_MENDS[one.reason]
            findings.append(Finding("error", one.title, "workflow", one.message, fix))
            continue
        run_s = (slowest_s or {}).get(id_of(workflow))
        for tool in islice(waiting, len(one)):
            findings += _findings(workflow, tool, run_s)
    return Check(tuple(tools), tuple(findings))


def lint(workflow: Workflow, slowest_s: float | None = None) -> tuple[Finding, ...]:
    """Check one workflow; `slowest_s` is how long its slowest known run took."""
    runs = {} if slowest_s is None else {id_of(workflow): slowest_s}
    return check([workflow], slowest_s=runs).findings


def _findings(workflow: Workflow, tool: WorkflowTool, slowest_s: float | None) -> Iterator[Finding]:
    nodes, given = nodes_behind(workflow, tool)
    for check_ in (
        _check_notes(tool),
        _check_inputs(tool, nodes),
        _check_reads(tool, nodes, given),
        _check_answer(tool, nodes),
        _check_duration(tool, nodes, slowest_s),
        _check_access(tool, nodes),
    ):
        for level, message, fix in check_:
            yield Finding(level, tool.title, tool.path, message, fix, tool.name)


def workflows_in(exported: object) -> list[Workflow]:
    """Return the workflows of a file: one, a list of them, or an answer of the public API."""
    content = mapping(exported)
    if "nodes" in content:
        return [content]
    if "workflow" in content:
        return workflows_in(content["workflow"])
    return [w for w in mappings(content.get("data") if content else exported) if "nodes" in w]


def _check_notes(tool: WorkflowTool) -> _Problems:
    for problem in tool.problems:
        yield "warning", f"its notes: {problem}", f"{_NOTES}, and fix that line"
    if tool.full_description == tool.title:
        yield (
            "warning",
            "it has no notes, so a model knows its name alone",
            f"{_NOTES}: say in a sentence or two what it does and what it answers",
        )
        return
    if len(tool.full_description) > DESCRIPTION_CHARS:
        yield (
            "advice",
            f"the prompt gets the first {DESCRIPTION_CHARS} characters of its notes, and they are "
            "longer",
            "put what it does into the first two sentences",
        )
    if not tool.examples and "examples" not in tool.flawed:
        yield (
            "advice",
            "it has no example, and small models choose several times better with one",
            f'{_NOTES}: Example: words a person says -> {{"name": "value"}}',
        )


def _check_inputs(tool: WorkflowTool, nodes: Nodes) -> _Problems:
    guessed = [name for name, origin in tool.origins.items() if origin in ("nodes", "pinned")]
    if "parameters" in tool.flawed:
        pass  # that has been said
    elif guessed:
        listed = ", ".join(f"{name} (required, string)" for name in guessed)
        yield (
            "warning",
            f"its parameters are guessed from its nodes: {', '.join(guessed)}",
            f"{_NOTES}: Parameters: {listed}.",
        )
    elif tool.input_schema.get("additionalProperties") is True and may_read_all(nodes):
        yield (
            "warning",
            "nothing tells which parameters it takes",
            f"{_NOTES}: Parameters: name (required, string), or Parameters: none.",
        )
    written = [n for n, origin in tool.origins.items() if origin in ("schema", "param", "prose")]
    if written and not tool.input_schema.get("required"):
        yield (
            "advice",
            "none of its parameters is required, so a model may leave all of them out",
            "write `required` behind those that it cannot do without",
        )
    if tool.method in BODILESS_METHODS and re.search(r"json\??\.body\b", _parameters_text(nodes)):
        yield (
            "error",
            f"it takes {tool.method}, which has no body, but its nodes read json.body",
            "set HTTP Method to POST, or read $json.query",
        )


def _check_reads(tool: WorkflowTool, nodes: Nodes, given: Nodes) -> _Problems:
    """Compare what the notes name with what the nodes read; `given` get the request as it came."""
    read = {name: where for name, (where, _) in inputs_read_by(nodes).items() if where != "path"}
    defaults = {n for n, (_, p) in inputs_read_by(nodes).items() if "default" in p.schema}
    own = [node for node in nodes if node.get("type") != WEBHOOK_TYPE]
    unread = [
        name
        for name, origin in tool.origins.items()
        if origin in ("schema", "param", "prose")
        and not (name in read or takes_whole_request(given) or mentions(own, name))
    ]
    answers_with_body = _FULL_RESPONSE in _parameters_text(nodes)
    unnamed = [n for n in read if not (n in tool.origins or n in defaults or answers_with_body)]
    if not (unread or unnamed) or "parameters" in tool.flawed:
        return
    part = "query" if tool.method in BODILESS_METHODS else "body"
    told = [f"its notes name {', '.join(unread)}, which no node reads"] if unread else []
    told += [f"its nodes read {', '.join(unnamed)}, which its notes do not name"] if unnamed else []
    fixes = [f"{_NOTES}: name {', '.join(unnamed)} there"] if unnamed else []
    fixes += [f"read it as {{{{ $json.{part}.{unread[0]} }}}}"] if unread else []
    yield "warning", ", and ".join(told), ", or ".join(fixes)


def _check_answer(tool: WorkflowTool, nodes: Nodes) -> _Problems:
    responds = [n for n in nodes if n.get("type") == RESPOND_TYPE and not n.get("disabled")]
    match tool.response_mode, bool(responds):
        case "onReceived", _:
            yield (
                "warning",
                "it answers before it has run, so a person hears that it was started and no more",
                "set Respond to `Using 'Respond to Webhook' Node` or `When Last Node Finishes`",
            )
        case "responseNode", False:
            yield (
                "error",
                "it is to answer by a Respond to Webhook node, and has none",
                "add one, or set Respond to `When Last Node Finishes`",
            )
        case "lastNode", True:
            yield (
                "error",
                "it has a Respond to Webhook node that its Webhook node does not wait for",
                "set Respond to `Using 'Respond to Webhook' Node`",
            )
        case "streaming", False:
            yield (
                "advice",
                "its answer is streamed, and without a Respond to Webhook node that streams, only "
                "an AI node can answer",
                "end it with a Respond to Webhook node",
            )
        case _:
            pass
    if tool.response_mode == "lastNode" and len(nodes) == 1:
        yield (
            "warning",
            "nothing follows its Webhook node, so it answers with the request itself, with its "
            "headers and what credentials are in them",
            "add the nodes that do the work",
        )
    if any(mapping(n.get("parameters")).get("respondWith") == "binary" for n in responds):
        yield (
            "warning",
            "it answers with a file, which nobody can hear",
            "answer with JSON: what is in the file, or where it lies",
        )
    if tool.answers_nothing:
        yield (
            "advice",
            "it answers nothing, so a person hears only that it is done",
            'answer with JSON such as {"message": "The lamp is on."}, and `Speak: message` in '
            "the notes",
        )
    streams = tool.response_mode == "streaming"
    if tool.spoken_field and not streams and tool.spoken_field not in _parameters_text(nodes):
        yield (
            "warning",
            f"`Speak: {tool.spoken_field}`, but none of its nodes makes such a field",
            f"answer with a field {tool.spoken_field!r}, or take the line out of the notes",
        )


def _check_duration(tool: WorkflowTool, nodes: Nodes, slowest_s: float | None) -> _Problems:
    waits_s = max((_wait_s(node) for node in nodes), default=0.0)
    run_s = slowest_s or 0.0
    longest_s, given_up_s = max(waits_s, run_s), max(CALL_GIVEN_UP_S, tool.takes_s or 0.0)
    if longest_s <= given_up_s or tool.response_mode == "onReceived":
        return
    by_wait, by_run = f"its Wait node alone takes {waits_s:g} s", f"a run of it took {run_s:.0f} s"
    yield (
        "warning",
        f"{by_wait if waits_s >= run_s else by_run}, and a call is given up after {given_up_s:g} s",
        f"{_NOTES}: Takes: {round(longest_s) + 5} s; or answer first and do the work after that",
    )


def _check_access(tool: WorkflowTool, nodes: Nodes) -> _Problems:
    if any(mapping(mapping(n.get("parameters")).get("options")).get("ignoreBots") for n in nodes):
        yield (
            "error",
            "its webhook turns away whatever is not a browser (`Ignore Bots`)",
            "switch Ignore Bots off in the options of the Webhook node",
        )
    if tool.auth_kind == "none":
        yield (
            "advice",
            "whoever can reach n8n can run it: its webhook asks for no credentials",
            "set Authentication to Header Auth, and configure the same header in n8n_auth",
        )
    elif tool.auth_kind == "other":
        yield (
            "error",
            "its webhook wants a kind of authentication that cannot be given",
            "set Authentication to Header, Basic or JWT Auth",
        )


def _parameters_text(nodes: Nodes) -> str:
    return str([n.get("parameters") for n in nodes])


def _wait_s(node: Mapping[str, Any]) -> float:
    """Return how long a node makes every run wait."""
    parameters = mapping(node.get("parameters"))
    if node.get("type") != _WAIT_TYPE or node.get("disabled"):
        return 0.0
    if parameters.get("resume", "timeInterval") != "timeInterval":
        return 0.0
    amount = parameters.get("amount", 5)
    unit_s = _UNIT_SECONDS.get(str(parameters.get("unit", "seconds")), 1)
    return float(amount * unit_s) if isinstance(amount, (int, float)) else 0.0
