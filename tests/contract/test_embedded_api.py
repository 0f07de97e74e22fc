"""`LLM(api="embedded")`: the engine behind the same interface as every server."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from livekit.agents import APIError, llm

from caal_node import LLM
from caal_node.config.settings import EMBEDDED, EMBEDDED_MODEL, Settings
from caal_node.core.errors import ModelMissing
from caal_node.core.items import UserItem
from caal_node.evaluation.model_profiles import identify
from caal_node.factories import make_llm
from caal_node.models.backends.base import BackendRequest, TextChunk
from caal_node.models.backends.embedded import EmbeddedBackend
from caal_node.weights import QWEN_CODER_05B
from tests.stand_ins.cached_weights import cached

pytestmark = [pytest.mark.model]
REQUEST = BackendRequest((UserItem("Say hello.", "1"),), max_tokens=4)


@pytest.fixture
def gguf() -> Path:
    pytest.importorskip("xllamacpp", reason="pip install 'caal-node[embedded]'")
    return cached(QWEN_CODER_05B)


@pytest_asyncio.fixture
async def backend(gguf: Path) -> AsyncIterator[EmbeddedBackend]:
    backend = EmbeddedBackend(str(gguf), num_ctx=512)
    yield backend
    await backend.aclose()


async def text(backend: EmbeddedBackend) -> str:
    chunks = [chunk async for chunk in backend.ask(REQUEST)]
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def pid_of(backend: EmbeddedBackend) -> int:
    engine = backend._engine  # pyright: ignore[reportPrivateUsage]
    assert engine is not None
    assert engine.pid is not None
    return engine.pid


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_the_settings_and_livekits_interface_reach_it(gguf: Path) -> None:
    settings = Settings(api="embedded", num_ctx=1024)
    assert (settings.model, settings.model_address) == (EMBEDDED_MODEL, EMBEDDED)
    model = make_llm(settings)
    asked = llm.ChatContext.empty()
    asked.add_message(role="user", content="Say hello.")
    reply = await model.chat(chat_ctx=asked).collect()
    assert reply.text
    assert reply.usage is not None
    assert (model.provider, model.model) == ("embedded", EMBEDDED_MODEL)
    identity = await identify(settings)
    assert identity.digest == f"{gguf.name}:{QWEN_CODER_05B.size}"
    await model.aclose()


def test_an_api_that_a_program_gives_has_its_own_default_model() -> None:
    given = Settings().with_given("LLM", {"api": "embedded"})
    assert (given.api, given.model) == ("embedded", EMBEDDED_MODEL)
    assert Settings(model="mine.gguf").with_given("LLM", {"api": "embedded"}).model == "mine.gguf"
    assert Settings().with_given("LLM", {"api": "embedded", "model": "a.gguf"}).model == "a.gguf"


async def test_two_who_ask_while_it_loads_share_one_engine(backend: EmbeddedBackend) -> None:
    first, second, can = await asyncio.gather(text(backend), text(backend), backend.capabilities())
    assert first
    assert second
    assert can.context_tokens == 512


async def test_whoever_gives_up_waiting_does_not_stop_the_loading(
    backend: EmbeddedBackend,
) -> None:
    impatient = asyncio.create_task(text(backend))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await text(backend)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
async def test_an_engine_that_was_killed_is_started_anew_and_closing_ends_it(
    backend: EmbeddedBackend,
) -> None:
    assert await text(backend)
    os.kill(pid_of(backend), signal.SIGKILL)
    async with asyncio.timeout(10):
        while backend._engine.alive:  # type: ignore[union-attr]  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await text(backend)
    pid = pid_of(backend)
    await backend.aclose()
    assert gone(pid)


async def test_closing_while_it_loads_leaves_no_process(backend: EmbeddedBackend) -> None:
    loading = asyncio.create_task(backend.capabilities())
    for _ in range(3):
        await asyncio.sleep(0)
    await backend.aclose()
    with pytest.raises(asyncio.CancelledError):
        await loading
    assert backend._engine is None  # pyright: ignore[reportPrivateUsage]


async def test_a_model_that_is_not_here_is_missing_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    model = LLM("qwen2.5-coder:0.5b", api="embedded")
    with pytest.raises(ModelMissing, match=r"python -m caal_node\.weights qwen2\.5-coder-0\.5b"):
        await model.backend.capabilities()
    with pytest.raises(APIError, match="not in the cache"):
        await model.chat(chat_ctx=llm.ChatContext.empty()).collect()
    await model.aclose()
