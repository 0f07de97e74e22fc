"""Checks the clauses of an answer against the results of its turn.

Only an answer for which tools ran is judged, and in it only what states something: questions,
offers and suppositions pass. What a result rules out is corrected: the opposite of a state, the
wrong half of the day. Where the results have nothing to tell, failed, or are about something else,
one honest sentence replaces the first clause that tells something, and the later ones are dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from caal_node.core.items import AssistantItem, Item, SystemItem, UserItem
from caal_node.core.prompt_files import sentence
from caal_node.grounding.claim_check import NotDone, Say, SpokenCheck
from caal_node.grounding.ledger import (
    NAMED_CHARS,
    Elsewhere,
    Ledger,
    LedgerEntry,
    elsewhere,
    is_unrelated,
    kind_of,
    looks_up,
)
from caal_node.grounding.quantities import Figure, Stated, stated_in
from caal_node.grounding.request_words import language_of
from caal_node.grounding.spoken_numbers import WORDS, listed, stemmed
from caal_node.grounding.spoken_times import HALF_DAY, Day, Time, hours_of, weekday_of
from caal_node.grounding.stated_facts import StatedStates, StatedUnits
from caal_node.policy.heard_words import COMMON, QUESTIONS, stem, stems, words

# Whether the names in a clause stand in the results or were said by the person.

_TOKEN: Final = re.compile(r"[^\W_](?:[^\W_]|['’.-](?=[^\W_]))*")
_BEGINS: Final = re.compile(
    r"(?:^|(?<!\b[A-Z])(?<!\b[DM]r)(?<!\bMrs)(?<!\bSt)[.!?:;…|]|\n)[\s\"'“”‘’*#•>_()\[\]-]*(?:\d+[.)]\s*)?[*_\"“]*$"
)
"""What stands before a word that has its capital letter for its place."""
_BEFORE_CHARS: Final = 16
_COUNTRIES: Final = listed("countries")
_NO_NAMES: Final = (
    listed("capitalised") | {*WORDS["months"], *WORDS["weekdays"]} | listed("greetings")
)
_ALIKE: Final = 4
"""Letters in which two words must begin alike to be one name: Lisbon and Lisboa."""
_HEADING_WORDS: Final = 3


def folded(word: str) -> str:
    """Return a word without accents, as speech recognition and models often drop them."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word)
    return "".join(one for one in decomposed if not unicodedata.combining(one))


class StatedNames:
    """Holds the names of clauses against the words that were read and heard."""

    def __init__(self, known: Iterable[str]) -> None:
        """`known` are the stems of all words of results, calls and people."""
        self._known = frozenset(map(folded, known))
        self._beginnings = {word[:_ALIKE] for word in self._known if len(word) >= _ALIKE}
        self._has_country = not _COUNTRIES.isdisjoint(self._known)

    def unknown_in(self, clause: str) -> list[tuple[int, int]]:
        """Return the characters of each name that is known from nowhere."""
        tokens = list(_TOKEN.finditer(clause))
        written = [token for token in tokens if token[0][0].isalpha()]
        if len(written) >= _HEADING_WORDS and all(token[0][0].isupper() for token in written):
            return []  # A heading has capital letters on whatever words.
        return [
            token.span()
            for token in tokens
            if _is_name(token[0])
            and (
                _is_code(token[0])
                or not _BEGINS.search(clause, max(0, token.start() - _BEFORE_CHARS), token.start())
            )
            and not self._is_known(token[0])
        ]

    def _is_known(self, name: str) -> bool:
        parts = [folded(part) for part in words(name) if part != "s"]
        if any(part in _COUNTRIES for part in parts) and not self._has_country:
            return True
        return all(
            len(part) < 2
            or part in _NO_NAMES
            or stem(part) in self._known
            or part in self._known
            or (len(part) >= _ALIKE and part[:_ALIKE] in self._beginnings)
            for part in parts
        )


def _is_code(token: str) -> bool:
    """Say whether a token has letters and digits, as "A17", so that it is no common word."""
    return token[0].isupper() and any(one.isdigit() for one in token)


def _is_name(token: str) -> bool:
    return token[0].isupper() or (token[0].isdigit() and any(c.isupper() for c in token[1:]))


# The figures, times and dates that may be told besides what a turn's results have.
#
# What was said, asked for or found earlier is only searched for a clause's own values, and not read
# for what it states: that would take 50 ms of a dense text of 8,000 characters.

HOURS: Final = 12
"""Hours of a clock's face."""
TOLD_CHARS: Final = 16_384
"""Characters that are searched, some 3 ms. Where there are more, everything may have been told."""

