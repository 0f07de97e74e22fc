"""The toolset `memory`: remember a fact, say what is known, and forget one."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from livekit.agents import RunContext
from pydantic import Field

from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke, ToolRefused
from caal_node.core.tool_spec import Caller
from caal_node.policy.heard_words import stem
from caal_node.tools.caller_of_call import caller_of
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import (
    ConfiguredToolset,
    OptionPath,
    ToolsetOptions,
    ToolsetServices,
    tool,
)
from caal_node.toolsets.edited_file import change_text, read_text
from mcp_bridge.core.files import make_private_folder

# A person's page of facts: a Markdown file of which every line "- ..." is a fact.
#
# Pure: text in, text out. A person may write anything else on the page, which stays as it is.

MAX_FACT_CHARS: Final = 300
"""Characters of one fact: two or three sentences."""
_FACT: Final = re.compile(r"[ \t]{0,8}[-*+][ \t](?P<text>.*\S)")
_DAY: Final = re.compile(r"[ \t]\((\d{4}-\d\d-\d\d)\)$")
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class KeptFact:
    """One fact of a page."""

    line: int
    """The number of its line, from 0."""
    text: str
    day: str = ""
    """The day on which it was told, such as `2026-11-23`; "" where nobody has written one."""


@dataclass(frozen=True, slots=True)
class FactPage:
    """A page as it stands in its file. Every change gives a new one."""

    text: str = ""

    @property
    def facts(self) -> list[KeptFact]:
        """Its facts, in their order."""
        rows = enumerate(self._lines())
        found = ((at, match["text"].strip()) for at, line in rows if (match := _FACT.match(line)))
        return [_fact(at, text) for at, text in found]

    def added(self, text: str, day: date) -> FactPage:
        """Return the page with one more fact, at its end."""
        new = "\r\n" if "\r\n" in self.text else "\n"
        end = "" if not self.text or self.text.endswith("\n") else new
        return FactPage(f"{self.text}{end}{_line(text, day)}{new}")

    def replaced(self, fact: KeptFact, text: str, day: date) -> FactPage:
        """Return the page with another text in a fact's place."""
        lines = self._lines()
        end = "\r" if lines[fact.line].endswith("\r") else ""
        lines[fact.line] = _line(text, day) + end
        return self._of(lines)

    def without(self, fact: KeptFact) -> FactPage:
        """Return the page without a fact."""
        lines = self._lines()
        del lines[fact.line]
        return self._of(lines)

    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def _of(self, lines: list[str]) -> FactPage:
        return FactPage("\n".join(lines))


def plain_fact(text: str) -> str:
    """Return a fact as it may stand on one line, without a full stop at its end."""
    return _SPACE.sub(" ", text).strip(" .-*+#")


def _fact(line: int, text: str) -> KeptFact:
    day = _DAY.search(text)
    return KeptFact(line, text[: day.start()].rstrip(), day[1]) if day else KeptFact(line, text)


def _line(text: str, day: date) -> str:
    return f"- {plain_fact(text)} ({day.isoformat()})"


# The words of facts: how one is said back, which one is meant, which one a new one replaces.

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SMALL: Final = frozenset(
    """a about again all am an and any anything are as at be been by did do does everything fact
    for forget from had has have i i'm in is it its know known me mine my myself of on our
    remember remembered said tell that the their them they thing this to told us user users was
    we were what when where which who will with you your""".split()  # noqa: SIM905 - a list of words reads better as words
)
_SAID_BACK: Final[Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]] = (
    (re.compile(r"\b(?:the|this) (?:user|person|speaker)['’]s\b", re.I), "your"),
    (re.compile(r"\b(?:the|this) (?:user|person|speaker) is\b", re.I), "you are"),
    (re.compile(r"\b(?:the|this) (?:user|person|speaker) has\b", re.I), "you have"),
    (re.compile(r"\b(?:the|this) (?:user|person|speaker) was\b", re.I), "you were"),
    (
        re.compile(
            r"\b(?:the|this) (?:user|person|speaker) (likes|wants|needs|hates|loves)\b", re.I
        ),
        lambda found: f"you {found[1][:-1]}",
    ),
    (re.compile(r"\bI am\b|\bI['’]m\b", re.I), "you are"),
    (re.compile(r"\bI was\b", re.I), "you were"),
    (re.compile(r"\bI['’](ve|ll|d)\b", re.I), r"you'\1"),
    (re.compile(r"\bI\b"), "you"),
    (re.compile(r"\bmy\b", re.I), "your"),
    (re.compile(r"\bmine\b", re.I), "yours"),
    (re.compile(r"\bmyself\b", re.I), "yourself"),
    (re.compile(r"\bme\b", re.I), "you"),
)
_VALUES: Final = frozenset(
    """address age birthday code colour color combination date email job name nickname number
    password phone pin size username wifi""".split()  # noqa: SIM905 - as above
)
"""What a person has one of, so that a new one takes the old one's place."""
_SUBJECT: Final = re.compile(
    r"^(?P<subject>(?:my|your|our|[^\W\d_]+['’]s)\s++.{2,60}?)(?<!\s)\s++(?:is now|is|are)\s+\S",
    re.I,
)


