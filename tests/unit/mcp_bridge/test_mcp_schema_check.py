"""Schemas of strangers: what they say is checked, and never with more work than is allowed."""

# pyright: reportUnknownMemberType=false
# jsonschema's own types are half unknown.

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcp_bridge.security.patterns import MAX_PATTERN_CHARS, compiled
from mcp_bridge.security.schema_check import MAX_DEPTH, Fault, faults_of


def faults(schema: Any, value: Any) -> list[Fault]:
    return faults_of(schema, value, "test")


def laughs(depth: int, keyword: str = "allOf") -> dict[str, Any]:
    """Each definition names the next one twice."""
    named = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(depth)
    }
    return {"$defs": {**named, f"d{depth}": {"type": "object"}}, "$ref": "#/$defs/d0"}


def nested(levels: int, keyword: str = "not") -> Any:
    schema: Any = {}
    for _ in range(levels):
        schema = {keyword: schema}
    return schema


_NAMES = [f"p{n}" for n in range(50_000)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (laughs(60), {}),
        (laughs(60, "anyOf"), 1),
        (laughs(30, "oneOf"), {}),
        ({"$ref": "#"}, {}),
        ({"not": {"$ref": "#"}}, {}),
        (nested(900), 1),
        ({"const": nested(900)}, nested(900)),
        ({"uniqueItems": True, "maxItems": 1}, [[n] for n in range(50_000)]),
        ({"patternProperties": {f"^x{n}$": False for n in range(1_500)}}, {"x1499": 1}),
        ({"required": _NAMES}, {}),
        (
            {"dependentRequired": {name: ["x"] for name in _NAMES}},
            {"p1": 1, **dict.fromkeys(_NAMES)},
        ),
        ({"enum": [*range(50_000)]}, -1),
        ({"propertyNames": {"maxLength": 1}}, dict.fromkeys(_NAMES)),
        ({"items": {"type": "string"}}, [1] * 50_000),
        ({"items": {"pattern": "(a|b)*a(a|b){200}c"}}, ["ab" * 2_000] * 50),
    ],
)
def test_too_much_work_is_not_done_and_no_fault_is_found(schema: Any, value: Any) -> None:
    assert faults(schema, value) == []  # without a bound most would not come back


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"multipleOf": 1e-308}, 1e308),
        ({"multipleOf": 0}, 3),
        ({"multipleOf": 0.7}, 10**400),
        ({"multipleOf": 10**400}, 3.5),
        ({"multipleOf": 1e308}, 10**3_000),
        ({"pattern": "a{4294967295}"}, "b"),
        ({"pattern": "^(?=a)"}, "b"),
        ({"pattern": "("}, "b"),
        ({"pattern": "a" * (MAX_PATTERN_CHARS + 1)}, "b"),
        ({"pattern": "^a$"}, "\ud800"),
        ({"pattern": "\ud800"}, "b"),
        ({"pattern": r"\Z"}, "b"),
        ({"$ref": "https://example.org/schema"}, 1),
        ({"$ref": "#/$defs/nowhere"}, 1),
        ({"$ref": "#/allOf/99999999999", "allOf": []}, 1),
        ({"type": "text"}, 1),
        ({"type": [["string"]]}, 1),
        ({"required": True, "properties": [], "enum": "a", "minimum": "3", "items": 5}, {}),
        ({"minimum": "3", "exclusiveMinimum": True, "maximum": None}, 1),
        ({"allOf": {}, "anyOf": 5, "not": "x", "if": [], "$ref": {}}, 1),
        ({"unevaluatedProperties": False}, {"a": 1}),
        ("a text", 1),
        (None, 1),
    ],
)
def test_what_is_broken_or_cannot_be_looked_at_is_passed_over(schema: Any, value: Any) -> None:
    assert faults(schema, value) == []


