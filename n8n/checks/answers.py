"""Whether a workflow answers in time, with something to say, and only those who may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from n8n.checks.finding import NOTES, Told
from n8n.core.json_values import mapping
from n8n.core.workflow_tool import WorkflowTool

SLOW_S: Final = 20.0
"""Where a call is given up unless its notes say `Takes:`."""
_RESPOND: Final = "n8n-nodes-base.respondToWebhook"
_WAIT: Final = "n8n-nodes-base.wait"
_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}


def answer(tool: WorkflowTool, nodes: list[Mapping[str, Any]]) -> Told:
    responds = [n for n in nodes if n.get("type") == _RESPOND and not n.get("disabled")]
    if tool.response_mode == "onReceived":
        yield (
            "warning",
            "it answers before it has run, so a person hears that it was started and no more",
            "set Respond to `Using 'Respond to Webhook' Node` or `When Last Node Finishes`",
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
            "set Respond to `Using 'Respond to Webhook' Node`",
        )
    elif tool.response_mode == "streaming" and not responds:
        yield (
            "advice",
            "its answer is streamed, and without a Respond to Webhook node that streams, only an "
            "AI node can answer",
            "end it with a Respond to Webhook node",
        )
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
    if tool.spoken_field and tool.spoken_field not in str([n.get("parameters") for n in nodes]):
        yield (
            "warning",
            f"`Speak: {tool.spoken_field}`, but none of its nodes makes such a field",
            f"answer with a field {tool.spoken_field!r}, or take the line out of the notes",
        )


def time(tool: WorkflowTool, nodes: list[Mapping[str, Any]], slowest_s: float | None) -> Told:
    waits = max((_wait_s(node) for node in nodes), default=0.0)
    long = max(waits, slowest_s or 0.0)
    if long <= max(SLOW_S, tool.takes_s or 0.0) or tool.response_mode == "onReceived":
        return
    seen = f"its Wait node alone takes {waits:g} s" if waits >= (slowest_s or 0) else ""
    yield (
        "warning",
        f"{seen or f'a run of it took {slowest_s:.0f} s'}, and a call is given up after "
        f"{max(SLOW_S, tool.takes_s or 0.0):g} s",
        f"{NOTES}: Takes: {round(long) + 5} s; or answer first and do the work after that",
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


def auth(tool: WorkflowTool, nodes: list[Mapping[str, Any]]) -> Told:
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
