"""Parameters are understood however an author writes them down."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from n8n.notes.directives import from_prose
from n8n.notes.parser import MAX_BLOCKS, parse_notes

CITY = {"city": ({"type": "string"}, True)}
BOTH = {**CITY, "days": ({"type": "integer"}, False)}
TOLD = {
    "city": ({"type": "string", "description": "which city"}, True),
    "days": ({"type": "integer", "default": 1}, False),
}


AN, ONE = {"default": "an"}, {"default": 1}


def parameters(text: str) -> dict[str, tuple[dict[str, Any], bool]]:
    return {name: (dict(p.schema), p.required) for name, p in parse_notes(text).parameters.items()}


@pytest.mark.parametrize(
    "text",
    [
        "Does it. Parameters: city (required, string), days (integer).",
        "Does it. Params: city (string, required), days (optional integer).",
        "Does it. Inputs: city: string, required; days: integer, optional.",
        "Does it. Arguments: city (string; required) and days (int).",
        "Does it. Args: city [required string], days [int]",
        "Does it. Required parameters: city (string). Optional parameters: days (integer).",
        "Does it.\nParameters:\n- city (required, string)\n- days (integer)",
        "Does it.\nParameters:\n  city: string (required)\n  days: integer (optional)\n\nDoes it.",
        "Does it.\n## Parameters\n* `city` (string, required)\n* `days` (integer)",
        "Does it.\n**Parameters:**\n1. **city** (string, required)\n2. **days** (integer)",
        "Does it.\n@param city string required\n@param {integer} days",
        "Does it.\n@param {string!} city\n@param {number} [days]".replace("number", "integer"),
        "Does it.\n@param city:string (required)\n@param days? integer",
        'Does it.\n---schema\n{"city": "string, required", "days": "integer"}\n---',
        'Does it.\n--- schema ---\n{"city": "string!", "days": {"type": "int"}}',
        'Does it.\n```schema\n{"city": {"type": "str", "required": true}, "days": "integer"}\n```',
        "Does it.\n---schema\ncity: string, required\ndays: integer\n---",
        "Does it. Takes: city (required, string), days (whole number).",
        "Does it.\nNeeds:\n- city (required, string)\n- days (integer)\nSpeak: message",
        "Does it.\n| Name | Type | Required |\n|---|---|---|\n| city | string | yes |\n"
        "| days | integer | no |",
        "Does it.\nInputs:\n\n| | |\n|:-|-:|\n| `city` | string, required |\n| days | integer |",
        "Does it.\n| Parameter | Art | Optional |\n| --- | --- | :-: |\n| city | Text | nein |\n"
        "| days | ganze Zahl | ✓ |",
        "Does it. Parameter: city (Pflicht, Text), days (wahlweise, Ganzzahl).",
        "Does it. Paramètres : city (obligatoire, texte), days (facultatif, nombre entier).",
        "Does it.\nParámetros:\n- city (texto, obligatorio)\n- days (opcional, entero)",
        "Does it.\nPflicht-Parameter: city (Zeichenkette). Optionale Parameter: days (Ganzzahl).",
    ],
)
def test_a_name_a_type_and_a_need_are_read_in_every_spelling(text: str) -> None:
    assert parameters(text) == BOTH
    assert parse_notes(text).problems == ()
    assert parse_notes(text).description.startswith("Does it.")
    assert "city" not in parse_notes(text).description


@pytest.mark.parametrize(
    "text",
    [
        "Parameters: city (required, string): which city, days (integer, default 1).",
        "Parameters:\n- city (string, required) - which city\n- days (integer, default: 1)",
        "Parameters:\n- city: string, required - which city\n- days: integer, defaults to 1",
        "@param {string} city - which city (required)\n@param {integer} [days=1]",
        "@param city string required which city\n@param days integer default 1",
    ],
)
def test_descriptions_and_defaults_are_read_in_every_spelling(text: str) -> None:
    assert parameters(text) == TOLD


@pytest.mark.parametrize(
    ("attributes", "schema"),
    [
        ("integer 1-7", {"type": "integer", "minimum": 1, "maximum": 7}),
        ("integer between 1 and 7", {"type": "integer", "minimum": 1, "maximum": 7}),
        ("number, min 0.5, max 2", {"type": "number", "minimum": 0.5, "maximum": 2}),
        ("number >= 3", {"type": "number", "minimum": 3}),
        ("one of on, off", {"type": "string", "enum": ["on", "off"]}),
        ("on|off", {"type": "string", "enum": ["on", "off"]}),
        (
            "string: on | off, default off",
            {"type": "string", "enum": ["on", "off"], "default": "off"},
        ),
        ("string[]", {"type": "array", "items": {"type": "string"}}),
        ("number, km/h", {"type": "number", "description": "km/h"}),
        ("Zahl 5-28", {"type": "number", "minimum": 5, "maximum": 28}),
        ("ganze Zahl von 5 bis 28", {"type": "integer", "minimum": 5, "maximum": 28}),
        ("Zahl, mindestens 5, höchstens 28", {"type": "number", "minimum": 5, "maximum": 28}),
        ("eins von an oder aus; Standard: an", {"type": "string", "enum": ["an", "aus"]} | AN),
        ("yes/no, default yes", {"type": "boolean", "default": True}),
        ("entier de 1 à 7, par défaut 1", {"type": "integer", "minimum": 1, "maximum": 7} | ONE),
    ],
)
def test_bounds_and_choices_are_read(attributes: str, schema: dict[str, Any]) -> None:
    assert parameters(f"Parameters: x ({attributes}).") == {"x": (schema, False)}


def test_a_comma_in_a_description_begins_no_parameter() -> None:
    text = "Parameters: city (string): the city, for example Paris, days (integer). More."
    found, rest = from_prose(text.removeprefix("Parameters: "))
    assert list(found) == ["city", "days"]
    assert found["city"].schema["description"] == "the city, for example Paris"
    assert rest == "More."


def test_what_a_workflow_answers_is_no_parameter() -> None:
    notes = parse_notes("Does it. Output parameters: forecast (string).")
    assert notes.parameters == {}
    assert "forecast" in notes.description


@pytest.mark.parametrize("text", ["Parameters: none.", "params: nothing", "Parameters:\n- none"])
def test_an_author_can_say_that_there_are_none(text: str) -> None:
    notes = parse_notes(text)
    assert (notes.parameters, notes.takes_nothing, notes.problems) == ({}, True, ())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Takes: 40 s", 40),
        ("takes: up to 2 minutes.", 120),
        ("Takes: 1-2 minutes", 120),
        ("Takes: 1.5 min (mostly)", 90),
        ("**Takes:** 40 seconds", 40),
        ("Does it. Takes: 40 s. Speak: message", 40),
        ("Dauert: bis zu 2 Minuten", 120),
        ("Durée : 40 secondes", 40),
        ("Parameters:\n- a (string)\nTakes: 40 s", 40),
        ("Parameters:\na (string)\nTakes: 40 s", 40),
    ],
)
def test_an_author_can_say_how_long_a_run_takes(text: str, seconds: float) -> None:
    assert (parse_notes(text).takes_s, parse_notes(text).problems) == (seconds, ())
    assert parse_notes("It takes: a while").takes_s is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("forever", None), ("0 s", None), ("city, days", None), ("99 min", 600), ("3 hours", 600)],
)
def test_a_time_that_is_none_is_a_problem(text: str, seconds: float | None) -> None:
    notes = parse_notes(f"Does it.\nTakes: {text}")
    assert notes.takes_s == seconds
    (problem,) = notes.problems
    assert problem.startswith("line 2: ")
    assert "`Takes:`" in problem
    assert (notes.description, notes.parameters) == ("Does it.", {})


def test_a_cell_may_hold_what_else_describes_a_parameter() -> None:
    head = "| Name | Type | Required | Default | Description |\n|---|---|:-:|---|---|\n"
    assert parameters(head + "| `days` | integer 1-7 | | 1 | number of days |") == {
        "days": (
            {"type": "integer", "minimum": 1, "maximum": 7, "default": 1}
            | {"description": "number of days"},
            False,
        )
    }
    assert parameters(head + "| unit | c\\|f | x | `c` | |") == {
        "unit": ({"type": "string", "enum": ["c", "f"], "default": "c"}, True)
    }


@pytest.mark.parametrize(
    "text",
    [
        "Returns:\n| Name | Type |\n|---|---|\n| temp | number |",
        "| Town | Code |\n|---|---|\n| Leeds | LDS |",
        "a | b\nc | d",
    ],
)
def test_another_table_stays_in_the_description(text: str) -> None:
    assert (parse_notes(text).parameters, parse_notes(text).description) == ({}, text)


@pytest.mark.parametrize("text", ["Needs: patience", "Does it. Expects: an API key of OpenWeather"])
def test_needs_that_are_no_parameters_stay_in_the_description(text: str) -> None:
    notes = parse_notes(text)
    assert (notes.parameters, notes.problems) == ({}, ())
    assert notes.description.split() == text.split()


def test_a_list_ends_where_its_marks_do() -> None:
    notes = parse_notes("Parameters:\n- city (string)\nNote: in Europe only.\nSpeak: message")
    assert list(notes.parameters) == ["city"]
    assert (notes.description, notes.spoken_field) == ("Note: in Europe only.", "message")
    unmarked = parse_notes("Parameters:\ncity: string\nspeak: boolean\nSpeak: message")
    assert list(unmarked.parameters) == ["city", "speak"]
    assert unmarked.spoken_field == "message"


@pytest.mark.parametrize("word", ["requierd", "optionl", "strng", "intger"])
def test_a_word_that_may_be_misspelt_is_asked_about(word: str) -> None:
    (problem,) = parse_notes(f"Does it.\nParameters: city ({word}).").problems
    assert problem.startswith(f"line 2: city: is `{word}` to say `")
    assert parse_notes("Parameters: city (Paris), days (weekdays).").problems == ()


def test_required_is_only_what_says_so() -> None:
    text = "Parameters: a, b (string), c (required), d (optional), e*, f?, g (must)"
    assert {n for n, (_, need) in parameters(text).items() if need} == {"c", "e", "g"}


@given(st.text("ab(),;:-[]{}*? .|1=requideftnsgo\n", max_size=300))
def test_any_list_of_parameters_is_survived(text: str) -> None:
    for head in ("Parameters: ", "Parameters:\n- ", "@param ", "---schema\n"):
        parse_notes(head + text)


def test_a_sentence_as_long_as_notes_may_be_is_read_at_once() -> None:
    import time

    units = ("a (required), ", "a: string, required, ", "a; ", "(", "a and b ", "x|y ", " ")
    units += ("Takes: a. ", "Paramters: a\n", "a (reqired), ", "? Example: ", "- a: strng\n", "|-")
    units += ("|a|b|\n|-|-|\n", "x -> {} ", "Parameter ", "optional ", "Needs: a (string)\n", "*")
    for head in ("Parameters: ", "", "Example: ", "|a|\n"):
        for unit in units:
            began = time.thread_time()
            parse_notes(head + unit * (20_000 // len(unit)) + "x")
            assert time.thread_time() - began < 1.0, (head, unit)


@pytest.mark.parametrize(
    "repeated", ["req (a) ", "string, (a) ", "a|b (a) :", "(a) , ", "((", "[{("]
)
def test_brackets_without_end_are_survived(repeated: str) -> None:
    text = "Does it.\nParameters: city " + repeated * 5_000
    assert parse_notes(text).description == "Does it."
    assert "city" in parameters(text)


def test_of_endless_schema_blocks_the_first_are_read() -> None:
    blocks = '---schema\n{"a": "string"}\n---\n' * MAX_BLOCKS + '---schema\n{"b": "string"}\n---'
    assert parameters(blocks).keys() == {"a"}
