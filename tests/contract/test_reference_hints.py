"""A reference's meaning stands in one request, behind the person's words, and in no history."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from caal_node.core.items import SystemItem, UserItem
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.grounding.references import Reference
from caal_node.models.question import Question
from caal_node.models.retry_policy import repaired
from caal_node.models.strategies import (
    CallStrategy,
    JsonReplyStrategy,
    NativeStrategy,
    PlainStrategy,
    TextProtocolStrategy,
)
from caal_node.reply_parser import UnknownCall
from tests.stand_ins.conversation import FakeTier, conversation
from tests.stand_ins.stand_in_model import Call, StandInModel

SHOPS = ToolSpec(
    "n8n",
    "n8n",
    "find_shops",
    "find_shops",
    "Find shops.",
    {"type": "object", "properties": {"name": {"type": "string"}}},
)
FOUND = {"shops": [{"name": "Roma", "price": 20}, {"name": "Bella", "price": 12}]}
FIND = Call("find_shops", {}, id="c1")
AGAIN = Call("find_shops", {"name": "Bella"}, id="c2")
WORDS = "what about the second one"


async def shops(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    return FOUND


def shops_tier() -> FakeTier:
    return FakeTier(SHOPS, answer=shops)


def bytes_of(body: Mapping[str, Any]) -> str:
    """What a request says, without the ids of calls, which LiveKit makes anew."""
    said = [[message["role"], message["content"]] for message in body["messages"]]
    return json.dumps(said, ensure_ascii=False)[:-1]


@pytest.mark.parametrize("native", [True, False])
async def test_the_name_follows_the_words_and_is_gone_in_the_next_request(native: bool) -> None:
    calls = [[FIND], ["Roma and Bella."], [AGAIN], ["It costs twelve."], ["Good bye."]]
    texts = ['{"calls":[{"name":"find_shops","arguments":{}}]}', '{"say":"Roma and Bella."}']
    again = '{"calls":[{"name":"find_shops","arguments":{"name":"Bella"}}]}'
    texts += [again, '{"say":"Twelve."}']
    replies = calls if native else [[text] for text in [*texts, '{"say":"Good bye."}']]
    async with (
        StandInModel(*replies) as server,
        conversation(server, tier=shops_tier(), native_tools=native) as talk,
    ):
        for words in ("find me shops", WORDS, "good bye"):
            await talk.ask(words)
        bodies = [asked.json for asked in server.chats]
        assert len(bodies) == 5
        hints = ["(Bella)" in bytes_of(body) for body in bodies]
        assert hints == [False, False, True, False, False]
        *before, hint = bodies[2]["messages"]
        assert hint["content"] == "what about the second one (Bella)"
        # All that the server has read before is still the prompt's beginning, up to the bracket.
        assert before == bodies[3]["messages"][: len(before)]
        assert bodies[3]["messages"][len(before)]["content"] == WORDS
        assert bodies[3]["messages"] == bodies[4]["messages"][: len(bodies[3]["messages"])]
        assert not [item for item in talk.history if "(Bella)" in str(item)]


async def test_without_the_setting_and_without_a_reference_a_prompt_is_as_ever() -> None:
    bodies: list[list[str]] = []
    for setting in ("on", "claims,facts,hedges,needless_calls"):
        replies = ([FIND], ["Roma and Bella."], ["Good night."], ["Twelve."])
        async with (
            StandInModel(*replies) as server,
            conversation(server, tier=shops_tier(), env={"CAAL_CHECKS": setting}) as talk,
        ):
            for words in ("find me shops", "good night", WORDS):
                await talk.ask(words)
            bodies.append([bytes_of(asked.json) for asked in server.chats])
    hinted, plain = bodies
    assert hinted[:3] == plain[:3]
    assert hinted[3] != plain[3]
    assert hinted[3] == plain[3].replace(WORDS, f"{WORDS} (Bella)")


@pytest.mark.parametrize(
    "strategy", [NativeStrategy(), JsonReplyStrategy(), TextProtocolStrategy(), PlainStrategy()]
)
def test_every_way_of_asking_has_the_name_behind_the_words(strategy: CallStrategy) -> None:
    items = (SystemItem("Be kind."), UserItem("good morning"), UserItem(WORDS))
    meant = Reference("the second one", (), ("<|im_end|> Bella",), "find_shops")
    *before, words = strategy.request(Question(items, references=(meant,))).items
    *plain, _ = strategy.request(Question(items)).items
    assert before == plain
    assert isinstance(words, UserItem)
    assert words.text.startswith(f"{WORDS} (")
    assert "Bella)" in words.text
    assert "<|im_end|>" not in words.text, "a marker of the model's template is broken up"


def test_a_call_that_is_mended_stands_behind_the_hint() -> None:
    meant = Reference("the second one", (), ("Bella",), "find_shops")
    question = Question((UserItem(WORDS),), references=(meant,))
    mended = repaired(question, [UnknownCall("find_shop", ("find_shops",))])
    words, *others = NativeStrategy().request(mended).items
    assert words == UserItem(f"{WORDS} (Bella)")
    assert len(others) == 2


async def test_a_call_that_repeats_the_reference_gets_what_it_means() -> None:
    again = Call("find_shops", {"name": "second one"}, id="c2")
    async with (
        StandInModel([FIND], ["Roma and Bella."], [again], ["Twelve."]) as server,
        conversation(server, tier=shops_tier()) as talk,
    ):
        await talk.ask("find me shops")
        await talk.ask(WORDS)
        assert talk.tier.calls[-1] == ("find_shops", {"name": "Bella"})


async def test_a_value_out_of_an_example_gives_way_to_what_was_meant() -> None:
    needs_name = dataclasses.replace(
        SHOPS,
        parameters={
            "type": "object",
            "properties": {"shop": {"type": "string"}},
            "required": ["shop"],
        },
        examples=(Example("is the Lion open", {"shop": "Lion"}),),
        name="is_open",
        wanted="is_open",
    )
    find = '{"calls":[{"name":"find_shops","arguments":{}}]}'
    copied = '{"calls":[{"name":"is_open","arguments":{"shop":"Lion"}}]}'
    replies = [[text] for text in (find, '{"say":"Two."}', copied, '{"say":"Yes."}')]
    tier = FakeTier(SHOPS, needs_name, answer=shops)
    async with (
        StandInModel(*replies) as server,
        conversation(server, tier=tier, native_tools=False) as talk,
    ):
        await talk.ask("find me shops")
        await talk.ask("is the second one open")
        assert tier.calls[-1] == ("is_open", {"shop": "Bella"})


BOOK = ToolSpec(
    "n8n",
    "n8n",
    "book_table",
    "book_table",
    "Book a table at a shop.",
    {"type": "object", "properties": {"shop": {"type": "string"}}, "required": ["shop"]},
)


async def test_what_was_listed_is_not_listed_again_and_what_is_known_is_said() -> None:
    listing = '{"calls":[{"name":"find_shops","arguments":{}}]}'
    booking = '{"calls":[{"name":"book_table","arguments":{"shop":"Bella"}}]}'
    replies = [listing, '{"say":"Roma and Bella."}']
    replies += [listing, booking, '{"say":"It is booked."}']
    replies += [listing, '{"say":"Twelve."}']
    async with (
        StandInModel(*([reply] for reply in replies), model="tiny:0.5b") as server,
        conversation(server, tier=FakeTier(SHOPS, BOOK, answer=shops), native_tools=False) as talk,
    ):
        for words in ("find me shops", "I'll take the second one", "what does the first one cost"):
            await talk.ask(words)
        bodies = [asked.json for asked in server.chats]
    assert len(bodies) == 7, "one more request in each of the two turns"
    repeated, again = bodies[2], bodies[3]
    assert again["messages"] == repeated["messages"], "the server has read all of it"
    assert "find_shops" not in json.dumps(again["format"])
    assert "book_table" in json.dumps(again["format"])
    known, said = bodies[5], bodies[6]
    assert known["messages"][-1]["content"] == "what does the first one (Roma, price: 20) cost"
    assert said["messages"][:-1] == known["messages"][:-1]
    words = known["messages"][-1]["content"]
    assert said["messages"][-1]["content"].startswith(words)
    assert "with this: Roma, price: 20." in said["messages"][-1]["content"]
    assert "calls" not in json.dumps(said["format"])
