"""A chain of models: the next one answers where one fails, and unfit ones are left out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.config.setting_tables import Cues, Fallbacks
from caal_node.config.settings import Settings
from caal_node.core.addresses import ModelReference
from caal_node.core.errors import ModelUnreachable
from caal_node.evaluation.store import EvaluationStore, Identity, Outcome, Validation
from caal_node.evaluation.suites import SUITES, Asking
from caal_node.factories import session_llm
from caal_node.models.fallback import FallbackLLM
from caal_node.models.llm import LLM
from tests.stand_ins.conversation import Conversation, FakeTier
from tests.stand_ins.stand_in_model import Break, Call, Hang, Refuse, StandInModel, Wait

WEATHER = Call("get_weather", {"city": "Paris"}, id="c1")
CALLS = '{"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]}'
NOBODY = "http://127.0.0.1:9"
EVENT_S = 20.0
"""For what must come; a test that runs into it has failed."""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAAL_STATE", str(tmp_path))


def member(url: str, *, native: bool = True, model: str = "stand-in") -> LLM:
    return LLM(model, "ollama", url, native_tools=native)


async def asked(server: StandInModel, times: int) -> None:
    """Returns once the server has been asked for so many replies."""
    async with asyncio.timeout(EVENT_S):
        while len(server.chats) < times:
            await server.request_arrived()


@asynccontextmanager
async def talking(
    members: Sequence[LLM], *, reply_within_s: float | None = None, warm: bool = False
) -> AsyncIterator[Conversation]:
    tier = FakeTier()
    chain = FallbackLLM(members, reply_within_s=reply_within_s)
    agent = CaalAgent(settings=Settings(cues=Cues(on=False)), tiers={"n8n": tier}, warm=warm)
    try:
        async with Conversation(agent, chain, tier) as talk:
            yield talk
    finally:
        await chain.aclose()


async def test_the_next_model_answers_a_whole_turn_where_the_first_is_not_there() -> None:
    async with (
        StandInModel([WEATHER], ["It is sunny in Paris."]) as second,
        talking([member(NOBODY), member(second.url)]) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "It is sunny in Paris."
        assert talk.tier.calls == [("get_weather", {"city": "Paris"})]
        first, then = (request.json for request in second.chats)
        # The chain is asked as any model of ours: complete first, and streamed with the result.
        assert (first["stream"], then["stream"]) == (False, True)


async def test_a_busy_model_is_passed_over_and_tried_again_behind_the_scenes() -> None:
    async with (
        StandInModel([Refuse(503, "overloaded")], ["I am back."], ["Hello again."]) as first,
        StandInModel(["Good morning."]) as second,
        talking([member(first.url), member(second.url)]) as talk,
    ):
        assert await talk.ask("hello") == "Good morning."
        await asked(first, 2)
        assert len(second.chats) == 1


async def test_a_model_that_gives_nothing_in_time_is_passed_over() -> None:
    async with (
        StandInModel(answer=lambda _: [Hang()]) as first,
        StandInModel(["Good morning."]) as second,
        talking([member(first.url), member(second.url)], reply_within_s=2) as talk,
    ):
        assert await talk.ask("hello") == "Good morning."
        async with asyncio.timeout(EVENT_S):
            await first.client_gone()


async def test_the_last_model_may_take_longer_as_nobody_comes_after_it() -> None:
    loaded = asyncio.Event()
    async with (
        StandInModel(answer=lambda _: [Wait(loaded), "Good morning."]) as last,
        talking([member(NOBODY), member(last.url)], reply_within_s=0.2) as talk,
    ):
        asyncio.get_running_loop().call_later(1.0, loaded.set)
        assert await talk.ask("hello") == "Good morning."
        assert len(last.chats) == 1


async def test_closing_ends_what_is_asked_behind_the_scenes() -> None:
    async with StandInModel([Refuse(503, "overloaded")], [Hang()]) as first:
        async with (
            StandInModel(["Good morning."]) as second,
            talking([member(first.url), member(second.url)]) as talk,
        ):
            await talk.ask("hello")
            await asked(first, 2)  # the second question, to see whether it is back
        async with asyncio.timeout(EVENT_S):
            await first.client_gone()


async def test_speech_is_never_said_again_by_the_next_model() -> None:
    async with (
        StandInModel([WEATHER], ["It is sunny", Break("out of memory")]) as first,
        StandInModel(["It is sunny in Paris."]) as second,
        talking([member(first.url), member(second.url)]) as talk,
    ):
        said = await talk.ask("weather in Paris?")
        assert said.startswith("It is sunny")
        assert said.count("sunny") == 1
        assert second.chats == []


async def test_where_all_fail_each_had_its_turn_once_and_an_apology_is_said() -> None:
    async with (
        StandInModel(answer=lambda _: [Refuse(503, "overloaded")]) as first,
        StandInModel(answer=lambda _: [Refuse(503, "overloaded")]) as second,
        talking([member(first.url), member(second.url)]) as talk,
    ):
        assert (await talk.ask("hello")).startswith("Sorry")
        # In the turn, and then once behind the scenes.
        assert len(first.chats) <= 2
        assert len(second.chats) <= 2


async def test_each_model_is_asked_in_its_own_way() -> None:
    async with (
        StandInModel(
            ['{"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]}']
        ) as by_text,
        talking([member(NOBODY), member(by_text.url, native=False)]) as talk,
    ):
        by_text.add(['{"say": "Sunny."}'])
        assert await talk.ask("weather in Paris?") == "Sunny."
        assert "tools" not in by_text.chats[0].json


async def test_the_first_model_that_can_be_is_warmed() -> None:
    async with (
        StandInModel(answer=lambda _: ["."]) as second,
        StandInModel(answer=lambda _: ["."]) as third,
    ):
        async with talking(
            [member(NOBODY), member(second.url), member(third.url)], warm=True
        ) as talk:
            await talk.agent.warmed()
            history = talk.session.history
        assert len(second.chats) == 1
        assert third.chats == []
    chain = FallbackLLM([member(NOBODY), member(NOBODY)])
    with pytest.raises(ModelUnreachable):
        await chain.warm(chain.question(history, []))
    await chain.aclose()


async def test_switching_puts_another_model_in_the_first_ones_place() -> None:
    async with (
        StandInModel(["I am the new one."], model="new") as new,
        StandInModel(["I am the second."]) as second,
        talking([member(NOBODY), member(second.url)]) as talk,
    ):
        chain = talk.session.llm
        assert isinstance(chain, FallbackLLM)
        await chain.switch("new", "ollama", new.url, native_tools=True)
        assert chain.model == "new"
        assert await talk.ask("hello") == "I am the new one."
        assert second.chats == []


def test_a_chain_needs_a_model() -> None:
    with pytest.raises(ValueError, match="one at least"):
        FallbackLLM([])


# -- which ones are in a session's chain --------------------------------------------------------


def finding(
    server: StandInModel, *, asking: Asking = "native", passed: bool = True, digest: str = ""
) -> Validation:
    """As if `server`'s model had been validated."""
    mark = "right" if passed else "wrong"
    return Validation(
        *(server.model, "ollama", server.url),
        identity=Identity("ollama", "0.17.4", digest or server.model),
        at="2026-01-05T12:00:00+00:00",
        full=False,
        node_version="0.1.0",
        native_offered=True,
        outcomes=tuple(Outcome(suite.name, asking, "case", mark, "", 1, 1, 1) for suite in SUITES),
    )


