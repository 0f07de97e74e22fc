"""Both backends against the stand-in server: what goes out, what comes back, what goes wrong."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from caal_node.core.errors import (
    ConfigError,
    ModelError,
    ModelLacksTools,
    ModelMissing,
    ModelReplyError,
    ModelTimeout,
    ModelUnreachable,
)
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends import base
from caal_node.models.backends.base import (
    BackendRequest,
    NativeCall,
    ReasoningChunk,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.backends.openai import OpenAIBackend
from tests.stand_ins import stand_in_model as stand_in
from tests.stand_ins.stand_in_model import StandInModel

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "add_event",
        "description": "Add to the calendar",
        "parameters": {
            "type": "object",
            "properties": {
                "when": {
                    "type": "object",
                    "properties": {"day": {"type": "string"}, "hour": {"type": "integer"}},
                    "required": ["day"],
                },
                "room": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            },
        },
    },
}
ITEMS: tuple[Item, ...] = (
    SystemItem("Be short."),
    UserItem("Two things."),
    AssistantItem("One moment."),
    CallItem("c1", "add_event", '{"when": {"day": "Monday"}}'),
    CallItem("c2", "get_time", "{}"),
    ResultItem("c1", "add_event", '{"ok":true}'),
    ResultItem("c2", "get_time", "noon"),
    UserItem("Thanks ☕"),
)
HELLO = BackendRequest(items=(UserItem("Hello"),))
Backend = OllamaBackend | OpenAIBackend
Make = Callable[..., Backend]


@pytest.fixture(params=["ollama", "openai"])
def api(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def make(api: str) -> AsyncIterator[Make]:
    made: list[Backend] = []

    def backend(server: StandInModel | str, model: str = "stand-in", **more: Any) -> Backend:
        url = server if isinstance(server, str) else server.url
        made.append(
            OllamaBackend(model, host=url, **more)
            if api == "ollama"
            else OpenAIBackend(model, base_url=url, **more)
        )
        return made[-1]

    yield backend
    for each in made:
        await each.aclose()


async def collect(backend: Backend, request: BackendRequest = HELLO) -> list[base.Chunk]:
    async with aclosing(backend.ask(request)) as chunks:
        return [chunk async for chunk in chunks]


async def until_error(backend: Backend) -> tuple[list[base.Chunk], ModelError]:
    """What arrived before the error, and the error."""
    seen: list[base.Chunk] = []
    chunks = backend.ask(HELLO)
    try:
        while True:
            seen.append(await anext(chunks))
    except ModelError as error:
        return seen, error


async def left_alone(server: StandInModel) -> None:
    """Returns once the client has left a reply unfinished."""
    async with asyncio.timeout(20):
        await server.client_gone()


def text_of(chunks: list[base.Chunk]) -> str:
    return "".join(c.text for c in chunks if isinstance(c, TextChunk))


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_is_text_then_done(make: Make, api: str, stream: bool) -> None:
    async with StandInModel(["It is  noon. ", "Really.\n"]) as server:
        chunks = await collect(make(server), BackendRequest(items=(UserItem("?"),), stream=stream))
    assert text_of(chunks) == "It is  noon. Really.\n"
    assert len(chunks) == (7 if stream else 2)
    cached = stand_in.CACHED_TOKENS if api == "openai" else 0
    assert chunks[-1] == ReplyDone("stop", Usage(stand_in.PROMPT_TOKENS, 5, cached))


async def test_half_a_surrogate_pair_costs_no_request(make: Make) -> None:
    async with StandInModel(["Yes."]) as server:
        assert text_of(await collect(make(server), BackendRequest((UserItem("x\ud800y"),))))
    assert server.chats[0].json["messages"][-1]["content"] == "x?y"


@pytest.mark.parametrize("stream", [True, False])
async def test_calls_keep_ids_order_and_nested_arguments(make: Make, stream: bool) -> None:
    arguments = {"when": {"day": "Dienstag ü", "hours": [1, 2.5, None]}, "b": {}}
    reply = [
        stand_in.Think("Hm, so."),
        "Right.",
        stand_in.Call("add_event", arguments, id="abc123"),
        stand_in.Call("get_time", {}, id="def456"),
    ]
    async with StandInModel(reply, capabilities=("completion", "tools", "thinking")) as server:
        request = BackendRequest(items=(UserItem("?"),), tools=(TOOL,), stream=stream)
        chunks = await collect(make(server, think=True), request)
    assert "".join(c.text for c in chunks if isinstance(c, ReasoningChunk)) == "Hm, so."
    assert text_of(chunks) == "Right."
    calls = [c for c in chunks if isinstance(c, NativeCall)]
    assert [(c.id, c.name) for c in calls] == [("abc123", "add_event"), ("def456", "get_time")]
    assert json.loads(calls[0].arguments) == arguments
    assert calls[1].arguments == "{}"
    assert isinstance(chunks[-1], ReplyDone)
    assert chunks[-1].reason == "stop"


async def test_a_cut_by_the_token_limit_is_told(make: Make) -> None:
    async with StandInModel(["Once upon", stand_in.End("length")]) as server:
        chunks = await collect(make(server))
    assert isinstance(chunks[-1], ReplyDone)
    assert chunks[-1].reason == "length"


async def test_the_conversation_on_ollamas_wire() -> None:
    schema = {"type": "object", "properties": {"say": {"type": "string"}}}
    async with StandInModel(["ok"]) as server:
        backend = OllamaBackend(
            "stand-in", host=server.url, keep_alive="5m", num_ctx=4096, options={"top_k": 3}
        )
        request = BackendRequest(
            items=ITEMS, tools=(TOOL,), schema=schema, max_tokens=9, stream=False
        )
        await collect(backend, request)
        await backend.aclose()
    assert server.chats[0].json == {
        "model": "stand-in",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "Two things."},
            {
                "role": "assistant",
                "content": "One moment.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "function": {
                            "index": 0,
                            "name": "add_event",
                            "arguments": {"when": {"day": "Monday"}},
                        },
                    },
                    {"id": "c2", "function": {"index": 1, "name": "get_time", "arguments": {}}},
                ],
            },
            {
                "role": "tool",
                "content": '{"ok":true}',
                "tool_name": "add_event",
                "tool_call_id": "c1",
            },
            {"role": "tool", "content": "noon", "tool_name": "get_time", "tool_call_id": "c2"},
            {"role": "user", "content": "Thanks ☕"},
        ],
        "tools": [TOOL],
        "stream": False,
        "think": False,
        "keep_alive": "5m",
        "truncate": False,
        "shift": False,
        "format": schema,
        "options": {"num_ctx": 4096, "temperature": 0.0, "top_k": 3, "num_predict": 9},
    }


async def test_the_conversation_on_openais_wire() -> None:
    schema = {"type": "object", "properties": {"say": {"type": "string"}}}
    async with StandInModel(["ok"], ["ok"]) as server:
        backend = OpenAIBackend(
            "stand-in", base_url=server.openai_url, api_key="k", extra={"id_slot": 1}
        )
        await collect(
            backend, BackendRequest(items=ITEMS, tools=(TOOL,), schema=schema, max_tokens=9)
        )
        await collect(backend, BackendRequest(items=ITEMS[:2], stream=False))
        await backend.aclose()
    first, second = server.chats
    assert first.headers["Authorization"] == "Bearer k"
    assert first.json == {
        "model": "stand-in",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "Two things."},
            {
                "role": "assistant",
                "content": "One moment.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {
                            "name": "add_event",
                            "arguments": '{"when": {"day": "Monday"}}',
                        },
                    },
                    {
                        "id": "c2",
                        "type": "function",
                        "function": {"name": "get_time", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": '{"ok":true}'},
            {"role": "tool", "tool_call_id": "c2", "content": "noon"},
            {"role": "user", "content": "Thanks ☕"},
        ],
        "tools": [TOOL],
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": schema},
        },
        "max_tokens": 9,
        "temperature": 0.0,
        "chat_template_kwargs": {"enable_thinking": False},
        "reasoning_effort": "none",
        "id_slot": 1,
    }
    assert "stream_options" not in second.json
    assert second.json["stream"] is False


async def test_the_same_request_gives_the_same_bytes(make: Make) -> None:
    async with StandInModel(["a"], ["b"]) as server:
        backend = make(server)
        request = BackendRequest(items=ITEMS, tools=(TOOL,))
        await collect(backend, request)
        await collect(backend, request)
    assert server.chats[0].body == server.chats[1].body


async def test_an_error_in_mid_stream_ends_the_reply(make: Make) -> None:
    async with StandInModel(["It is", stand_in.Break("the runner\nstopped")]) as server:
        seen, error = await until_error(make(server))
    assert text_of(seen) == "It is"
    assert isinstance(error, ModelReplyError)
    assert "the runner stopped" in str(error)
    assert error.status is None


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("end", [stand_in.Vanish(), stand_in.Cut()])
async def test_a_reply_without_its_end_is_an_error(
    make: Make, end: stand_in.Step, stream: bool
) -> None:
    reply: stand_in.Reply = ["It is", stand_in.Call("get_time"), end]
    async with StandInModel(reply) as server:
        with pytest.raises(ModelError) as raised:
            await collect(make(server), BackendRequest(items=(UserItem("?"),), stream=stream))
    if stream:
        assert isinstance(raised.value, ModelReplyError)


async def test_no_call_is_passed_on_from_a_broken_openai_reply() -> None:
    async with StandInModel([stand_in.Call("get_time"), stand_in.Vanish()]) as server:
        backend = OpenAIBackend("stand-in", base_url=server.url)
        seen, error = await until_error(backend)
        await backend.aclose()
    assert seen == []
    assert isinstance(error, ModelReplyError)


async def test_a_finished_reply_needs_no_done_mark() -> None:
    """The finish chunk says that it is whole; a server may hang up right after it."""
    finish = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    async with StandInModel([stand_in.Raw(finish), stand_in.Vanish()]) as server:
        backend = OpenAIBackend("stand-in", base_url=server.url)
        assert await collect(backend) == [TextChunk("Hi"), ReplyDone("stop", Usage())]
        await backend.aclose()


def _line(**more: Any) -> dict[str, Any]:
    """Ollama's last line."""
    return {"message": {"role": "assistant", "content": "Hi"}, "done": True, **more}


