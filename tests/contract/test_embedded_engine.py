"""The embedded engine as a process: it answers, it keeps the prefix, and it always ends."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
import textwrap
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from caal_node.core.errors import ConfigError, ModelError
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.weights import QWEN_CODER_05B
from tests.stand_ins.cached_weights import cached

# Two seconds alone; this is for a machine that does other things too.
DEADLINE_S = 90.0


@pytest.fixture(scope="module")
def gguf() -> Path:
    pytest.importorskip("xllamacpp", reason="pip install 'caal-node[embedded]'")
    return cached(QWEN_CODER_05B)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(gguf: Path) -> AsyncIterator[EmbeddedEngine]:
    """One for all tests that only ask it; each asks about a subject of its own."""
    async with EmbeddedEngine(gguf, ctx=2048) as engine:
        yield engine


async def ask(engine: EmbeddedEngine, *messages: dict[str, str], **more: object) -> dict[str, Any]:
    async with httpx2.AsyncClient(trust_env=False, timeout=DEADLINE_S) as client:
        body = {"model": engine.name, "messages": messages, "temperature": 0, **more}
        reply = await client.post(f"{engine.base_url}/chat/completions", json=body)
    reply.raise_for_status()
    return reply.json()


def system(subject: str) -> dict[str, str]:
    rules = " ".join(f"Rule {number}: be brief about {subject}." for number in range(12))
    return {"role": "system", "content": rules}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(pid: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while running(pid):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.02)


@pytest.mark.model
@pytest.mark.asyncio(loop_scope="module")
async def test_it_answers_under_its_name(engine: EmbeddedEngine) -> None:
    reply = await ask(engine, user("Say hello."), max_tokens=8)
    assert reply["model"] == engine.name == "qwen2.5-coder-0.5b-instruct-q4_k_m"
    assert reply["choices"][0]["message"]["content"].strip()


@pytest.mark.model
@pytest.mark.asyncio(loop_scope="module")
async def test_a_prompt_that_begins_alike_is_only_read_from_where_it_differs(
    engine: EmbeddedEngine,
) -> None:
    head = system("trains")
    first = await ask(engine, head, user("Where is Paris?"), max_tokens=4)
    then = await ask(engine, head, user("Where is Rome?"), max_tokens=4)
    assert first["timings"]["prompt_n"] > 90
    assert then["timings"]["prompt_n"] < 20


@pytest.mark.model
@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_in_between_does_not_cost_the_prefix(engine: EmbeddedEngine) -> None:
    head = system("ships")
    await ask(engine, head, user("Where is Paris?"), max_tokens=4)
    await ask(engine, system("planes"), user("Hello."), max_tokens=4)
    again = await ask(engine, head, user("Where is Rome?"), max_tokens=4)
    assert again["timings"]["prompt_n"] < 20


@pytest.mark.model
@pytest.mark.asyncio(loop_scope="module")
async def test_a_schema_holds_the_reply(engine: EmbeddedEngine) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    reply = await ask(
        engine,
        user("Which city is in Italy?"),
        max_tokens=30,
        response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
    )
    content = reply["choices"][0]["message"]["content"]
    assert content.replace(" ", "").replace("\n", "") in ('{"city":"Paris"}', '{"city":"Rome"}')


@pytest.mark.model
async def test_no_prompt_is_in_the_log_and_a_clean_end_removes_it(gguf: Path) -> None:
    async with EmbeddedEngine(gguf, ctx=2048) as engine:
        await ask(engine, user("The password is ZEBRA."), max_tokens=4)
        log, pid = engine.log, engine.pid
        assert log is not None
        assert pid is not None
        assert "ZEBRA" not in log.read_text(errors="replace")
        assert engine.alive
    assert not engine.alive
    assert not running(pid)
    assert not log.exists()


@pytest.mark.model
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
async def test_it_ends_when_its_parent_is_killed(gguf: Path) -> None:
    program = textwrap.dedent(
        f"""
        import asyncio
        from pathlib import Path
        from caal_node.models.embedded_engine import EmbeddedEngine
        async def main():
            async with EmbeddedEngine(Path({str(gguf)!r}), ctx=512) as engine:
                print(engine.pid, flush=True)
                await asyncio.sleep(1000)
        asyncio.run(main())
        """
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=PIPE)
    assert parent.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        pid = int(await parent.stdout.readline())
    assert running(pid)
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    await gone(pid)


@pytest.mark.model
async def test_loading_has_a_deadline(gguf: Path, tmp_path: Path) -> None:
    engine = EmbeddedEngine(gguf, ready_deadline_s=0.05, log=tmp_path / "log")
    with pytest.raises(ModelError, match="not loaded within"):
        async with engine:
            pass
    assert not engine.alive


async def test_a_file_that_is_no_model_is_named_with_the_engines_reason(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="pip install 'caal-node[embedded]'")
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"not a model")
    engine = EmbeddedEngine(path, log=tmp_path / "log")
    with pytest.raises(ConfigError, match=r"broken\.gguf: cannot be loaded \(.*error") as caught:
        async with asyncio.timeout(DEADLINE_S), engine:
            pass
    assert "\n" not in str(caught.value)
    assert not engine.alive


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="pip install 'caal-node[embedded]'")
    with pytest.raises(ConfigError, match=r"none\.gguf: no such file"):
        async with EmbeddedEngine(tmp_path / "none.gguf"):
            pass


async def test_a_missing_engine_names_the_command_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'caal-node\[embedded\]'"):
        async with EmbeddedEngine(tmp_path / "any.gguf"):
            pass
