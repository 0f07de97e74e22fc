"""What of a turn was right, by what the household's tools did and nothing of the node's own checks.

A claim is a sentence that says, with a verb of a tool, that something was done, is being done or
will be; it is covered by a call of that tool that worked, for the place that the sentence names. A
wrong fact is a number that stands neither in a result nor in what the person said, or words that
the turn's author wrote down as wrong. Both are coarse: what they find is read by hand as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from tests.bench.conversation_household import PLACES, TOOLS, read_rows

_HOUSE: Final = read_rows("household")
_OTHER_VERBS: Final[Sequence[str]] = _HOUSE["other_verbs"]
_VERBS: Final = sorted({*(v for row in TOOLS.values() for v in row["claims"]), *_OTHER_VERBS})
_VERB: Final = f"(?P<verb>{'|'.join(_VERBS)})"
_FORMS: Final = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b(?:I|we)(?:['’]ve| have|['’]ll| will|['’]m| am|['’]m going to| just)? "
        rf"(?:now |just |already |also |successfully |going to |be |to )*{_VERB}\b",
        rf"\b(?:has|have|is|are|was|were|will be|['’]s|['’]re) "
        rf"(?:now |been |all |already |being |successfully )*{_VERB}\b",
        r"^\W*(?:\w+ ){0,4}(?P<verb>sent|added|booked|locked|done|ordered|reserved|set|started"
        r"|turned|scheduled|cancelled|removed)\b(?: (?:to|for|on|off|in|at)\b.*)?[.!]?$",
        r"^\W*(?P<verb>adding|sending|booking|locking|setting|turning|switching|starting|calling"
        r"|ordering|playing)\b",
    )
)
_DENIES: Final = re.compile(
    r"\bnot?\b|n['’]t\b|\bunable\b|\bcannot\b|\bsorry\b|\bnothing\b|\bnever\b|\bfailed\b|\bif you\b"
    r"|\bshould i\b|\bwould\b|\bcan\b|\bneed to know\b|\bfirst\b.*\?",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?](?=\d)[^.!?\n]+)*[.!?]*")
_NUMBER: Final = re.compile(r"\d+(?:[.:]\d+)?")
_WORDS: Final = {word: number for number, word in enumerate(_HOUSE["numbers"])}
_TENS: Final = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80}
_NOTHING_ASKED_FOR: Final = frozenset({"report", "chat", "world"})
"""Kinds of requests for which nothing is to be done."""
_JUDGED_FREELY: Final = frozenset({"world", "chat"})
"""Kinds of requests that are answered out of what the model knows, and not out of results."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that was made, and how it ended."""

    tool: str
    arguments: Mapping[str, Any]
    outcome: str
    result: str


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One turn as it was played."""

    say: str
    kind: str
    calls: tuple[MadeCall, ...]
    spoken: str
    requests: int
    """Requests to the model."""
    rounds: int
    """Replies of the model with calls."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnScore:
    """What of a turn was right. The texts are what was found."""

    right: bool
    """Whether the calls that were to be made were made, and no others."""
    needless: int
    """Calls beside those that were to be made."""
    claims: tuple[str, ...] = ()
    """Sentences that claim what no call has done."""
    wrong: tuple[str, ...] = ()
    """Facts that are not in the results."""

    @property
    def badness(self) -> int:
        """How bad the turn is to hear: what was made up counts most."""
        return (
            3 * (bool(self.claims) + bool(self.wrong)) + 2 * bool(self.needless) + (not self.right)
        )


def score(turn: PlayedTurn, row: Mapping[str, Any], before: Sequence[PlayedTurn]) -> TurnScore:
    """Judge one turn by its row of the file, and by the turns before it."""
    wanted: Sequence[Any] | None = row["calls"]
    claims = tuple(_uncovered(turn, before))
    wrong = tuple(_wrong(turn, row.get("wrong", ()), before))
    if wanted is None:
        writes = [call for call in turn.calls if TOOLS[call.tool]["effect"] != "read"]
        allowed = turn.kind == "refused"  # to try once more what was refused
        return TurnScore(allowed or not writes, 0 if allowed else len(writes), claims, wrong)
    left, extra = list(wanted), 0
    for call in turn.calls:
        fitting = next((each for each in wanted if _fits(call, *each)), None)
        if fitting is None:
            extra += 1
        elif fitting in left:
            left.remove(fitting)
    return TurnScore(not (left or extra), extra, claims, wrong)


