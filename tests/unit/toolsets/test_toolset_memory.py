"""The toolset `memory`: each person's facts, in a file that they may edit, and nobody else's."""

from __future__ import annotations

import os
import time
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from livekit.agents import Agent, AgentSession

from caal_node.agent import CaalAgent
from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke, ToolRefused
from caal_node.core.tool_spec import Caller
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets import memory
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.memory import (
    FactFiles,
    FactPage,
    Memory,
    MemoryOptions,
    file_name,
    meant,
    outdated,
    person_of,
    plain_fact,
    said_back,
)

NOW = datetime(2026, 11, 23, 23, 30, tzinfo=UTC)
ANNA = Caller("room", "home", "anna")
BEN = Caller("room", "home", "ben")


class Talk:
    """Calls the tools as one person after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: Path, **options: Any) -> None:
        services = ToolsetServices(state=state, timezone=UTC, now=lambda: NOW)
        self.memory = Memory(MemoryOptions(**options), services)
        self.speaker = ANNA
        monkeypatch.setattr(memory, "caller_of", lambda context: self.speaker)

    async def remember(self, fact: str) -> VerbatimResult:
        return await self.memory.remember_fact(context=SimpleNamespace(), fact=fact)

    async def know(self, about: str = "") -> Any:
        return await self.memory.what_do_you_know(context=SimpleNamespace(), about=about)

    async def forget(self, fact: str) -> VerbatimResult:
        return await self.memory.forget_fact(context=SimpleNamespace(), fact=fact)

    @property
    def page(self) -> Path:
        return self.memory.files.folder / "anna.md"


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Talk:
    return Talk(monkeypatch, tmp_path / "memory")


async def test_a_fact_is_remembered_and_told(talk: Talk) -> None:
    said = await talk.remember("my locker code is 4711.")
    assert said.words == "I'll remember that your locker code is 4711."
    told = await talk.know("locker code")
    assert told.words == "You told me that your locker code is 4711."
    assert told.value == [{"fact": "my locker code is 4711", "told_on": "2026-11-23"}]


async def test_it_stands_in_a_file_that_a_person_reads(talk: Talk) -> None:
    await talk.remember("I am allergic to nuts")
    text = talk.page.read_text()
    assert "- I am allergic to nuts (2026-11-23)\n" in text
    assert talk.page.stat().st_mode & 0o077 == 0


async def test_what_is_edited_by_hand_counts_and_stays(talk: Talk) -> None:
    await talk.remember("I like tea")
    talk.page.write_text("My own heading\n\n* the spare key is at Ida's\n1. a list of mine\n")
    told = await talk.know()
    assert told.words == "You told me that the spare key is at Ida's."
    await talk.remember("my shoe size is 43")
    assert talk.page.read_text() == (
        "My own heading\n\n* the spare key is at Ida's\n1. a list of mine\n"
        "- my shoe size is 43 (2026-11-23)\n"
    )


async def test_a_file_that_is_deleted_is_forgotten(talk: Talk) -> None:
    await talk.remember("I like tea")
    talk.page.unlink()
    assert (await talk.know()).words == memory.NOTHING


async def test_a_fact_is_changed_by_saying_it_anew(talk: Talk) -> None:
    await talk.remember("my locker code is 4711")
    await talk.remember("my sister is tall")
    said = await talk.remember("my locker code is now 4712")
    assert said.words == (
        "I'll remember that your locker code is now 4712, "
        "and no longer that your locker code is 4711."
    )
    assert "4711" not in talk.page.read_text()
    await talk.remember("my sister is in Oslo")
    assert "tall" in talk.page.read_text()


async def test_the_same_fact_is_kept_once(talk: Talk) -> None:
    await talk.remember("I like tea")
    assert (await talk.remember("The user likes tea.")).words == "I know that you like tea."
    assert len((await talk.know()).value) == 1


async def test_a_fact_is_forgotten(talk: Talk) -> None:
    await talk.remember("my locker code is 4711")
    await talk.remember("I am allergic to nuts")
    said = await talk.forget("my locker code")
    assert said.words == "I've forgotten that your locker code is 4711."
    assert "4711" not in talk.page.read_text()
    assert (await talk.know("locker code")).words == memory.NOTHING_ABOUT


async def test_nothing_is_forgotten_where_two_may_be_meant(talk: Talk) -> None:
    await talk.remember("my bike code is 1")
    await talk.remember("my locker code is 2")
    said = await talk.forget("the code")
    assert said.words == "Which one: that your bike code is 1, or that your locker code is 2?"
    assert len((await talk.know()).value) == 2


async def test_nothing_is_forgotten_that_was_not_told(talk: Talk) -> None:
    await talk.remember("I like tea")
    assert (await talk.forget("my blood type")).words == memory.NOTHING_ABOUT
    assert len((await talk.know()).value) == 1


@pytest.mark.parametrize("about", ["", "me", "everything about me", "myself"])
async def test_everything_is_told_where_nothing_is_named(talk: Talk, about: str) -> None:
    await talk.remember("I like tea")
    assert (await talk.know(about)).words == "You told me that you like tea."


@pytest.mark.parametrize("fact", ["", "everything", "all about me"])
async def test_nothing_is_forgotten_wholesale(talk: Talk, fact: str) -> None:
    await talk.remember("I like tea")
    assert (await talk.forget(fact)).words == memory.ONE_AT_A_TIME
    assert len((await talk.know()).value) == 1


async def test_many_facts_go_to_the_model_as_data(talk: Talk) -> None:
    for number in range(25):
        await talk.remember(f"fact number {number} of Anna's")
    told = await talk.know()
    assert len(told["facts"]) == 20
    assert told["older_left_out"] == 5


async def test_nobody_hears_what_another_has_told(talk: Talk) -> None:
    await talk.remember("my locker code is 4711")
    talk.speaker = BEN
    assert (await talk.know("locker code")).words == memory.NOTHING_ABOUT
    assert (await talk.forget("locker code")).words == memory.NOTHING_ABOUT
    await talk.remember("my locker code is 1")
    talk.speaker = ANNA
    assert "4711" in (await talk.know("locker code")).words


@pytest.mark.parametrize(
    "speaker",
    [
        Caller("room", "home", ""),
        Caller("room", "home", "guest"),
        Caller("room", "home", "Guest-7"),
        Caller("room", "home", " guest1"),
        Caller("room", "home", "\uff47uest1"),
        Caller("api"),
    ],
)
async def test_guests_and_strangers_have_no_memory(talk: Talk, speaker: Caller) -> None:
    await talk.remember("I like tea")
    talk.speaker = speaker
    for call in (talk.know(), talk.remember("x"), talk.forget("tea")):
        with pytest.raises(ToolRefused):
            await call
    assert "I like tea" in talk.page.read_text()


async def test_a_household_may_share_a_page_but_for_its_guests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    talk = Talk(monkeypatch, tmp_path, shared=True)
    await talk.remember("the bins go out on Tuesday")
    talk.speaker = BEN
    assert "Tuesday" in (await talk.know("bins")).words
    talk.speaker = Caller("room", "home", "guest2")
    with pytest.raises(ToolRefused):
        await talk.know("bins")


async def test_an_attribute_can_name_the_person(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    talk = Talk(monkeypatch, tmp_path, person_attribute="member")
    talk.speaker = Caller("room", "home", "device-81", {"member": "anna"})
    await talk.remember("I like tea")
    talk.speaker = Caller("room", "home", "device-99", {"member": "anna"})
    assert "tea" in (await talk.know()).words
    talk.speaker = Caller("room", "home", "anna")
    with pytest.raises(ToolRefused):
        await talk.know()


@pytest.mark.parametrize("fact", ["", "  . ", "x" * 301])
async def test_what_is_no_fact_is_refused(talk: Talk, fact: str) -> None:
    with pytest.raises(InvalidArguments):
        await talk.remember(fact)


async def test_a_fact_of_several_lines_becomes_one(talk: Talk) -> None:
    await talk.remember("I like tea\n- my code is 1\n# and more")
    assert len((await talk.know()).value) == 1


async def test_a_folder_that_cannot_be_written_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    talk = Talk(monkeypatch, tmp_path, folder=tmp_path / "file" / "memory")
    with pytest.raises(ToolBroke) as caught:
        await talk.remember("I like tea")
    assert caught.value.words == memory.UNREADABLE
    with pytest.raises(ConfigError, match="cannot be written"):
        await talk.memory.check()


async def test_the_check_counts_the_pages(talk: Talk) -> None:
    await talk.remember("I like tea")
    assert (await talk.memory.check()).startswith("1 page in ")


# The files


def test_a_change_on_disk_in_between_is_not_lost(tmp_path: Path) -> None:
    files = FactFiles(tmp_path)
    path = files.path("anna")
    path.write_text("- one\n")
    os.utime(path, (1, 1))
    typed = iter(["- one\n- typed meanwhile\n"])

    def change(page: FactPage) -> tuple[FactPage, None]:
        if (text := next(typed, None)) is not None:
            path.write_text(text)
        return page.added("two", date(2026, 1, 2)), None

    files.change("anna", change)
    assert path.read_text() == "- one\n- typed meanwhile\n- two (2026-01-02)\n"


def test_a_page_that_an_editor_has_just_emptied_is_no_new_page(tmp_path: Path) -> None:
    """An editor saves: it empties the page, and then writes it."""
    page = tmp_path / "anna.md"
    page.write_text("")

    def pause(seconds: float) -> None:
        page.write_text("- one\n- by hand\n")
        os.utime(page, (1, 1))

    files = FactFiles(tmp_path, pause)
    files.change("anna", lambda page: (page.added("two", date(2026, 1, 2)), None))
    assert page.read_text() == "- one\n- by hand\n- two (2026-01-02)\n"
    page.write_text("")
    assert len(files.read("anna").facts) == 2


@pytest.mark.parametrize("code", ["latin-1", "utf-16"])
async def test_a_page_that_is_not_utf_8_is_named_and_left_alone(talk: Talk, code: str) -> None:
    talk.page.parent.mkdir()
    talk.page.write_bytes("- Käse für Jürgen\n".encode(code))
    for call in (talk.remember("I like tea"), talk.know(), talk.forget("cheese")):
        with pytest.raises(ToolBroke, match=r"anna\.md is not UTF-8; save it as UTF-8"):
            await call
    assert talk.page.read_bytes() == "- Käse für Jürgen\n".encode(code)


async def test_a_byte_order_mark_and_line_ends_stay(talk: Talk) -> None:
    talk.page.parent.mkdir()
    begun = b"\xef\xbb\xbf# Anna\r\n\r\n- my code is 1\r\n- tea \r\nunix\n"
    talk.page.write_bytes(begun)
    await talk.remember("my code is 2")
    assert talk.page.read_bytes() == begun.replace(b"is 1", b"is 2 (2026-11-23)")
    await talk.remember("I like jazz")
    await talk.forget("my code")
    assert talk.page.read_bytes() == (
        b"\xef\xbb\xbf# Anna\r\n\r\n- tea \r\nunix\n- I like jazz (2026-11-23)\r\n"
    )


def test_a_page_that_is_too_large_is_left_alone(tmp_path: Path) -> None:
    files = FactFiles(tmp_path)
    text = "- x\n" * 100_000
    files.path("anna").write_text(text)
    with pytest.raises(ValueError, match="more than 262144 bytes"):
        files.read("anna")
    with pytest.raises(ValueError, match="more than 262144 bytes"):
        files.change("anna", lambda page: (page.added("y", date(2026, 1, 2)), None))
    assert files.path("anna").read_text() == text


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_two_people_have_one_file_and_none_leaves_the_folder(one: str, other: str) -> None:
    names = file_name(one), file_name(other)
    assert (names[0] == names[1]) == (one == other)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-~") for name in names)


@pytest.mark.parametrize(
    "one", ["Anna", "../anna", "anna/../ben", "con", "ANNA", "änna", "", "a" * 99]
)
def test_a_name_that_looks_like_another_s_file_is_not_it(one: str) -> None:
    own = file_name(one)
    assert own != file_name("anna")
    assert file_name(own) != own  # nobody can call themselves so


@given(
    st.lists(st.sampled_from(["@", "terminal", "household", "anna", " "]), max_size=4),
    st.lists(st.sampled_from(["@", "terminal", "household", "anna", " "]), max_size=4),
)
def test_two_identities_never_share_a_page(one: list[str], other: list[str]) -> None:
    rules: dict[str, Any] = {"attribute": "", "guests": (), "shared": False}
    names = "".join(one), "".join(other)
    if not all(map(str.strip, names)):
        return
    pages = [file_name(person_of(Caller("room", "home", name), **rules)) for name in names]
    assert (pages[0] == pages[1]) == (names[0] == names[1])
    assert not {"terminal", "household"}.intersection(pages)


@pytest.mark.parametrize("name", ["terminal", "household"])
def test_a_participant_cannot_call_themselves_the_terminal(name: str) -> None:
    rules: dict[str, Any] = {"attribute": "", "guests": (), "shared": False}
    person = person_of(Caller("room", "home", name), **rules)
    assert person != person_of(Caller("terminal"), **rules)
    assert file_name(person) not in ("terminal", "household")


# The page and its words


@given(st.text(max_size=200), st.text(min_size=1, max_size=80))
def test_any_page_keeps_its_lines_when_one_is_added_and_taken_away(text: str, fact: str) -> None:
    page = FactPage(text)
    said = plain_fact(fact)
    if not said:
        return
    added = page.added(said, date(2026, 1, 2))
    new = added.facts[-1]
    assert (new.text, new.day) == (said, "2026-01-02")
    assert added.without(new).text.rstrip("\r\n") == text.rstrip("\r\n")


@pytest.mark.parametrize("line", ["- " + " " * 200_000 + "x", "- x" + " (2026-01-02" * 20_000])
def test_a_long_line_takes_no_time(line: str) -> None:
    started = time.process_time()
    assert len(FactPage(line).facts) == 1
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("my locker code is 4711", "your locker code is 4711"),
        ("I am allergic to nuts", "you are allergic to nuts"),
        ("I'm vegan and I like my tea hot", "you are vegan and you like your tea hot"),
        ("The user's name is Anna", "your name is Anna"),
        ("the user likes jazz", "you like jazz"),
        ("The bins go out on Tuesday", "the bins go out on Tuesday"),
        ("Ida gave me mine", "Ida gave you yours"),
        ("Ben's birthday is on 3 May", "Ben's birthday is on 3 May"),
    ],
)
def test_a_fact_is_said_back_to_the_person(fact: str, said: str) -> None:
    assert said_back(fact) == said


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("locker", ["my locker code is 4711"]),
        ("what I'm allergic to", ["I am allergic to nuts"]),
        ("Ben's birthday", ["Ben's birthday is on 3 May"]),
        ("lockers", ["my locker code is 4711"]),
        ("my favourite film", []),
        ("me", []),
    ],
)
def test_a_fact_is_found_by_its_words(words: str, found: list[str]) -> None:
    page = FactPage(
        "- my locker code is 4711\n- I am allergic to nuts\n- Ben's birthday is on 3 May\n"
    )
    assert [fact.text for fact in meant(page.facts, words)] == found


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ("my locker code is 1", "my locker code is 2", True),
        ("my name is Anna", "The user's name is Anne", True),
        ("my favourite colour is red", "my favourite colour is blue", True),
        ("Ben's birthday is 3 May", "Ben's birthday is on 4 May", True),
        ("my locker code is 1", "my bike code is 2", False),
        ("my sister is tall", "my sister is in Oslo", False),
        ("I am tired", "I am vegan", False),
        ("my name is Anna", "Ben's name is Ben", False),
    ],
)
def test_only_what_one_has_one_of_is_replaced(old: str, new: str, replaces: bool) -> None:
    assert (outdated(FactPage(f"- {old}\n").facts, new) is not None) is replaces


# In a whole conversation


async def test_facts_are_said_as_they_were_told_without_another_request(tmp_path: Path) -> None:
    memory = Memory(MemoryOptions(), ToolsetServices(state=tmp_path))
    agent = CaalAgent(settings=plain_settings(), tiers={}, warm=False, tools=[memory])
    model = ScriptedModel(
        [ScriptedCall("remember_fact", {"fact": "my locker code is 4711"})],
        [ScriptedCall("what_do_you_know", {"about": "locker code"})],
        [ScriptedCall("forget_fact", {"fact": "locker code"})],
    )
    async with AgentConversation(agent, model) as talk:
        said = [
            (await talk.say(words)).text
            for words in (
                "remember that my locker code is 4711",
                "what's my locker code?",
                "forget my locker code",
                "yes",
            )
        ]
    assert said == [
        "I'll remember that your locker code is 4711.",
        "You told me that your locker code is 4711.",
        "Shall I forget fact: locker code?",
        "I've forgotten that your locker code is 4711.",
    ]
    assert len(model.requests) == 3
    assert "4711" not in (tmp_path / "terminal.md").read_text()


async def test_in_a_plain_livekit_agent_the_model_speaks_of_the_data(tmp_path: Path) -> None:
    memory = Memory(MemoryOptions(), ToolsetServices(state=tmp_path))
    called = [ScriptedCall("remember_fact", {"fact": "my locker code is 4711"})]
    async with AgentSession(llm=ScriptedModel(called, "Done.")) as session:
        await session.start(Agent(instructions="", tools=[memory]))
        turn = await session.run(user_input="remember that my locker code is 4711")
    outputs = [event.item for event in turn.events if event.type == "function_call_output"]
    assert [(each.is_error, "my locker code" in each.output) for each in outputs] == [(False, True)]