_CLOCK: Final = re.compile(
    r"(?<![\d:])(\d{1,2}):(\d\d)(?!\d)(?::\d\d)?\s?(?:([ap])\.?m)?", re.IGNORECASE
)


class ToldValues:
    """Texts, in which the values of clauses are looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        kept, left = list[str](), TOLD_CHARS
        for text in texts:
            left -= len(text)
            if left < 0:
                break
            kept.append(text)
        self.is_whole: Final = left >= 0
        """Whether all of it is searched."""
        self.words: Final = frozenset[str]().union(*map(stems, kept))
        """The stems of all words."""
        self.text: Final = "\n".join(kept)
        self._digits: Final = "".join(filter(str.isdigit, self.text))

    def has_unknown(self, clause: str) -> bool:
        """Return whether a clause states a figure, time, date or number that was told nowhere."""
        if not self.is_whole:
            return False
        stated = stated_in(clause)
        return (
            any(not self._has_figure(clause, figure) for figure in stated.figures)
            or any(time.is_sure and not self.has_time(clause, time) for time in stated.times)
            or any(not self.has_day(day) for day in stated.days)
            or any(code.digits not in self._digits for code in stated.codes)
        )

    def has_time(self, clause: str, time: Time) -> bool:
        """Return whether a time of the clause may have been told."""
        hour, minute = divmod(time.minute, 60)
        if not self.is_whole:
            return True
        if not minute:
            return any(str(each) in self.words for each in hours_of(hour))
        told = _CLOCK.finditer(self.text)
        return any(int(each[2]) == minute and _may_be(each, hour) for each in told)

    def has_day(self, day: Day) -> bool:
        """Return whether a date or a weekday may have been told."""
        if not self.is_whole:
            return True
        if day.weekday is not None and not day.month:
            return stem(WORDS["weekdays"][day.weekday]) in self.words
        return str(day.day) in self.words

    def _has_figure(self, clause: str, figure: Figure) -> bool:
        if figure.unit is not None and figure.unit.dimension == "any":
            return True
        parts = f"{abs(figure.value):g}".split(".")
        return self.words.issuperset(parts) or self._has_words(clause[figure.start : figure.end])

    def _has_words(self, said: str) -> bool:
        return stems(said) <= self.words


def _may_be(told: re.Match[str], hour: int) -> bool:
    """Return whether a time that was told by a clock may be of this hour of 24."""
    said = int(told[1])
    if told[3]:
        return said % HOURS + HOURS * (told[3] in "pP") == hour
    if said > HOURS or told[1][0] == "0":
        return said == hour
    return said % HOURS == hour % HOURS


# Puts a time of day right that has the wrong half of the day, weekday or zone.
#
# Small models read `2026-03-03T06:32:00+09:00` and say "6:32 PM on Wednesday, Pacific time". Only
# what a result rules out is corrected: a time twelve hours off one of the results, another weekday
# than that of their only date, and a time zone that neither they nor anybody's words mention.

FOUND_CHARS: Final = 1_500
"""Characters of results that are read, 10 ms at most, once an answer. Where there are more, nothing
is corrected, as what is not read may have it."""
_OFFSET: Final = re.compile(r"\b(?:UTC|GMT) ?([+\-−])(\d{1,2})(?::(\d\d))?", re.IGNORECASE)
_WRITTEN_OFFSET: Final = re.compile(r"[+-](\d\d):?(\d\d)\b")
_ZONE: Final = re.compile(
    r",? ?\bin (?:the )?(?P<name>[A-Z][a-z]+(?: [A-Z][a-z]+){0,2}) [Tt]ime(?: [Zz]one)?\b"
)
_BRACKETS: Final = re.compile(r",? ?\([^()]{0,20}$")
_CLOCK_CHANGES: Final = frozenset(map(stem, ("standard", "daylight", "summer", "winter", "local")))
"""Words of a zone's name that are not its place."""