UNSURE = {"pattern": "^(?!a)"}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"not": UNSURE}, True),
        ({"not": {"allOf": [UNSURE, {"type": "integer"}]}}, True),
        ({"not": {"not": UNSURE}}, True),
        ({"not": {"type": "string"}}, False),
        ({"oneOf": [UNSURE, {"type": "string"}]}, True),
        ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, False),
        ({"oneOf": [{"type": "integer"}, {"minLength": 2}]}, False),
        ({"anyOf": [{"allOf": [UNSURE, False]}, {"type": "string"}]}, True),
        ({"not": {"anyOf": [{"type": "integer"}, UNSURE]}}, True),
        ({"if": UNSURE, "then": False, "else": False}, True),
        ({"allOf": [UNSURE, {"type": "integer"}]}, False),
    ],
)
def test_what_was_passed_over_makes_nothing_certain(schema: Any, fits: bool) -> None:
    assert (faults(schema, "a") == []) is fits


def test_items_that_may_be_contained_are_counted_as_they_may_be() -> None:
    unsure = {"contains": UNSURE, "maxContains": 1}
    assert faults(unsure, ["a", "a"]) == []
    assert faults({"contains": UNSURE, "minContains": 3}, ["a", "a"]) != []


def test_it_is_said_once_for_each_tool_and_without_values(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "mcp_bridge"):
        for _ in range(3):
            assert faults_of({"$ref": "#"}, {"key": "s3cret"}, "bad__said_once") == []
    assert [record.getMessage() for record in caplog.records] == [
        "bad__said_once: its schema asks for too much work; values go unchecked"
    ]


@pytest.mark.parametrize(
    ("schema", "value", "path", "words"),
    [
        ({"properties": {"n": {"type": "integer"}}}, {"n": "x"}, ("n",), "'x' is not of type"),
        ({"required": ["city"]}, {}, (), "'city' is a required property"),
        ({"items": {"enum": ["a", "b"]}}, ["c"], (0,), "'c' is not one of ['a', 'b']"),
        ({"additionalProperties": False}, {"x": 1}, (), "'x' is not a known property"),
        ({"type": "string"}, {"a": 1}, (), "an object is not of type 'string'"),
        ({"type": "string"}, 10**4_000, (), "a number is not of type 'string'"),
        (
            {"anyOf": [{"type": "null"}, {"properties": {"a": {"type": "null"}}}]},
            {"a": 1},
            ("a",),
            "1 is not of type 'null'",
        ),
        ({"anyOf": [{"type": "array"}, {"type": "string"}]}, 1, (), "not valid under any of the"),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, 1, (), "1 is not of type 'string'"),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, "c", (), "is not one of ['a', 'b']"),
        ({"anyOf": [{"maximum": 9}, {"type": "null"}]}, 10, (), "greater than the maximum of 9"),
        ({"minimum": 1, "exclusiveMinimum": True}, 1, (), "1 is not greater than 1"),
        ({"items": [{"type": "null"}], "additionalItems": False}, [None, 1], (1,), "not allowed"),
        ({"dependencies": {"a": ["b"]}}, {"a": 1}, (), "'b' is a required property"),
        ({"pattern": "^a"}, "b" * 900, (), f"'{'b' * 80}…' does not match '^a'"),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": False}}, 1, (), "1 is not allowed"),
    ],
)
def test_a_fault_says_what_and_where(
    schema: Any, value: Any, path: tuple[Any, ...], words: str
) -> None:
    (fault,) = faults(schema, value)
    assert fault.path == path
    assert words in fault.message


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-22", True),
        (r"^\d$", "٣", False),  # in ECMA-262 it is a digit of ASCII
        (r"^\w+$", "é", False),
        (r"\s", "\u00a0", True),
        (r"^a\/b\-\u0041\cJ$", "a/b-A\n", True),
        (r"a$", "a\n", False),
        (r"^(a+)+$", "a" * 60_000 + "!", False),
        (r"^[\[\]]\+\+$", "]++", True),
        (r"(?<year>\d{4})", "in 2026", True),
        (r"^[\w.]+@[\w.]+\.\w+$", "ada@example.org", True),
        (r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "0" * 36, False),
    ],
)
def test_patterns_mean_what_the_standard_says(pattern: str, text: str, found: bool) -> None:
    expression = compiled(pattern)
    assert expression is not None
    assert expression.is_in(text) is found


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        "(?!a)",
        "(?<=a)b",
        "(?i)a",
        "[a&&b]",
        "[[]",
        "[]",
        r"\s" * 30,
        "(" * 200,
        "a{9999}",
        r"\<a",
        "a?+",
    ],
)
def test_what_the_engine_reads_otherwise_or_not_is_not_looked_for(pattern: str) -> None:
    assert compiled(pattern) is None


