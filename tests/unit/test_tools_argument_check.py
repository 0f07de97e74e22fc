"""Schemas of strangers: checked like any other, and never for longer than a sound may wait."""

# pyright: reportUnknownMemberType=false
# jsonschema's own types are half unknown.

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from caal_node.tools.argument_check import (
    STEPS_MAX,
    ValidationTooCostly,
    bounded_faults,
    fits,
    is_quick,
    of_one_dialect,
)


def with_text(**rules: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"q": {"type": "string", **rules}}}


def laughs(depth: int) -> dict[str, Any]:
    """Each definition names the next one twice."""
    named = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(depth)
    }
    return {"$defs": {**named, f"d{depth}": {"type": "object"}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (with_text(pattern="^(a+)+$"), {"q": "a" * 60 + "!"}),
        (with_text(pattern="a?" * 40 + "a" * 40), {"q": "a" * 40}),
        (with_text(pattern="(a|a)" * 40 + "$"), {"q": "a" * 40 + "!"}),
        (with_text(pattern="a*" * 12 + "b"), {"q": "a" * 200}),
        ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 60 + "!": 1}),
        (
            {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
            {"a" * 60 + "!": 1},
        ),
        ({"propertyNames": {"pattern": "^(a+)+$"}}, {"a" * 60 + "!": 1}),
        (laughs(60), {}),
        ({"allOf": [{"$ref": "#"}]}, {}),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "allOf": [{"$ref": "#"}, {"$ref": "#"}],
            },
            {},
        ),
        (with_text(pattern="("), {"q": "a"}),
    ],
)
def test_what_would_take_for_ever_or_goes_in_a_circle_is_left_to_the_server(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert fits(schema, arguments)  # without a bound it would not come back


def test_work_past_the_bound_is_said_to_be_too_much() -> None:
    schema = {"properties": {"rows": {"items": {"type": "integer"}}}}
    assert bounded_faults(schema, {"rows": [1] * 100}) == []
    with pytest.raises(ValidationTooCostly):
        bounded_faults(schema, {"rows": [1] * STEPS_MAX})


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-22"),
        (r"^[\w.]+@[\w.]+\.\w+$", "ada@example.org"),
        (r"^(kitchen|bath|living_room|bedroom)$", "kitchen"),
        (r"^#?[0-9a-fA-F]{6}$", "#00ff00"),
        (r"^[a-z]+$", "x" * 900),
    ],
)
def test_ordinary_patterns_are_tried(pattern: str, text: str) -> None:
    assert is_quick(pattern, text)
    schema = with_text(pattern=pattern)
    assert fits(schema, {"q": text})
    assert not fits(schema, {"q": "?"})


_leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab1", max_size=4)
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner)
)
_schemas = st.recursive(
    st.sampled_from(
        [
            True,
            {"type": "string", "pattern": "^a+$"},
            {"type": "integer", "minimum": 0},
            {"enum": ["a", 1]},
            {"type": ["null", "boolean"]},
        ]
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "properties": st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "not": inner,
        },
    ),
    max_leaves=6,
)


@given(_schemas, st.dictionaries(st.text("ab", max_size=3), _values, max_size=3))
def test_within_its_bounds_it_finds_what_jsonschema_finds(
    schema: Any, arguments: dict[str, Any]
) -> None:
    plain = Draft202012Validator(schema).iter_errors(arguments)
    found = bounded_faults(of_one_dialect(json.loads(json.dumps(schema))), arguments)
    assert [(f.message, list(f.path)) for f in found] == [(f.message, list(f.path)) for f in plain]