def said_back(text: str) -> str:
    """Return a fact as it is told to the person who told it: "your locker code is 4711"."""
    for pattern, other in _SAID_BACK:
        text = pattern.sub(other, text)
    head, _, rest = text.partition(" ")
    # What begins a sentence is written small within one, unless it is a name.
    return f"{head.lower()} {rest}".strip() if head.lower() in _BEGINNINGS else text


_BEGINNINGS: Final = frozenset(
    """a an every he her his in it on our she the their there they we you you're
    your""".split()  # noqa: SIM905 - as above
)


def key_words(text: str) -> frozenset[str]:
    """Return the stems of the words by which a fact is found."""
    plain = (word.removesuffix("'s") for word in _words(text))
    return frozenset(stem(word) for word in plain if word not in _SMALL)


def meant(facts: Sequence[KeptFact], words: str) -> list[KeptFact]:
    """Return the facts that `words` fit best, in their order: all that share as many of them.

    No fact fits that has less than half of the words.
    """
    wanted = key_words(words)
    if not wanted:
        return []
    shared = [len(wanted & key_words(fact.text)) for fact in facts]
    best = max(shared, default=0)
    if 2 * best < len(wanted) or not best:
        return []
    return [fact for fact, count in zip(facts, shared, strict=True) if count == best]


def same(facts: Sequence[KeptFact], text: str) -> KeptFact | None:
    """Return the fact that says the same, if one does."""
    wanted = _words(said_back(text))
    return next((fact for fact in facts if _words(said_back(fact.text)) == wanted), None)


def outdated(facts: Sequence[KeptFact], text: str) -> KeptFact | None:
    """Return the fact whose value `text` says anew: "my locker code is 4712".

    Only what a person has one of is taken so; "my sister is tall" and "my sister is in Oslo" are
    two facts.
    """
    subject = _subject(text)
    if not subject:
        return None
    return next((fact for fact in facts if _subject(fact.text) == subject), None)


def _subject(text: str) -> tuple[str, ...]:
    found = _SUBJECT.match(said_back(text))
    said = tuple(_words(found["subject"])) if found else ()
    return (
        said
        if said and (said[-1] in _VALUES or said[1:2] in (("favourite",), ("favorite",)))
        else ()
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.replace("’", "'").casefold())


# Whose memory a call is about: the person whom LiveKit knows by their token, and nobody else.

UNKNOWN = "I don't know who is speaking, so I can't use anybody's memory."
GUEST = "I keep no memory for guests."
TERMINAL = "terminal"
"""The person who types where there is no room: whoever uses this machine."""
HOUSEHOLD = "household"


def person_of(caller: Caller, *, attribute: str, guests: Sequence[str], shared: bool) -> str:
    """Return the name of the person's page.

    Args:
        attribute: The participant's attribute that names the person; "" takes their identity.
        guests: Patterns of names, such as `guest*`, for which nothing is remembered.
        shared: Whether all who are no guests have one page.

    Raises:
        ToolRefused: Nobody is known to speak, or a guest does.
    """
    match caller.origin:
        case "api":
            raise ToolRefused("Memory belongs to people in a conversation; the API has none.")
        case "terminal":
            return HOUSEHOLD if shared else TERMINAL
        case "room":
            name = caller.attributes.get(attribute, "") if attribute else caller.participant
    if not name.strip():
        raise _refused("Nobody knows who is speaking.", UNKNOWN)
    # "ｇuest1" and " guest1" are guests too.
    plain = unicodedata.normalize("NFKC", name).strip().casefold()
    if any(fnmatchcase(plain, pattern.casefold()) for pattern in guests):
        raise _refused("A guest is speaking, for whom nothing is remembered.", GUEST)
    if shared:
        return HOUSEHOLD
    # Else somebody of this name in a room would read what was typed, or the household's page. One
    # more "@" for those who have some already, so that two names stay two.
    return f"@{name}" if name.lstrip("@") in (TERMINAL, HOUSEHOLD) else name