class StatedTimes:
    """Holds the times of clauses against those of a turn.

    Args:
        results: The texts of the turn's results.
        told: What else may rightly be told: arguments, earlier results, what was said.
    """

    def __init__(self, results: Iterable[str], told: ToldValues) -> None:
        self._results: Final = "\n".join(results)
        self._told: Final = told

    @cached_property
    def _found(self) -> Stated:
        return stated_in(self._results)

    def rightly(self, clause: str) -> str:
        """Return the clause with its times corrected."""
        if len(self._results) > FOUND_CHARS:
            return clause
        stated = stated_in(clause)
        if not (stated.times or stated.days) or not (self._found.times or self._found.days):
            return clause
        changes = [*self._halves(clause, stated), *self._weekday(clause, stated)]
        changes += self._zones(clause)
        for start, end, right in sorted(changes, reverse=True):
            clause = f"{clause[:start]}{right}{clause[end:]}"
        return clause

    def _halves(self, clause: str, stated: Stated) -> Iterator[tuple[int, int, str]]:
        for time in stated.times:
            opposite = {
                one.minute for one in self._found.times if abs(one.minute - time.minute) == HALF_DAY
            }
            if not (opposite and time.is_sure and time.half_known):
                continue
            if any(map(time.is_same, self._found.times)) or self._told.has_time(clause, time):
                continue
            if right := _in_other_half(clause[time.start : time.end], opposite.pop()):
                yield time.start, time.end, right

    def _weekday(self, clause: str, stated: Stated) -> Iterator[tuple[int, int, str]]:
        """Yield the weekday of the results' only date in place of another one."""
        known = {weekday_of(day) for day in self._found.days}
        if len(known) != 1 or [bool(day.month) for day in stated.days] != [False]:
            return
        if any(figure.number.ordinal for figure in stated.figures):
            return  # "Monday, the 16th" may have both wrong
        (day,), (right,) = stated.days, known
        if right is None or day.weekday == right or self._told.has_day(day):
            return
        name = WORDS["weekdays"][right].capitalize()
        yield day.start, day.start + len(words(clause[day.start :])[0]), name

    def _zones(self, clause: str) -> Iterator[tuple[int, int, str]]:
        mentioned = f"{self._results}\n{self._told.text}"
        for match in _OFFSET.finditer(clause):
            sign = "+" if match[1] == "+" else "-"
            offset = f"{sign}{match[2]:0>2}{match[3] or '00'}"
            written = _WRITTEN_OFFSET.finditer(mentioned)
            if any(f"{one[0][0]}{one[1]}{one[2]}" == offset for one in written):
                continue
            opening = _BRACKETS.search(clause, 0, match.start())
            closing = clause.find(")", match.end())
            if opening and closing >= 0:
                yield opening.start(), closing + 1, ""
        known = frozenset(map(stem, words(mentioned)))
        for match in _ZONE.finditer(clause):
            place = frozenset(map(stem, words(match["name"]))) - _CLOCK_CHANGES
            if place and place.isdisjoint(known):
                yield match.start(), match.end(), ""


def _in_other_half(written: str, minute: int) -> str | None:
    """Return the time as it was written, in the half of the day of `minute`."""
    hour, minutes = divmod(minute, 60)
    lower = written.lower()
    if "am" in lower or "pm" in lower or ".m" in lower:
        half = "AM" if hour < HOURS else "PM"
        return f"{(hour + 11) % 12 + 1}:{minutes:02} {half}"
    # "9:30 in the evening" has its hour right: what is wrong is written behind it.
    is_24_hours = lower[:2].isdecimal() and (lower[0] == "0" or int(lower[:2]) > HOURS)
    return f"{hour:02}:{minutes:02}" if is_24_hours else None


KNOWN_CHARS: Final = 3_000
"""Characters of earlier results, and of what was said before, that are read, the newest of each:
three minutes of speech."""
CLAUSE_CHARS: Final = 400
"""Characters of a clause that is judged; a longer one is no clause, and is let through."""
LANGUAGE: Final = "en"
"""The language of `prompts/stated_facts.toml`. Figures of another one are written otherwise."""
_OWN_WORDS: Final = listed("own_words")
_OFFER: Final = re.compile(
    rf"\W*(?:(?:and|but|so|or|then)\s+)?(?:{'|'.join(map(re.escape, WORDS['offers']))})",
    re.IGNORECASE,
)
_ANSWER: Final = re.compile(r"(?:(?<!\W)\W++)?(?:yes|no|yeah|nope)\b[,.!:]\s*", re.IGNORECASE)
_NOT_RUN: Final = frozenset({"pending", "refused", "dry_run"})
"""States of calls of which other words tell than those of results."""
_ALL_WELL: Final = listed("all_well")
_NOTHING: Final = listed("nothing")
_STATING: Final = listed("stating")
_THERE_IS: Final = re.compile(
    r"\b(?:there(?:['’]s| is| are| was| were)|you(?:['’]ve| have)(?: got)?)\s+"
    r"(?:a|an|some|several|many|one|two|three|four|five|six|seven|eight|nine|ten|\d+)\b",
    re.IGNORECASE,
)
_SUPPOSING: Final = listed("supposing")
_DENYING: Final = stemmed("nothing") - stemmed("also_states")
_TIME_WORDS: Final = stemmed("time_words")
_COMMON: Final = COMMON | stemmed("stating") | _TIME_WORDS | {stem("new"), stem("any")}


