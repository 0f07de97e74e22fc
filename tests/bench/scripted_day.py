"""One conversation of twelve turns over fifty tools, the same for whoever holds it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tests.stand_in_model import Call, Reply


@dataclass(frozen=True, slots=True)
class Turn:
    said: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    """One a round: the model makes each when it has the result of the one before."""
    answer: str

    def reply(self, results: int, offered: Iterable[str], call_id: str) -> Reply:
        """What the model says once it has `results` results in this turn.

        `offered` are the names that the request offers; a tool may have a prefix there. `call_id`
        must be new in the conversation, as a real server's are: LiveKit pairs results by it.
        """
        if results >= len(self.calls):
            return [self.answer]
        name, arguments = self.calls[results]
        known = _offered(name, offered)
        # A layout that offers no tools in the follow-up cannot make a second round of calls.
        return [self.answer] if known is None else [Call(known, arguments, id=call_id)]


def _offered(name: str, offered: Iterable[str]) -> str | None:
    return next((each for each in offered if each == name or each.endswith(f"__{name}")), None)


DAY: Final = (
    Turn(
        "Good morning, what is on my calendar today?",
        (("list_events", {"day": "2026-03-02"}),),
        "You have four entries today, and the first begins at half past nine.",
    ),
    Turn(
        "And what will the weather be like in Lyon?",
        (("get_forecast", {"place": "Lyon", "days": 1}),),
        "It stays dry in Lyon, with a light wind from the west.",
    ),
    Turn(
        "Turn on the kitchen lights, but not too bright.",
        (("set_light", {"room": "kitchen", "on": True, "brightness": 40}),),
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
            ("search_mail", {"query": "Anna", "unread_only": True}),
            ("read_mail", {"message_id": "sea_41023"}),
        ),
        "Anna asks whether you can move the meeting to Thursday afternoon.",
    ),
    Turn(
        "When are we both free on Thursday?",
        (("find_free_time", {"people": ["anna@example.com"], "minutes": 60}),),
        "You are both free from two to four in the afternoon.",
    ),
    Turn(
        "Then put it in at two o'clock and tell her.",
        (
            ("create_event", {"title": "Quarterly plan", "start": "2026-03-05T14:00:00+01:00"}),
            ("send_mail", {"to": ["anna@example.com"], "subject": "Thursday", "body": "At two."}),
        ),
        "It is in your calendar for Thursday at two, and Anna knows.",
    ),
    Turn(
        "How do I get to Lake Street by train?",
        (("find_trains", {"origin": "Central", "destination": "Lake Street"}),),
        "There are four connections, and the next one leaves in eleven minutes.",
    ),
    Turn(
        "Tell me more about the second one.",
        (),
        "The second one leaves at a quarter past ten and needs no change.",
    ),
    Turn(
        "Add milk and two loaves of bread to the shopping list.",
        (("add_to_shopping", {"articles": ["milk", "bread", "bread"]}),),
        "Milk and two loaves of bread are on the list.",
    ),
    Turn(
        "How much have I spent on groceries this month?",
        (("list_transactions", {"category": "groceries", "since": "2026-03-01"}),),
        "You have spent a hundred and eighty euros on groceries so far.",
    ),
    Turn(
        "All right, play some quiet music in the study.",
        (("play_music", {"query": "quiet piano", "speaker": "study"}),),
        "Quiet piano is playing in the study.",
    ),
)
