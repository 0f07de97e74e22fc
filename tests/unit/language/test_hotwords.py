"""What speech recognition is told: names, few and short, each for a word that is not known yet."""

from __future__ import annotations

from typing import Any

from caal_node.language.hotwords import (
    CHARS_MAX,
    NAME_CHARS_MAX,
    TERMS_MAX,
    choices,
    hotwords,
)


def test_names_are_told_as_they_are_said() -> None:
    assert hotwords(["Lümmel", "boot_room", "Lina's room", " Sonos\nArc "]) == [
        "Lümmel",
        "boot room",
        "Lina's room",
        "Sonos Arc",
    ]


def test_a_name_of_words_that_are_told_already_is_left_out() -> None:
    names = ["kitchen", "Kitchen", "hall light", "kitchen light", "kitchen fan"]
    assert hotwords(names) == ["kitchen", "hall light", "kitchen fan"]


def test_sentences_numbers_and_addresses_are_no_names() -> None:
    names = ["yes please unlock the door", "21", "https://example.org", "", "_", "x" * 31, "a|b"]
    assert hotwords(names) == []


def test_however_many_names_there_are_few_are_told() -> None:
    short = hotwords(f"{chr(97 + n % 26)}{chr(97 + n // 26)}z" for n in range(600))
    assert len(short) == TERMS_MAX
    long = hotwords(f"{chr(97 + n)}".ljust(NAME_CHARS_MAX, "y") for n in range(26))
    assert len(long) == CHARS_MAX // NAME_CHARS_MAX


def test_a_schema_s_choices_are_found_in_values_and_in_lists() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "room": {"enum": ["scullery", 3, None]},
            "people": {"type": "array", "items": {"enum": ["Siobhan"]}},
            "text": {"type": "string"},
            "odd": True,
        },
    }
    assert list(choices(parameters)) == ["scullery", "Siobhan"]
    broken: list[dict[str, Any]] = [
        {"properties": []},
        {"properties": {"a": {"enum": 1, "items": 2}}},
    ]
    assert [list(choices(each)) for each in broken] == [[], []]
