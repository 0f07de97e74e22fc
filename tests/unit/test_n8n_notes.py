"""What an author writes in a webhook's notes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from n8n.core.workflow_tool import Example
from n8n.notes.parser import MAX_NOTES_CHARS, Notes, parse_notes

NAMES = st.from_regex(r"[a-z][a-z_]{0,12}", fullmatch=True).filter(
    lambda n: n not in ("and", "none", "nothing")
)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200b\u202e\u2066]")


def schemas(notes: Notes) -> dict[str, Any]:
    return {name: dict(p.schema) for name, p in notes.parameters.items()}


def required(notes: Notes) -> list[str]:
    return [name for name, p in notes.parameters.items() if p.required]


def test_prose_gives_names_types_ranges_and_defaults() -> None:
    notes = parse_notes(
        "Get the weather forecast for a city. "
        "Parameters: city (required, string), days (optional, integer 1-7, default 1)."
    )
    assert notes.description == "Get the weather forecast for a city."
    assert schemas(notes) == {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1},
    }
    assert required(notes) == ["city"]


def test_prose_reads_choices_and_leaves_the_next_sentence() -> None:
    notes = parse_notes(
        "Parameters: unit (one of c, f; default c), level (1|2|3, integer), day: which day. Slow."
    )
    assert schemas(notes) == {
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "level": {"type": "string", "enum": ["1", "2", "3"]}
        | {"type": "integer", "enum": [1, 2, 3]},
        "day": {"description": "which day"},
    }
    assert notes.description == "Slow."


@pytest.mark.parametrize(
    ("line", "name", "schema", "is_required"),
    [
        (
            "@param value number required The value",
            "value",
            {"type": "number", "description": "The value"},
            True,
        ),
        (
            "@param {string} [city=Paris] - The city",
            "city",
            {"type": "string", "description": "The city", "default": "Paris"},
            False,
        ),
        ("@param ids integer[]", "ids", {"type": "array", "items": {"type": "integer"}}, False),
        (
            "@param mode on|off required",
            "mode",
            {"type": "string", "enum": ["on", "off"]},
            True,
        ),
        ("@param text The text to send", "text", {"description": "The text to send"}, False),
    ],
)
def test_a_param_line_is_read_in_the_usual_orders(
    line: str, name: str, schema: dict[str, Any], is_required: bool
) -> None:
    notes = parse_notes(line)
    assert schemas(notes) == {name: schema}
    assert (required(notes) == [name]) is is_required
    assert notes.description == ""
    assert notes.problems == ()


def test_a_schema_block_is_read_with_or_without_code_fences() -> None:
    block = '{"action": {"type": "str", "enum": ["add"], "required": true}, "n": "integer"}'
    for text in (f"---schema\n{block}\n---\nAfter.", f"---schema\n```json\n{block}\n```\nAfter."):
        notes = parse_notes(f"Before.\n{text}")
        assert schemas(notes) == {
            "action": {"type": "string", "enum": ["add"]},
            "n": {"type": "integer"},
        }
        assert required(notes) == ["action"]
        assert notes.description == "Before.\nAfter."


def test_a_schema_block_may_be_a_whole_json_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    notes = parse_notes(f"---schema\n{json.dumps(schema, indent=1)}")
    assert schemas(notes) == {"a": {"type": "string"}}
    assert required(notes) == ["a"]


def test_a_reference_never_comes_out_of_a_schema_block() -> None:
    block = {"a": {"$ref": "http://127.0.0.1/x", "items": {"$ref": "#/b"}, "type": "array"}}
    assert "$ref" not in json.dumps(schemas(parse_notes(f"---schema\n{json.dumps(block)}")))


def test_a_broken_schema_block_is_a_problem_with_its_line_and_the_rest_counts() -> None:
    notes = parse_notes('Adds.\n---schema\n{"a": 1,\n "b" 2}\n---\nExample: add -> {}\nMore.')
    assert notes.problems == ("line 4: the ---schema block: Expecting ':' delimiter",)
    assert notes.description == "Adds.\nMore."
    assert notes.examples == (Example("add", {}),)


def test_a_schema_that_is_none_names_its_parameter() -> None:
    (problem,) = parse_notes('---schema\n{"a": {"type": "strang"}}').problems
    assert "'a'" in problem
    assert "strang" in problem


def test_examples_are_words_and_the_arguments_they_mean() -> None:
    notes = parse_notes(
        'Example: "what\'s the weather in Paris" -> {"city": "Paris"}\n'
        'Examples:\n- rain in Oslo → {"city": "Oslo"}\n* what now\nAnd more.'
    )
    assert notes.examples == (
        Example("what's the weather in Paris", {"city": "Paris"}),
        Example("rain in Oslo", {"city": "Oslo"}),
        Example("what now", {}),
    )
    assert notes.description == "And more."


def test_an_example_that_is_no_call_is_a_problem() -> None:
    notes = parse_notes("Example: hello -> [1]\nExample: x -> {oops}")
    assert notes.examples == ()
    assert [p.partition(":")[0] for p in notes.problems] == ["line 1", "line 2"]


def test_a_field_is_spoken_only_when_the_author_asks() -> None:
    assert parse_notes("Speak: message").spoken_field == "message"
    assert parse_notes("I speak: message boards are fun").spoken_field is None


def test_notes_without_parameters_may_say_so() -> None:
    notes = parse_notes("Does it. Parameters: none.")
    assert (notes.parameters, notes.problems) == ({}, ())


def test_hidden_characters_do_not_reach_the_description() -> None:
    assert parse_notes("a\u202eb\u200bc\x07\ud800d").description == "abc?d"


@given(st.text(max_size=400) | st.text("@param:-{}[]()\"',.\n ->schemaExamples1", max_size=200))
def test_any_notes_give_sound_schemas(text: str) -> None:
    notes = parse_notes(text)
    assert not HIDDEN.search(notes.description)
    for parameter in notes.parameters.values():
        Draft202012Validator.check_schema(dict(parameter.schema))
        json.dumps(dict(parameter.schema), allow_nan=False).encode()


@given(st.text(max_size=60))
def test_any_text_after_a_directive_is_survived(text: str) -> None:
    for head in ("@param ", "Parameters: ", "Example: ", "---schema\n", "Examples:\n- ", "Speak: "):
        for p in parse_notes(head + text).parameters.values():
            Draft202012Validator.check_schema(dict(p.schema))


@given(
    st.dictionaries(
        NAMES,
        st.tuples(st.sampled_from(["string", "integer", "number", "boolean"]), st.booleans()),
        min_size=1,
        max_size=6,
    )
)
def test_prose_that_is_written_out_is_read_back(told: dict[str, tuple[str, bool]]) -> None:
    items = (f"{n} ({'required' if need else 'optional'}, {t})" for n, (t, need) in told.items())
    notes = parse_notes(f"Does a thing. Parameters: {', '.join(items)}.")
    assert schemas(notes) == {name: {"type": t} for name, (t, _) in told.items()}
    assert required(notes) == [name for name, (_, need) in told.items() if need]
    assert notes.description == "Does a thing."


@given(st.text("ab \n", max_size=50))
def test_only_the_head_of_endless_notes_is_read(tail: str) -> None:
    notes = parse_notes("x" * MAX_NOTES_CHARS + tail)
    assert len(notes.description) <= MAX_NOTES_CHARS
    assert bool(notes.problems) == bool(tail)


@pytest.mark.parametrize("value", ["type", "enum"])
def test_a_list_without_an_end_in_a_schema_block_is_a_problem(value: str) -> None:
    block = {"a": {value: [f"v{n}" for n in range(1_000)]}}
    problems = parse_notes(f"---schema\n{json.dumps(block)}").problems
    assert any("'a': a list of over 256 values is too long" in problem for problem in problems)


def test_a_pattern_of_a_schema_block_is_not_compiled() -> None:
    block = {"a": {"type": "string", "pattern": "(a?)" * 1_250}}
    assert parse_notes(f"---schema\n{json.dumps(block)}").problems == ()