def _event(delta: Any = None, **more: Any) -> dict[str, Any]:
    """OpenAI's whole reply in one event."""
    choice = {"delta": delta or {"content": "Hi"}, "finish_reason": "stop"}
    return {"choices": [choice], **more}


@pytest.mark.parametrize(
    "line",
    [
        _line(prompt_eval_count=None, eval_count=None),
        _line(logprobs=[{"token": "Hi", "logprob": None}]),
    ],
    ids=str,
)
async def test_a_figure_that_is_null_costs_no_reply_of_ollamas(line: dict[str, Any]) -> None:
    async with StandInModel([stand_in.Raw(json.dumps(line).encode() + b"\n")]) as server:
        backend = OllamaBackend("stand-in", host=server.url)
        assert await collect(backend) == [TextChunk("Hi"), ReplyDone("stop", Usage())]
        await backend.aclose()


@pytest.mark.parametrize(
    "event",
    [
        _event(usage={"prompt_tokens": None, "completion_tokens": None}),
        _event(usage={"prompt_tokens_details": "none"}, timings={"cache_n": None}),
        _event(usage="free of charge", timings=[]),
        _event({"content": "Hi", "tool_calls": [{"index": 0, "function": None}]}),
        _event({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Hi"}]}),
    ],
    ids=str,
)
async def test_harmless_shapes_cost_no_reply_of_openais_api(event: dict[str, Any]) -> None:
    figures = {"choices": None, "usage": {"prompt_tokens": None}}
    pieces = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in (event, figures)]
    async with StandInModel([stand_in.Raw(b"".join(pieces)), stand_in.Vanish()]) as server:
        backend = OpenAIBackend("stand-in", base_url=server.url)
        assert await collect(backend) == [TextChunk("Hi"), ReplyDone("stop", Usage())]
        await backend.aclose()


async def test_arguments_as_text_are_a_call_on_ollamas_wire_too() -> None:
    called = [{"function": {"name": "add_event", "arguments": '{"room": "blue"}'}}]
    line = _line(message={"role": "assistant", "content": "", "tool_calls": called})
    async with StandInModel([stand_in.Raw(json.dumps(line).encode() + b"\n")]) as server:
        backend = OllamaBackend("stand-in", host=server.url)
        call, _ = await collect(backend)
        assert call == NativeCall("", "add_event", '{"room": "blue"}')
        await backend.aclose()


async def test_a_name_and_then_its_arguments_in_pieces_are_one_call_on_ollamas_wire() -> None:
    functions = [
        {"name": "add_event", "arguments": {}},
        {"arguments": '{"when": {"day"'},
        {"arguments": ': "mon"}}'},
    ]
    lines = [_line(message={"tool_calls": [{"function": f}]}, done=False) for f in functions]
    sent = b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, _line(message={})])
    async with StandInModel([stand_in.Raw(sent), stand_in.Vanish()]) as server:
        backend = OllamaBackend("stand-in", host=server.url)
        call, _ = await collect(backend)
        assert call == NativeCall("", "add_event", '{"when": {"day": "mon"}}')
        await backend.aclose()


