"""What keeps a workflow from being a good voice tool, and how its author mends it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from n8n.normalise import DESCRIPTION_CHARS, Draft, normalise, published_nodes, title_of
from n8n.scan import may_read_all
from n8n.shapes import mapping, mappings
from n8n.tool import Skipped, WorkflowTool

Workflow: TypeAlias = Mapping[str, Any]
"""As n8n's editor exports it, or as its APIs tell it."""
Level: TypeAlias = Literal["error", "warning", "advice"]
SLOW_S: Final = 20.0
"""Where a call is given up unless its notes say `Takes:`."""
_RESPOND: Final = "n8n-nodes-base.respondToWebhook"
_WAIT: Final = "n8n-nodes-base.wait"
_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_NOTES: Final = "open the Webhook node, Settings, Notes"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one tool. `error`: it cannot be called or never answers; `warning`: it will
    be called wrongly or heard badly; `advice`: it works, and could be better."""

    level: Level
    workflow: str
    where: str
    """The webhook's path, or the node."""
    message: str
    mend: str


def lint(workflow: Workflow, slowest_s: float | None = None) -> tuple[Finding, ...]:
    """Look at one workflow as the editor exports it or an API tells it.

    `slowest_s`: how long its slowest known run took. Whether it is active does not matter here.
    """
    looked_at = {**workflow, "active": True, "isArchived": False}
    title = title_of(workflow)
    made = normalise(looked_at)
    if isinstance(made, Skipped):
        return (Finding("error", title, "workflow", made.message, _MENDS[made.reason]),)
    nodes = published_nodes(looked_at) or []
    found: list[Finding] = []
    for draft in made:
        found += _of_tool(title, draft, nodes, slowest_s)
    return tuple(found)


_MENDS: Final[Mapping[str, str]] = {
    "not_available_in_mcp": "switch on Settings > Available in MCP, if it is meant to be spoken to",
    "no_webhook": "begin it with a Webhook node; forms, chats and schedules cannot be called",
    "path_is_an_expression": "give its Webhook node a fixed path",
    "unpublished": "publish it, or give N8N_API_KEY, which shows published versions",
    "inactive": "publish it",
    "archived": "take it out of the archive",
}


def _of_tool(
    title: str, draft: Draft, nodes: list[Mapping[str, Any]], slowest_s: float | None
) -> Iterator[Finding]:
    tool = draft.tool
    checks = (
        _notes(tool),
        _inputs(tool, nodes),
        _answer(tool, nodes),
        _time(tool, nodes, slowest_s),
        _auth(tool),
    )
    for check in checks:
        for level, message, mend in check:
            yield Finding(level, title, tool.path, message, mend)


_Told: TypeAlias = Iterator[tuple[Level, str, str]]


def _notes(tool: WorkflowTool) -> _Told:
    for problem in tool.problems:
        yield "warning", f"its notes: {problem}", f"{_NOTES}, and mend that line"
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
            f"its notes have {len(tool.full_description)} characters, and the prompt gets the "
            f"first {DESCRIPTION_CHARS}: {tool.description!r}",
            "put what it does into the first two sentences",
        )
    if not tool.examples:
        yield (
            "advice",
            "it has no example, and small models choose several times better with one",
            f'{_NOTES}: Example: words a person says -> {{"name": "value"}}',
        )


def _inputs(tool: WorkflowTool, nodes: list[Mapping[str, Any]]) -> _Told:
    read = [name for name, origin in tool.origins.items() if origin in ("nodes", "pinned")]
    if read:
        listed = ", ".join(f"{name} (required, string)" for name in read)
        yield (
            "warning",
            f"its parameters are guessed from its nodes: {', '.join(read)}",
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
            f"write `required` behind those that it cannot do without, of {', '.join(written)}",
        )
    if tool.method in ("GET", "HEAD", "DELETE") and _reads_body(nodes):
        yield (
            "error",
            f"it takes {tool.method}, which has no body, but its nodes read json.body",
            "set HTTP Method to POST, or read $json.query",
        )


def _reads_body(nodes: list[Mapping[str, Any]]) -> bool:
    return bool(re.search(r"json\??\.body\b", str([n.get("parameters") for n in nodes])))


def _answer(tool: WorkflowTool, nodes: list[Mapping[str, Any]]) -> _Told:
    responds = [n for n in nodes if n.get("type") == _RESPOND and not n.get("disabled")]
    if tool.response_mode == "onReceived":
        yield (
            "warning",
            "it answers before it has run, so a person hears that it was started and no more",
            "set Respond to `Using Respond to Webhook Node` or `When Last Node Finishes`",
        )
    elif tool.response_mode == "responseNode" and not responds:
        yield (
            "error",
            "it is to answer by a Respond to Webhook node, and has none",
            "add one, or set Respond to `When Last Node Finishes`",
        )
    elif tool.response_mode == "lastNode" and responds:
        yield (
            "error",
            "it has a Respond to Webhook node that its Webhook node does not wait for",
            "set Respond to `Using Respond to Webhook Node`",
        )
    elif tool.response_mode == "streaming":
        yield (
            "warning",
            "its answer is streamed, and only its whole text can be used",
            "set Respond to `Using Respond to Webhook Node`",
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
    if tool.spoken_field and tool.spoken_field not in str([n.get("parameters") for n in nodes]):
        yield (
            "warning",
            f"`Speak: {tool.spoken_field}`, but none of its nodes makes such a field",
            f"answer with a field {tool.spoken_field!r}, or take the line out of the notes",
        )


def _time(tool: WorkflowTool, nodes: list[Mapping[str, Any]], slowest_s: float | None) -> _Told:
    waits = max((_wait_s(node) for node in nodes), default=0.0)
    long = max(waits, slowest_s or 0.0)
    if long <= max(SLOW_S, tool.takes_s or 0.0) or tool.response_mode == "onReceived":
        return
    seen = f"its Wait node alone takes {waits:g} s" if waits >= (slowest_s or 0) else ""
    yield (
        "warning",
        f"{seen or f'a run of it took {slowest_s:.0f} s'}, and a call is given up after "
        f"{max(SLOW_S, tool.takes_s or 0.0):g} s",
        f"{_NOTES}: Takes: {round(long) + 5} s; or answer first and do the work after that",
    )


def _wait_s(node: Mapping[str, Any]) -> float:
    if node.get("type") != _WAIT or node.get("disabled"):
        return 0.0
    parameters = mapping(node.get("parameters"))
    if parameters.get("resume", "timeInterval") != "timeInterval":
        return 0.0
    amount = parameters.get("amount", 5)
    unit = _UNITS.get(str(parameters.get("unit", "seconds")), 1)
    return float(amount * unit) if isinstance(amount, (int, float)) else 0.0


def _auth(tool: WorkflowTool) -> _Told:
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


def workflows_in(exported: object) -> list[Workflow]:
    """The workflows of a file: one, a list of them, or an answer of the public API."""
    told = mapping(exported)
    if "nodes" in told:
        return [told]
    if "workflow" in told:
        return workflows_in(told["workflow"])
    return [w for w in mappings(told.get("data") if told else exported) if "nodes" in w]
