"""Workflows as an agent's tools: what a model gets, what a person hears, what a reload does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from livekit.agents import llm

import n8n
from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.control.messages import ReloadReport, ReloadRequest
from caal_node.core.errors import ConfigError, ToolBroke, ToolFailure
from caal_node.core.events import ToolCallEnded, ToolProgress, TurnEnded
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.chat_context import to_schemas
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources import n8n as n8n_source
from caal_node.tools.sources.configured import n8n_tier
from caal_node.tools.sources.n8n import FAILURES, N8nToolSource, failure_of
from mcp_bridge import Answer, Question
from n8n.discovery import discover
from tests.recorded_n8n import RecordedN8n
from tests.stand_ins.conversation import NOWHERE, FakeTier, conversation
from tests.stand_ins.stand_in_model import Call, StandInModel

CALL = Call("get_weather", {"city": "Paris"}, id="c1")
WORDS = "It is sunny in Paris."


@asynccontextmanager
async def tier_of(recorded: RecordedN8n, **more: Any) -> AsyncGenerator[N8nToolSource]:
    options: dict[str, Any] = {
        "mcp_token": None,
        "api_key": recorded.api_key,
        "call_timeout_s": 5,
        **more,
    }
    tier = N8nToolSource(recorded.base_url, **options)
    try:
        yield tier
    finally:
        await tier.aclose()


async def agent_of(recorded: RecordedN8n, tier: N8nToolSource) -> CaalAgent:
    settings = load_settings({"CAAL_CUES": "off"}, NOWHERE)
    agent = CaalAgent(settings=settings, tiers={"n8n": tier}, warm=False)
    await agent.reload_tools()
    return agent


async def test_workflows_that_stay_are_the_same_specs_and_are_named_and_described_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            threads.append(threading.current_thread())
            return work(*given)

        return run

    monkeypatch.setattr(discover, "assign_names", noted(discover.assign_names))
    monkeypatch.setattr(n8n_source, "spec_of", noted(n8n_source.spec_of))
    async with RecordedN8n() as recorded, tier_of(recorded) as tier:
        first, again = await tier.discover(), await tier.discover()
    assert first.specs
    assert again.specs is first.specs
    assert len(threads) == 2 * (1 + len(first.specs))
    assert threading.main_thread() not in threads


def prompt(agent: CaalAgent) -> str:
    """The tools as the model reads them."""
    return json.dumps(to_schemas(llm.ToolContext(agent.tools).flatten()))


async def asked_to_reload(agent: CaalAgent) -> ReloadReport:
    return await agent.on_reload(ReloadRequest())


@pytest.mark.parametrize("kind", FAILURES)
def test_each_failure_has_a_sentence_of_its_own(kind: n8n.Failure) -> None:
    failure = failure_of(n8n.N8nError(kind, "the model's text"))
    assert str(failure) == "the model's text"
    if kind == "invalid_arguments":
        return  # the model fixes its call; nobody hears of it
    said = sentence(failure.spoken)
    assert said != sentence("went_wrong")
    assert said != sentence("tool_failed")


def test_the_authors_words_go_with_a_failure() -> None:
    error = n8n.N8nError("rejected", "refused", spoken="I know no such town.")
    assert failure_of(error).words == "I know no such town."


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("fails_last_node", "workflow_failed"),
        ("fails_handled", "workflow_refused"),
        ("timeout_2s", "workflow_stopped"),
        ("secure_lookup", "workflow_locked"),
    ],
)
async def test_a_failed_run_is_a_failure_with_its_sentence(name: str, key: str) -> None:
    async with RecordedN8n() as recorded, tier_of(recorded) as tier:
        listing = await tier.discover()
        spec = next(s for s in listing.specs if s.name == name)
        with pytest.raises(ToolFailure) as caught:
            await tier.call(spec, {})
    assert caught.value.spoken == key
    assert "stack" not in str(caught.value)


async def test_a_call_past_its_time_has_n8ns_words_and_not_the_pipelines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The pipeline waits longer than the tier; on a busy machine it needs more than a second.
    monkeypatch.setattr("caal_node.tools.sources.n8n.SPARE_S", 10.0)
    async with (
        RecordedN8n(active=["get_weather"]) as recorded,
        tier_of(recorded, call_timeout_s=0.2) as tier,
        StandInModel([CALL], ["Sorry."]) as server,
    ):
        env = {"CAAL_TOOL_TIMEOUT": "0.2"}
        with recorded.hold("get_weather"):
            async with conversation(server, tier=cast("Any", tier), env=env) as talk:
                await talk.ask("weather?")
        told = json.loads(server.chats[1].json["messages"][-1]["content"])
    assert "It may still be running" in told["message"]
    assert told["say"] == sentence("workflow_slow")


def answering(value: Any) -> FakeTier:
    async def answer(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return FakeTier(answer=answer)


async def test_the_authors_sentence_is_spoken_without_asking_the_model_again() -> None:
    tier = answering(VerbatimResult({"message": WORDS, "high_c": 21}, WORDS))
    async with (
        StandInModel([CALL], ["And tomorrow?"]) as server,
        conversation(server, tier=tier) as talk,
    ):
        assert await talk.ask("weather in Paris?") == WORDS
        assert len(server.chats) == 1
        (ended,) = talk.events_of(ToolCallEnded)
        (turn,) = talk.events_of(TurnEnded)
        assert (ended.outcome, turn.requests) == ("ok", 1)
        kinds = [item.type for item in talk.history]
        assert kinds[-4:] == ["message", "function_call", "function_call_output", "message"]
        assert talk.history[-1].text_content == WORDS
        # The next turn goes on from there: the call, its result, and what was said.
        await talk.ask("and tomorrow?")
        roles = [message["role"] for message in server.chats[1].json["messages"]]
        assert roles[-5:] == ["user", "assistant", "tool", "assistant", "user"]


async def test_the_authors_sentence_for_a_failure_is_spoken_as_it_stands_too() -> None:
    failure = ToolBroke("train_times refused the call (404)")
    failure.words = "I know no station named Rome."
    async with (
        StandInModel([CALL]) as server,
        conversation(server, tier=answering(failure)) as talk,
    ):
        assert await talk.ask("trains to Rome?") == failure.words
        assert len(server.chats) == 1
        (ended,) = talk.events_of(ToolCallEnded)
        assert ended.outcome == "error"


async def test_the_steps_of_a_streamed_run_are_told_as_progress_before_its_end() -> None:
    async with (
        RecordedN8n(active=["stream_steps"]) as recorded,
        tier_of(recorded) as tier,
        StandInModel([Call("stream_steps", {}, id="c1")]) as server,
        conversation(server, tier=tier) as talk,  # type: ignore[arg-type]
    ):
        assert await talk.ask("do it") == "It is done."
        (told,) = talk.events_of(ToolProgress)
        (ended,) = talk.events_of(ToolCallEnded)
        assert talk.events.index(told) < talk.events.index(ended)
    words = "Looking at the calendar."
    assert told == ToolProgress(ended.call_id, "stream_steps", "n8n", "n8n", 1.0, None, words)


class Progress:
    """A conversation that keeps the progress that is reported to it, and is never asked."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float | None, str]] = []

    def report_progress(self, done: float, total: float | None, message: str) -> None:
        self.steps.append((done, total, message))

    async def ask(self, question: Question) -> Answer:
        raise AssertionError("a workflow asks nobody")