def _refused(message: str, words: str) -> ToolRefused:
    refused = ToolRefused(message)
    refused.words = words
    return refused


# The files of people's pages: one for each person, which they may read and edit meanwhile.
#
# All calls block, so they belong in a thread.

T = TypeVar("T")

MAX_BYTES: Final = 256 << 10
"""Bytes of a page: a thousand facts."""
_PLAIN_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_-]+")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)")
"""Names that are devices on Windows."""


class FactFiles:
    """The pages in one folder."""

    def __init__(self, folder: Path, pause: Callable[[float], None] = time.sleep) -> None:
        self.folder: Final = folder
        self._pause: Final = pause

    def path(self, person: str) -> Path:
        """Return the file of a person. No two people have the same one."""
        return self.folder / f"{file_name(person)}.md"

    def read(self, person: str) -> FactPage:
        """Return a person's page; an empty one where there is none yet.

        Raises:
            OSError: It cannot be read.
            ValueError: It is too large, or is not UTF-8.
        """
        return FactPage(read_text(self.path(person), MAX_BYTES, pause=self._pause) or "")

    def change(self, person: str, change: Callable[[FactPage], tuple[FactPage, T]]) -> T:
        """Change a person's page, and return what `change` says beside the new page.

        `change` is called again where the file has changed meanwhile, and may raise.

        Raises:
            OSError: It cannot be read or written, or somebody else is writing it all the time.
            ValueError: It is too large, or is not UTF-8.
        """

        def edit(before: str | None) -> tuple[str | None, T]:
            begun = before or _beginning(person)
            page, said = change(FactPage(begun))
            return (None if page.text == begun else page.text), said

        path = self.path(person)
        return change_text(path, edit, MAX_BYTES, private=True, pause=self._pause)


def file_name(person: str) -> str:
    """Return the name of a person's file, without its ending.

    A plain name stays as it is. Any other gets a digest of all of it behind a "~", which no plain
    name holds, so that nobody can choose a name whose file is another's.
    """
    if _PLAIN_NAME.fullmatch(person) and not _RESERVED.fullmatch(person):
        return person
    digest = hashlib.sha256(person.encode(errors="surrogatepass")).hexdigest()[:16]
    plain = _NOT_PLAIN.sub("-", person.casefold())[:24].strip("-")
    return f"{plain or 'person'}~{digest}"


def _beginning(person: str) -> str:
    name = " ".join(person.split()) or "this person"
    return (
        f"# What is remembered of {name}\n\n"
        'Every line that begins with "- " is a fact. Change, add and delete as you like.\n\n'
    )


MAX_FACTS: Final = 500
"""Facts of one person."""
TOLD: Final = 20
"""Facts that one answer has."""
SPOKEN: Final = 3
"""Facts that are read out in one sentence; of more the model tells what fits the question."""
ASKED_BACK: Final = 3

NOTHING = "You haven't told me anything to remember yet."
NOTHING_ABOUT = "You haven't told me anything about that."
ONE_AT_A_TIME = "I can forget one thing at a time. Which one?"
UNREADABLE = "I can't get at my memory right now."


class MemoryOptions(ToolsetOptions):
    folder: OptionPath | None = Field(
        default=None, description="The folder for the pages of what is remembered (empty: our own)"
    )
    shared: bool = Field(
        default=False, description="Whether all of the household share one page (true or false)"
    )
    person_attribute: str = Field(default="", max_length=100)
    """The participant's attribute that names the person; "" takes their identity."""
    guests: tuple[str, ...] = Field(default=("guest*",), max_length=100)
    """Patterns of names for which nothing is remembered."""