def fact_check(ledger: Callable[[], Ledger], known: Iterable[str] = ()) -> SpokenCheck:
    """Return the check of one answer.

    Args:
        ledger: It gives the turn's calls. From the moment at which the answer makes calls itself,
            and it gives another ledger, nothing is judged: they have no results yet.
        known: Other texts whose facts may be told again, the most important last.
    """
    return _FactCheck(ledger, tuple(known))


def told_in(items: Sequence[Item]) -> list[str]:
    """Return what a conversation has told besides calls and results, the instructions last."""
    spoken = [item.text for item in items if isinstance(item, UserItem | AssistantItem)]
    return [*spoken, *(item.text for item in items if isinstance(item, SystemItem))]


class _FactCheck:
    def __init__(self, ledger: Callable[[], Ledger], known: Sequence[str]) -> None:
        self._ledger_now = ledger
        self._known = known
        self._is_sorry = False
        """Whether the honest sentence was said."""

    def check(self, clause: str) -> Say | NotDone:
        """Say what is spoken of `clause`."""
        if not self._ledger.turn or len(clause) > CLAUSE_CHARS or _states_nothing(clause):
            return Say(clause)
        if not _is_readable(f"{self._ledger.request} {clause}"):
            return Say(clause)
        if self._ledger_now() is not self._ledger:
            return Say(clause)
        if any(entry.by_server or entry.state in _NOT_RUN for entry in self._ledger.turn):
            return Say(clause)
        if not self._found:
            looked_up = all(map(looks_up, self._ledger.turn))
            return self._without_results(clause) if looked_up else Say(clause)
        if self._unrelated and not self._unrelated.isdisjoint(stems(clause)):
            return self._not_found(clause)
        if self._elsewhere is not None and self._speaks_of_asked(clause, self._elsewhere):
            other = self._elsewhere
            return self._instead(clause, "found_elsewhere", found=other.found, asked=other.asked)
        right = self._states.rightly(clause)
        return Say(self._units.rightly(self._times.rightly(clause)) if right is None else right)

    @cached_property
    def _ledger(self) -> Ledger:
        return self._ledger_now()

    @cached_property
    def _earlier(self) -> tuple[LedgerEntry, ...]:
        """The newest calls of earlier turns, as many as are read."""
        left, found = KNOWN_CHARS, list[LedgerEntry]()
        for entry in reversed(self._ledger.earlier):
            left -= len(entry.result)
            if left < 0:
                break
            found.append(entry)
        return tuple(found)

    @cached_property
    def _found(self) -> tuple[LedgerEntry, ...]:
        return tuple(entry for entry in self._ledger.turn if kind_of(entry) == "found")

    @cached_property
    def _unrelated(self) -> frozenset[str]:
        """The words of results that surely do not answer the question; none where one may."""
        request = self._ledger.request
        if not all(is_unrelated(entry, request) for entry in self._found):
            return frozenset()
        found = frozenset[str]().union(*(stems(entry.result) for entry in self._found))
        return found - self._values.words - _COMMON

    @cached_property
    def _elsewhere(self) -> Elsewhere | None:
        others = [elsewhere(entry) for entry in self._found]
        return others[0] if len(others) == 1 else None

    @cached_property
    def _told(self) -> list[str]:
        """Whatever may rightly be told besides this turn's results, the most important first."""
        left, said = KNOWN_CHARS, list[str]()
        for text in (self._ledger.request, *reversed(self._known)):
            if left > 0:
                said.append(text[-left:])
                left -= len(text)
        every = (*self._ledger.turn, *self._earlier)
        errors = (entry.result for entry in self._ledger.turn if entry not in self._found)
        return [
            *said,
            *map(_arguments, every),
            *(entry.result for entry in self._earlier),
            *(error[:KNOWN_CHARS] for error in errors),
        ]

    @cached_property
    def _values(self) -> ToldValues:
        return ToldValues(self._told)

    @cached_property
    def _names(self) -> StatedNames:
        every = (*self._ledger.turn, *self._earlier)
        tools = {f"{entry.tool} {entry.description[:KNOWN_CHARS]}" for entry in every}
        return StatedNames(self._values.words | {stem(w) for tool in tools for w in words(tool)})

    @cached_property
    def _times(self) -> StatedTimes:
        return StatedTimes((entry.result for entry in self._found), self._values)

    @cached_property
    def _units(self) -> StatedUnits:
        return StatedUnits(entry.result for entry in self._found)

    @cached_property
    def _states(self) -> StatedStates:
        return StatedStates(self._ledger.turn)

    def _without_results(self, clause: str) -> Say:
        """Judge a clause of an answer whose calls have brought nothing or have failed."""
        said = {word.lower() for word in words(_ANSWER.sub("", clause))}
        if not said.isdisjoint(_NOTHING):
            return Say(clause)
        told = self._values
        unknown = told.is_whole and (told.has_unknown(clause) or self._names.unknown_in(clause))
        if not (unknown or self._states_something(clause)):
            return Say(clause)
        if any(kind_of(entry) == "failed" for entry in self._ledger.turn):
            return self._instead(clause, "found_failed")
        return self._not_found(clause)

    def _not_found(self, clause: str) -> Say:
        what = next((_about(entry) for entry in self._ledger.turn if _about(entry)), "")
        if what:
            return self._instead(clause, "found_nothing_about", what=what)
        return self._instead(clause, "found_nothing")

    def _states_something(self, clause: str) -> bool:
        """Say whether a clause tells how something is of which nothing is known."""
        said = words(_ANSWER.sub("", clause))
        failed = any(entry.state == "failed" for entry in self._ledger.turn)
        if not failed and not _ALL_WELL.isdisjoint(said):
            return False
        if _THERE_IS.search(clause):
            return True
        if _STATING.isdisjoint(said):
            return False
        asked = " ".join(map(_arguments, self._ledger.turn))
        if failed:
            # An empty list may be told in other words than that; of an error nothing can be told.
            asked = f"{self._ledger.request} {asked}"
        about = frozenset(map(stem, words(asked))) - _COMMON
        return not about.isdisjoint(map(stem, said))

    def _speaks_of_asked(self, clause: str, other: Elsewhere) -> bool:
        said = frozenset(map(stem, words(clause)))
        if not said.isdisjoint(_DENYING):
            return False
        said |= _days_named(clause)
        asked, found = _namings(other.asked), _namings(other.found)
        return not said.isdisjoint(asked - found) and said.isdisjoint(found - asked)

    def _instead(self, clause: str, key: str, **values: str) -> Say:
        if self._is_sorry:
            return Say("")
        self._is_sorry = True
        text = sentence(key)
        for name, value in values.items():
            text = text.replace("{" + name + "}", " ".join(value.split()))
        before = clause[: len(clause) - len(clause.lstrip())]
        after = clause[len(clause.rstrip()) :]
        return Say(before + text + after)


