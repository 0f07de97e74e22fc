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

FRAGMENTS = (
    "city",
    " (",
    ")",
    "required",
    ", ",
    ": ",
    "string",
    "1-7",
    "default ",
    "|",
    "\n",
    "->",
)
FRAGMENTS += ("{}", "Takes", "Speak: ", "Example: ", "---", "*", "oder ", "ganze Zahl", ". ", "- ")
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
    (problem,) = notes.problems
    assert problem.startswith("line 4: the ---schema block: it is not JSON at '2'")
    assert problem.endswith("is a quote, a comma, a value or a bracket missing?")
    assert notes.description == "Adds.\nMore."
    assert notes.examples == (Example("add", {}),)


@pytest.mark.parametrize(
    ("block", "at"), [('{"a": }', "'}'"), ('{"a": "string"', "its end"), ('{"a: 1}', "'\"'")]
)
def test_what_is_missing_in_a_schema_block_is_missed_where_it_is(block: str, at: str) -> None:
    (problem,) = parse_notes(f"Adds.\n---schema\n{block}").problems
    assert f"it is not JSON at {at}: is a quote" in problem


@pytest.mark.parametrize("block", ['{"a": "string",}', '{"a": {"type": "string",}}', '{"a": [1,]}'])
def test_a_comma_too_many_in_a_schema_block_is_named(block: str) -> None:
    (problem,) = parse_notes(f"Adds.\n---schema\n{block}\n---").problems
    assert problem.startswith("line 3: the ---schema block: it is not JSON at")
    assert problem.endswith("is there a comma too many?")


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


def test_a_line_may_hold_the_notes_as_a_whole() -> None:
    notes = parse_notes(
        "Tells the weather. Parameters: city (required). "
        'Example: rain in Oslo -> {"city": "Oslo. Takes: 9 s"}. Speak: message. Takes: 40 s.'
    )
    assert notes.description == "Tells the weather."
    assert notes.examples == (Example("rain in Oslo", {"city": "Oslo. Takes: 9 s"}),)
    assert (notes.spoken_field, notes.takes_s, notes.problems) == ("message", 40, ())


def test_notes_may_be_german_throughout() -> None:
    notes = parse_notes(
        "Stellt die Heizung.\nParameter:\n- raum (Pflicht, Text): welches Zimmer\n"
        "- grad (Pflicht, Zahl 5-28)\n"
        'Beispiel: stell das Bad auf 20 Grad -> {"raum": "Bad", "grad": 20}\n'
        "Sprich: das Feld meldung\nDauert: 40 Sekunden"
    )
    assert notes.description == "Stellt die Heizung."
    assert schemas(notes)["grad"] == {"type": "number", "minimum": 5, "maximum": 28}
    assert required(notes) == ["raum", "grad"]
    assert notes.examples[0].arguments == {"raum": "Bad", "grad": 20}
    assert (notes.spoken_field, notes.takes_s) == ("meldung", 40)
    assert parse_notes("Tut es. Parameter: keine.").takes_nothing


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Parametres: city (required, string)", "Parameters"),
        ("Paramters:\n- city (string)", "Parameters"),
        ("Does it. Required paramter: city (string)", "Parameter"),
        ("Exampel: rain -> {}", "Example"),
        ("Spaek: message", "Speak"),
        ("Take: 40 s", "Takes"),
        ("Beispeil: Regen -> {}", "Beispiel"),
    ],
)
def test_a_misspelt_heading_is_read_as_it_is_meant_and_told(text: str, meant: str) -> None:
    notes = parse_notes(f"Does it.\n{text}")
    (problem,) = notes.problems
    assert problem.startswith("line 2: ")
    assert problem.endswith(f"is read as `{meant}:`")
    assert notes.description.replace("Does it.", "").strip() == ""


