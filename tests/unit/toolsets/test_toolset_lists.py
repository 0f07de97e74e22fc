"""Lists by voice, in Markdown files that a person edits too."""

# ruff: noqa: ASYNC240 - nothing else runs on these tests' event loop

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import ConfigError, InvalidArguments, ToolBroke, ToolFailure
from caal_node.toolsets.lists import Lists, ListsOptions, items_in, spoken_list
from caal_node.toolsets.lists.markdown_list import items_of, match_item, with_added, with_done

NOTES = """# Shopping

For Saturday.

- [ ] 2 litres of oat milk
      the blue one
- [x] eggs
* [ ] bread

## Market
1. apples
2. pears

Ask Ann about the cake.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lists"


@pytest.fixture
def lists(folder: Path) -> Lists:
    return Lists(ListsOptions(folder=folder))


async def said(call: Any) -> str:
    """The sentence that a person hears."""
    try:
        return (await call).words
    except ToolFailure as failure:
        return failure.words or ""


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(text.encode())
    return folder / name


# What is said.


@pytest.mark.parametrize(
    ("words", "items"),
    [
        ("milk", ["milk"]),
        ("milk, eggs and bread", ["milk", "eggs", "bread"]),
        ("milk and eggs and some bread.", ["milk", "eggs", "bread"]),
        ("Milk, milk and MILK please", ["Milk"]),
        ("fish and chips, mac and cheese and peas", ["fish and chips", "mac and cheese", "peas"]),
        ("salt and pepper, milk and eggs", ["salt and pepper", "milk", "eggs"]),
        ("two and a half kilos of tea and 1,5 l oil", ["two and a half kilos of tea", "1,5 l oil"]),
        ("- milk\n- [ ] eggs\n2. bread", ["milk", "eggs", "bread"]),
        ("buy milk and eggs", ["buy milk and eggs"]),
        ("call Tom and Ann", ["call Tom and Ann"]),
        ("wash the car and clean the kitchen", ["wash the car", "clean the kitchen"]),
        ("", []),
        (" , and . ", []),
    ],
)  # fmt: skip
def test_one_breath_is_taken_apart(words: str, items: list[str]) -> None:
    assert list(items_in(words)) == items


def test_what_is_to_be_bought_is_a_thing_and_nothing_to_do() -> None:
    assert items_in("we need to buy milk and eggs", to_buy=True) == ("milk", "eggs")
    assert items_in("cook salt and dill", to_buy=True) == ("cook salt", "dill")


@given(st.text())
def test_any_words_are_taken_apart_within_bounds(words: str) -> None:
    for name in items_in(words) + items_in(words, to_buy=True):
        assert name == name.strip()
        assert 0 < len(name) <= 200
        assert "\n" not in name


names_alone = st.lists(
    st.text("abcdefghij", min_size=1, max_size=8).filter(lambda name: len(name) > 4),
    min_size=1,
    unique=True,
)


@given(names_alone)
def test_what_is_read_out_is_heard_as_the_same_things(names: list[str]) -> None:
    assert list(items_in(spoken_list(names), to_buy=True)) == names[:50]


# The text of a list.


def names_open(text: str) -> list[str]:
    return [item.name for item in items_of(text) if not item.is_done]


async def test_the_lists_are_names_that_are_said(lists: Lists, folder: Path) -> None:
    write(folder, "baumarkt.md", "- screws\n")
    assert [each.casefold() for each in await lists.spoken_names()] == ["baumarkt"]


def test_every_kind_of_bullet_is_read() -> None:
    text = (
        "- a1\n* b1\n+ c1\n1. d1\n2) e1\n- [ ] f1\n- [x] g1\n- [X] h1\n- ~~i1~~\n---\n- - -\ntext"
    )
    assert names_open(text) == ["a1", "b1", "c1", "d1", "e1", "f1"]
    assert [item.name for item in items_of(text) if item.is_done] == ["g1", "h1", "i1"]


def test_new_things_come_behind_the_last_open_one_in_its_own_form() -> None:
    made = with_added(NOTES, ["plums", "Bread", "Egg"])
    assert made.added == ("plums", "eggs")
    assert made.already == ("bread",)
    assert made.text == NOTES.replace("2. pears\n", "2. pears\n3. plums\n").replace("[x]", "[ ]")


def test_a_note_below_a_thing_stays_with_it() -> None:
    text = "- [ ] milk\n  the blue one\n\nOther words."
    assert with_added(text, ["eggs"]).text == text.replace("one\n", "one\n- [ ] eggs\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_stay_as_they_are(end: str) -> None:
    text = f"- [ ] milk{end}- [ ] eggs"
    assert with_added(text, ["rye"]).text == f"- [ ] milk{end}- [ ] eggs{end}- [ ] rye{end}"
    assert with_done(text, {0}) == f"- [x] milk{end}- [ ] eggs"


def test_what_has_no_box_gets_one_when_it_is_crossed_off() -> None:
    assert with_done("* milk\n1. eggs\n", {0, 1}) == "* [x] milk\n1. [x] eggs\n"


@given(st.text("ab -[]x*1.~\n\r\t#é"), st.lists(st.text("abé", min_size=1), max_size=4))
def test_a_change_touches_no_other_line(text: str, names: list[str]) -> None:
    before = text.split("\n")
    made = with_added(text, names)
    assert {*map(str.casefold, names)} <= {*map(str.casefold, names_open(made.text))} | {
        name.casefold() for name in made.already
    } | {name.casefold() for name in names if any(items_of(text))}
    rest = iter(made.text.split("\n"))
    for line in before:
        whole = any(line.rstrip("\r") == each.rstrip("\r") for each in rest)
        assert whole or "[" in line or "~" in line or not line
    done = with_done(text, {item.line for item in items_of(text)})
    assert names_open(done) == []
    assert len(done.split("\n")) == len(before)


@given(st.text())
def test_any_text_is_a_list(text: str) -> None:
    for item in items_of(text):
        assert item.name.strip()
    assert with_done(text, ()) == text


# What is meant.


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("oat milk", ["oat milk"]),
        ("milk", ["oat milk", "whole milk"]),
        ("the egg", ["Eggs"]),
        ("two loaves of rye bread", ["rye bread"]),
        ("wry bread", ["rye bread"]),
        ("milk chocolate", []),
        ("beer", []),
        ("", []),
    ],
)
def test_a_thing_is_found_by_its_name_its_words_or_its_sound(wanted: str, found: list[str]) -> None:
    items = items_of("- oat milk\n- whole milk\n- Eggs\n- rye bread\n")
    assert [item.name for item in match_item(wanted, items).items] == found


def test_milk_chocolate_is_no_milk() -> None:
    items = items_of("- milk\n- dark chocolate\n")
    assert match_item("milk chocolate", items).items == ()
    assert [item.name for item in match_item("two litres of milk", items).items] == ["milk"]


# The tools.


async def test_a_list_is_begun_filled_read_and_crossed_off(lists: Lists, folder: Path) -> None:
    assert await said(lists.read_list()) == "There is nothing on the shopping list."
    assert not folder.exists()
    words = await said(lists.add_to_list(items="milk, eggs and bread"))
    assert words == "I've put milk, eggs and bread on the shopping list."
    assert (
        folder / "shopping.md"
    ).read_text() == "# Shopping\n\n- [ ] milk\n- [ ] eggs\n- [ ] bread\n"
    assert await said(lists.read_list("shopping")) == "On the shopping list: milk, eggs and bread."
    assert (
        await said(lists.cross_off_list("the milk and bread")) == "I've crossed off milk and bread."
    )
    result = await lists.read_list()
    assert result.value == {"list": "shopping", "items": [{"name": "eggs"}]}
    assert "- [x] milk\n- [ ] eggs\n- [x] bread\n" in (folder / "shopping.md").read_text()


async def test_what_is_there_already_is_not_put_there_twice(lists: Lists) -> None:
    await lists.add_to_list(items="milk and eggs")
    words = await said(lists.add_to_list(items="Eggs and rye"))
    assert words == "I've put rye on the shopping list. Eggs was there already."
    words = await said(lists.add_to_list(items="eggs, milk"))
    assert words == "Eggs and milk were on the shopping list already."
    await lists.cross_off_list("eggs")
    assert await said(lists.add_to_list(items="egg")) == "I've put eggs on the shopping list."


async def test_lists_are_found_by_what_people_call_them(lists: Lists, folder: Path) -> None:
    write(folder, "To Do.md", "- [ ] call mum\n")
    write(folder, "camping_list.md", "- [ ] tent\n")
    write(folder, "groceries.md", "- [ ] milk\n")
    for name in ("to-do", "todo list", "my to do list", "tasks"):
        assert await said(lists.read_list(name)) == "On the to do list: call mum."
    for name in ("camping", "the camping list", "campingg"):
        assert await said(lists.read_list(name)) == "On the camping list: tent."
    for name in ("", "shopping", "shopping list", "grocery"):
        assert await said(lists.read_list(name)) == "On the groceries list: milk."
    assert await said(lists.read_list("books")) == (
        "There is no books list. There are to do, camping and groceries."
    )
    assert await said(lists.read_list("all")) == (
        "You have 3 lists: to do with 1, camping with 1 and groceries with 1."
    )


async def test_a_name_never_leaves_the_folder(lists: Lists, folder: Path) -> None:
    await lists.add_to_list(items="milk", list_name="../../etc/passwd")
    await lists.add_to_list(items="milk", list_name="/var/../x\x00y")
    assert sorted(path.name for path in folder.glob("*.md")) == ["etc passwd.md", "var x y.md"]
    assert {path.name for path in folder.parent.iterdir()} == {"lists"}
    for name in ("../..", "a" * 50):
        with pytest.raises(ToolBroke):
            await lists.add_to_list(items="milk", list_name=name)


async def test_several_that_fit_are_asked_about(lists: Lists) -> None:
    await lists.add_to_list(items="oat milk, whole milk and eggs")
    with pytest.raises(InvalidArguments):
        await lists.cross_off_list("milk")
    words = await said(lists.cross_off_list("milk"))
    assert words == "For milk there are oat milk and whole milk. Which one?"
    words = await said(lists.cross_off_list("eggs, milk, beer"))
    assert words == (
        "I've crossed off eggs. For milk there are oat milk and whole milk. Which one?"
        " I can't find beer on the shopping list."
    )
    assert await said(lists.cross_off_list("eggs")) == "Eggs was crossed off already."


async def test_everything_is_crossed_off_at_once(lists: Lists) -> None:
    words = await said(lists.add_to_list(items="tent, lamp", list_name="camping"))
    assert words == "I've put tent and lamp on a new list, camping."
    assert (
        await said(lists.cross_off_list("everything", "camping"))
        == "I've crossed off tent and lamp."
    )
    assert (
        await said(lists.cross_off_list("all", "camping"))
        == "There is nothing on the camping list."
    )


async def test_one_thing_with_an_and_in_it_is_crossed_off_as_one(lists: Lists) -> None:
    await lists.add_to_list(items="call Tom and Ann", list_name="to-do")
    assert (
        await said(lists.cross_off_list("Tom and Ann", "to-do"))
        == "I've crossed off call Tom and Ann."
    )


async def test_a_long_list_is_read_in_part_and_told_whole(lists: Lists) -> None:
    await lists.add_to_list(items=", ".join(f"thing{at}" for at in range(20)))
    result = await lists.read_list()
    assert result.words.startswith("On the shopping list: 20 things: thing0, thing1")
    assert result.words.endswith("thing11 and 8 more.")
    assert len(result.value["items"]) == 20


async def test_many_calls_at_once_lose_nothing(lists: Lists, folder: Path) -> None:
    other = Lists(ListsOptions(folder=folder))
    await asyncio.gather(
        *(
            each.add_to_list(items=f"{mark}{at}")
            for mark, each in (("a", lists), ("b", other))
            for at in range(6)
        )
    )
    assert len(names_open((folder / "shopping.md").read_text())) == 12


async def test_a_file_that_cannot_be_read_is_told_in_a_sentence(lists: Lists, folder: Path) -> None:
    write(folder, "shopping.md", "").write_bytes(b"- caf\xe9\n")
    with pytest.raises(ToolBroke, match=r"shopping\.md is not UTF-8; save it as UTF-8"):
        await lists.read_list()
    assert (
        await said(lists.add_to_list(items="milk")) == "I can't change the shopping list right now."
    )
    assert (folder / "shopping.md").read_bytes() == b"- caf\xe9\n"


async def test_the_check_names_the_lists(lists: Lists, folder: Path) -> None:
    assert await lists.check() == f"{folder}: no lists yet"
    await lists.add_to_list(items="milk")
    assert await lists.check() == f"{folder}: shopping"


async def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "lists").write_text("")
    lists = Lists(ListsOptions(folder=tmp_path / "lists"))
    assert await said(lists.add_to_list(items="milk")) == "I can't read your lists right now."
    with pytest.raises(ConfigError, match=r"folder: .* is a file"):
        await lists.check()
