"""A model's server gives vectors in both forms: right, wrong, late, and cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from pydantic import SecretStr

from caal_node.cli.checks.tools import check_embedding
from caal_node.config.settings import Settings, load_settings
from caal_node.models.embedding import BATCH, MAX_CHARS, ServerEmbedder, make_embedder
from caal_node.redaction.settings import RedactionSettings
from caal_node.weights import MINILM
from mcp_bridge import EmbeddingUnavailable, MiniLM
from tests.stand_ins.cached_weights import cached
from tests.stand_ins.conversation import NOWHERE
from tests.stand_ins.embedding_server import EmbeddingServer, embedding_server
from tests.stand_ins.embedding_stand_ins import vector

FORMS = ["ollama", "openai"]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with embedding_server() as found:
        yield found


def chosen(server: EmbeddingServer, form: str, **settings: Any) -> Settings:
    url = server.url if form == "ollama" else f"{server.url}/v1"
    given = {"CAAL_EMBEDDING": f"{form}:small@{url}"}
    return load_settings(given, NOWHERE).model_copy(update=settings)


async def embedder_of(settings: Settings) -> ServerEmbedder:
    found = make_embedder(settings)
    assert isinstance(found, ServerEmbedder)
    return found


@pytest.mark.parametrize("api", FORMS)
async def test_texts_become_rows_of_unit_length_in_their_order(
    server: EmbeddingServer, api: str
) -> None:
    embedder = await embedder_of(chosen(server, api))
    texts = [f"lamp {n}" for n in range(2 * BATCH + 1)]
    try:
        rows = await embedder.embed(texts)
    finally:
        await embedder.aclose()
    np.testing.assert_allclose(rows, [vector(text) for text in texts], atol=1e-6)
    assert rows.dtype == np.float32
    assert [len(body["input"]) for body in server.asked] == [BATCH, BATCH, 1]
    assert set(server.paths) == {"/api/embed" if api == "ollama" else "/v1/embeddings"}
    sent = server.asked[0]
    assert sent["model"] == "small"
    assert sent.get("keep_alive") == ("30m" if api == "ollama" else None)


# The key's middle is where a text is cut.
SAID = f"mail ann@example.org of /home/ann/a.txt {'word ' * 800}sk-{'x1Y' * 40}"


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_server_elsewhere_reads_neither_keys_nor_personal_data(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    asked: list[str] = []

    def judge(settings: Settings) -> bool:
        asked.append(settings.model_address)
        return elsewhere

    monkeypatch.setattr("caal_node.models.embedding.is_elsewhere", judge)
    redaction = RedactionSettings(personal=("email",), paths=True)
    embedder = await embedder_of(chosen(server, "openai", redaction=redaction))
    try:
        await embedder.embed([SAID, "turn on the lamp"])
    finally:
        await embedder.aclose()
    assert asked == [f"{server.url}/v1"]
    read, plain = server.asked[0]["input"]
    assert plain == "turn on the lamp"
    if elsewhere:
        assert read.startswith("mail [email] of ~/a.txt word ")
        assert read.endswith("word ***")
    else:
        assert read == SAID[:MAX_CHARS]


async def test_one_of_this_machine_reads_no_more_where_local_models_are_redacted(
    server: EmbeddingServer,
) -> None:
    redaction = RedactionSettings(personal=("email",), local_models=True)
    embedder = await embedder_of(chosen(server, "ollama", redaction=redaction))
    try:
        await embedder.embed(["ask ann@example.org"])
    finally:
        await embedder.aclose()
    assert server.asked[0]["input"] == ["ask [email]"]


async def test_it_can_be_used_again_after_closing(server: EmbeddingServer) -> None:
    embedder = await embedder_of(chosen(server, "ollama"))
    for _ in range(2):
        assert len(await embedder.embed(["a"])) == 1
        await embedder.aclose()


async def test_the_key_goes_to_the_server_that_it_is_for_and_no_other(
    server: EmbeddingServer,
) -> None:
    key = SecretStr("-".join(["a", "key"]))
    own = chosen(server, "openai", api="openai", base_url=f"{server.url}/v1", api_key=key)
    for settings in (own, chosen(server, "openai", api_key=key)):
        embedder = await embedder_of(settings)
        await embedder.embed(["a"])
        await embedder.aclose()
    assert server.keys == ["Bearer a-key", None]


def _json(body: Any) -> web.StreamResponse:
    return web.json_response(body)


@pytest.mark.parametrize(
    "rows",
    [None, [], "text", [[]], [[0.0, 0.0]], [["a"]], [[1.0], [1.0]], [[float("nan")]], [{}]],
    ids=str,
)
@pytest.mark.parametrize("api", FORMS)
async def test_an_answer_that_is_no_vectors_is_an_error_of_ours(
    server: EmbeddingServer, api: str, rows: Any
) -> None:
    listed: list[Any] = rows if isinstance(rows, list) else [rows]
    body = {
        "embeddings": rows,
        "data": [{"index": at, "embedding": row} for at, row in enumerate(listed)],
    }
    server.answer = lambda _: _json(body)
    embedder = await embedder_of(chosen(server, api))
    with pytest.raises(EmbeddingUnavailable, match="answered with no vectors"):
        await embedder.embed(["a"])
    await embedder.aclose()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _: web.Response(text="<html>"), "no vectors"),
        (lambda _: web.Response(text="[" * 100_000), "no vectors"),
        (
            lambda _: web.Response(text='{"embeddings": [[' + "1," * 600_000 + "1]]}"),
            "longer|bytes",
        ),
        (
            lambda _: web.json_response({"error": "model not found"}, status=404),
            "ollama pull small",
        ),
        (lambda _: web.Response(status=404), r"/api/embed does not .*; correct CAAL_EMBEDDING$"),
        (lambda _: web.json_response({"error": "broken"}, status=500), "broken"),
    ],
    ids=["no JSON", "too deep", "too long", "no such model", "no such page", "an error"],
)
async def test_a_server_that_fails_is_told_in_one_line(
    server: EmbeddingServer, answer: Any, told: str
) -> None:
    server.answer = answer
    embedder = await embedder_of(chosen(server, "ollama"))
    with pytest.raises(EmbeddingUnavailable, match=told) as caught:
        await embedder.embed(["a secret text"])
    assert "\n" not in str(caught.value)
    assert "secret text" not in str(caught.value)
    await embedder.aclose()


async def test_rows_of_different_lengths_are_refused(server: EmbeddingServer) -> None:
    server.answer = lambda rows: _json({"embeddings": [row[-len(rows) :] for row in rows]})
    embedder = await embedder_of(chosen(server, "ollama"))
    with pytest.raises(EmbeddingUnavailable, match="different lengths"):
        await embedder.embed(["a"] * (BATCH + 1))
    await embedder.aclose()


async def test_a_server_that_is_not_there_is_told_with_its_fix() -> None:
    embedder = ServerEmbedder("small", api="ollama", base_url="http://127.0.0.1:9")
    with pytest.raises(EmbeddingUnavailable, match=r"127\.0\.0\.1:9; start it"):
        await embedder.embed(["a"])
    await embedder.aclose()


@pytest.mark.parametrize("api", FORMS)
async def test_who_gives_up_leaves_no_request_behind(server: EmbeddingServer, api: str) -> None:
    server.held.clear()
    embedder = await embedder_of(chosen(server, api))
    asking = asyncio.create_task(embedder.embed(["a"]))
    async with asyncio.timeout(20):
        await server.arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.gone.wait()
    server.held.set()
    assert len(await embedder.embed(["a"])) == 1
    await embedder.aclose()


@pytest.mark.parametrize(
    ("value", "api", "address"),
    [
        ("ollama:small", "ollama", "http://127.0.0.1:11434"),
        ("openai:small", "openai", "http://127.0.0.1:11434/v1"),
        ("small@http://box:1", "ollama", "http://box:1"),
        ("openai:a/b:c@https://box/v1", "openai", "https://box/v1"),
    ],
)
async def test_a_setting_names_api_model_and_address(value: str, api: str, address: str) -> None:
    embedder = await embedder_of(load_settings({"CAAL_EMBEDDING": value}, NOWHERE))
    assert embedder.name.startswith(f"{api}:")
    assert embedder.name.endswith(f"@{address}")


async def test_doctor_tells_the_state_and_the_fix(
    server: EmbeddingServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (off,) = await check_embedding(load_settings({}, NOWHERE))
    assert (off.status, off.found) == ("ok", "off: tools are searched for without a model")
    (good,) = await check_embedding(chosen(server, "openai"))
    assert good.status == "ok"
    assert "13 dimensions" in good.found
    server.answer = lambda _: web.json_response({"error": "model 'small' not found"}, status=404)
    (bad,) = await check_embedding(chosen(server, "ollama"))
    assert (bad.status, bad.fix) == ("warn", "run: ollama pull small")
    assert bad.found.endswith("tools are searched for without a model")
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    (missing,) = await check_embedding(load_settings({"CAAL_EMBEDDING": "minilm"}, NOWHERE))
    assert missing.status == "warn"
    assert missing.fix == "Run: python -m caal_node.weights all-minilm-l6-v2"


def test_missing_weights_are_a_warning_with_the_command_and_are_not_fetched(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path))
    assert make_embedder(load_settings({"CAAL_EMBEDDING": "minilm"}, NOWHERE)) is None
    assert "run: python -m caal_node.weights all-minilm-l6-v2" in caplog.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.model
async def test_doctor_tries_the_real_model() -> None:
    cached(MINILM)
    settings = load_settings({"CAAL_EMBEDDING": "minilm"}, NOWHERE)
    (good,) = await check_embedding(settings)
    assert good.status == "ok"
    assert good.found.startswith("all-MiniLM-L6-v2, 384 dimensions")
    first = make_embedder(settings)
    assert isinstance(first, MiniLM)
    assert make_embedder(settings) is first, "one for the whole process"