@pytest.mark.parametrize(
    "text", ["Tasks: buy milk", "Documents: which (string)", "Speed: high", "Parapets: a (b)"]
)
def test_a_word_that_only_looks_like_a_heading_is_left_alone(text: str) -> None:
    assert (parse_notes(text).description, parse_notes(text).problems) == (text, ())


def test_an_example_that_is_no_call_is_a_problem() -> None:
    notes = parse_notes("Example: hello -> [1]\nExample: x -> {oops}")
    assert notes.examples == ()
    assert [p.partition(":")[0] for p in notes.problems] == ["line 1", "line 2"]


def test_a_field_is_spoken_only_when_the_author_asks() -> None:
    assert parse_notes("Speak: `message`.").spoken_field == "message"
    assert parse_notes("Speak: message").problems == ()
    assert parse_notes("I speak: message boards are fun").spoken_field is None


@pytest.mark.parametrize(
    ("text", "field"),
    [("the message field", "message"), ("field `words`", "words"), ("slowly and clearly", None)],
)
def test_more_than_a_field_behind_speak_is_a_problem(text: str, field: str | None) -> None:
    notes = parse_notes(f"Does it.\nSpeak: {text}")
    assert (notes.spoken_field, notes.description) == (field, "Does it.")
    (problem,) = notes.problems
    assert problem.startswith("line 2: `Speak:")


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


HEADS = ("@param ", "Parameters: ", "Parametres: ", "Example: ", "---schema\n", "Examples:\n- ")
HEADS += ("Speak: ", "Takes: ", "Needs: ", "Parameters:\n", "| Name | Type |\n|-|-|\n|")


@given(st.text(max_size=60) | st.lists(st.sampled_from(list(FRAGMENTS)), max_size=12).map("".join))
def test_any_text_after_a_directive_is_survived(text: str) -> None:
    for head in HEADS:
        for p in parse_notes(head + text).parameters.values():
            Draft202012Validator.check_schema(dict(p.schema))


KINDS = {"string": "Text", "integer": "ganze Zahl", "number": "Zahl", "boolean": "ja/nein"}


@given(
    st.dictionaries(
        NAMES,
        st.tuples(st.sampled_from(sorted(KINDS)), st.booleans(), st.none() | st.integers(-99, 99)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_a_list_and_a_table_say_the_same_in_either_language(
    told: dict[str, tuple[str, bool, int | None]], is_german: bool
) -> None:
    def kind(name: str) -> str:
        return KINDS[name] if is_german else name

    need = ("Pflicht", "wahlweise") if is_german else ("required", "optional")
    rows = ["| Name | Type | Required |\n|---|---|---|"]
    items = [("Parameter" if is_german else "Parameters") + ":"]
    for name, (t, is_needed, low) in told.items():
        bounds = f" {low}-{low + 5}" if low is not None and t in ("integer", "number") else ""
        rows.append(f"| {name} | {kind(t)}{bounds} | {need[not is_needed]} |")
        items.append(f"- {name} ({need[not is_needed]}, {kind(t)}{bounds})")
    table, listed = parse_notes("\n".join(rows)), parse_notes("\n".join(items))
    assert schemas(table) == schemas(listed)
    assert {n: s["type"] for n, s in schemas(table).items()} == {
        n: t for n, (t, *_) in told.items()
    }
    assert required(table) == required(listed) == [n for n, (_, need, _) in told.items() if need]


@given(
    st.text(st.characters(exclude_categories=("C", "Z")), max_size=40)
    | st.sampled_from(["=>", "->", "a -> b", "→ =>", "->{", "=> []x"]),
    st.dictionaries(NAMES, st.none() | st.booleans() | st.integers() | st.text(max_size=40)),
)
def test_an_example_that_is_written_out_is_read_back(said: str, arguments: dict[str, Any]) -> None:
    notes = parse_notes(f"Does it.\nExample: say {said} -> {json.dumps(arguments)}\nSpeak: message")
    assert [e.arguments for e in notes.examples] == [arguments]
    assert notes.spoken_field == "message"


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
