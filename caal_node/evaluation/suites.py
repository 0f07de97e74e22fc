"""What a model is tried with: cases, how a reply to one is judged, and the nine suites of them.

Every utterance is written for the suites, and stands in no prompt and no example.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from caal_node.context.pairing import INTERRUPTED
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem
from caal_node.reply_parser import Reply, ToolCall

# A case: what is said to a model, what a right reply is, and how one is judged.

SuiteName: TypeAlias = Literal[
    "tool_call",
    "two_calls",
    "abstention",
    "argument_types",
    "tool_result",
    "dialogue",
    "reasoning",
    "streaming",
    "text_protocol",
]

Asking: TypeAlias = Literal["native", "text"]
"""How tools are asked for: with the server's own tool calls, or by the text protocol."""
WAYS: Final[tuple[Asking, ...]] = ("native", "text")
WAY_NAMES: Final = {"native": "its server's own tool calls", "text": "the text protocol"}

ABSENT: Final = object()
"""Stands among a parameter's right values if it may also be left out."""

SHOWN_CHARS: Final = 80
"""Characters of a reply in a finding: enough to see what kind of reply it was."""
PIECES_FROM_CHARS: Final = 24
"""Characters. Shorter speech may come in one piece: some servers send several tokens at once."""
_MARKERS: Final = re.compile(
    r"</?think|<\|?/?tool|\[/?TOOL_|<function|```|\"(?:arguments|parameters)\"\s*:"
    r"|\"type\"\s*:\s*\"(?:tool_call|final_answer)",
    re.IGNORECASE,
)
"""Pieces of a call, of thinking or of a protocol, which no person should hear."""
_BLANKS: Final = re.compile(r"[\s,.\-_*^/'\"’]+")


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One call is expected: the tool, and the values that are right for each of its arguments."""

    tool: str
    arguments: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """These calls and no others are expected, in any order."""

    wanted: tuple[ExpectedCall, ...]


@dataclass(frozen=True, slots=True)
class ExpectedSpeech:
    """Speech without a call is expected. If there are `words`, one of them must be in it."""

    words: tuple[str, ...] = ()
    in_pieces: bool = False
    """Whether it must arrive as it is written, not all at once at its end."""


Right: TypeAlias = ExpectedCalls | ExpectedSpeech


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `said` goes behind the system prompt, and all the sample tools are offered."""

    name: str
    said: tuple[Item, ...]
    right: Right
    stream: bool = False
    think: bool = False
    """Whether thinking is on, where the server says that the model can think."""
    quick: bool = False
    """Whether the short run has it, too."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases of one ability."""

    name: SuiteName
    about: str
    cases: tuple[Case, ...]
    required: bool = True
    """Whether a model without it counts as not fit for tools."""

    def chosen(self, *, full: bool) -> tuple[Case, ...]:
        """Return the cases of the full run, or of the short one."""
        return self.cases if full else tuple(case for case in self.cases if case.quick)


def fault(right: Right, reply: Reply, pieces: int = 2) -> str:
    """Return what is wrong with `reply`, in a few words; "" if it is right.

    `pieces` is the number of parts in which its speech came.
    """
    if reply.problems:
        return "a call that cannot be made"
    if _MARKERS.search(reply.text):
        return f"spoke {_short(reply.text)}"
    if isinstance(right, ExpectedCalls):
        return _calls_fault(right.wanted, reply)
    return _speech_fault(right, reply, pieces)


def _speech_fault(right: ExpectedSpeech, reply: Reply, pieces: int) -> str:
    spoken = reply.text.strip()
    if reply.calls:
        return f"called {_names(reply.calls)}"
    if not spoken:
        return "said nothing"
    if right.words and not any(_says(spoken, word) for word in right.words):
        return f"said {_short(spoken)}"
    if right.in_pieces and pieces < 2 and len(spoken) >= PIECES_FROM_CHARS:
        return "its speech came in one piece"
    return ""


