"""The stand-in speaks in the shapes of the real servers, and both backends read the real bytes.

The recordings are of Ollama 0.17.4 and llama.cpp (xllamacpp 2026.10); see tests/recordings.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from caal_node.core.errors import (
    ModelContextFull,
    ModelError,
    ModelLacksTools,
    ModelMissing,
    ModelReplyError,
)
from caal_node.core.items import UserItem
from caal_node.models.backends.base import BackendRequest, Chunk, NativeCall, ReplyDone, TextChunk
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.backends.openai import CompletionsBackend, OpenAIBackend
from tests.stand_ins.stand_in_model import Call, End, Raw, Refuse, Reply, StandInModel, Vanish

RECORDINGS = Path(__file__).parents[1] / "recordings"
CALL = Call("get_time", {"tz": "UTC"})
LENGTH = ["One two three", End("length")]


def recording(name: str) -> dict[str, Any]:
    return json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))


def shape(value: Any) -> Any:
    """Keys and types of `value`, without what is in it. A list has the shapes of its members."""
    match value:
        case dict():
            members = cast("dict[str, Any]", value)
            return {key: shape(inner) for key, inner in sorted(members.items())}
        case list():
            return [shape(inner) for inner in cast("list[Any]", value)]
        case int() | float() if not isinstance(value, bool):
            return "number"
        case _:
            return type(value).__name__


def shapes(lines: list[str]) -> list[Any]:
    """The shapes of a stream's lines, each said once where it comes several times in a row."""
    found: list[Any] = []
    for line in lines:
        text = line.removeprefix("data: ")
        one = text if text in ("", "[DONE]") else shape(json.loads(text))
        # Empty lines part events; how they are placed is seen by the event's own reader.
        if one != "" and one not in found[-1:]:
            found.append(one)
    return found


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("ollama/text_streamed", ["Hi there"]),
        ("ollama/text_whole", ["Hi there"]),
        ("ollama/length_streamed", LENGTH),
        ("ollama/call_streamed", [CALL]),
        ("ollama/call_whole", [CALL]),
        ("ollama/refused_missing", []),
        ("ollama/refused_tools", []),
        ("ollama/refused_think", []),
        ("ollama/load", []),
        ("llama/text_streamed", ["Hi there"]),
        ("llama/text_whole", ["Hi there"]),
        ("llama/length_streamed", LENGTH),
        ("llama/call_streamed", [CALL]),
        ("llama/call_whole", [CALL]),
        ("llama/completion_streamed", ["Hi there"]),
        ("llama/completion_whole", ["Hi there"]),
        ("llama/refused_length", [Refuse(400, "too long")]),
    ],
)
async def test_its_replies_have_the_shape_of_recorded_ones(name: str, reply: Reply) -> None:
    real = recording(name)
    capabilities = ["completion"] if name.endswith("_tools") else ["completion", "tools"]
    async with (
        StandInModel(reply, capabilities=capabilities, llama=name.startswith("llama")) as server,
        httpx2.AsyncClient(trust_env=False) as client,
    ):
        body = real["request"]
        if isinstance(body, str):  # it was too long to keep, and only its refusal matters
            body = {"messages": [{"role": "user", "content": "?"}], "stream": True}
        elif body.get("model") != "nope":
            body["model"] = server.model
        answer = await client.post(server.url + real["path"], json=body)
    assert answer.status_code == real["status"]
    assert answer.headers["content-type"].partition(";")[0] == real["content_type"]
    said, recorded = shapes(answer.text.splitlines()), shapes(real["reply"])
    if name == "llama/refused_length":
        for key in ("n_ctx", "n_prompt_tokens"):  # figures of this one error
            recorded[0]["error"].pop(key)
    assert said == recorded


@pytest.mark.parametrize("name", ["ollama/v1_models", "llama/models"])
async def test_its_list_of_models_is_a_part_of_the_recorded_one(name: str) -> None:
    real = json.loads(recording(name)["reply"][0])
    async with (
        StandInModel(llama=name.startswith("llama")) as server,
        httpx2.AsyncClient(trust_env=False) as client,
    ):
        said = (await client.get(f"{server.url}/v1/models")).json()
    assert said["data"][0].keys() <= real["data"][0].keys()
    assert said["data"][0]["owned_by"] == real["data"][0]["owned_by"]


