"""One form for a workflow and its names, whichever API told of it and whatever n8n's version."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeAlias

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from n8n.core.json_values import mapping, mappings, sequence, visible
from n8n.core.workflow_tool import (
    BODILESS_METHODS,
    RESPOND_TYPE,
    Example,
    Nodes,
    ParameterLocation,
    ParameterOrigin,
    Skipped,
    SkipReason,
    Workflow,
    WorkflowTool,
    placeholders,
)
from n8n.discovery.nodes import (
    FoundInputs,
    WebhookNode,
    inputs_read_by,
    is_webhook,
    passes_request_on,
    read_webhook,
)
from n8n.notes.parameter import MAX_NAME_CHARS, Parameter, type_schema
from n8n.notes.parser import Notes, parse_notes

# The names of tools: what a model may say for a workflow's name.

MAX_TOOL_NAME_CHARS = 64
"""The longest name that OpenAI-style APIs take."""
HASH_CHARS = 6
"""16 million values: enough to keep the few names apart that collide."""

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]+")
_UNDIVIDED_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE"})


@dataclass(frozen=True, slots=True)
class NameCandidate:
    """A tool that wants a name."""

    key: str
    """Its identity, which never changes: workflow id and node id."""
    wanted: str
    age: str
    """Older tools sort first. The oldest of those that want one name gets it."""


def sanitise(text: str) -> str:
    """`Ünïcode tööl! (v2)` becomes `Unicode_tool_v2`; an empty string if no letter is left."""
    plain = unicodedata.normalize("NFKD", text.translate(_UNDIVIDED_LETTERS))
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return _FORBIDDEN.sub("_", plain).strip("_-")


def assign_names(
    candidates: Iterable[NameCandidate], before: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Give each key an allowed name, no two alike, whatever the order of the candidates.

    `before` holds the names of the last time. A key keeps its name as long as that is still one of
    the two that it could have, so that nothing is renamed because something else came or went.
    """
    ordered = sorted(candidates, key=lambda c: (c.age, c.key))
    plain = {c.key: _plain(c) for c in ordered}
    names: dict[str, str] = {}
    taken: set[str] = set()

    def give(key: str, name: str) -> bool:
        if key in names or _folded(name) in taken:
            return False
        names[key] = name
        taken.add(_folded(name))
        return True

    for key, name in plain.items():
        old = (before or {}).get(key)
        if old in (name, _hashed(name, key)):
            give(key, old)
    for key, name in plain.items():
        give(key, name)
    for key, name in plain.items():
        if key not in names:
            next(filter(lambda hashed: give(key, hashed), _hashed_names(name, key)))
    return names


def _plain(candidate: NameCandidate) -> str:
    name = sanitise(candidate.wanted)
    if not name:
        return _hashed("workflow", candidate.key)
    return name if len(name) <= MAX_TOOL_NAME_CHARS else _hashed(name, candidate.key)


def _hashed_names(name: str, key: str) -> Iterator[str]:
    return (_hashed(name, key + "'" * times) for times in count())


def _hashed(name: str, key: str) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()[:HASH_CHARS]
    return f"{name[: MAX_TOOL_NAME_CHARS - HASH_CHARS - 1].rstrip('_-')}_{digest}"


def _folded(name: str) -> str:
    # `My-Weather` and `my_weather` are different names to a program and one name to a model.
    return name.casefold().replace("-", "_")


# Whether an author's examples, defaults and bounds are what the tool's schema allows.

MAX_MESSAGE_CHARS: Final = 120
_DATES: Final = FormatChecker(("date",))
_VALIDATOR: Final[Any] = extend(Draft202012Validator, {"pattern": lambda *_: None})
"""It checks no pattern: an author's may take seconds."""