def _is_readable(text: str) -> bool:
    """Say whether a text is in the language whose figures and words are known here."""
    language = language_of((text,))
    return language == LANGUAGE or (not language and not _OWN_WORDS.isdisjoint(words(text)))


def _states_nothing(clause: str) -> bool:
    if clause.rstrip().endswith("?") or _OFFER.match(clause) is not None:
        return True
    return not _SUPPOSING.isdisjoint(words(clause))


def _arguments(entry: LedgerEntry) -> str:
    return " ".join(str(value)[:KNOWN_CHARS] for value in entry.arguments.values())


def _about(entry: LedgerEntry) -> str:
    """Return what a call asked for in words, as the person hears it."""
    texts = [value for value in entry.arguments.values() if isinstance(value, str)]
    named = [
        text
        for text in texts
        if text[:1].isalpha()
        and QUESTIONS.isdisjoint(words(text)[:1])
        and len(text) <= NAMED_CHARS
        and not _TIME_WORDS.issuperset(map(stem, words(text)))
    ]
    return named[0] if named else ""


def _namings(text: str) -> frozenset[str]:
    """Return the stems of a value's words or, where it is a date, what may be said for it."""
    dates = _days_named(text)
    return dates or frozenset(map(stem, words(text))) - COMMON


def _days_named(text: str) -> frozenset[str]:
    """Return how days are named in a text: by weekday and by the day of the month."""
    stated = stated_in(text)
    named = {f"{day.day}." for day in stated.days if day.day}
    named |= {f"{one.value:.0f}." for one in stated.figures if one.number.ordinal}
    weekdays = (weekday_of(day) for day in stated.days)
    return frozenset(named | {WORDS["weekdays"][day] for day in weekdays if day is not None})