async def replay(name: str, backend: type[Any], url_name: str, **more: Any) -> list[Chunk]:
    """What `backend` reads from the recorded bytes of `name`."""
    real = recording(name)
    body = "\n".join(real["reply"]).encode() + b"\n"
    steps: Reply = [Raw(body), Vanish()]
    if real["status"] != 200:
        error = json.loads(body)["error"]
        steps = [Refuse(real["status"], error if isinstance(error, str) else error["message"])]
    async with StandInModel(steps) as server:
        asking = backend(server.model, **{url_name: server.url}, **more)
        try:
            stream = real["content_type"] != "application/json"
            request = BackendRequest(items=(UserItem("?"),), stream=stream)
            return [chunk async for chunk in asking.ask(request)]
        finally:
            await asking.aclose()


OLLAMA = (OllamaBackend, "host")
OPENAI = (OpenAIBackend, "base_url")
COMPLETIONS = (CompletionsBackend, "base_url")


@pytest.mark.parametrize(
    ("name", "api", "text", "reason"),
    [
        ("ollama/text_streamed", OLLAMA, "Hi! How can I assist you today?", "stop"),
        ("ollama/text_whole", OLLAMA, "Hi! How can I assist you today?", "stop"),
        ("ollama/length_streamed", OLLAMA, "Hi! How", "length"),
        ("ollama/schema_whole", OLLAMA, '{"say": "hi"}', "stop"),
        ("ollama/v1_streamed", OPENAI, "Hi! How", "length"),
        ("llama/text_streamed", OPENAI, "Hello! How can I assist you today?", "stop"),
        ("llama/text_whole", OPENAI, "Hello! How can I assist you today?", "stop"),
        ("llama/length_streamed", OPENAI, "Hello! How", "length"),
        ("llama/schema_whole", OPENAI, '{"say": "hi"}', "stop"),
        ("llama/completion_streamed", COMPLETIONS, "Hello! How", "length"),
        ("llama/completion_whole", COMPLETIONS, "Hello! How", "length"),
    ],
)
async def test_recorded_replies_are_read(
    name: str, api: tuple[type[Any], str], text: str, reason: str
) -> None:
    chunks = await replay(name, *api)
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == text
    last = chunks[-1]
    assert isinstance(last, ReplyDone)
    assert last.reason == reason
    assert last.usage.prompt > 0
    assert last.usage.completion > 0


@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("ollama/call_streamed", OLLAMA),
        ("ollama/call_whole", OLLAMA),
        ("llama/call_streamed", OPENAI),
        ("llama/call_whole", OPENAI),
    ],
)
async def test_recorded_calls_are_read(name: str, api: tuple[type[Any], str]) -> None:
    call, done = await replay(name, *api)
    assert isinstance(call, NativeCall)
    assert call.name == "get_time"
    assert "Tokyo" in json.loads(call.arguments)["tz"]
    assert call.id
    assert isinstance(done, ReplyDone)
    assert done.reason == "stop"


async def test_llamas_cache_is_counted() -> None:
    done = (await replay("llama/leak_whole", *OPENAI))[-1]
    assert isinstance(done, ReplyDone)
    assert 0 < done.usage.cached < done.usage.prompt


@pytest.mark.parametrize(
    ("name", "api", "kind"),
    [
        ("ollama/refused_missing", OLLAMA, ModelMissing),
        ("ollama/v1_missing", OPENAI, ModelMissing),
        ("ollama/refused_tools", OLLAMA, ModelLacksTools),
        ("ollama/refused_length", OLLAMA, ModelContextFull),
        ("llama/refused_length", OPENAI, ModelContextFull),
    ],
)
async def test_recorded_refusals_are_told_apart(
    name: str, api: tuple[type[Any], str], kind: type[ModelError]
) -> None:
    with pytest.raises(ModelError) as raised:
        await replay(name, *api)
    assert type(raised.value) is kind
    if isinstance(raised.value, ModelReplyError):
        assert raised.value.status == 400
        assert "context" in str(raised.value)
