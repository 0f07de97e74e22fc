"""A model that reads its tools as Go structs is asked for calls in text."""

from __future__ import annotations

from typing import Final

import pytest

from caal_node.cli.checks.model import check_call_strategy
from caal_node.config.settings import Settings
from caal_node.core.items import UserItem
from caal_node.models.backends.base import BackendRequest
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.llm import LLM
from caal_node.models.model_preparation import FOUND_DUMPS, FOUND_NATIVE, probe
from tests.fixtures_models import OllamaModels
from tests.stand_ins.stand_in_model import Call, Refuse, StandInModel

TEMPLATE: Final = "{{ range .Tools }}{{ .Function }}{{ end }}{{ .Prompt }}"
DUMPED: Final = '{get_weather Current weather. {object <nil> <nil> [city] {"city":{}}}}'
READABLE: Final = '{"name":"get_weather","parameters":{"type":"object"}}'
CALLS: Final = [Call("get_weather", {"city": "Oslo"})]


def of(server: StandInModel, template: str, rendered: str | None) -> Settings:
    server.template, server.rendered = template, rendered
    return Settings(ollama_host=server.url, model=server.model)


def renders(server: StandInModel) -> list[dict[str, object]]:
    return [a.json for a in server.requests if b"_debug_render_only" in a.body]


@pytest.mark.parametrize(
    ("template", "rendered", "native"),
    [
        (TEMPLATE, DUMPED, False),
        (TEMPLATE, READABLE, True),
        (TEMPLATE, None, True),
        ("{{ .Prompt }}", DUMPED, True),
    ],
    ids=["structs", "JSON", "an older server", "a template without tools"],
)
async def test_what_the_model_reads_settles_how_it_is_asked(
    template: str, rendered: str | None, native: bool
) -> None:
    replies = [["It"], CALLS] if rendered is None else [CALLS]  # Older servers write a token.
    async with StandInModel(*replies) as server:
        settings = of(server, template, rendered)
        model = LLM(settings=settings)
        found = await probe(model.backend)
        await model.aclose()
        assert (found.native, found.why) == (native, FOUND_NATIVE if native else FOUND_DUMPS)
        assert len(server.chats) == 1
        for body in renders(server):
            assert body["stream"] is False
            assert body["tools"]
            assert body["options"]["num_predict"] == 1  # type: ignore[index]
        assert len(renders(server)) == (".Tools" in template)


async def test_a_server_that_refuses_the_question_is_asked_as_before() -> None:
    async with StandInModel([Refuse(400, "unknown field")], CALLS) as server:
        settings = of(server, TEMPLATE, None)
        model = LLM(settings=settings)
        assert (await probe(model.backend)).native
        await model.aclose()


@pytest.mark.parametrize("native", [None, True], ids=["not set", "set"])
async def test_native_tools_stay_where_they_are_set(native: bool | None) -> None:
    async with StandInModel(CALLS) as server:
        model = LLM(settings=of(server, TEMPLATE, DUMPED), native_tools=native)
        await model.find_strategy()
        stats = model.retry_policy.stats
        await model.aclose()
    assert (stats.native, stats.reason) == ((True, "") if native else (False, FOUND_DUMPS))


async def test_doctor_says_so_and_how_to_change_it() -> None:
    async with StandInModel(CALLS) as server:
        check, *_ = await check_call_strategy(of(server, TEMPLATE, DUMPED))
    assert check.status == "ok"
    assert check.found.startswith(f"the text protocol: {FOUND_DUMPS}")
    assert "{{ json .Function }}" in check.fix


@pytest.mark.ollama
@pytest.mark.model
async def test_a_real_ollama_prints_the_functions_of_qwens_template_as_structs(
    ollama: OllamaModels,
) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "get_weather", "description": "Weather.", "parameters": schema}
    request = BackendRequest(
        (UserItem("Hi."),), tools=({"type": "function", "function": function},)
    )
    for model, dumps in ((ollama.with_tools, True), (ollama.with_readable_tools, False)):
        backend = OllamaBackend(model, host=ollama.url, num_ctx=2048, options={"num_thread": 1})
        assert await backend.dumps_tools(request) is dumps
        await backend.aclose()
