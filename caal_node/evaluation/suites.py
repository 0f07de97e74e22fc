"""The eight suites. Every utterance is written for them, and stands in no prompt and no example."""

from __future__ import annotations

from typing import Any, Final

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem
from caal_node.evaluation.case import (
    ABSENT,
    Case,
    ExpectedCall,
    ExpectedCalls,
    ExpectedCleanText,
    ExpectedSpeech,
    Right,
    Suite,
)

_ANY_LABEL: Final[dict[str, tuple[Any, ...]]] = {
    "label": (ABSENT, "", "timer", "kitchen", "kitchen timer")
}
"""Nobody said one; what says no more than that it is a timer does no harm."""


def _one(tool: str, **arguments: Any) -> ExpectedCalls:
    return ExpectedCalls((_calling(tool, **arguments),))


def _calling(tool: str, **arguments: Any) -> ExpectedCall:
    """A value that is a tuple holds all that are right."""
    right: dict[str, tuple[Any, ...]] = dict(_ANY_LABEL) if tool == "set_timer" else {}
    for name, value in arguments.items():
        right[name] = value if isinstance(value, tuple) else (value,)
    return ExpectedCall(tool, right)


def _room(name: str) -> tuple[str, ...]:
    return name, f"the {name}", f"{name} light"


def _asked(text: str, right: Right, **more: Any) -> Case:
    return Case(text, (UserItem(text),), right, **more)


def _answered(text: str, call: CallItem, output: str, *words: str, **more: Any) -> Case:
    """A turn whose call has been made: what is said now must hold what the tool gave."""
    said: tuple[Item, ...] = (
        UserItem(text),
        call,
        ResultItem(call.call_id, call.name, output, is_error=more.pop("is_error", False)),
    )
    return Case(text, said, ExpectedSpeech(words), **more)


_DAYS: Final = (ABSENT, 1, 2, 3)

TOOL_CALL: Final = Suite(
    "tool_call",
    "one request, one call",
    (
        _asked(
            "What will the weather be like in Helsinki?",
            _one("get_forecast", city="Helsinki", days=_DAYS),
            quick=True,
        ),
        _asked("Please set a timer for seven minutes.", _one("set_timer", minutes=7), quick=True),
        _asked(
            "Switch on the kitchen light.",
            _one("switch_light", room=_room("kitchen"), on=True),
            quick=True,
        ),
        _asked(
            "Put olive oil on my shopping list.",
            _one("add_to_list", list="shopping", things=["olive oil"]),
            quick=True,
        ),
        _asked(
            "Do I need an umbrella in Glasgow?", _one("get_forecast", city="Glasgow", days=_DAYS)
        ),
        _asked("I need forty minutes on the clock.", _one("set_timer", minutes=40)),
        _asked(
            "Could you turn on the lamp in the study?",
            _one("switch_light", room=_room("study"), on=True),
        ),
        _asked(
            "Add water the plants to my tasks.",
            _one("add_to_list", list="tasks", things=["water the plants"]),
        ),
        _asked(
            "Heating to comfort, twenty one degrees.",
            _one("set_heating", mode="comfort", celsius=21),
        ),
        _asked(
            "Book a table for two at the Golden Lion in York.",
            _one(
                "book_table",
                place=(
                    {"name": "Golden Lion", "city": "York"},
                    {"name": "the Golden Lion", "city": "York"},
                ),
                people=2,
            ),
        ),
    ),
)

TWO_CALLS: Final = Suite(
    "two_calls",
    "two requests in one breath",
    (
        _asked(
            "Turn off the light in the garage and set a timer for nine minutes.",
            ExpectedCalls(
                (
                    _calling("switch_light", room=_room("garage"), on=False),
                    _calling("set_timer", minutes=9),
                )
            ),
            quick=True,
        ),
        _asked(
            "How is the weather in Vienna, and how is it in Cairo?",
            ExpectedCalls(
                (
                    _calling("get_forecast", city="Vienna", days=_DAYS),
                    _calling("get_forecast", city="Cairo", days=_DAYS),
                )
            ),
            quick=True,
        ),
        _asked(
            "Put rice on the shopping list and switch on the bedroom light.",
            ExpectedCalls(
                (
                    _calling("add_to_list", list="shopping", things=["rice"]),
                    _calling("switch_light", room=_room("bedroom"), on=True),
                )
            ),
        ),
        _asked(
            "Set a timer for four minutes and another one for fifteen minutes.",
            ExpectedCalls((_calling("set_timer", minutes=4), _calling("set_timer", minutes=15))),
        ),
    ),
    required=False,
)

ABSTENTION: Final = Suite(
    "abstention",
    "nothing to call, so nothing is called",
    (
        _asked("Good morning, how are you?", ExpectedSpeech(), quick=True),
        _asked("What is the capital of Italy?", ExpectedSpeech(("Rome",)), quick=True),
        _asked("Thanks, that was all.", ExpectedSpeech(), quick=True),
        _asked("Can you order me a taxi?", ExpectedSpeech(), quick=True),
        _asked("Tell me a short joke.", ExpectedSpeech()),
        _asked("Why is the sky blue?", ExpectedSpeech()),
        _asked("Say hello to my grandmother.", ExpectedSpeech()),
        _asked("Play some jazz.", ExpectedSpeech()),
    ),
)

