"""Any LiveKit model behind the node's own understanding, and another model in mid-conversation."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents import llm
from livekit.plugins import openai
from pydantic import SecretStr

from caal_node.config.settings import Settings
from caal_node.control.listener import chosen_model
from caal_node.control.messages import ModelRequest
from caal_node.core.addresses import parse_reference
from caal_node.core.errors import ConfigError, ModelMissing, NotAllowed
from caal_node.core.prompt_files import sentence
from caal_node.models.llm import LLM
from caal_node.models.model_settings import make_backend
from tests.stand_ins.conversation import Conversation, conversation
from tests.stand_ins.stand_in_model import Call, Refuse, StandInModel, Wait

WEATHER = Call("get_weather", {"city": "Paris"}, id="c1")
LEAKED = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def plugin(server: StandInModel) -> llm.LLM:
    return openai.LLM(model=server.model, base_url=server.openai_url, api_key="none")


async def asks_with(talk: Conversation, model: llm.LLM) -> None:
    """Have the conversation's session ask `model` from now on."""
    talk.session._llm = model  # pyright: ignore[reportPrivateUsage]  # the test's own session


@pytest.mark.parametrize("reply", [WEATHER, LEAKED], ids=["structured", "leaked"])
async def test_the_calls_of_a_plugins_model_are_run_however_they_come(reply: Call | str) -> None:
    async with (
        StandInModel() as unused,
        StandInModel([reply], ["Sunny."]) as server,
        conversation(unused) as talk,
    ):
        model = LLM.over(plugin(server))
        await asks_with(talk, model)
        assert await talk.ask("weather in Paris?") == "Sunny."
        assert talk.tier.calls == [("get_weather", {"city": "Paris"})]
        offered = server.chats[0].json["tools"][0]["function"]
        assert offered["name"] == "get_weather"
        assert offered["parameters"]["required"] == ["city"]
        await model.aclose()


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "model_failed"), (400, "model_context_full"), (503, "model_unreachable")],
)
async def test_a_plugins_failure_is_said_as_a_local_models_is(status: int, said: str) -> None:
    words = "maximum context length is 8192 tokens" if status == 400 else "no"
    async with (
        StandInModel() as unused,
        StandInModel(answer=lambda asked: [Refuse(status, words)]) as server,
        conversation(unused) as talk,
    ):
        model = LLM.over(plugin(server))
        await asks_with(talk, model)
        assert await talk.ask("hello") == sentence(said)
        await model.aclose()


async def test_the_next_turn_asks_the_new_model_with_the_whole_history() -> None:
    async with (
        StandInModel(["One."]) as first,
        StandInModel([WEATHER], ["Two."]) as second,
        conversation(first) as talk,
    ):
        await talk.ask("which are you?")
        await talk.model.switch(second.model, "openai", second.openai_url, native_tools=True)
        assert await talk.ask("and now?") == "Two."
        assert talk.model.provider == "openai"
        said = [m["content"] for m in second.chats[0].json["messages"] if m["role"] != "system"]
        assert said[:3] == ["which are you?", "One.", "and now?"]


async def test_a_model_that_is_not_there_leaves_the_old_one_in_use() -> None:
    async with StandInModel(["Still here."]) as server, conversation(server) as talk:
        with pytest.raises(ModelMissing):
            await talk.model.switch("no-such-model", base_url=server.url)
        assert talk.model.model == server.model
        assert await talk.ask("are you there?") == "Still here."


async def test_a_reply_under_way_ends_on_the_model_that_began_it() -> None:
    go_on = asyncio.Event()
    async with (
        StandInModel([Wait(go_on), "The old one says this."]) as first,
        StandInModel(["The new one says that."]) as second,
        conversation(first) as talk,
    ):
        turn = asyncio.create_task(talk.ask("hello"))
        await first.request_arrived()
        await talk.model.switch(second.model, "ollama", second.url, native_tools=True)
        go_on.set()
        assert await turn == "The old one says this."
        assert await talk.ask("hello again") == "The new one says that."


def test_a_factory_that_gives_no_model_is_told_by_its_setting() -> None:
    with pytest.raises(ConfigError, match="CAAL_MODEL"):
        make_backend("builtins:dict", "livekit", None, None)


async def test_the_control_api_changes_the_model_of_a_live_agent() -> None:
    async with (
        StandInModel(["One."]) as first,
        StandInModel([WEATHER], ["Two."]) as second,
        conversation(
            first, env={"OLLAMA_HOST": first.url, "CAAL_MODEL_SERVERS": second.openai_url}
        ) as talk,
    ):
        await talk.ask("which are you?")
        report = await talk.agent.on_model(
            ModelRequest(model=second.model, api="openai", base_url=f"{second.openai_url}/")
        )
        assert (report.model, report.api) == (second.model, "openai")
        assert await talk.ask("and now?") == "Two."
        with pytest.raises(ConfigError, match="livekit"):
            await talk.agent.on_model(ModelRequest(model="os:getcwd", api="livekit"))
        with pytest.raises(ModelMissing):
            await talk.agent.on_model(
                ModelRequest(model="nobody", api="ollama", base_url=first.url)
            )
        with pytest.raises(NotAllowed, match="CAAL_MODEL_SERVERS"):
            await talk.agent.on_model(ModelRequest(model="m", base_url="http://169.254.169.254"))
        assert talk.model.provider == "openai"


async def test_a_model_without_an_address_is_asked_at_the_settings_own() -> None:
    async with (
        StandInModel(["One."]) as first,
        StandInModel([WEATHER], ["Two."]) as second,
        conversation(first, env={"OLLAMA_HOST": second.url}) as talk,
    ):
        await talk.ask("which are you?")
        await talk.agent.on_model(ModelRequest(model=second.model))
        assert await talk.ask("and now?") == "Two."


def test_a_callers_model_keeps_the_owners_key_at_the_owners_server() -> None:
    settings = Settings(
        api="openai",
        base_url="http://own:1/v1",
        api_key=SecretStr("key"),
        model_servers=("http://other:2/v1",),
    )
    own = chosen_model(settings, ModelRequest(model="m"), in_use="openai")
    assert (own.model_address, own.api_key) == ("http://own:1/v1", settings.api_key)
    other = ModelRequest(model="m", base_url="http://other:2/v1")
    assert chosen_model(settings, other, in_use="openai").api_key is None
    with pytest.raises(NotAllowed, match="code to be run"):
        chosen_model(settings, ModelRequest(model="os:getcwd"), in_use="livekit")
    with pytest.raises(NotAllowed, match="a file of this machine"):
        chosen_model(settings, ModelRequest(model="/any/file.gguf"), in_use="embedded")
    by_name = ModelRequest(model="m", api="ollama")
    assert chosen_model(settings, by_name, in_use="livekit").api == "ollama"
    assert (
        settings.with_model(parse_reference("embedded:mine.gguf")).listed_server("http://x") is None
    )
