"""Two conversations of twelve turns, the same for whoever holds them.

`DAY` is over the fifty tools of tests/stand_ins/fifty_tools.py, `EVENING` over others of
tests/stand_ins/many_tools.py. What was called is written with the exact arguments, and with the
words that a model would search the tool by where it is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Scripted:
    """One call of the script."""

    tool: str
    """Its server's name for it."""
    arguments: Mapping[str, Any]
    searched_by: str
    """What a model that has not been told of the tool looks for."""


@dataclass(frozen=True, slots=True)
class Turn:
    said: str
    calls: tuple[Scripted, ...]
    """One a round: the model makes each when it has the result of the one before."""
    answer: str


DAY: Final = (
    Turn(
        "Good morning, what is on my calendar today?",
        (Scripted("list_events", {"day": "2026-03-02"}, "calendar events of a day"),),
        "You have four entries today, and the first begins at half past nine.",
    ),
    Turn(
        "And what will the weather be like in Lyon?",
        (Scripted("get_forecast", {"place": "Lyon", "days": 1}, "weather forecast"),),
        "It stays dry in Lyon, with a light wind from the west.",
    ),
    Turn(
        "Turn on the kitchen lights, but not too bright.",
        (
            Scripted(
                "set_light", {"room": "kitchen", "on": True, "brightness": 40}, "lights in a room"
            ),
        ),
        "The kitchen lights are on at forty per cent.",
    ),
    Turn(
        "Thank you, that is much better.",
        (),
        "You are welcome.",
    ),
    Turn(
        "Is there anything new from Anna in my mail?",
        (
            Scripted("search_mail", {"query": "Anna", "unread_only": True}, "search mail"),
            Scripted("read_mail", {"message_id": "sea_07067"}, "read a mail"),
        ),
        "Anna asks whether you can move the meeting to Thursday afternoon.",
    ),
    Turn(
        "When are we both free on Thursday?",
        (
            Scripted(
                "find_free_time",
                {"people": ["anna@example.com"], "minutes": 60},
                "free time of people in the calendar",
            ),
        ),
        "You are both free from two to four in the afternoon.",
    ),
    Turn(
        "Then put it in at two o'clock and tell her.",
        (
            Scripted(
                "create_event",
                {"title": "Quarterly plan", "start": "2026-03-05T14:00:00+01:00"},
                "create a calendar event",
            ),
            Scripted(
                "send_mail",
                {"to": ["anna@example.com"], "subject": "Thursday", "body": "At two."},
                "send a mail",
            ),
        ),
        "It is in your calendar for Thursday at two, and Anna knows.",
    ),
    Turn(
        "How do I get to Lake Street by train?",
        (
            Scripted(
                "find_trains",
                {"origin": "Central", "destination": "Lake Street"},
                "train connections",
            ),
        ),
        "There are four connections, and the next one leaves in eleven minutes.",
    ),
    Turn(
        "Tell me more about the second one.",
        (),
        "The second one leaves at a quarter past ten and needs no change.",
    ),
    Turn(
        "Add milk and two loaves of bread to the shopping list.",
        (Scripted("add_to_shopping", {"articles": ["milk", "bread", "bread"]}, "shopping list"),),
        "Milk and two loaves of bread are on the list.",
    ),
    Turn(
        "How much have I spent on groceries this month?",
        (
            Scripted(
                "list_transactions",
                {"category": "groceries", "since": "2026-03-01"},
                "bank transactions by category",
            ),
        ),
        "You have spent a hundred and eighty euros on groceries so far.",
    ),
    Turn(
        "All right, play some quiet music in the study.",
        (Scripted("play_music", {"query": "quiet piano", "speaker": "study"}, "play music"),),
        "Quiet piano is playing in the study.",
    ),
)

EVENING: Final = (
    Turn(
        "Is the dishwasher done yet?",
        (Scripted("get_dishwasher_status", {}, "dishwasher status"),),
        "Not quite, it still needs a quarter of an hour.",
    ),
    Turn(
        "Then start the washing machine with the delicates programme at thirty degrees.",
        (
            Scripted(
                "start_washing_machine",
                {"programme": "delicates", "celsius": 30},
                "start washing machine",
            ),
        ),
        "The washing machine is running at thirty degrees.",
    ),
    Turn(
        "It is so dry here. Set the humidifier in the bedroom to fifty per cent.",
        (
            Scripted(
                "set_humidifier_level", {"room": "bedroom", "humidity": 50}, "humidifier level"
            ),
        ),
        "The humidifier in the bedroom keeps fifty per cent now.",
    ),
    Turn(
        "And the same in the nursery.",
        (
            Scripted(
                "set_humidifier_level", {"room": "nursery", "humidity": 50}, "humidifier level"
            ),
        ),
        "Fifty per cent in the nursery as well.",
    ),
    Turn(
        "How bad is the pollen in Bern today?",
        (Scripted("get_pollen_count", {"place": "Bern", "day": "2026-03-02"}, "pollen count"),),
        "It is moderate today, mostly hazel.",
    ),
    Turn(
        "And tomorrow?",
        (Scripted("get_pollen_count", {"place": "Bern", "day": "2026-03-03"}, "pollen count"),),
        "Tomorrow it is a little lower, as it rains.",
    ),
    Turn(
        "What a relief, I can hardly breathe as it is.",
        (),
        "I can imagine. Get well soon.",
    ),
    Turn(
        "Has the invoice from Baker and Sons come? Then mark it as paid.",
        (
            Scripted("find_invoices", {"query": "Baker and Sons"}, "find an invoice"),
            Scripted(
                "set_invoice_state",
                {"invoice_id": "fin_64368", "state": "paid"},
                "change the state of an invoice",
            ),
        ),
        "It came on Monday, and it is marked as paid now.",
    ),
    Turn(
        "Find me a vegetarian soup and put it on the plan for Friday.",
        (
            Scripted("search_recipes", {"query": "soup", "kind": "vegetarian"}, "search recipes"),
            Scripted(
                "plan_recipe",
                {"recipe_id": "sea_66855", "day": "2026-03-06"},
                "put a recipe into the plan",
            ),
        ),
        "Leek soup is on the plan for Friday.",
    ),
    Turn(
        "How long would that take me, roughly?",
        (),
        "About forty minutes, most of it on the stove.",
    ),
    Turn(
        "Note that I ran eight kilometres in forty-five minutes.",
        (Scripted("log_run", {"title": "Evening run", "amount": 8, "minutes": 45}, "log a run"),),
        "Eight kilometres in forty-five minutes are in your diary.",
    ),
    Turn(
        "That is all for today, good night.",
        (),
        "Good night.",
    ),
)

SCRIPTS: Final[Mapping[str, tuple[Turn, ...]]] = MappingProxyType({"day": DAY, "evening": EVENING})