ARGUMENT_TYPES: Final = Suite(
    "argument_types",
    "numbers, booleans, enums, lists and objects arrive as such",
    (
        _asked(
            "Set a timer for two and a half minutes.", _one("set_timer", minutes=2.5), quick=True
        ),
        _asked(
            "Turn the light in the bathroom off.",
            _one("switch_light", room=_room("bathroom"), on=False),
            quick=True,
        ),
        _asked(
            "Add apples, bread and cheese to the shopping list.",
            _one("add_to_list", list="shopping", things=["apples", "bread", "cheese"]),
            quick=True,
        ),
        _asked(
            "Book a table for five at Bella Vista in Naples.",
            _one("book_table", place={"name": "Bella Vista", "city": "Naples"}, people=5),
            quick=True,
        ),
        _asked(
            "Put the heating to eco at seventeen and a half degrees.",
            _one("set_heating", mode="eco", celsius=17.5),
        ),
        _asked(
            "Give me the forecast of Madrid for the next three days.",
            _one("get_forecast", city="Madrid", days=3),
        ),
        _asked("A quarter of an hour on the timer, please.", _one("set_timer", minutes=15)),
        _asked(
            "Note two tasks: pay the rent, and fix the bike.",
            _one("add_to_list", list="tasks", things=["pay the rent", "fix the bike"]),
        ),
    ),
)

_FORECAST: Final = CallItem("call_1", "get_forecast", '{"city":"Tromso"}')

TOOL_RESULT: Final = Suite(
    "tool_result",
    "a tool has answered, and the person is told",
    (
        _answered(
            "What is the weather in Tromso?",
            _FORECAST,
            '{"city":"Tromso","sky":"snow","celsius":-11}',
            *("snow", "-11", "11", "eleven"),
            quick=True,
        ),
        _answered(
            "Set a timer for thirty minutes.",
            CallItem("call_1", "set_timer", '{"minutes":30}'),
            '{"started":true,"ends_at":"18:45"}',
            *("18:45", "6:45", "timer", "thirty", "30"),
            quick=True,
        ),
        _answered(
            "Book a table for two at Sole Mio in Turin.",
            CallItem(
                "call_1", "book_table", '{"place":{"name":"Sole Mio","city":"Turin"},"people":2}'
            ),
            '{"booked":true,"at":"19:30","code":"KX7"}',
            *("19:30", "7:30", "KX7", "booked"),
        ),
        _answered(
            "What is the weather in Bergen?",
            CallItem("call_1", "get_forecast", '{"city":"Bergen"}'),
            '{"kind":"timeout","message":"The weather service did not answer."}',
            is_error=True,
        ),
        Case(
            "A second question after an answer",
            (
                UserItem("What is the weather in Tromso?"),
                _FORECAST,
                ResultItem("call_1", "get_forecast", '{"sky":"snow","celsius":-11}'),
                AssistantItem("It snows in Tromso, at minus eleven degrees."),
                UserItem("And in Lisbon?"),
            ),
            _one("get_forecast", city="Lisbon", days=_DAYS),
        ),
    ),
)

REASONING: Final = Suite(
    "reasoning",
    "thinking is kept apart from speech",
    (
        _asked("What is two plus two?", ExpectedCleanText(), think=True, quick=True),
        _asked(
            "Anna is older than Ben, and Ben is older than Carl. Who is the oldest?",
            ExpectedCleanText(),
            think=True,
        ),
        _asked("How is the weather in Athens?", ExpectedCleanText(), think=True, stream=True),
    ),
)

STREAMING: Final = Suite(
    "streaming",
    "a streamed reply is the same: speech as it comes, calls whole",
    (
        _asked(
            "In one sentence, what is a rainbow?",
            ExpectedSpeech(in_pieces=True),
            stream=True,
            quick=True,
        ),
        _asked(
            "Set a timer for six minutes.", _one("set_timer", minutes=6), stream=True, quick=True
        ),
        _asked(
            "Turn on the light in the attic.",
            _one("switch_light", room=_room("attic"), on=True),
            stream=True,
        ),
        _asked("Good evening to you.", ExpectedSpeech(), stream=True),
    ),
)

TEXT_PROTOCOL: Final = Suite(
    "text_protocol",
    "asked by text, the reply has the form that was asked for",
    (
        _asked("Start a timer of three minutes.", _one("set_timer", minutes=3), quick=True),
        _asked("How do you do?", ExpectedSpeech(), quick=True),
        _asked(
            "Switch off the light in the hallway.",
            _one("switch_light", room=_room("hallway"), on=False),
        ),
        _asked("Who painted the Mona Lisa?", ExpectedSpeech()),
    ),
    required=False,
)

SUITES: Final = (
    TOOL_CALL,
    TWO_CALLS,
    ABSTENTION,
    ARGUMENT_TYPES,
    TOOL_RESULT,
    REASONING,
    STREAMING,
    TEXT_PROTOCOL,
)
VERSION: Final = 1
"""Of suites and pass marks. What an earlier version found is stale."""