async def test_a_run_that_says_nothing_has_ticks_and_no_progress(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "caal_node.tools")
    monkeypatch.setattr("n8n.client.PROGRESS_S", 0.001)
    progress = Progress()
    async with RecordedN8n(active=["get_weather"]) as recorded, tier_of(recorded) as tier:
        (spec,) = (await tier.discover()).specs
        with recorded.hold("get_weather") as held:
            call = asyncio.create_task(tier.call(spec, {"city": "Oslo"}, progress))
            await held.reached.wait()
            async with asyncio.timeout(10):
                while "get_weather still runs" not in caplog.text:  # noqa: ASYNC110 - a log tells none
                    await asyncio.sleep(0.01)
        await call
    assert progress.steps == []


async def test_each_step_is_told_once_however_often_the_run_is_heard_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def steps(*_: Any, on_progress: Any, **__: Any) -> n8n.CallResult:
        for step in (None, "One.", "One.", None, "Two.", "Two."):
            on_progress(n8n.Progress(1.0, 20.0, step))
        return n8n.CallResult("text", "Done.")

    progress = Progress()
    async with RecordedN8n(active=["get_weather"]) as recorded, tier_of(recorded) as tier:
        (spec,) = (await tier.discover()).specs
        monkeypatch.setattr(tier.workflows, "call", steps)
        assert await tier.call(spec, {}, progress) == "Done."
    assert progress.steps == [(1.0, None, "One."), (2.0, None, "Two.")]


