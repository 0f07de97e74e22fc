"""Example utterances: one notation wherever authors write them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.tool_spec import EXAMPLES_MAX, Example, examples_in, without_examples


def test_an_example_is_words_and_arguments() -> None:
    text = 'Set a timer.\n\nExample: five minutes for the tea -> {"minutes": 5, "label": "tea"}'
    assert examples_in(text) == (
        Example("five minutes for the tea", {"minutes": 5, "label": "tea"}),
    )


def test_quotes_round_the_words_and_a_dash_before_them_are_no_part_of_it() -> None:
    assert examples_in('- Example: "what time is it" -> {}') == (Example("what time is it", {}),)


def test_an_example_without_an_arrow_calls_without_arguments() -> None:
    assert examples_in("Example: stop the music") == (Example("stop the music", {}),)


def test_an_example_whose_json_is_broken_is_left_out() -> None:
    assert examples_in('Example: a -> {"b": }\nExample: c -> {"d": 1}') == (Example("c", {"d": 1}),)


def test_no_more_are_kept_than_help() -> None:
    assert len(examples_in("\n".join(f"Example: say {n}" for n in range(9)))) == EXAMPLES_MAX


def test_the_description_is_what_is_left() -> None:
    assert without_examples("What it does.\nExample: a -> {}\nMore.") == "What it does.\nMore."


@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    assert len(examples_in(text)) <= EXAMPLES_MAX
    without_examples(text)
