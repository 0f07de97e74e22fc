from __future__ import annotations

import copy
import json
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from caal_node.context.schemas import compact_schema, first_sentences
from tests.stand_ins.context_strategies import tried


def properties(**each: Any) -> dict[str, Any]:
    return {"type": "object", "properties": each}


class Place(BaseModel):
    city: str = Field(description="Name of the city.")
    country: str | None = None


class Search(BaseModel):
    """Arguments of a search."""

    title: str
    where: Place
    kind: Literal["hotel", "flat"] | None = None
    near: Place | None = None
    limit: int = 5


def test_a_generated_schema_keeps_only_what_fills_in_arguments() -> None:
    assert compact_schema(Search.model_json_schema()) == {
        "description": "Arguments of a search.",
        "properties": {
            "title": {"type": "string"},
            "where": {
                "properties": {
                    "city": {"description": "Name of the city.", "type": "string"},
                    "country": {"type": "string"},
                },
                "required": ["city"],
                "type": "object",
            },
            "kind": {"enum": ["hotel", "flat"], "type": "string"},
            "near": {
                "properties": {
                    "city": {"description": "Name of the city.", "type": "string"},
                    "country": {"type": "string"},
                },
                "required": ["city"],
                "type": "object",
            },
            "limit": {"default": 5, "type": "integer"},
        },
        "required": ["title", "where"],
        "type": "object",
    }


def test_properties_named_like_keywords_stay() -> None:
    schema = properties(
        title={"type": "string", "title": "Title"},
        description={"type": "string"},
        **{"$ref": {"type": "string"}, "default": {"type": "null"}},
    )
    assert compact_schema(schema) == properties(
        title={"type": "string"},
        description={"type": "string"},
        **{"$ref": {"type": "string"}, "default": {"type": "null"}},
    )


def test_values_that_look_like_schemas_are_left_alone() -> None:
    value = {"title": "x", "description": "", "additionalProperties": False}
    schema = properties(a={"enum": [value, None], "default": value, "const": value})
    assert compact_schema(schema) == schema