def fault_of(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """Say what is wrong with an example's arguments; None if a call may have them."""
    if missing := sorted(set(schema.get("required", ())) - arguments.keys()):
        return f"lacks {', '.join(missing)}"
    known = mapping(schema.get("properties"))
    if known and (unknown := sorted(arguments.keys() - known.keys())):
        return f"has {', '.join(unknown)[:MAX_MESSAGE_CHARS]}, which is no parameter"
    error: Any = best_match(_VALIDATOR(schema, format_checker=_DATES).iter_errors(arguments))
    if error is None:
        return None
    where = ".".join(map(str, error.absolute_path))
    return f"has a wrong {where}: {error.message[:MAX_MESSAGE_CHARS]}"


def faults_of_defaults(schema: Mapping[str, Any]) -> list[str]:
    """Say which parameters have a default that is none of their values, or no value at all."""
    faults: list[str] = []
    for name, told in mapping(schema.get("properties")).items():
        low, high = mapping(told).get("minimum"), mapping(told).get("maximum")
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high:
            faults.append(f"{name} has no value: it is at least {low} and at most {high}")
        elif "default" in mapping(told):
            validator = _VALIDATOR(told, format_checker=_DATES)
            if (error := best_match(validator.iter_errors(told["default"]))) is not None:
                faults.append(f"the default of {name}: {error.message[:MAX_MESSAGE_CHARS]}")
    return faults


# A workflow's input schema, from the best that is known about each parameter.
#
# What the author wrote in the notes is the whole truth if there is anything. Else the published
# nodes tell the names that they read, else the webhook's pinned data the names that once came in,
# else a sibling Execute Workflow Trigger its typed inputs. Placeholders of the path are always
# there and required: without them there is no URL. Otherwise a parameter is required only if the
# author says so.

TRIGGER_TYPE = "n8n-nodes-base.executeWorkflowTrigger"
MAX_PARAMETERS = 40
"""A model does not fill in more; a workflow beyond it is misread, or no tool for a voice."""
MAX_PINNED_ITEMS = 5
"""How many pinned items are looked at; they are alike."""
_REQUEST_PARTS: Mapping[str, ParameterLocation] = {
    "body": "body",
    "query": "query",
    "params": "path",
}
_JSON_TYPES: Mapping[type, str] = {
    bool: "boolean",
    # A whole number does not say whether 1.5 would do as well.
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True)
class ToolInputs:
    """The parameters of a tool: what they are, where they travel, where they were found."""

    schema: Mapping[str, Any]
    locations: Mapping[str, ParameterLocation]
    origins: Mapping[str, ParameterOrigin]


def build_inputs(
    webhook: WebhookNode, notes: Notes, nodes: Nodes, workflow: Mapping[str, Any]
) -> ToolInputs:
    """Put together what the notes, the nodes and the workflow tell of a webhook's inputs."""
    read = {} if notes.takes_nothing else inputs_read_by(nodes)
    if not (notes.parameters or notes.takes_nothing or read):
        read = _pinned_inputs(workflow, webhook.node_name)
    by_nodes = {name: parameter for name, (_, parameter) in read.items()}
    known = {name: _with_type(p, by_nodes.get(name)) for name, p in notes.parameters.items()}
    if not notes.takes_nothing:
        known = known or by_nodes or _trigger_inputs(nodes)
    in_path = placeholders(webhook.path or "")
    for name in in_path:
        written = notes.parameters.get(name) or Parameter({}, True, "path")
        known[name] = Parameter({"type": "string", **written.schema}, True, written.origin)
    # What a node reads from `params` is no input unless the path has a place for it.
    known = {n: p for n, p in known.items() if n in in_path or read.get(n, ("",))[0] != "path"}
    known = dict(list(known.items())[:MAX_PARAMETERS])
    usual: ParameterLocation = "query" if webhook.method in BODILESS_METHODS else "body"
    locations: dict[str, ParameterLocation] = {}
    for name in known:
        location = "path" if name in in_path else read[name][0] if name in read else usual
        if location != usual and not (location == "body" and usual == "query"):
            locations[name] = location
    schema = _object_schema(known, is_open=not (known or notes.takes_nothing))
    return ToolInputs(schema, locations, {name: p.origin for name, p in known.items()})


def _with_type(written: Parameter, read: Parameter | None) -> Parameter:
    """Give a parameter that the author only named the type that the nodes' fallback tells."""
    if read is None or "type" in written.schema or "enum" in written.schema:
        return written
    return Parameter({**read.schema, **written.schema}, written.required, written.origin)


def _object_schema(known: Mapping[str, Parameter], *, is_open: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: dict(p.schema) for name, p in known.items()},
    }
    if required := [name for name, p in known.items() if p.required]:
        schema["required"] = required
    if is_open:
        schema["additionalProperties"] = True
    return schema


def _pinned_inputs(workflow: Mapping[str, Any], node_name: str) -> FoundInputs:
    """Return the inputs of the request that the author froze while building the workflow.

    Only names and types are taken. Values may be anybody's, and are not for a prompt.
    """
    found: FoundInputs = {}
    for item in mappings(mapping(workflow.get("pinData")).get(node_name))[:MAX_PINNED_ITEMS]:
        request = mapping(item.get("json"))
        for part, location in _REQUEST_PARTS.items():
            for name, value in mapping(request.get(part)).items():
                if 0 < len(name) <= MAX_NAME_CHARS:
                    kind = _JSON_TYPES.get(value.__class__)
                    schema = {"type": kind} if kind else {}
                    found.setdefault(name, (location, Parameter(schema, False, "pinned")))
    return found


def _trigger_inputs(nodes: Nodes) -> dict[str, Parameter]:
    """Return the typed inputs of a sibling trigger, by which another workflow calls this one."""
    found: dict[str, Parameter] = {}
    for node in nodes:
        if node.get("type") != TRIGGER_TYPE or node.get("disabled"):
            continue
        inputs = mapping(mapping(node.get("parameters")).get("workflowInputs"))
        for field in mappings(inputs.get("values")):
            name = field.get("name")
            # n8n leaves the type out where it is the default, a string.
            schema = type_schema(str(field.get("type") or "string"))
            if isinstance(name, str) and name:
                found[name] = Parameter(schema or {}, False, "trigger")
    return found


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