def _says(spoken: str, word: str) -> bool:
    """Return whether `word` is said as a word of its own: 14 is no 4."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", spoken, re.IGNORECASE) is not None


def _calls_fault(wanted: Sequence[ExpectedCall], reply: Reply) -> str:
    if not reply.calls:
        return f"called nothing, said {_short(reply.text)}" if reply.text.strip() else "no reply"
    left = list(reply.calls)
    for calling in wanted:
        named = [call for call in left if call.name == calling.tool]
        if not named:
            return f"called {_names(reply.calls)}"
        # Of the calls of that name the best is taken: where two share a tool, each has its own.
        faults = [(arguments_fault(calling.arguments, call.arguments), call) for call in named]
        worst, call = next((pair for pair in faults if not pair[0]), faults[0])
        if worst:
            return f"{calling.tool}: {worst}"
        left.remove(call)
    return f"also called {_names(left)}" if left else ""


def arguments_fault(right: Mapping[str, tuple[Any, ...]], given: Mapping[str, Any]) -> str:
    """Return the first argument that is missing, wrong, or not one of the tool's; "" if none is."""
    for name, values in right.items():
        if name not in given:
            if ABSENT not in values:
                return f"{name} is missing"
        elif not any(same(value, given[name]) for value in values if value is not ABSENT):
            return f"{name} is {_short(repr(given[name]))}"
    extra = next((name for name in given if name not in right), None)
    return f"{extra} was not said" if extra else ""


def same(wanted: Any, given: Any) -> bool:
    """Return whether two values are equal in value and kind.

    Texts are compared without regard to case, blanks and punctuation.
    """
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, int | float) and isinstance(given, int | float):
        return float(wanted) == float(given)
    if isinstance(wanted, str) and isinstance(given, str):
        return _plain(wanted) == _plain(given)
    if isinstance(wanted, list | tuple) and isinstance(given, list | tuple):
        one, other = cast("Sequence[Any]", wanted), cast("Sequence[Any]", given)
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(wanted, Mapping) and isinstance(given, Mapping):
        these, those = cast("Mapping[str, Any]", wanted), cast("Mapping[str, Any]", given)
        return these.keys() == those.keys() and all(same(these[key], those[key]) for key in these)
    return wanted is None and given is None


def _plain(text: str) -> str:
    return _BLANKS.sub("", text).casefold()


def _names(calls: Sequence[ToolCall]) -> str:
    return ", ".join(call.name for call in calls[:4])