def test_an_object_without_known_properties_still_says_that_it_takes_any() -> None:
    free = {"type": "object", "properties": {}, "additionalProperties": True}
    assert compact_schema(free) == free


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"$schema": "https://json-schema.org/x", "type": "object"}, {"type": "object"}),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
        (properties(a={}) | {"additionalProperties": True}, properties(a={})),
        (
            {"type": "object", "additionalProperties": {"type": "string", "title": "T"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        ({"type": "object", "required": [], "description": "  "}, {"type": "object"}),
        (
            {"allOf": [{"type": "string"}], "description": "d"},
            {"type": "string", "description": "d"},
        ),
        (
            {"type": "array", "items": {"title": "I", "type": "integer"}},
            {"type": "array", "items": {"type": "integer"}},
        ),
        ({"not": True}, {"not": True}),
    ],
)
def test_noise_is_dropped(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert compact_schema(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"type": ["string", "integer", "null"]}, {"type": ["string", "integer"]}),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": "d"},
            {"type": "string", "description": "d"},
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        ({"type": "null"}, {"type": "null"}),
    ],
)
def test_an_optional_property_loses_its_null(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert compact_schema(properties(a=before)) == properties(a=after)


def test_a_required_property_keeps_its_null() -> None:
    schema = {**properties(a={"anyOf": [{"type": "string"}, {"type": "null"}]}), "required": ["a"]}
    assert compact_schema(schema) == schema


def test_members_beside_a_reference_win_over_what_it_points_at() -> None:
    schema = {
        **properties(a={"$ref": "#/$defs/A~1b", "description": "mine"}),
        "$defs": {"A/b": {"type": "string", "description": "theirs", "title": "A"}},
    }
    assert compact_schema(schema) == properties(a={"type": "string", "description": "mine"})


def test_a_schema_that_refers_to_itself_keeps_what_it_needs() -> None:
    node = {"type": "object", "title": "Node", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {
        **properties(head={"$ref": "#/$defs/Node"}, name={"$ref": "#/$defs/Name"}),
        "$defs": {"Node": node, "Name": {"type": "string"}, "Unused": {"type": "integer"}},
    }
    compacted = compact_schema(schema)
    assert compacted == {
        **properties(head={"$ref": "#/$defs/Node"}, name={"type": "string"}),
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    jsonschema.validate({"head": {"next": {"next": {}}}}, compacted)


def test_definitions_that_refer_to_each_other_in_a_circle_are_all_kept() -> None:
    schema = {
        **properties(a={"$ref": "#/definitions/A"}),
        "definitions": {
            "A": properties(b={"$ref": "#/definitions/B"}),
            "B": properties(a={"$ref": "#/definitions/A/properties/b"}, c={"$ref": "#"}),
        },
    }
    compacted = compact_schema(schema)
    assert set(compacted["definitions"]) == {"A", "B"}
    jsonschema.validate({"a": {"b": {}}}, compacted)


def test_definitions_that_double_at_every_level_do_not_explode() -> None:
    definitions: dict[str, Any] = {"L0": {"type": "string"}}
    for level in range(1, 30):
        below = {"$ref": f"#/$defs/L{level - 1}"}
        definitions[f"L{level}"] = properties(a=below, b=below)
    compacted = compact_schema({**properties(x={"$ref": "#/$defs/L29"}), "$defs": definitions})
    assert len(json.dumps(compacted)) < 10_000
    assert compacted["$defs"]["L0"] == {"type": "string"}


@pytest.mark.parametrize("ref", ["#/$defs/Missing", "https://example.com/s.json", "#/x/0/y", "#a"])
def test_a_reference_to_nothing_here_stays_as_it_is(ref: str) -> None:
    assert compact_schema(properties(a={"$ref": ref}))["properties"]["a"] == {"$ref": ref}


def test_a_bottomless_schema_ends() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        schema = properties(a=schema)
    assert len(json.dumps(compact_schema(schema))) < 5_000


def test_a_function_and_a_whole_tool_are_compacted_in_their_parts() -> None:
    parameters = {
        **properties(a={"$ref": "#/$defs/A"}),
        "title": "Args",
        "$defs": {"A": {"type": "string"}},
    }
    function = {"name": "look", "description": "Look.\n  Around.", "parameters": parameters}
    compacted = {
        "name": "look",
        "description": "Look. Around.",
        "parameters": properties(a={"type": "string"}),
    }
    assert compact_schema(function) == compacted
    tool = {"type": "function", "function": function}
    assert compact_schema(tool) == {"type": "function", "function": compacted}
    assert "description" not in compact_schema({**function, "description": " "})


def test_the_order_of_what_stays_is_the_order_it_came_in() -> None:
    one = {"type": "object", "properties": {"b": {}, "a": {}}, "required": ["b"]}
    other = {"required": ["b"], "properties": {"a": {}, "b": {}}, "type": "object"}
    assert json.dumps(compact_schema(one)) == json.dumps(one)
    assert json.dumps(compact_schema(other)) == json.dumps(other)


@pytest.mark.parametrize(
    ("text", "max_chars", "expected"),
    [
        ("Short.", 20, "Short."),
        ("One sentence. Another one. A third.", 27, "One sentence. Another one."),
        ("Use e.g. Paris for it. The rest is long.", 30, "Use e.g. Paris for it."),
        ("One sentence that is far too long to stay", 20, "One sentence that…"),
        ("Version 3.5 only. Then more.", 20, "Version 3.5 only."),
        ("很长的第一句。第二句也很长。", 8, "很长的第一句。"),
        ("x" * 50, 10, "x" * 9 + "…"),
        (" a\n\n b ", 10, "a b"),
        (None, 10, ""),
    ],
)
def test_first_sentences(text: object, max_chars: int, expected: str) -> None:
    assert first_sentences(text, max_chars) == expected


@tried(100)
@given(st.text(), st.integers(5, 50))
def test_a_description_is_one_line_within_its_cap(text: str, max_chars: int) -> None:
    shown = first_sentences(text, max_chars)
    assert len(shown) <= max_chars
    assert len(shown.splitlines()) <= 1


names = st.sampled_from(["a", "title", "b"])
simple = st.sampled_from(
    [{"type": "string"}, {"type": ["integer", "null"]}, {"type": "boolean", "title": "T"}]
)
schemas = st.recursive(
    simple | st.sampled_from([{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]),
    lambda inner: (
        st.builds(
            lambda each: {"type": "object", "properties": each, "additionalProperties": False},
            st.dictionaries(names, inner, max_size=3),
        )
        | st.builds(lambda each: {"type": "array", "items": each}, inner)
        | st.builds(lambda each: {"anyOf": [each, {"type": "null"}], "default": None}, inner)
    ),
    max_leaves=8,
)
objects = st.dictionaries(names, schemas, max_size=3)
# Definitions are objects: one that is nothing but a reference to itself has no end.
roots = st.builds(
    lambda root, a, b: {
        **properties(**root),
        "$defs": {"A": properties(**a), "B": properties(**b)},
    },
    objects,
    objects,
    objects,
)
values = st.recursive(
    st.sampled_from(["s", 1, True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=6,
)


@tried(100)
@given(roots, st.dictionaries(names, values, max_size=3))
def test_arguments_that_fit_the_full_schema_fit_the_compact_one(
    schema: dict[str, Any], value: dict[str, Any]
) -> None:
    untouched = copy.deepcopy(schema)
    compacted = compact_schema(schema)
    assert schema == untouched
    assert json.dumps(compact_schema(schema)) == json.dumps(compacted)
    assert compact_schema(compacted) == compacted
    full, compact = (
        jsonschema.Draft202012Validator(schema),
        jsonschema.Draft202012Validator(compacted),
    )
    if full.is_valid(value):
        assert compact.is_valid(value)


def test_what_is_broken_or_larger_than_a_model_can_use_is_not_shown() -> None:
    properties = {
        "a": {"type": "string", "pattern": "a{4294967295}", "maxLength": 10**9, "minLength": 1},
        "b": {"type": "array", "maxItems": 10**9, "items": {"type": "no such type"}},
        "c": {"enum": list(range(5_000)), "default": ["x"] * 5_000},
        "d": {"type": ["string"] * 900, "minimum": 10**400, "pattern": "(a|b)" * 100},
        "e": {"enum": 5, "anyOf": "none", "required": True, "properties": []},
        "p" * 9_000: {"type": "string"},
    }
    assert compact_schema({"type": "object", "properties": properties, "required": ["a", 5]}) == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": 1},
            "b": {"type": "array", "items": {}},
            "c": {},
            "d": {},
            "e": {},
        },
    }


def test_a_long_chain_of_references_is_not_followed_from_each_of_its_links() -> None:
    chain = {f"d{n}": {"properties": {"next": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(900)}
    links = {f"p{n}": {"$ref": f"#/$defs/d{n}"} for n in range(900)}
    compacted = compact_schema({"properties": links, "$defs": {**chain, "d900": {}}})
    assert compacted["properties"]["p0"] == {"$ref": "#/$defs/d0"}
    assert len(compacted["$defs"]) == 901