async def test_a_cancelled_call_ends_its_request() -> None:
    async with RecordedN8n(active=["get_weather"]) as recorded, tier_of(recorded) as tier:
        (spec,) = (await tier.discover()).specs
        with recorded.hold("get_weather") as held:
            call = asyncio.create_task(tier.call(spec, {"city": "Oslo"}, Progress()))
            await held.reached.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert (await tier.call(spec, {"city": "Oslo"}))["city"] == "Oslo"


async def test_beside_another_call_the_authors_sentence_is_heard_and_the_model_answers() -> None:
    async def answer(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return (
            VerbatimResult({"message": WORDS}, WORDS)
            if arguments["city"] == "Paris"
            else {"high_c": 3}
        )

    calls = [CALL, Call("get_weather", {"city": "Oslo"}, id="c2")]
    async with (
        StandInModel(calls, ["In Oslo it is 3 degrees."]) as server,
        conversation(server, tier=FakeTier(answer=answer)) as talk,
    ):
        heard = await talk.ask("weather in Paris and Oslo?")
        assert WORDS in heard
        assert "In Oslo it is 3 degrees." in heard
        assert len(server.chats) == 2


async def test_a_result_without_such_a_sentence_is_answered_by_the_model() -> None:
    async with (
        StandInModel([CALL], ["Sunny."]) as server,
        conversation(server, tier=answering({"message": WORDS})) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "Sunny."
        assert len(server.chats) == 2


async def test_a_reload_tells_what_came_and_went_and_the_rest_of_the_prompt_stays() -> None:
    async with RecordedN8n(active=["echo", "get_weather"]) as recorded, tier_of(recorded) as tier:
        agent = await agent_of(recorded, tier)
        before = prompt(agent)
        assert await asked_to_reload(agent) == ReloadReport(tool_count=2)
        assert prompt(agent) == before, "nothing changed, so not a byte of the prompt may"
        recorded.activate("list_events")
        recorded.deactivate("echo")
        told = await asked_to_reload(agent)
        assert told == ReloadReport(tool_count=2, added=("list_events",), removed=("echo",))
        assert '"get_weather"' in prompt(agent)
        recorded.instance.rename("get_weather", "weather_now")
        told = await asked_to_reload(agent)
        assert (told.added, told.removed) == (("weather_now",), ("get_weather",))


async def test_a_workflow_with_other_notes_is_told_as_changed() -> None:
    async with RecordedN8n(active=["get_weather", "echo"]) as recorded, tier_of(recorded) as tier:
        agent = await agent_of(recorded, tier)
        recorded.instance.publish("get_weather", notes="Tells the weather. Parameters: town.")
        told = await asked_to_reload(agent)
        assert told == ReloadReport(tool_count=2, changed=("get_weather",))


async def test_while_n8n_is_away_its_tools_stay_and_it_is_told_as_failed() -> None:
    async with RecordedN8n(active=["get_weather"]) as recorded, tier_of(recorded) as tier:
        agent = await agent_of(recorded, tier)
        before = prompt(agent)
        await recorded.aclose()
        told = await asked_to_reload(agent)
        assert told == ReloadReport(tool_count=1, failed=("n8n",))
        assert prompt(agent) == before
        with pytest.raises(ToolFailure) as caught:
            await tier.call(agent.table.resolve("get_weather").spec, {"city": "Oslo"})
        assert caught.value.spoken == "workflow_unreachable"


class Watched(N8nToolSource):
    """Tells of each look at n8n."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.looks: asyncio.Queue[int] = asyncio.Queue()

    async def discover(self) -> Any:
        found = await super().discover()
        self.looks.put_nowait(len(found.specs))
        return found

    async def seen(self, specs: int) -> None:
        """Wait until so many were found, and then taken over: a look ends after the one before."""
        async with asyncio.timeout(10):
            while await self.looks.get() != specs:
                pass
            await self.looks.get()


async def test_a_poll_finds_a_new_workflow_without_being_asked() -> None:
    async with RecordedN8n(active=["get_weather"]) as recorded, StandInModel(["Hi."]) as server:
        options: dict[str, Any] = {"mcp_token": None, "api_key": recorded.api_key}
        tier = Watched(recorded.base_url, **options, call_timeout_s=5, poll_s=0.01)
        async with conversation(server, tier=tier) as talk:  # type: ignore[arg-type]
            table = talk.agent.table
            await tier.seen(1)
            assert talk.agent.table is table, "nothing changed, so nothing is swapped"
            recorded.activate("echo")
            await tier.seen(2)
            assert [entry.exposed for entry in talk.agent.table] == ["echo", "get_weather"]
        ended = tier.looks.qsize()
        await asyncio.sleep(0)
        assert tier.looks.qsize() == ended, "a session that is over asks no more"


async def test_without_a_poll_n8n_is_asked_once() -> None:
    async with (
        RecordedN8n(active=["get_weather"]) as recorded,
        tier_of(recorded) as tier,
        StandInModel(["Hi."]) as server,
        conversation(server, tier=tier) as talk,  # type: ignore[arg-type]
    ):
        await talk.ask("hello")
        assert [seen.path for seen in recorded.requests] == ["/api/v1/workflows"]


async def test_a_long_description_is_cut_for_the_prompt_and_kept_for_discovery() -> None:
    notes = "Tells the weather of a town. " + "It knows a lot of towns. " * 40
    async with RecordedN8n(active=["get_weather"]) as recorded, tier_of(recorded) as tier:
        recorded.instance.publish("get_weather", notes=notes)
        agent = await agent_of(recorded, tier)
        spec = agent.table.resolve("get_weather").spec
        assert len(spec.description) <= 300
        assert spec.details == notes.strip()
        assert notes.strip() not in prompt(agent)


async def test_an_author_who_says_it_takes_long_gets_the_time() -> None:
    async with RecordedN8n(active=["get_weather"]) as recorded, tier_of(recorded) as tier:
        recorded.instance.publish("get_weather", notes="Writes it.\nTakes: 40 s")
        (spec,) = (await tier.discover()).specs
    assert spec.timeout_s is not None
    assert spec.timeout_s > 40


def test_webhook_credentials_come_from_the_settings() -> None:
    env = {"N8N_URL": "http://127.0.0.1:1", "N8N_AUTH": '{"a": {"header": "X-Key", "value": "v"}}'}
    n8n_tier(load_settings(env, NOWHERE))
    env["N8N_AUTH"] = '{"a": {"heder": "X-Key", "value": "s3cret"}}'
    with pytest.raises(ConfigError, match="n8n_auth, a: write") as caught:
        n8n_tier(load_settings(env, NOWHERE))
    assert "s3cret" not in str(caught.value)
    env["N8N_AUTH"] = "s3cret"
    with pytest.raises(ConfigError, match="N8N_AUTH: write a JSON object") as caught:
        load_settings(env, NOWHERE)
    assert "s3cret" not in str(caught.value)
