"""Questions are looked up in documents before a reply is heard, which then says its source."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.answers.search_tools import asks
from caal_node.grounding.hedges import SourceText, knows_nothing, source_texts, unnamed_source
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.documents import NOTHING, Documents, DocumentsOptions
from tests.stand_ins.conversation import FakeTier

RENT = "Your rent is 1,240 euros a month."
BEHIND = " I read that in Lease, Rent."


class Talk:
    """A conversation with an agent that has a lease and a boiler manual."""

    def __init__(self, conversation: AgentConversation, model: ScriptedModel) -> None:
        self._conversation = conversation
        self.model = model
        self.calls: list[tuple[str, Any]] = []

    async def say(self, words: str) -> str:
        turn = await self._conversation.say(words)
        self.calls = [(call.tool, call.arguments) for call in turn.calls]
        return turn.text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "lease.md").write_text(
        "# Lease\n\n## Rent\nThe rent is 1,240 euros a month.\n\n## Pets\nCats are allowed.\n"
    )
    return notes


@pytest.fixture
async def talks(folder: Path) -> AsyncIterator[Any]:
    open_ones: list[AgentConversation] = []

    async def begin(mode: Any, script: Sequence[Any], *, weather: bool = True) -> Talk:
        services = ToolsetServices(state=folder.parent / "state")
        documents = Documents(DocumentsOptions(folders=(folder,), mode=mode), services)
        tiers: Any = {"n8n": FakeTier()} if weather else {}
        agent = CaalAgent(settings=plain_settings(), tiers=tiers, warm=False, tools=[documents])
        model = ScriptedModel(*script)
        talk = AgentConversation(agent, model)
        await talk.__aenter__()
        open_ones.append(talk)
        return Talk(talk, model)

    yield begin
    for each in open_ones:
        await each.__aexit__(None, None, None)


async def test_documents_first_answers_from_them_and_not_from_the_model(talks: Any) -> None:
    talk = await talks("documents_first", ["Rents are about 900 euros.", RENT])
    assert await talk.say("how much is the rent?") == RENT + BEHIND
    assert talk.calls == [("ask_documents", {"question": "how much is the rent?"})]


async def test_documents_first_says_that_they_have_none(talks: Any) -> None:
    talk = await talks("documents_first", ["Shakespeare wrote it."])
    assert await talk.say("who wrote Hamlet?") == NOTHING
    assert len(talk.model.requests) == 1


async def test_where_nothing_else_could_be_meant_the_model_is_not_asked_first(talks: Any) -> None:
    talk = await talks("documents_first", [RENT], weather=False)
    assert await talk.say("could you tell me how much the rent is?") == RENT + BEHIND
    assert len(talk.model.requests) == 1


async def test_another_tool_that_is_meant_goes_before_the_documents(talks: Any) -> None:
    weather = [ScriptedCall("get_weather", {"city": "Oslo"})]
    talk = await talks("documents_first", [weather, "Sunny in Oslo."])
    assert await talk.say("what is the weather in Oslo?") == "Sunny in Oslo."
    assert [name for name, _ in talk.calls] == ["get_weather"]


@pytest.mark.parametrize("words", ["hello", "thank you", "how are you?"])
@pytest.mark.parametrize("weather", [True, False])
async def test_small_talk_is_looked_up_nowhere(talks: Any, words: str, weather: bool) -> None:
    talk = await talks("documents_first", ["Gladly."], weather=weather)
    assert await talk.say(words) == "Gladly."
    assert talk.calls == []


async def test_words_that_mean_an_earlier_question_are_looked_up_with_it(talks: Any) -> None:
    talk = await talks("documents_first", [RENT, "Cats are allowed."], weather=False)
    await talk.say("how much is the rent?")
    await talk.say("and who pays it?")
    assert talk.calls[0][1] == {"question": "how much is the rent? and who pays it?"}


async def test_answer_first_leaves_what_the_model_knows_to_it(talks: Any) -> None:
    talk = await talks("answer_first", ["Paris is the capital of France."])
    said = await talk.say("what is the capital of France?")
    assert said == "Paris is the capital of France."
    assert talk.calls == []


@pytest.mark.parametrize(
    "guess",
    [
        "I'm not sure how much it is.",
        "I don't have information about your lease.",
        "Please check your lease agreement for that.",
        "That depends on the flat.",
        "Rents are typically about 900 euros.",
    ],
)
async def test_answer_first_looks_up_what_would_be_a_guess(talks: Any, guess: str) -> None:
    talk = await talks("answer_first", [guess, RENT])
    assert await talk.say("how much is the rent?") == RENT + BEHIND


async def test_what_only_the_household_knows_is_looked_up_however_sure_the_model_is(
    talks: Any,
) -> None:
    talk = await talks("answer_first", ["Your rent is 900 euros.", RENT])
    assert await talk.say("how much is our rent?") == RENT + BEHIND


async def test_where_the_documents_have_nothing_the_model_has_the_last_word(talks: Any) -> None:
    talk = await talks("answer_first", ["I don't know that.", "Sorry, I don't know."])
    assert await talk.say("who wrote the song?") == "Sorry, I don't know."
    assert [name for name, _ in talk.calls] == ["ask_documents"]


async def test_a_call_of_the_model_s_own_names_the_source_too(talks: Any) -> None:
    own = [ScriptedCall("ask_documents", {"question": "the rent"})]
    talk = await talks("answer_first", [own, RENT])
    assert await talk.say("look up the rent in my notes") == RENT + BEHIND


@pytest.mark.parametrize(
    "reply",
    [
        "According to the lease, it is 1,240 euros.",
        "The documents do not say how much the rent of the garage is.",
        "All right.",
    ],
)
async def test_a_reply_that_names_its_source_or_has_none_gets_none(talks: Any, reply: str) -> None:
    talk = await talks("documents_first", [reply], weather=False)
    assert await talk.say("how much is the rent?") == reply


# The words


@pytest.mark.parametrize(
    "words",
    [
        "what does F28 mean",
        "Could you please tell me where the filter is?",
        "So, how do I bleed the radiators?",
        "do cats need a permit?",
        "is a dog allowed",
        "are we allowed to paint the walls?",
        "explain the fault codes",
        "do you know when the tyres go on?",
        "the rent?",
        "can I keep my bike in our hallway",
        "may I put up a satellite dish?",
        "wie hoch ist die Miete?",
    ],
)
def test_what_asks_is_known(words: str) -> None:
    assert asks(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "turn on the light",
        "could you turn on the light?",
        "please make a note that the rent is due",
        "would you set a timer for ten minutes?",
        "thanks, that was all",
        "have a nice day",
        "don't forget the milk",
        "do not forget the milk",
        "add milk to the list",
        "hello there",
        "how are you?",
        "I like tea",
    ],
)
def test_what_wants_something_done_or_nothing_asks_nothing(words: str) -> None:
    assert not asks(words)


@pytest.mark.parametrize(
    "reply",
    [
        "I'm not sure.",
        "I don't have access to your documents.",
        "I cannot find that.",
        "You should consult the user manual of your boiler.",
        "It depends on the model.",
        "Most leases allow cats.",
        "Could you provide more details?",
    ],
)
def test_a_guess_is_known(reply: str) -> None:
    assert knows_nothing(reply)


@pytest.mark.parametrize(
    "reply",
    ["Paris.", "Turn the valve a quarter of a turn.", "It is 20 degrees.", "Two plus two is four."],
)
def test_an_answer_is_no_guess(reply: str) -> None:
    assert not knows_nothing(reply)


def test_a_denial_is_known() -> None:
    assert knows_nothing("The documents don't mention a garage.")
    assert knows_nothing("There is no information about that in the notes.")
    assert not knows_nothing("F28 means that no gas arrives.")


TEXTS = [
    SourceText("Boiler manual, Fault codes", "F28 means that no gas arrives."),
    SourceText("Lease, Pets", "Cats and small animals are allowed."),
]


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ("It means that no gas arrives.", "Boiler manual, Fault codes"),
        ("Yes, cats are allowed.", "Lease, Pets"),
        ("Yes.", None),
        ("The boiler manual says that no gas arrives.", None),
        ("Elephants sleep standing.", None),
    ],
)
def test_the_source_is_the_text_that_the_reply_shares_words_with(
    reply: str, source: str | None
) -> None:
    assert unnamed_source(reply, TEXTS) == source


@pytest.mark.parametrize(
    "output",
    ["", "[]", "{}", '{"answer_from": 3}', '{"answer_from": [{"source": 1}]}', "[" * 99_999],
)
def test_a_result_of_another_form_has_no_sources(output: str) -> None:
    assert source_texts(output) == []