async def keep(*findings: Validation) -> None:
    for found in findings:
        await asyncio.to_thread(EvaluationStore().add, found)


@asynccontextmanager
async def chain_of(settings: Settings) -> AsyncIterator[list[str]]:
    model = await session_llm(settings)
    try:
        members = model.members if isinstance(model, FallbackLLM) else (model,)
        yield [m.model for m in members]
    finally:
        await model.aclose()


def with_fallbacks(
    first: StandInModel, *others: StandInModel, only_validated: bool = False, **more: Any
) -> Settings:
    references = tuple(ModelReference(o.model, "ollama", o.url) for o in others)
    fallbacks = Fallbacks(models=references, only_validated=only_validated)
    return Settings(ollama_host=first.url, model=first.model, fallbacks=fallbacks, **more)


async def test_failed_fallbacks_are_left_out_and_only_validated_ones_stay_where_wished(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with AsyncExitStack() as stack:
        main, passed, failed, untried, stale = [
            await stack.enter_async_context(StandInModel(model=name))
            for name in ("main", "passed", "failed", "untried", "stale")
        ]
        await keep(
            finding(passed), finding(failed, passed=False), finding(stale, digest="sha256:old")
        )
        others = (passed, failed, untried, stale)
        async with chain_of(with_fallbacks(main, *others)) as names:
            assert names == ["main", "passed", "untried", "stale"]
        assert "the fallback failed is left out: failed, validated, 0 of" in caplog.text
        only = with_fallbacks(main, *others, only_validated=True)
        async with chain_of(only) as names:
            assert names == ["main", "passed"]
        assert "the model has changed since" in caplog.text
        assert untried.requests == []


async def test_the_sessions_own_model_stays_whatever_was_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with StandInModel() as server:
        await keep(finding(server, passed=False))
        async with chain_of(with_fallbacks(server, only_validated=True)) as names:
            assert names == ["stand-in"]
        assert "stand-in did not pass validation" in caplog.text


@pytest.mark.parametrize("asking", ["native", "text"])
async def test_a_validated_model_is_asked_as_it_was_found_best_without_a_sample_request(
    asking: Asking,
) -> None:
    async with StandInModel() as server:
        await keep(finding(server, asking=asking))
        model = await session_llm(with_fallbacks(server))
        await model.find_strategy()
        assert model.retry_policy.native == (asking == "native")
        assert server.chats == []
        await model.aclose()


async def test_what_is_configured_goes_before_what_was_found() -> None:
    async with StandInModel() as server:
        await keep(finding(server, asking="native"))
        model = await session_llm(with_fallbacks(server, tool_calls="text"))
        assert model.retry_policy.native is False
        await model.aclose()


async def test_a_stale_finding_leaves_it_to_the_sample_request() -> None:
    async with StandInModel([Call("get_weather", {"city": "Oslo"})]) as server:
        await keep(finding(server, asking="text", digest="sha256:old"))
        model = await session_llm(with_fallbacks(server))
        await model.find_strategy()
        assert model.retry_policy.native
        assert len(server.chats) == 1
        await model.aclose()


async def test_a_store_that_cannot_be_read_stops_no_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "validations.db").write_bytes(b"nothing of a database" * 30)
    async with StandInModel() as server, chain_of(with_fallbacks(server)) as names:
        assert names == ["stand-in"]
    assert "validations.db" in caplog.text