class Memory(ConfiguredToolset):
    """See docs/toolsets.md."""

    NAME: ClassVar[str] = "memory"
    SUMMARY: ClassVar[str] = "Remembers what you tell it of yourself, each person apart."
    Options = MemoryOptions

    def __init__(
        self, options: MemoryOptions | None = None, services: ToolsetServices | None = None
    ) -> None:
        super().__init__(options, services)
        self.files: Final = FactFiles(self.options.folder or self.services.state)

    async def check(self) -> str:
        """See `ConfiguredToolset.check`."""
        folder = self.files.folder
        try:
            await asyncio.to_thread(make_private_folder, folder)
            pages = await asyncio.to_thread(lambda: len(list(folder.glob("*.md"))))
        except OSError as error:
            raise ConfigError(f"{folder}: it cannot be written; correct `folder`.") from error
        return f"{counted(pages, 'page')} in {folder}"

    @tool("write")
    async def remember_fact(self, context: RunContext[Any], fact: str) -> Any:
        """Remember something that the person says of themselves or their home.

        Args:
            fact: the whole fact in their own words
        Example: remember that my locker code is 4711 -> {"fact": "my locker code is 4711"}
        Example: don't forget that I am allergic to nuts -> {"fact": "I am allergic to nuts"}
        """
        text = plain_fact(fact)
        if not text:
            raise InvalidArguments("Ask what is to be remembered.")
        if len(text) > MAX_FACT_CHARS:
            raise InvalidArguments(
                f"A fact has at most {MAX_FACT_CHARS} characters; say it shorter."
            )
        today = self.services.now().astimezone(self.services.timezone).date()

        def change(page: FactPage) -> tuple[FactPage, VerbatimResult]:
            facts = page.facts
            if same(facts, text):
                return page, _result({"remembered": text}, f"I know that {said_back(text)}.")
            if (old := outdated(facts, text)) is not None:
                value = {"remembered": text, "in_place_of": old.text}
                words = f"I'll remember that {said_back(text)}, and no longer that "
                return page.replaced(old, text, today), _result(
                    value, f"{words}{said_back(old.text)}."
                )
            if len(facts) >= MAX_FACTS:
                raise ToolBroke(f"There are {MAX_FACTS} facts already; ask what to forget.")
            value = {"remembered": text}
            return page.added(text, today), _result(value, f"I'll remember that {said_back(text)}.")

        return await self._changed(context, change)

    @tool("read")
    async def what_do_you_know(self, context: RunContext[Any], about: str = "") -> Any:
        """Say what the person has asked to remember.

        Args:
            about: what it is about; empty for everything
        Example: what do you know about me -> {"about": ""}
        Example: what's my locker code -> {"about": "locker code"}
        """
        person = self._person(context)
        try:
            page = await asyncio.to_thread(self.files.read, person)
        except (OSError, ValueError) as error:
            raise _unusable(error) from error
        facts = page.facts
        found = meant(facts, about) if key_words(about) else facts
        if not found:
            return VerbatimResult([], NOTHING_ABOUT if key_words(about) else NOTHING)
        rows = [_row(fact) for fact in found[-TOLD:]]
        if len(found) > SPOKEN:
            left = len(found) - len(rows)
            return {"facts": rows} | ({"older_left_out": left} if left else {})
        return VerbatimResult(rows, f"You told me that {_joined(found)}.")

    @tool("destructive")
    async def forget_fact(self, context: RunContext[Any], fact: str) -> Any:
        """Forget one thing that was remembered.

        Args:
            fact: words that say which
        Example: forget my locker code -> {"fact": "locker code"}
        Example: you can forget what I said about the piano -> {"fact": "piano"}
        """

        def change(page: FactPage) -> tuple[FactPage, VerbatimResult]:
            facts = page.facts
            exact = same(facts, plain_fact(fact))
            found = [exact] if exact else meant(facts, fact)
            if not found:
                words = NOTHING_ABOUT if key_words(fact) else ONE_AT_A_TIME
                return page, _result({"forgotten": None}, words)
            if len(found) > 1:
                listed = [said_back(each.text) for each in found[:ASKED_BACK]]
                value = {
                    "forgotten": None,
                    "which_one": [_row(each) for each in found[:ASKED_BACK]],
                }
                return page, _result(value, f"Which one: that {', or that '.join(listed)}?")
            text = found[0].text
            words = f"I've forgotten that {said_back(text)}."
            return page.without(found[0]), _result({"forgotten": text}, words)

        return await self._changed(context, change)

    def _person(self, context: RunContext[Any]) -> str:
        options: MemoryOptions = self.options
        return person_of(
            caller_of(context),
            attribute=options.person_attribute,
            guests=options.guests,
            shared=options.shared,
        )

    async def _changed(self, context: RunContext[Any], change: Any) -> VerbatimResult:
        person = self._person(context)
        try:
            return await asyncio.to_thread(self.files.change, person, change)
        except (OSError, ValueError) as error:
            raise _unusable(error) from error


def _result(value: Any, words: str) -> VerbatimResult:
    return VerbatimResult(value, words)


def _row(fact: KeptFact) -> dict[str, str]:
    return {"fact": fact.text} | ({"told_on": fact.day} if fact.day else {})


def _joined(facts: list[KeptFact]) -> str:
    return ", and that ".join(said_back(fact.text) for fact in facts)


def _unusable(error: OSError | ValueError) -> ToolBroke:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    failure = ToolBroke(f"The page of memory cannot be used: {why}.")
    failure.words = UNREADABLE
    return failure