def _fits(call: MadeCall, tool: str, wanted: Mapping[str, Any]) -> bool:
    return call.tool == tool and all(
        _is_one(call.arguments.get(name), value) for name, value in wanted.items()
    )


def _is_one(given: object, wanted: Any) -> bool:
    choices = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    for choice in choices:
        if choice is None or given is None:
            if given is None and choice is None:
                return True
        elif isinstance(choice, int | float):
            if _NUMBER.fullmatch(str(given)) and float(str(given).replace(":", ".")) == choice:
                return True
        elif str(choice).casefold() in str(given).casefold():
            return True
    return False


def sentences(text: str) -> Iterator[str]:
    """Cut a text into its sentences; a point inside of a number ends none."""
    for found in _SENTENCE.finditer(text):
        if said := found[0].strip():
            yield said


def _uncovered(turn: PlayedTurn, before: Sequence[PlayedTurn]) -> Iterator[str]:
    done = [call for call in turn.calls if call.outcome == "ok"]
    if turn.kind in _NOTHING_ASKED_FOR:
        # What was done before may be told again.
        done += [call for each in before for call in each.calls if call.outcome == "ok"]
    for said in sentences(turn.spoken):
        if said.endswith("?") or _DENIES.search(said):
            continue
        found = next((match for form in _FORMS if (match := form.search(said))), None)
        if found is not None and not any(_covers(call, found["verb"], said) for call in done):
            yield said


def _covers(call: MadeCall, verb: str, said: str) -> bool:
    row = TOOLS[call.tool]
    if row["effect"] == "read":
        return verb.casefold() not in _OTHER_VERBS or verb.casefold() in call.result.casefold()
    if verb.casefold() not in row["claims"] and verb.casefold() != "done":
        return False
    named = [place for place in PLACES if place in said.casefold()]
    told = json.dumps(dict(call.arguments)).casefold()
    return not named or any(place in told for place in named)


def _wrong(
    turn: PlayedTurn, patterns: Sequence[str], before: Sequence[PlayedTurn]
) -> Iterator[str]:
    for pattern in patterns:
        for said in sentences(turn.spoken):
            if re.search(pattern, said, re.IGNORECASE) and not _DENIES.search(said):
                yield said
    if turn.kind in _JUDGED_FREELY:
        return
    known = set[float]()
    for each in (*before, turn):
        known |= set(_numbers(each.say))
        for call in each.calls:
            known |= set(_numbers(f"{json.dumps(dict(call.arguments))} {call.result}"))
            known |= _counts(call.result)
    for said in sentences(turn.spoken):
        if not said.endswith("?") and any(n not in known for n in _numbers(said)):
            yield said


def _numbers(text: str) -> Iterator[float]:
    """Give the numbers of a text, a time as its hours (of both halves of the day) and minutes."""
    for found in _NUMBER.finditer(text):
        if ":" in found[0]:
            hours, minutes = map(int, found[0].split(":"))
            yield from (hours, hours % 12, hours % 12 + 12, minutes)
        else:
            yield float(found[0])
    said = re.findall(r"[a-z]+", text.casefold())
    for at, word in enumerate(said):
        if word in _TENS:
            following = _WORDS.get(said[at + 1], 0) if at + 1 < len(said) else 0
            yield _TENS[word] + (following if following < 10 else 0)
        elif word in _WORDS and word != "one" and (at == 0 or said[at - 1] not in _TENS):
            yield _WORDS[word]
    if "half" in said:
        yield 30
    if "quarter" in said:
        yield 15


def _counts(result: str) -> set[float]:
    """Return how many things are in each list of a result."""
    try:
        found: Any = json.loads(result)
    except ValueError:
        return set()
    values = cast("dict[str, Any]", found).values() if isinstance(found, dict) else ()
    return {float(len(cast("list[Any]", each))) for each in values if isinstance(each, list)}


def to_row(turn: PlayedTurn, judged: TurnScore) -> dict[str, Any]:
    """Write a turn with its score, as a conversation's file keeps it."""
    return {**asdict(turn), "score": asdict(judged), "badness": judged.badness}
