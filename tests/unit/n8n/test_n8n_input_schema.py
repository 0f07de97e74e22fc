"""Input schemas: what is known about each parameter, and from where."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from n8n.core.workflow_tool import Skipped, WorkflowTool
from n8n.discovery.nodes import inputs_read_by
from n8n.discovery.normalise import (
    DESCRIPTION_CHARS,
    normalise,
    published_nodes,
    shorten,
)

SAMPLES = [
    "calendar",
    "door_code",
    "lights",
    "reload_tools",
    "report",
    "train_times",
    "weather",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


def workflow(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "w1", "name": "a tool", "active": True, "nodes": list(nodes), **more}


def webhook(notes: str = "", **parameters: Any) -> dict[str, Any]:
    told = {"httpMethod": "POST", "path": "p", "responseMode": "lastNode", **parameters}
    return {
        "id": "n1",
        "name": "Webhook",
        "type": "n8n-nodes-base.webhook",
        "webhookId": "hook-id",
        "notes": notes,
        "parameters": told,
    }


def code(source: str) -> dict[str, Any]:
    return {"id": "n2", "type": "n8n-nodes-base.code", "parameters": {"jsCode": source}}


def tool(*nodes: dict[str, Any], **more: Any) -> WorkflowTool:
    tools = normalise(workflow(*nodes, **more))
    assert isinstance(tools, list)
    return tools[0][1]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("$json.body.city", {"city": {}}),
        ("$json.body.days ?? 1", {"days": {"type": "number", "default": 1}}),
        ("$json['body']['the key']", {"the key": {}}),
        ("$('Webhook').item.json.body.topic", {"topic": {}}),
        ('$node["Webhook"].json.body.x', {"x": {}}),
        (
            'const d = $input.first().json.body.day||"today";',
            {"day": {"type": "string", "default": "today"}},
        ),
        (
            "const { a, b: other, c = true } = $json.body;",
            {"a": {}, "b": {}, "c": {"type": "boolean", "default": True}},
        ),
        (
            "const body = $input.item.json.body;\nreturn body.left + body['right']",
            {"left": {}, "right": {}},
        ),
        ("$json?.body?.city", {"city": {}}),
        ("$json.body.map(x => x)", {}),
        ("$json.body.length", {}),
        ("response.body.token", {}),
        ("the words json body dot city", {}),
    ],
)
def test_published_nodes_tell_what_they_read(source: str, found: dict[str, Any]) -> None:
    assert {n: dict(p.schema) for n, (_, p) in inputs_read_by([code(source)]).items()} == found


def test_a_query_parameter_of_a_post_travels_in_the_query() -> None:
    made = tool(webhook(), code("$json.query.page; $json.body.text"))
    assert made.locations == {"page": "query"}
    assert made.origins == {"page": "nodes", "text": "nodes"}
    assert "required" not in made.input_schema


def test_the_notes_win_over_the_nodes_which_still_tell_types() -> None:
    made = tool(webhook("Does it. Parameters: day."), code('json.body.day || "now"; json.body.x'))
    assert made.input_schema["properties"] == {"day": {"type": "string", "default": "now"}}
    assert made.origins == {"day": "prose"}


def test_a_placeholder_of_the_path_is_required_and_the_path_has_the_webhook_id() -> None:
    made = tool(webhook(httpMethod="GET", path="orders/:orderId"))
    assert made.path == "hook-id/orders/:orderId"
    assert made.input_schema["required"] == ["orderId"]
    assert made.locations == {"orderId": "path"}
    assert made.origins == {"orderId": "path"}


def test_a_sibling_trigger_tells_types_when_nothing_else_does() -> None:
    inputs = {"values": [{"name": "city"}, {"name": "days", "type": "number"}]}
    sibling = {
        "type": "n8n-nodes-base.executeWorkflowTrigger",
        "parameters": {"workflowInputs": inputs},
    }
    made = tool(sibling, webhook())
    assert made.input_schema["properties"] == {
        "city": {"type": "string"},
        "days": {"type": "number"},
    }


def test_pinned_data_tells_names_and_types_and_no_values() -> None:
    request = {"body": {"city": "Oslo", "days": 3, "now": True}, "query": {"page": "1"}}
    pinned = {"Webhook": [{"json": request}]}
    made = tool(webhook(), code("return $input.all()"), pinData=pinned)
    assert made.input_schema["properties"] == {
        "city": {"type": "string"},
        "days": {"type": "number"},
        "now": {"type": "boolean"},
        "page": {"type": "string"},
    }
    assert set(made.origins.values()) == {"pinned"}
    assert made.locations == {"page": "query"}
    assert "required" not in made.input_schema


def test_pinned_data_comes_after_the_nodes_and_before_a_sibling_trigger() -> None:
    pinned = {"Webhook": [{"json": {"body": {"old": 1}}}]}
    assert tool(webhook(), code("$json.body.new"), pinData=pinned).origins == {"new": "nodes"}
    sibling = {
        "type": "n8n-nodes-base.executeWorkflowTrigger",
        "parameters": {"workflowInputs": {"values": [{"name": "typed"}]}},
    }
    assert tool(sibling, webhook(), pinData=pinned).origins == {"old": "pinned"}


@given(JSON)
def test_any_pinned_data_is_survived(pins: Any) -> None:
    made = tool(webhook(), pinData={"Webhook": pins})
    Draft202012Validator.check_schema(dict(made.input_schema))


def test_a_workflow_that_says_it_takes_nothing_is_closed() -> None:
    made = tool(webhook("Does it. Parameters: none."), code("$json.body.x"))
    assert made.input_schema == {"type": "object", "properties": {}}


def test_each_of_several_webhooks_has_the_inputs_of_the_nodes_it_reaches() -> None:
    other = {**webhook(path="b"), "id": "n9", "name": "Webhook B"}
    first = {**code("$json.body.alpha"), "name": "First"}
    second = {**code("$json.body.beta"), "name": "Second", "id": "n3"}
    link = {
        "Webhook": {"main": [[{"node": "First", "type": "main", "index": 0}]]},
        "Webhook B": {"main": [[{"node": "Second", "type": "main", "index": 0}]]},
    }
    tools = normalise(workflow(webhook(path="a"), other, first, second, connections=link))
    assert isinstance(tools, list)
    assert [list(made.origins) for _, made in tools] == [["alpha"], ["beta"]]


def test_a_workflow_that_tells_nothing_takes_anything() -> None:
    made = tool(webhook())
    assert made.input_schema == {"type": "object", "properties": {}, "additionalProperties": True}


def test_defaults_that_n8n_leaves_out_are_known() -> None:
    bare = {"id": "n", "name": "My Hook", "type": "n8n-nodes-base.webhook", "parameters": {}}
    made = tool(bare)
    assert (made.method, made.response_mode, made.auth_kind) == ("GET", "onReceived", "none")
    assert made.path == "w1/my%20hook/"


def test_a_webhook_of_several_methods_is_posted_to() -> None:
    made = tool(webhook(multipleMethods=True, httpMethod=["GET", "POST"]))
    assert made.method == "POST"


def test_several_webhooks_are_several_tools() -> None:
    other = {**webhook("Second.", path="b"), "id": "n9", "name": "Webhook B"}
    tools = normalise(workflow(webhook("First.", path="a"), other))
    assert isinstance(tools, list)
    assert [candidate.wanted for candidate, _ in tools] == ["a tool_a", "a tool_b"]
    assert [made.description for _, made in tools] == ["First.", "Second."]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"active": False}, "inactive"),
        ({"isArchived": True}, "archived"),
        ({"settings": {"availableInMCP": False}}, "not_available_in_mcp"),
        ({"nodes": []}, "no_webhook"),
        ({"nodes": [{**webhook(), "disabled": True}]}, "no_webhook"),
        ({"nodes": [webhook(path="={{ 1 }}")]}, "path_is_an_expression"),
        ({"activeVersionId": "v2", "versionId": "v3"}, "unpublished"),
    ],
)
def test_what_is_left_out_says_why(change: dict[str, Any], reason: str) -> None:
    skipped = normalise({**workflow(webhook()), **change})
    assert isinstance(skipped, Skipped)
    assert skipped.reason == reason


def test_the_published_nodes_count_in_every_version_of_n8n() -> None:
    draft, live = [webhook("draft")], [webhook("live")]
    old = {"nodes": live}
    early = {"nodes": live, "activeVersionId": None, "activeVersion": None, "versionId": "v1"}
    rest = {"nodes": draft, "activeVersion": {"nodes": live}, "activeVersionId": "v1"}
    same = {"nodes": live, "activeVersion": {"sameAsDraft": True}, "activeVersionId": "v1"}
    for told in (old, early, rest, same):
        nodes = published_nodes(told)
        assert nodes is not None
        assert nodes[0]["notes"] == "live"


def test_the_description_falls_back_from_notes_to_workflow_to_name() -> None:
    assert tool(webhook("Notes."), description="About.").description == "Notes."
    assert tool(webhook(), description="About. Parameters: x.").description == "About."
    assert tool(webhook(), description=None).description == "a tool"


def test_an_example_without_a_required_argument_is_a_problem() -> None:
    made = tool(webhook('Parameters: city (required).\nExample: rain -> {"day": "now"}'))
    assert made.examples == ()
    assert made.problems == ("the example 'rain' lacks city",)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_workflow_is_a_good_tool(name: str) -> None:
    text = (resources.files("n8n") / "workflows" / f"{name}.json").read_text("utf-8")
    tools = normalise({**json.loads(text), "id": name, "active": True})
    assert isinstance(tools, list)
    _, made = tools[0]
    assert made.problems == ()
    assert made.examples
    validator = Draft202012Validator(dict(made.input_schema))
    assert all(validator.is_valid(dict(e.arguments)) for e in made.examples)
    assert set(made.origins.values()) <= {"schema", "prose"}
    assert made.response_mode == "responseNode"


@given(st.text(max_size=1500))
def test_a_description_is_one_line_of_limited_length(text: str) -> None:
    short = shorten(text)
    assert len(short) <= DESCRIPTION_CHARS
    assert "\n" not in short


def test_a_long_description_ends_after_a_sentence() -> None:
    text = "One sentence here. " * 30
    assert shorten(text).endswith("here.")


@given(JSON, JSON)
def test_any_node_and_any_settings_are_survived(parameters: Any, settings: Any) -> None:
    node = {**webhook(), "parameters": parameters}
    got = normalise({**workflow(node), "settings": settings})
    for _, made in got if isinstance(got, list) else []:
        Draft202012Validator.check_schema(dict(made.input_schema))


def test_of_several_methods_the_one_that_leads_somewhere_is_used() -> None:
    hook = webhook(httpMethod=["GET", "POST"], multipleMethods=True)
    to = [{"node": "Code", "type": "main", "index": 0}]
    for outputs, method in (
        [[to, []], "GET"],
        [[[], to], "POST"],
        [[to, to], "POST"],
        [[], "POST"],
    ):
        made = normalise({**workflow(hook), "connections": {"Webhook": {"main": outputs}}})
        assert isinstance(made, list)
        assert made[0][1].method == method