def _short(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"


# The nine suites.

VERSION: Final = 2
"""The version of the suites and of their pass marks. What an earlier version found is stale."""


def _call(tool: str, **arguments: Any) -> ExpectedCall:
    """Make an expected call. A value that is a tuple holds all the values that are right."""
    right: dict[str, tuple[Any, ...]] = {}
    for name, value in arguments.items():
        right[name] = value if isinstance(value, tuple) else (value,)
    return ExpectedCall(tool, right)


def _timer(minutes: float) -> ExpectedCall:
    # Nobody says a label, but one that says no more than that it is a timer does no harm.
    label = (ABSENT, "", "timer", "kitchen", "kitchen timer")
    return _call("set_timer", label=label, minutes=minutes)


def _light(room: str, *, on: bool) -> ExpectedCall:
    return _call("switch_light", room=(room, f"the {room}", f"{room} light"), on=on)


def _forecast(city: str, days: Any = (ABSENT, 1, 2, 3)) -> ExpectedCall:
    return _call("get_forecast", city=city, days=days)


def _list(name: str, *things: str) -> ExpectedCall:
    return _call("add_to_list", list=name, things=list(things))


def _heating(mode: str, celsius: float) -> ExpectedCall:
    return _call("set_heating", mode=mode, celsius=celsius)


def _table(*names: str, city: str, people: int) -> ExpectedCall:
    places = tuple({"name": name, "city": city} for name in names)
    return _call("book_table", place=places, people=people)


def _calls(*wanted: ExpectedCall) -> ExpectedCalls:
    return ExpectedCalls(wanted)


def _asked(
    text: str, right: Right | ExpectedCall, *, before: tuple[Item, ...] = (), **more: Any
) -> Case:
    """Make a case of one thing that a person says, perhaps in a conversation that goes on."""
    if isinstance(right, ExpectedCall):
        right = ExpectedCalls((right,))
    return Case(text, (*before, UserItem(text)), right, **more)


def _quick(text: str, right: Right | ExpectedCall, **more: Any) -> Case:
    """Make a case that the short run has, too."""
    return _asked(text, right, quick=True, **more)


def _answered(text: str, call: CallItem, output: str, words: Sequence[str], **more: Any) -> Case:
    """Make a turn whose call has been made: one of `words`, which the tool gave, must be said."""
    is_error = more.pop("is_error", False)
    result = ResultItem(call.call_id, call.name, output, is_error=is_error)
    said: tuple[Item, ...] = (UserItem(text), call, result)
    return Case(text, said, ExpectedSpeech(tuple(words)), **more)


def _words(*words: str) -> ExpectedSpeech:
    return ExpectedSpeech(words)


_WEEKEND: Final[tuple[Item, ...]] = (
    UserItem("How will the weekend be in Malmo?"),
    CallItem("call_1", "get_forecast", '{"city":"Malmo","days":2}'),
    ResultItem(
        "call_1",
        "get_forecast",
        '{"city":"Malmo","days":[{"day":"Saturday","celsius":12},{"day":"Sunday","celsius":4}]}',
    ),
    AssistantItem("It will be twelve degrees on Saturday and four on Sunday."),
)
_BOOKED: Final[tuple[Item, ...]] = (
    UserItem("We would like to eat at Sole Mio in Turin, the two of us."),
    CallItem("call_1", "book_table", '{"place":{"name":"Sole Mio","city":"Turin"},"people":2}'),
    ResultItem("call_1", "book_table", '{"booked":true,"at":"19:30","code":"KX7"}'),
    AssistantItem("A table for two is booked at half past seven."),
)
_CUT_SHORT: Final[tuple[Item, ...]] = (
    UserItem("What will it be like outside in Turin?"),
    CallItem("call_1", "get_forecast", '{"city":"Turin"}'),
    ResultItem("call_1", "get_forecast", '{"sky":"fog","celsius":6}'),
    AssistantItem("In Turin it will be foggy, with"),
)
"""The person spoke into the answer."""
_STOPPED: Final[tuple[Item, ...]] = (
    UserItem("Book the Anchor in Bath for six."),
    CallItem("call_1", "book_table", '{"place":{"name":"Anchor","city":"Bath"},"people":6}'),
    ResultItem("call_1", "book_table", INTERRUPTED, is_error=True),
)
"""The person spoke before the call was over."""
_TROMSO: Final = CallItem("call_1", "get_forecast", '{"city":"Tromso"}')

SUITES: Final = (
    Suite(
        "tool_call",
        "one request, one call",
        (
            _quick("What will the weather be like in Helsinki?", _forecast("Helsinki")),
            _quick("Please set a timer for seven minutes.", _timer(7)),
            _quick("Switch on the kitchen light.", _light("kitchen", on=True)),
            _quick("Put olive oil on my shopping list.", _list("shopping", "olive oil")),
            _asked("Do I need an umbrella in Glasgow?", _forecast("Glasgow")),
            _asked("I need forty minutes on the clock.", _timer(40)),
            _asked("Could you turn on the lamp in the study?", _light("study", on=True)),
            _asked("Add water the plants to my tasks.", _list("tasks", "water the plants")),
            _asked("Heating to comfort, twenty one degrees.", _heating("comfort", 21)),
            _asked(
                "Book a table for two at the Golden Lion in York.",
                _table("Golden Lion", "the Golden Lion", city="York", people=2),
            ),
        ),
    ),
    Suite(
        "two_calls",
        "two requests in one breath",
        (
            _quick(
                "Turn off the light in the garage and set a timer for nine minutes.",
                _calls(_light("garage", on=False), _timer(9)),
            ),
            _quick(
                "How is the weather in Vienna, and how is it in Cairo?",
                _calls(_forecast("Vienna"), _forecast("Cairo")),
            ),
            _asked(
                "Put rice on the shopping list and switch on the bedroom light.",
                _calls(_list("shopping", "rice"), _light("bedroom", on=True)),
            ),
            _asked(
                "Set a timer for four minutes and another one for fifteen minutes.",
                _calls(_timer(4), _timer(15)),
            ),
        ),
        required=False,
    ),
    Suite(
        "abstention",
        "nothing to call, so nothing is called",
        (
            _quick("Good morning, how are you?", ExpectedSpeech()),
            _quick("What is the capital of Italy?", ExpectedSpeech(("Rome",))),
            _quick("Thanks, that was all.", ExpectedSpeech()),
            _quick("Can you order me a taxi?", ExpectedSpeech()),
            _asked("Tell me a short joke.", ExpectedSpeech()),
            _asked("Why is the sky blue?", ExpectedSpeech()),
            _asked("Say hello to my grandmother.", ExpectedSpeech()),
            _asked("Play some jazz.", ExpectedSpeech()),
        ),
    ),
    Suite(
        "argument_types",
        "numbers, booleans, enums, lists and objects arrive as such",
        (
            _quick("Set a timer for two and a half minutes.", _timer(2.5)),
            _quick("Turn the light in the bathroom off.", _light("bathroom", on=False)),
            _quick(
                "Add apples, bread and cheese to the shopping list.",
                _list("shopping", "apples", "bread", "cheese"),
            ),
            _quick(
                "Book a table for five at Bella Vista in Naples.",
                _table("Bella Vista", city="Naples", people=5),
            ),
            _asked(
                "Put the heating to eco at seventeen and a half degrees.", _heating("eco", 17.5)
            ),
            _asked(
                "Give me the forecast of Madrid for the next three days.", _forecast("Madrid", 3)
            ),
            _asked("A quarter of an hour on the timer, please.", _timer(15)),
            _asked(
                "Note two tasks: pay the rent, and fix the bike.",
                _list("tasks", "pay the rent", "fix the bike"),
            ),
        ),
    ),
    Suite(
        "tool_result",
        "a tool has answered, and the person is told",
        (
            _answered(
                "What is the weather in Tromso?",
                _TROMSO,
                '{"city":"Tromso","sky":"snow","celsius":-11}',
                ("snow", "-11", "11", "eleven"),
                quick=True,
            ),
            _answered(
                "Set a timer for thirty minutes.",
                CallItem("call_1", "set_timer", '{"minutes":30}'),
                '{"started":true,"ends_at":"18:45"}',
                ("18:45", "6:45", "timer", "thirty", "30"),
                quick=True,
            ),
            _answered(
                "Book a table for two at Sole Mio in Turin.",
                CallItem(
                    "call_1",
                    "book_table",
                    '{"place":{"name":"Sole Mio","city":"Turin"},"people":2}',
                ),
                '{"booked":true,"at":"19:30","code":"KX7"}',
                ("19:30", "7:30", "KX7", "booked"),
            ),
            _answered(
                "What is the weather in Bergen?",
                CallItem("call_1", "get_forecast", '{"city":"Bergen"}'),
                '{"kind":"timeout","message":"The weather service did not answer."}',
                (),
                is_error=True,
            ),
            Case(
                "A second question after an answer",
                (
                    UserItem("What is the weather in Tromso?"),
                    _TROMSO,
                    ResultItem("call_1", "get_forecast", '{"sky":"snow","celsius":-11}'),
                    AssistantItem("It snows in Tromso, at minus eleven degrees."),
                    UserItem("And in Lisbon?"),
                ),
                _calls(_forecast("Lisbon")),
            ),
        ),
    ),
    Suite(
        "dialogue",
        "what was said and found before is meant, also after an interruption",
        (
            _quick("Which of the two days will be colder?", _words("Sunday"), before=_WEEKEND),
            _quick("How will the weather be in that city?", _forecast("Turin"), before=_BOOKED),
            _quick("No, stop. I meant Turku.", _forecast("Turku"), before=_CUT_SHORT),
            _quick("Wonderful, thank you, that is all.", _words(), before=_BOOKED),
            _asked("What is the code of the booking?", _words("KX7"), before=_BOOKED),
            _asked(
                "So I stay in. Light on in the study, and forty five minutes on the timer.",
                _calls(_light("study", on=True), _timer(45)),
                before=_WEEKEND,
            ),
            _asked("Never mind, forget the weather.", _words(), before=_CUT_SHORT),
            _asked(
                "Not for six people, make that table for eight.",
                _table("Anchor", "the Anchor", city="Bath", people=8),
                before=_STOPPED,
            ),
        ),
        required=False,
    ),
    Suite(
        "reasoning",
        "it thinks, and what it says is the right answer without the thoughts",
        (
            _quick(
                "What is seventeen plus eight?",
                _words("25", "twenty-five", "twenty five"),
                think=True,
            ),
            _quick("Which day comes two days after Monday?", _words("Wednesday"), think=True),
            _quick("How is the weather in Athens?", _forecast("Athens"), think=True, stream=True),
            _asked(
                "I had nine eggs, dropped two of them and then bought six. How many have I now?",
                _words("13", "thirteen"),
                think=True,
            ),
            _asked(
                "A train leaves at nine and takes three hours. When does it arrive?",
                _words("12", "12:00", "twelve", "noon"),
                think=True,
                stream=True,
            ),
        ),
        required=False,
    ),
    Suite(
        "streaming",
        "a streamed reply is the same: speech as it comes, calls whole",
        (
            _quick(
                "In one sentence, what is a rainbow?", ExpectedSpeech(in_pieces=True), stream=True
            ),
            _quick("Set a timer for six minutes.", _timer(6), stream=True),
            _asked("Turn on the light in the attic.", _light("attic", on=True), stream=True),
            _asked("Good evening to you.", ExpectedSpeech(), stream=True),
        ),
    ),
    Suite(
        "text_protocol",
        "asked by text, the reply has the form that was asked for",
        (
            _quick("Start a timer of three minutes.", _timer(3)),
            _quick("How do you do?", ExpectedSpeech()),
            _asked("Switch off the light in the hallway.", _light("hallway", on=False)),
            _asked("Who painted the Mona Lisa?", ExpectedSpeech()),
        ),
        required=False,
    ),
)
