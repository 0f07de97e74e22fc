"""Which calls stand on what was said: needless ones, unsaid names, and all that must be made."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.tool_spec import Example
from caal_node.grounding.call_grounds import (
    FIT,
    CallGrounds,
    CallSigns,
    language_of_tools,
    unique_words,
)
from caal_node.grounding.request_words import language_of, points_elsewhere

TIMES: Final = frozenset({"today", "tomorrow", "weekend", "friday", "six", "afternoon"})


def tool(name: str, description: str, *required: str, **properties: Any) -> Any:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


WEATHER: Final = tool("get_weather", "Current weather of a city.", "city", city={"type": "string"})
SHOPPING: Final = tool(
    "shopping_add", "Put things on the shopping list.", "items", items={"type": "array"}
)
LIGHTS: Final = tool("all_lights_off", "Switch off all of the lights in the house.")
MUSIC: Final = tool("play_music", "Play a song or an artist.", "query", query={"type": "string"})
SEARCH: Final = tool("web_search", "Search the web.", "query", query={"type": "string"})
MAIL: Final = tool("check_mail", "Tell the person of unread mail.")
MESSAGE: Final = tool(
    "send_message", "Send a text to a person.", "to", to={"type": "string"}, text={}
)
TOOLS: Final = (WEATHER, SHOPPING, LIGHTS, MUSIC, SEARCH, MAIL, MESSAGE)


def grounds(*said: str | Item, fit: float = 0.0) -> CallGrounds:
    items = [UserItem(one) if isinstance(one, str) else one for one in said]
    return CallGrounds(items, language_of_tools(TOOLS), TIMES, frozenset(), lambda name: fit)


def needless(
    *said: str | Item, call: Any, trusted: bool = False, fit: float = 0.0, **arguments: Any
) -> bool:
    return grounds(*said, fit=fit).is_needless(CallSigns(call, arguments, trusted))


def unsaid(*said: str | Item, call: Any = WEATHER, trusted: bool = False, **arguments: Any) -> Any:
    return grounds(*said).unsaid(CallSigns(call, arguments, trusted))


# -- what asks for no tool ---------------------------------------------------------------------


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        "who invented the telephone",
        "why do cats purr",
        "what's twelve times eleven",
        "what does photosynthesis mean",
        "tell me something funny",
        "do you ever sleep",
        "hi, how's it going",
        "thanks, that's all for now",
        "Hello there!",
    ],
)
def test_a_question_about_the_world_and_small_talk_call_nothing(said: str, trusted: bool) -> None:
    assert needless(said, call=WEATHER, trusted=trusted, city="London")
    assert needless(said, call=MAIL)


@pytest.mark.parametrize("said", ["how many people are at home", "where is the hoover"])
def test_a_call_without_values_is_made_for_a_model_that_calls_well(said: str) -> None:
    sensors = tool("presence", "State of all sensors.", on={"type": "boolean"})
    assert not needless(said, call=sensors, trusted=True)
    assert not needless(said, call=sensors, trusted=True, on=True)


@pytest.mark.parametrize(
    "said", ["order two pizzas", "could you book me a taxi", "feed the fish", "please mow the lawn"]
)
def test_a_small_model_does_not_do_what_its_tool_cannot(said: str) -> None:
    assert needless(said, call=SHOPPING, items=[said])
    assert not needless(said, call=SHOPPING, items=[said], trusted=True)


def test_a_verb_that_the_tools_author_wrote_is_what_the_tool_does() -> None:
    taxi = tool("book_taxi", "Book a taxi.", "to", to={"type": "string"})
    assert not needless("book me a taxi", call=taxi, fit=2.0, to="the airport")


@pytest.mark.parametrize("said", ["I'm bored", "my day was awful", "good night"])
def test_what_the_person_says_of_themselves_may_mean_a_tool_of_a_model_that_calls_well(
    said: str,
) -> None:
    assert needless(said, call=LIGHTS)
    assert not needless(said, call=LIGHTS, trusted=True)


def test_a_small_models_call_with_no_word_of_the_request_is_needless() -> None:
    assert needless("start the washing machine", call=MUSIC, query="next")
    assert not needless("start the washing machine", call=MUSIC, query="next", trusted=True)
    assert not needless("start the washing machine", call=MUSIC, query="washing machine")
    assert not needless("start the washing machine", call=MUSIC, query="next", fit=0.5)
    assert not needless("start the washing machine", call=LIGHTS)
    found = ResultItem("1", "recent_songs", '["Next to You"]')
    assert not needless(found, "start the washing machine", call=MUSIC, query="Next to You")
    assert not needless("do it in six", call=MUSIC, query="half past 17")


# -- what is made all the same -----------------------------------------------------------------


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        "it's too dark in the study",
        "we need flour and sugar",
        "dentist on Thursday at three",
        "I feel like some country music",
        "sorry, can you turn off the lamp",
        "am I busy tomorrow",
        "I'm freezing, make it warmer",
        "what have I got on Friday",
    ],
)
def test_other_words_than_the_tools_own_are_no_reason_to_leave_a_call_out(
    said: str, trusted: bool
) -> None:
    assert not needless(said, call=LIGHTS, trusted=trusted)


def test_shared_words_outweigh_how_a_request_begins() -> None:
    assert not needless("who invented the mail", call=MAIL, fit=FIT)
    assert needless("who invented the mail", call=MAIL, fit=FIT - 0.1)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        "wer hat das Telefon erfunden",
        "pourquoi le ciel est bleu",
        "kto napisał Hamleta",
        "谁写了哈姆雷特",
        "wie ist es draußen",
        "",
    ],
)
def test_nothing_is_left_out_where_another_language_is_spoken(said: str, trusted: bool) -> None:
    assert not needless(said, call=MAIL, trusted=trusted)
    assert unsaid(said, city="London", trusted=trusted) == ()


def test_nothing_is_left_out_where_tools_are_described_in_another_language() -> None:
    licht = tool("licht_aus", "Schaltet das Licht in einem Zimmer aus und ist für alle da.")
    said = [UserItem("who wrote Hamlet")]
    judged = CallGrounds(said, language_of_tools([licht]), TIMES, frozenset(), lambda name: 0.0)
    assert not judged.is_needless(CallSigns(licht, {}, trusted=False))


@pytest.mark.parametrize("trusted", [False, True])
def test_an_answer_to_the_agents_question_is_no_small_talk(trusted: bool) -> None:
    before: list[Item] = [UserItem("switch everything off"), AssistantItem("All of the lights?")]
    assert not needless(*before, "thanks", call=LIGHTS, trusted=trusted)
    assert unsaid(*before, "the usual one", city="London", trusted=trusted) == ()


def test_what_refers_to_an_earlier_turn_is_not_judged() -> None:
    earlier = [UserItem("put eggs on the list when I say so"), AssistantItem("All right.")]
    assert not needless(*earlier, "okay never mind the rest, do it now", call=SHOPPING)


@pytest.mark.parametrize(
    ("said", "call", "left_out"),
    [
        ("order them from the shop as well", WEATHER, True),
        ("cancel the first one", MESSAGE, True),
        ("buy the other one too", MUSIC, True),
        ("call her", MESSAGE, True),
        ("tell her the same", MESSAGE, False),
        ("switch it off", LIGHTS, False),
        ("play it again", MUSIC, False),
        ("order them from the shop as well", SEARCH, False),
    ],
)
def test_a_wish_that_means_something_said_before_is_judged_by_its_verb(
    said: str, call: Any, left_out: bool
) -> None:
    earlier = ("what is new in the shop", AssistantItem("A lamp and a song by Ida."))
    assert needless(*earlier, said, call=call, query="Ida", to="Ida") is left_out
    assert not needless(*earlier, said, call=call, trusted=True, query="Ida", to="Ida")


@pytest.mark.parametrize(
    ("said", "arguments", "left_out"),
    [
        ("what do her tickets cost", {"room": "hallway", "degrees": 20}, True),
        ("what do her tickets cost", {"to": "Ida", "text": "35 euros"}, False),
        ("who is it from", {"room": "hallway", "degrees": 20}, True),
        ("make it warmer there", {"room": "hallway", "degrees": 20}, False),
        ("what does it cost in the hallway", {"room": "hallway", "degrees": 20}, False),
    ],
)
def test_a_question_about_what_was_said_makes_no_call_of_which_nothing_was_said(
    said: str, arguments: dict[str, Any], left_out: bool
) -> None:
    earlier = ("read me my mail", AssistantItem("Ida has two tickets left."))
    heating = tool("set_temperature", "Set the heating of a room.", "room", "degrees")
    call = CallSigns(MESSAGE if "to" in arguments else heating, arguments, trusted=False)
    judge = grounds(*earlier, said)
    assert judge.is_needless(call) is left_out
    trusted = CallSigns(heating, arguments, trusted=True)
    assert not judge.is_needless(trusted)


def test_an_answer_to_a_question_is_not_judged_by_its_verb() -> None:
    asked = AssistantItem("Shall I send that or play it?")
    assert not needless("a song by Ida", asked, "order them", call=MUSIC, query="Ida")


@pytest.mark.parametrize("said", ["wake me at seven", "remind me to call the plumber"])
def test_waking_and_reminding_are_wishes_that_few_tools_do(said: str) -> None:
    alarm = tool("set_alarm", "Ring at a time of the day.", "time", time={"type": "string"})
    calendar = tool("add_event", "Put an event into the calendar.", "title", title={})
    assert needless(said, call=MESSAGE, to="Ida", text=said)
    assert not needless("wake me at seven", call=alarm, time="07:00")
    assert not needless("remind me to call the plumber", call=calendar, title="call the plumber")


def test_a_round_that_follows_a_result_is_not_judged() -> None:
    so_far: list[Item] = [CallItem("1", "web_search", "{}"), ResultItem("1", "web_search", "{}")]
    assert not needless("who wrote Hamlet", *so_far, call=MAIL)


@pytest.mark.parametrize("trusted", [False, True])
def test_a_tool_that_answers_anything_answers_questions(trusted: bool) -> None:
    assert not needless("who wrote Hamlet", call=SEARCH, query="who wrote Hamlet", trusted=trusted)
    assert needless("how are you", call=SEARCH, query="how are you")


CALCULATOR: Final = tool(
    "calculate", "Calculate a number.", "expression", expression={"type": "string"}
)
UNITS: Final = tool("convert_units", "Convert an amount.", "amount", amount={"type": "string"})
DAYS: Final = tool("days_between", "Count the days to a date.", "end", end={"type": "string"})


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    ("said", "call", "value"),
    [
        ("what's twelve times eleven", CALCULATOR, {"expression": "12 * 11"}),
        ("what is the square root of two", CALCULATOR, {"expression": "sqrt(2)"}),
        ("how many grams are in two pounds", UNITS, {"amount": "2 pounds"}),
        ("how many days until Christmas", DAYS, {"end": "Christmas"}),
    ],
)
def test_a_question_that_a_tool_is_there_for_is_its(
    said: str, call: Any, value: dict[str, str], trusted: bool
) -> None:
    assert not needless(said, call=call, trusted=trusted, **value)
    assert needless(said, call=WEATHER, city="London")


def test_a_tool_of_a_kind_does_not_answer_other_questions_about_the_world() -> None:
    assert needless("how many legs does a spider have", call=UNITS, amount="8 legs")
    assert needless("who invented the telephone", call=CALCULATOR, expression="1876")
    assert needless("what does sometimes mean", call=CALCULATOR, expression="1")


def test_a_call_of_a_model_that_calls_well_needs_no_shared_word_where_its_value_was_said() -> None:
    said = "who wrote Sonder"
    assert not needless(said, call=MUSIC, query="Sonder", trusted=True)
    assert needless(said, call=MUSIC, query="Sonder")


# -- places and persons that nobody named ------------------------------------------------------


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    "said",
    ["is it going to rain today", "how cold is it outside", "what's the forecast for Friday"],
)
def test_a_place_that_nobody_named_is_asked_for(said: str, trusted: bool) -> None:
    assert unsaid(said, city="London", trusted=trusted) == ("city",)


@pytest.mark.parametrize("city", ["today", "outside", "current location", "the city", ""])
def test_a_word_in_the_place_of_a_name_is_none_from_a_small_model(city: str) -> None:
    assert unsaid("is it going to rain today", city=city) == ("city",)
    assert unsaid("is it going to rain today", city=city, trusted=True) == ()


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("is it raining in bristol", "Bristol"),
        ("weather for Sevilla", "Seville"),
        ("what's the weather in the capital of France", "Paris"),
        ("is it warm where my sister lives", "Oslo"),
        ("how is the weather at my place", "Home"),
    ],
)
def test_a_place_that_was_said_or_paraphrased_is_believed(
    said: str, value: str, trusted: bool
) -> None:
    assert unsaid(said, city=value, trusted=trusted) == ()


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    "known",
    [
        SystemItem("Home city: Berlin"),
        ResultItem("1", "where_am_i", '{"city":"Berlin"}'),
        AssistantItem("It was warm in Berlin yesterday."),
    ],
)
def test_a_place_of_the_instructions_or_of_a_result_is_believed(known: Item, trusted: bool) -> None:
    assert unsaid(known, "is it going to rain", city="Berlin", trusted=trusted) == ()
    assert unsaid(known, "is it going to rain", city="Madrid", trusted=trusted) == ("city",)


def test_in_a_conversation_too_long_to_read_each_name_is_believed() -> None:
    long = AssistantItem("It was a long day. " * 2_000)
    assert unsaid(long, "is it going to rain", city="London") == ()


def test_a_short_name_is_heard_in_its_other_spelling() -> None:
    assert unsaid("tell mum dinner is ready", call=MESSAGE, to="Mom") == ()
    assert unsaid("tell them dinner is ready", call=MESSAGE, to="Robert") == ("to",)


def test_a_name_of_two_words_is_not_named_by_a_word_like_one_of_them() -> None:
    assert unsaid("is it raining now", city="New York") == ("city",)


def test_a_code_is_the_models_word_for_what_was_said() -> None:
    assert unsaid("is it warm on the island", city="LPA") == ()


def test_what_a_model_chooses_for_the_person_is_its_own_business() -> None:
    assert unsaid("play something relaxing", call=MUSIC, query="Weightless", trusted=True) == ()


def test_a_trusted_model_may_know_which_city_a_name_belongs_to() -> None:
    assert unsaid("will the Colosseum be wet today", city="Rome", trusted=True) == ()


# -- the words ---------------------------------------------------------------------------------


def test_a_shared_word_weighs_as_much_in_a_large_table_as_in_a_small_one() -> None:
    assert unique_words(1.2, 4) == pytest.approx(1.0, abs=0.01)
    assert unique_words(2.3, 14) == pytest.approx(1.0, abs=0.01)
    assert unique_words(0.0, 0) == 0.0


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("what is the weather in Porto", "en"),
        ("wie ist das Wetter in Hamburg", "de"),
        ("éteins la lumière du salon s'il te plaît", "fr"),
        ("kto napisał Hamleta", ""),
        ("", ""),
    ],
)
def test_a_language_is_known_by_its_small_words(text: str, language: str) -> None:
    assert language_of([text]) == language


def test_times_are_no_places() -> None:
    assert not points_elsewhere("will it rain in the afternoon", "en", TIMES)
    assert not points_elsewhere("is there a train around six", "en", TIMES)
    assert points_elsewhere("will it rain in the big apple", "en", TIMES)


_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text("ab9", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=1), inner),
    max_leaves=4,
)


def test_a_list_is_copied_from_an_example_as_a_name_is() -> None:
    given_ = {"to": "Bob", "tags": ["red", "Blue"]}
    call = CallSigns(MESSAGE, given_, trusted=False)
    assert grounds("send it").copied(call, [Example("write to Bob", given_)]) == ("to", "tags")


@given(_JSON, _JSON)
def test_an_example_may_hold_values_of_any_kind(shown: Any, value: Any) -> None:
    call = CallSigns(MESSAGE, {"to": "Bob", "text": value}, trusted=False)
    found = grounds("send it").copied(call, [Example("write", {"to": "Bob", "text": shown})])
    assert found in ((), ("to", "text"))


@given(st.text(max_size=200), st.text(max_size=40))
def test_any_words_can_be_read(said: str, value: str) -> None:
    for trusted in (False, True):
        assert needless(said, call=WEATHER, city=value, trusted=trusted) in (True, False)
        assert unsaid(said, city=value, trusted=trusted) in ((), ("city",))


@pytest.mark.parametrize("trusted", [False, True])
def test_a_pronoun_is_nobody_that_a_tool_could_reach(trusted: bool) -> None:
    earlier = (UserItem("is Ines at home"), AssistantItem("Yes, she is."))
    for said in (("text her that I'm late",), (*earlier, "text her that I'm late")):
        for to in ("You", "her"):
            assert unsaid(*said, call=MESSAGE, trusted=trusted, to=to, text="late") == ("to",)
        assert unsaid(*said, call=MESSAGE, trusted=trusted, to="Ines", text="late") in ((), ("to",))
    assert unsaid("text Ines", call=MESSAGE, trusted=trusted, to="Ines", text="hi") == ()