@given(st.text("ab(|)[]{}*+?^$\\d-,.&~1:<>=!i", max_size=40), st.text("ab1-", max_size=10))
def test_where_both_engines_take_a_pattern_they_agree(pattern: str, text: str) -> None:
    expression = compiled(pattern)
    if expression is None:
        return
    try:
        found = re.search(pattern, text)
    except (re.error, RecursionError, OverflowError):
        return
    assert expression.is_in(text) is (found is not None)


_leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab1", max_size=4)
_leaves |= st.sampled_from([0.5, 1.0, 2.0])
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab"), inner)
)
_names = st.text("ab", max_size=2)
_counts = st.integers(0, 3)
_schemas = st.recursive(
    st.booleans()
    | st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(
                ["null", "boolean", "integer", "number", "string", "array", "object"]
            )
            | st.just(["string", "null"]),
            "enum": st.lists(_values, min_size=1, max_size=3),
            "const": _values,
            "minimum": st.integers(-2, 2),
            "exclusiveMinimum": st.integers(-2, 2),
            "maximum": st.integers(-2, 2),
            "exclusiveMaximum": st.integers(-2, 2),
            "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
            "pattern": st.sampled_from(["^a+$", "b", "1$"]),
            **{
                f"{least}{what}": _counts
                for least in ("min", "max")
                for what in ("Length", "Items", "Properties")
            },
            "uniqueItems": st.booleans(),
            "required": st.lists(_names, max_size=2, unique=True),
            "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b"]),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "properties": st.dictionaries(_names, inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "minContains": _counts,
            "maxContains": _counts,
            "dependentRequired": st.dictionaries(_names, st.lists(_names, max_size=2, unique=True)),
            "dependentSchemas": st.dictionaries(_names, inner, max_size=2),
        },
    ),
    max_leaves=8,
)


@given(_schemas, _schemas, _values)
def test_within_its_bounds_it_judges_as_jsonschema_does(
    schema: Any, definition: Any, value: Any
) -> None:
    if isinstance(schema, dict):
        schema = {**schema, "$defs": {"a": definition, "b": {"type": "string"}}}
    if "$ref" in repr(definition) or not isinstance(schema, dict):
        return
    assert (faults(schema, value) == []) is Draft202012Validator(schema).is_valid(value)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                sorted(
                    [
                        "$ref",
                        "type",
                        "items",
                        "properties",
                        "enum",
                        "const",
                        "not",
                        "pattern",
                        "patternProperties",
                        "multipleOf",
                        "required",
                        "contains",
                        "minContains",
                        "uniqueItems",
                        "if",
                        "then",
                        "oneOf",
                        "anyOf",
                        "allOf",
                        "dependencies",
                        "additionalItems",
                    ]
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(_json, _json)
def test_any_json_is_taken_for_a_schema(schema: Any, value: Any) -> None:
    assert isinstance(faults(schema, value), list)


def test_levels_up_to_the_bound_are_checked() -> None:
    inner: Any = {"type": "string"}
    value: Any = 1
    for _ in range(MAX_DEPTH - 1):
        inner, value = {"properties": {"a": inner}}, {"a": value}
    assert [len(fault.path) for fault in faults(inner, value)] == [MAX_DEPTH - 1]