@pytest.mark.parametrize(
    "garbage",
    [b"<html>\n", b"[1]\n", b'{"message": 5, "choices": 7}\n', b"data: {oh\n\n", b"\xff\xfe\n"],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_garbage_is_a_reply_error(make: Make, garbage: bytes, stream: bool) -> None:
    async with StandInModel([stand_in.Raw(garbage), stand_in.Vanish()]) as server:
        with pytest.raises(ModelReplyError):
            await collect(make(server), BackendRequest(items=(UserItem("?"),), stream=stream))


async def test_an_endless_line_is_given_up(make: Make) -> None:
    data = stand_in.Raw(b"data: " + b"x" * 1_200_000)
    async with StandInModel([data, stand_in.Hang()]) as server:
        with pytest.raises(ModelReplyError):
            await collect(make(server))


async def test_an_endless_reply_is_given_up(make: Make, api: str) -> None:
    word = "x" * 900_000
    line = (
        json.dumps({"message": {"content": word}, "done": False}) + "\n"
        if api == "ollama"
        else "data: " + json.dumps({"choices": [{"delta": {"content": word}}]}) + "\n\n"
    )
    async with StandInModel([stand_in.Raw(line.encode())] * 12) as server:
        with pytest.raises(ModelReplyError, match="longer than"):
            await collect(make(server))


async def test_nobody_there_names_the_address_and_the_fix(make: Make, api: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    backend = make(address)
    for ask in (partial(collect, backend), backend.capabilities):
        with pytest.raises(ModelUnreachable) as raised:
            await ask()
        assert address in str(raised.value)
        assert ("ollama serve" if api == "ollama" else "CAAL_BASE_URL") in str(raised.value)


async def test_a_connection_that_the_server_kept_and_then_closed_is_replaced(make: Make) -> None:
    async with StandInModel([stand_in.Cut()], ["Back."]) as server:
        backend = make(server)
        await backend.capabilities()
        assert text_of(await collect(backend)) == "Back."


async def test_a_server_that_hangs_up_at_once_may_be_asked_again(make: Make, api: str) -> None:
    # Ollama's first connection is kept from an earlier question, so a second one is tried.
    cuts = [[stand_in.Cut()]] * (2 if api == "ollama" else 1)
    async with StandInModel(*cuts, ["Back."]) as server:
        backend = make(server)
        with pytest.raises(ModelUnreachable) as raised:
            await collect(backend)
        assert raised.value.retryable
        assert text_of(await collect(backend)) == "Back."


async def test_the_first_piece_and_those_after_it_have_their_own_deadlines(make: Make) -> None:
    slow = TransportDeadlines(first=30.0, between=1.0)
    # One piece of text: two would have a deadline between them.
    async with StandInModel(["One", stand_in.Hang()], [stand_in.Hang()]) as server:
        backend = make(server, deadlines=slow)
        seen, error = await until_error(backend)
        assert isinstance(error, ModelTimeout)
        assert text_of(seen) == "One"
        await left_alone(server)
        with pytest.raises(ModelTimeout):
            await collect(make(server, deadlines=TransportDeadlines(first=1.0)))
        await left_alone(server)


async def test_a_request_may_have_a_patience_of_its_own(make: Make) -> None:
    async with StandInModel([stand_in.Hang()]) as server:
        backend = make(server, deadlines=TransportDeadlines(first=30.0))
        with pytest.raises(ModelTimeout, match=r"first piece 1 s"):
            await collect(backend, replace(HELLO, first_s=1.0))
        await left_alone(server)


@pytest.mark.parametrize("steps", [["One ", stand_in.Hang()], [stand_in.Hang()]])
async def test_a_cancelled_request_is_closed(make: Make, steps: stand_in.Reply) -> None:
    async with StandInModel(steps, ["Next."]) as server:
        backend = make(server)
        await backend.capabilities()  # so that the next request is the chat
        for _ in server.requests:
            await server.request_arrived()
        task = asyncio.create_task(collect(backend))
        await server.request_arrived()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await left_alone(server)
        assert text_of(await collect(backend)) == "Next."


async def test_closing_the_iterator_closes_the_request(make: Make) -> None:
    async with StandInModel(["One two three", stand_in.Hang()]) as server:
        chunks = make(server).ask(HELLO)
        assert await anext(chunks) == TextChunk("One")
        await chunks.aclose()
        await left_alone(server)


@pytest.mark.parametrize(
    ("status", "message", "kind", "words"),
    [
        (400, "m does not support tools", ModelLacksTools, "no tools"),
        (500, "tools param requires --jinja flag", ModelLacksTools, "no tools"),
        (404, 'model "m" not found, try pulling it first', ModelMissing, "not there"),
        (404, "The model `m` does not exist.", ModelMissing, "not there"),
        (404, "File Not Found", ModelReplyError, "CAAL_API"),
        (401, "Invalid API Key", ModelReplyError, "CAAL_API_KEY"),
        (503, "Loading model", ModelUnreachable, "busy"),
        (504, "", ModelTimeout, "gave up"),
        (500, "it burns", ModelReplyError, "it burns"),
    ],
)
async def test_refusals_become_our_own_errors(
    make: Make, status: int, message: str, kind: type[ModelError], words: str
) -> None:
    async with StandInModel([stand_in.Refuse(status, message)]) as server:
        with pytest.raises(kind, match=words):
            await collect(make(server))


async def test_llamas_parser_error_is_short_and_has_its_status(make: Make) -> None:
    message = "The model produced output that does not match the expected peg-native format"
    refusal = stand_in.Refuse(500, f"{message}: my secret diary " + "x" * 5000)
    async with StandInModel([refusal]) as server:
        with pytest.raises(ModelReplyError) as raised:
            await collect(make(server))
    assert raised.value.status == 500
    assert "peg-native format" in str(raised.value)
    assert "diary" not in str(raised.value)
    assert len(str(raised.value)) < 300


async def test_ollama_says_how_a_missing_model_is_brought() -> None:
    async with StandInModel(["never"]) as server:
        backend = OllamaBackend("qwen3:8b", host=server.url)
        for ask in (partial(collect, backend), backend.capabilities):
            with pytest.raises(ModelMissing, match="run: ollama pull qwen3:8b"):
                await ask()
        await backend.aclose()


async def test_a_model_without_tools_is_told_apart() -> None:
    async with StandInModel(["never"], capabilities=("completion",)) as server:
        backend = OllamaBackend("stand-in", host=server.url)
        assert (await backend.capabilities()).tools is False
        with pytest.raises(ModelLacksTools):
            await collect(backend, BackendRequest(items=(UserItem("?"),), tools=(TOOL,)))
        await backend.aclose()


async def test_a_url_that_is_none_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="OLLAMA_HOST"):
        OllamaBackend("m", host="ftp://x")
    with pytest.raises(ConfigError, match="CAAL_BASE_URL"):
        OpenAIBackend("m", base_url="ftp://localhost:8080")
    with pytest.raises(ConfigError, match="CAAL_API_KEY"):
        OpenAIBackend("m", api_key="k\r\nX-Evil: 1")


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with StandInModel(["Hi."]) as server:
        assert text_of(await collect(make(server))) == "Hi."


async def test_a_plain_server_is_unreachable_by_https(make: Make) -> None:
    async with StandInModel(["Hi."]) as server:
        with pytest.raises(ModelUnreachable):
            await collect(make(server.url.replace("http:", "https:")))


async def test_many_requests_at_once_share_one_client(make: Make) -> None:
    async with StandInModel(*([["Hi."]] * 20)) as server:
        backend = make(server)
        replies = await asyncio.gather(*(collect(backend) for _ in range(20)))
    assert [text_of(reply) for reply in replies] == ["Hi."] * 20


@pytest.mark.parametrize("stream", [True, False])
async def test_requests_follow_each_other_on_one_connection(make: Make, stream: bool) -> None:
    call = stand_in.Call("f", {})
    async with StandInModel(["One."], [call], ["Three."]) as server:
        backend = make(server)
        for _ in range(3):
            await collect(backend, replace(HELLO, stream=stream))
    assert len(server.connections) == 1


async def test_a_response_that_does_not_end_behind_its_reply_is_left(api: str, make: Make) -> None:
    done = b'{"message":{"content":"Hi."},"done":true,"done_reason":"stop"}\n'
    if api == "openai":
        choice = b'{"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}'
        done = b"data: " + choice + b"\n\ndata: [DONE]\n\n"
    async with StandInModel([stand_in.Raw(done), stand_in.Hang()]) as server:
        assert text_of(await collect(make(server))) == "Hi."
        await left_alone(server)


@pytest.mark.parametrize(
    ("head", "body", "kind", "words"),
    [
        ("200 OK\r\nContent-Encoding: gzip", b"", ModelReplyError, "packs its answers"),
        ("502 Bad Gateway", b"<a " * 700_000, ModelUnreachable, "busy"),
    ],
)
async def test_what_a_proxy_puts_in_place_of_an_answer_is_told(
    make: Make, head: str, body: bytes, kind: type[ModelError], words: str
) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        backend = make(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(kind, match=words):
            await collect(backend)
        with pytest.raises(kind, match=words):
            await backend.capabilities()
