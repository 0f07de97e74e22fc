"""Every word of words.toml is understood where it stands, whatever its language."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import Any

import pytest

from n8n.notes.parameter import kind_of, meant, type_schema, words
from n8n.notes.parser import parse_notes

LANGUAGES = tomllib.loads((resources.files("n8n.notes") / "words.toml").read_text("utf-8"))


def schema(attributes: str) -> tuple[dict[str, Any], bool]:
    parameter = parse_notes(f"Parameters: x ({attributes}).").parameters["x"]
    return dict(parameter.schema), parameter.required


@pytest.mark.parametrize("kind", ["required", "optional"])
def test_a_need_is_understood(kind: str) -> None:
    for word in words(kind):
        assert schema(f"{word}, string") == ({"type": "string"}, kind == "required"), word
        assert schema(f"string, {word.upper()}") == ({"type": "string"}, kind == "required"), word


def test_a_type_is_understood() -> None:
    for word in words("types.*"):
        assert schema(word)[0] == dict(type_schema(word) or {}), word
        assert "description" not in schema(f"required {word}")[0], word


@pytest.mark.parametrize(("kind", "keyword"), [("minimum", "minimum"), ("maximum", "maximum")])
def test_a_bound_is_understood(kind: str, keyword: str) -> None:
    for word in words(kind):
        assert schema(f"integer, {word} 5")[0] == {"type": "integer", keyword: 5}, word


def test_a_range_is_understood() -> None:
    for begin in ("", *words("range")):
        for to in ("-", *words("to")):
            found = {"type": "integer", "minimum": 5, "maximum": 28}
            assert schema(f"integer {begin} 5 {to} 28")[0] == found, (begin, to)


def test_a_default_and_choices_are_understood() -> None:
    for word in words("default"):
        assert schema(f"integer, {word} 3")[0] == {"type": "integer", "default": 3}, word
    for word in words("one_of"):
        for either in words("or"):
            found = {"type": "string", "enum": ["on", "off"]}
            assert schema(f"{word} on {either} off")[0] == found, (word, either)


def test_a_heading_is_understood() -> None:
    for word in words("parameters"):
        assert "x" in parse_notes(f"{word.capitalize()}: x (string)").parameters, word
        assert "x" in parse_notes(f"## {word.upper()}\n- x (string)").parameters, word
        for none in words("none"):
            assert parse_notes(f"Does it. {word}: {none}.").takes_nothing, (word, none)
    for word in words("examples"):
        assert parse_notes(f"{word}: go -> {{}}").examples, word
        assert parse_notes(f"{word.capitalize()}:\n- go -> {{}}").examples, word
    for word in words("speaks"):
        assert parse_notes(f"{word}: message").spoken_field == "message", word
        for field in words("field"):
            assert parse_notes(f"{word}: {field} message").spoken_field == "message", field
    for word in words("accepts", "takes"):
        assert "x" in parse_notes(f"{word}: x (required)").parameters, word
    for word in words("results"):
        assert parse_notes(f"{word}:\n| Name | Type |\n|-|-|\n| a | string |").parameters == {}, (
            word
        )


def test_a_time_is_understood() -> None:
    seconds = {"seconds": 3, "minutes": 180, "hours": 600}
    for word in words("takes"):
        for unit in words("units.*"):
            for about in ("", *words("up_to")):
                kind = str(kind_of(unit, "units.*")).removeprefix("units.")
                text = f"{word}: {about} 3 {unit}"
                assert parse_notes(text).takes_s == seconds[kind], text


def test_a_column_is_understood() -> None:
    for name in words("columns.name"):
        for need in words("columns.need"):
            for yes in words("yes"):
                table = f"| {name} | {need} |\n|---|---|\n| city | {yes} |"
                (city,) = parse_notes(table).parameters.values()
                assert city.required is (kind_of(need, "optional") is None), (name, need, yes)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_word_means_two_things_of_one_parameter(language: str) -> None:
    kinds = ("required", "optional", "default", "minimum", "maximum", "types.*")
    told = [word for kind in kinds for word in set(words(kind))]
    assert len(told) == len(set(told))
    assert all(re.fullmatch(r"[^A-Z]+", w) for each in LANGUAGES[language].values() for w in each)


def test_only_a_word_with_the_same_beginning_is_taken_for_a_misspelt_one() -> None:
    assert meant("Paramters", "parameters") == "parameters"
    assert meant("parameters", "parameters") is None
    assert meant("erameters", "parameters") is None
    assert meant("", "parameters") is None
