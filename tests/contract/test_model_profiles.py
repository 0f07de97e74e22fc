"""How a model was asked is kept for the next session, for as long as it holds."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from livekit.agents.llm import ChatContext, function_tool

from caal_node.cli.checks.model import check_call_strategy
from caal_node.config.settings import Settings
from caal_node.core import paths
from caal_node.evaluation.model_profiles import KEPT_DAYS, TEXT_KEPT_DAYS, ModelProfiles, choose
from caal_node.evaluation.store import PROFILES_KEPT, EvaluationStore
from caal_node.factories import make_llm, session_llm
from caal_node.models.model_preparation import PROBE_VERSION
from tests.stand_ins.stand_in_model import Call, End, StandInModel

CALLS = [Call("get_weather", {"city": "Oslo"})]


def of(server: StandInModel, **more: object) -> Settings:
    return Settings(ollama_host=server.url, model=server.model, **more)  # type: ignore[arg-type]


def profiles() -> dict[str, str]:
    """The kept profiles as they are written, by their key."""
    with closing(sqlite3.connect(paths.validations())) as connection:
        return dict(connection.execute("SELECT key, profile FROM profile"))


async def rewrite(change: Callable[[str], str]) -> None:
    """Change the one kept profile on disk."""
    [(key, written)] = (await asyncio.to_thread(profiles)).items()
    store = EvaluationStore()
    await asyncio.to_thread(store.change_profile, key, lambda _: change(written))


@function_tool
async def get_weather(city: str) -> str:
    """Weather of a city."""
    return f"Sunny in {city}."


async def begun(settings: Settings) -> None:
    """A session that finds out how its model is asked, and ends."""
    model = await session_llm(settings)
    await model.find_strategy()
    await model.aclose()


@pytest.mark.parametrize(
    ("reply", "native"), [(CALLS, True), (["It is cold."], False)], ids=["native", "text"]
)
async def test_the_next_session_does_not_find_out_again(
    reply: list[Call | str], native: bool
) -> None:
    async with StandInModel(reply) as server:
        await begun(of(server))
        assert len(server.chats) == 1
        model = await session_llm(of(server))
        await model.find_strategy()
        assert len(server.chats) == 1
        assert model.retry_policy.native is native
        assert ("in an earlier session" in model.retry_policy.stats.reason) is not native
        await model.aclose()


async def test_a_model_that_failed_in_a_session_is_asked_by_text_in_the_next() -> None:
    once = '{"calls":[{"name":"get_weather","arguments":{"city":"Oslo"}}]}'
    async with StandInModel(CALLS, [End()], [End()], [once]) as server:
        model = await session_llm(of(server))
        asked = ChatContext.empty()
        asked.add_message(role="user", content="weather in Oslo?")
        async with model.chat(chat_ctx=asked, tools=[get_weather]) as stream:
            called = [call.name async for c in stream if c.delta for call in c.delta.tool_calls]
        assert called == ["get_weather"]
        assert not model.retry_policy.native
        await model.aclose()
        choice = await choose(of(server))
        assert choice.asking == "text"
        assert "its own tool calls failed" in choice.why


async def test_other_weights_are_found_out_anew() -> None:
    async with StandInModel(CALLS) as server:
        await begun(of(server))
        assert (await choose(of(server))).asking == "native"
    async with StandInModel(CALLS, model="other") as other:
        assert (await choose(of(other))).asking is None


async def test_a_newer_version_of_the_server_is_found_out_anew() -> None:
    async with StandInModel(CALLS) as server:
        await begun(of(server))
        server.version = "0.18.0"
        assert (await choose(of(server))).asking is None


async def test_another_chat_template_is_found_out_anew() -> None:
    async with StandInModel(CALLS, llama=True) as server:
        settings = of(server, api="openai", base_url=server.openai_url)
        await begun(settings)
        assert (await choose(settings)).asking == "native"
        server.template = "{{ tools }}{{ messages }}"
        assert (await choose(settings)).asking is None


async def test_the_same_model_elsewhere_and_another_way_of_thinking_are_found_out_anew() -> None:
    """A stand-in says of itself what the real server says."""
    async with StandInModel(CALLS) as server, StandInModel() as real:
        await begun(of(server))
        assert (await choose(of(server))).asking == "native"
        assert (await choose(of(real))).asking is None
        assert (await choose(of(server, think=True))).asking is None


@pytest.mark.parametrize(
    ("reply", "days"),
    [(CALLS, KEPT_DAYS), (["It is cold."], TEXT_KEPT_DAYS)],
    ids=["calls", "text"],
)
async def test_an_old_profile_no_longer_holds(reply: list[Call | str], days: int) -> None:
    long_ago = (datetime.now(UTC) - timedelta(days=days, hours=1)).isoformat()
    async with StandInModel(reply) as server:
        await begun(of(server))
        await rewrite(lambda written: json.dumps({**json.loads(written), "at": long_ago}))
        assert (await choose(of(server))).asking is None


@pytest.mark.parametrize("version", [{}, {"probe": PROBE_VERSION + 1}], ids=["none", "newer"])
async def test_a_model_is_probed_again_after_another_version_of_the_probe(
    version: dict[str, int],
) -> None:
    def by_another_probe(written: str) -> str:
        kept = json.loads(written)
        assert kept.pop("probe") == PROBE_VERSION
        return json.dumps({**kept, **version})

    async with StandInModel(CALLS, ["It is cold."]) as server:
        await begun(of(server))
        await ModelProfiles(of(server)).keep_call_threshold("a prompt", 1.5)
        await rewrite(by_another_probe)
        assert (await choose(of(server))).asking is None
        await begun(of(server))
        assert len(server.chats) == 2
        assert (await choose(of(server))).asking == "text"
        assert await ModelProfiles(of(server)).call_threshold("a prompt") == 1.5


@pytest.mark.parametrize(
    "damage",
    ["", "{", '{"asking":"shouting"}', "x" * 9000],
    ids=["empty", "half", "unknown", "long"],
)
async def test_a_damaged_profile_is_found_out_anew_and_mended(damage: str) -> None:
    async with StandInModel(CALLS, CALLS) as server:
        await begun(of(server))
        await rewrite(lambda _: damage)
        await begun(of(server))
        assert len(server.chats) == 2
        assert (await choose(of(server))).asking == "native"


async def test_a_damaged_file_stops_no_session_and_is_left_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = paths.validations()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database")
    async with StandInModel(CALLS) as server:
        await begun(of(server))
        assert len(server.chats) == 1
    assert "move it away" in caplog.text
    assert path.read_bytes() == b"no database"


async def test_findings_and_profiles_share_a_file_made_before_there_were_profiles() -> None:
    await asyncio.to_thread(EvaluationStore().check)
    async with StandInModel(CALLS) as server:
        assert await ModelProfiles(of(server)).recall() is None
        await begun(of(server))
        assert (await choose(of(server))).asking == "native"
    assert await asyncio.to_thread(EvaluationStore().of, "ollama", server.model) == []


async def test_a_folder_that_cannot_be_written_stops_no_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    paths.state_folder().parent.mkdir(parents=True, exist_ok=True)
    paths.state_folder().write_text("a file where the folder should be")
    async with StandInModel(CALLS) as server:
        await begun(of(server))
    assert "cannot be opened or written" in caplog.text


@pytest.mark.parametrize("asking", ["auto", "native"])
async def test_a_model_that_thinks_aloud_is_known_in_the_next_session(asking: str) -> None:
    async with StandInModel(["Hm.</think>", *CALLS], ["Hm.</think>Hello."]) as server:
        await begun(of(server))
        model = await session_llm(of(server, tool_calls=asking))
        await model.find_strategy()
        assert model.retry_policy.thinks_aloud
        await model.aclose()
        assert (await choose(of(server))).asking == "native", "the rest is kept beside it"


async def test_what_is_configured_is_neither_recalled_nor_kept() -> None:
    async with StandInModel(["It is cold."]) as server:
        await begun(of(server))
        model = await session_llm(of(server, tool_calls="native"))
        await model.find_strategy()
        assert model.retry_policy.native
        await model.aclose()
        assert (await choose(of(server))).asking == "text"


async def test_without_a_choice_a_model_is_kept_all_the_same() -> None:
    async with StandInModel(CALLS) as server:
        model = make_llm(of(server))
        await model.find_strategy()
        await model.aclose()
    assert len(await asyncio.to_thread(profiles)) == 1


async def test_only_the_newest_profiles_stay() -> None:
    store = EvaluationStore()
    for number in range(PROFILES_KEPT):
        await asyncio.to_thread(store.change_profile, str(number), lambda _: "{}")
    async with StandInModel() as server:
        await ModelProfiles(of(server)).keep_strategy("text", "a test")
    kept = await asyncio.to_thread(profiles)
    assert len(kept) == PROFILES_KEPT
    assert "0" not in kept
    assert "1" in kept


async def test_doctor_tells_of_an_earlier_session() -> None:
    async with StandInModel(["It is cold."]) as server:
        await begun(of(server))
        check, *_ = await check_call_strategy(of(server))
        assert len(server.chats) == 1
    assert check.found.startswith("the text protocol: in an earlier session it answered")
