"""A stand-in for a model's server, inside the test's own event loop.

It speaks Ollama's `/api/chat` and the OpenAI API of llama.cpp, streamed and whole, in the shapes
that `tests/contract/test_stand_in.py` compares with recordings of the real ones. What it says is
scripted: each chat request takes the next reply, a sequence of steps.

    async with StandInModel([Call("get_time", {"tz": "UTC"})], ["It is noon."]) as server:
        backend = OllamaBackend(server.model, host=server.url)
        ...
        assert server.chats[0].json["think"] is False
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeAlias

from aiohttp import web

REQUEST_MAX_BYTES: Final = 64 * 1024 * 1024
PROMPT_TOKENS: Final = 120
"""What every reply reports, so that tests can look for it."""
CACHED_TOKENS: Final = 100
_SCHEMA_PROBE: Final = b"k7q2"
"""Stands in the schema of `caal_node.models.model_preparation.find_schema_form` alone."""


@dataclass(frozen=True)
class Call:
    """A structured call. `pieces` is how many deltas its arguments come in (OpenAI, streamed), and
    `sent` how many characters of them, if not all (OpenAI)."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""
    pieces: int = 3
    sent: int | None = None

    @property
    def text(self) -> str:
        """What comes of its arguments as JSON."""
        return json.dumps(self.arguments)[: self.sent]


@dataclass(frozen=True)
class Think:
    """Thinking that the server keeps apart."""

    text: str


@dataclass(frozen=True)
class Refuse:
    """An HTTP error in place of a reply. `body` is its JSON where it has a form of its own."""

    status: int
    message: str = ""
    body: Any = None


@dataclass(frozen=True)
class Break:
    """An error in the middle of a stream at HTTP 200; unstreamed, an HTTP 500."""

    message: str


@dataclass(frozen=True)
class Cut:
    """The connection drops."""


@dataclass(frozen=True)
class Vanish:
    """The stream ends in good order, without the mark of a reply's end."""


@dataclass(frozen=True)
class Hang:
    """Nothing more, until the client goes away."""


@dataclass(frozen=True)
class Wait:
    """Nothing more until the test sets `until`."""

    until: asyncio.Event


@dataclass(frozen=True)
class Raw:
    """Bytes exactly as they are."""

    data: bytes


@dataclass(frozen=True)
class End:
    """The reply's end, where it is not the ordinary one. `length`: cut off by a token limit."""

    reason: str = "stop"


Step: TypeAlias = str | Call | Think | Refuse | Break | Cut | Vanish | Hang | Wait | Raw | End
Reply: TypeAlias = Sequence[Step]
"""A string is text, streamed word by word."""


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class StandInModel:
    """Serves on `port` of the loopback, 0 for a free one, for as long as it is entered.

    `answer` decides a reply from the request instead of a script. A script that is over answers
    HTTP 500. `llama`: `/v1/models` and `/props` as llama.cpp's server has them; else Ollama's.
    """

    def __init__(
        self,
        *replies: Reply,
        answer: Callable[[Asked], Reply] | None = None,
        model: str = "stand-in",
        capabilities: Iterable[str] = ("completion", "tools"),
        family: str = "qwen2",
        context_tokens: int = 32768,
        llama: bool = False,
        port: int = 0,
    ) -> None:
        self._script = list(replies)
        self._answer = answer
        self.model = model
        self.capabilities = list(capabilities)
        self.family = family
        self.context_tokens = context_tokens
        self.llama = llama
        self._port = port
        self.version = "0.17.4"
        self.template = "{{ messages }}"
        self.parameters: int | None = None
        """How many weights the model has; None: it does not say."""
        self.owner = "library"
        """Who owns each model by OpenAI's list: "library" is Ollama, "vllm" and LM Studio's
        "organization_owner" are those servers. It decides where the context is told."""
        self.slots: dict[int, int | None] = {0: None}
        """The tokens that each slot of a llama.cpp keeps; None where it was never asked."""
        self.empties_slots = False
        """Whether it empties idle slots when another is asked, as with a unified KV cache."""
        self.prompt_tokens: int | None = None
        """Told as read, where somebody counts them; None: `PROMPT_TOKENS`."""
        self.requests: list[Asked] = []
        self.connections: set[Any] = set()
        """The clients' ends of those on which requests came."""
        self._arrived = asyncio.Semaphore(0)
        self._gone = asyncio.Semaphore(0)
        self.template = "{{ .Prompt }}"
        self.rendered: str | None = None
        """What Ollama says that the model reads; None as versions before 0.11.5."""
        app = web.Application(client_max_size=REQUEST_MAX_BYTES, middlewares=[self._record])
        app.router.add_post("/api/chat", self._ollama_chat)
        app.router.add_post("/api/show", self._show)
        app.router.add_get("/api/tags", self._tags)
        app.router.add_get("/api/version", self._version)
        app.router.add_post("/v1/chat/completions", self._openai_chat)
        app.router.add_post("/v1/completions", self._completions)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/props", self._props)
        app.router.add_get("/slots", self._slots)
        app.router.add_post("/completion", self._llama_completion)
        app.router.add_get("/api/ps", self._running)
        app.router.add_get("/api/v1/models", self._lm_studio_models)
        # A request whose client goes away is cancelled, as both real servers do.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        self.url = ""

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def chats(self) -> list[Asked]:
        """Requests for a reply, without those about the server and the model, and without the
        questions by which it is found out whether a reply is held to a schema."""
        return [
            asked
            for asked in self.requests
            if asked.path.endswith(("/chat", "completions"))
            and not _is_schema_probe(asked)
            and not _is_render_only(asked)
        ]

    def add(self, *replies: Reply) -> None:
        """More of the script."""
        self._script += replies

    def replace(self, *replies: Reply) -> None:
        """Another script in place of what is left of it."""
        self._script = list(replies)

    async def request_arrived(self) -> None:
        """Returns once a request is there; each request counts once."""
        await self._arrived.acquire()

    async def client_gone(self) -> None:
        """Returns once a client has left a reply unfinished; each departure counts once."""
        await self._gone.acquire()

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @web.middleware
    async def _record(self, request: web.Request, handler: Any) -> web.StreamResponse:
        body = await request.read()
        self.requests.append(Asked(request.method, request.path, body, dict(request.headers)))
        if request.transport is not None:
            self.connections.add(request.transport.get_extra_info("peername"))
        self._arrived.release()
        return await handler(request)

    def _next(self, asked: Asked) -> Reply:
        if self._answer is not None:
            return self._answer(asked)
        if _is_schema_probe(asked):
            return ["Hello there."]  # This server pays no heed to schemas.
        if not self._script:
            return [Refuse(500, "the stand-in's script is over")]
        return self._script.pop(0)

    # -- Ollama ------------------------------------------------------------------------------

    async def _ollama_chat(self, request: web.Request) -> web.StreamResponse:
        asked = self.requests[-1]
        body = asked.json
        if (refusal := self._ollama_refusal(body)) is not None:
            return refusal
        if not body["messages"]:
            return web.json_response(_ollama_line(self.model, done=True, done_reason="load"))
        if self.rendered is not None and _is_render_only(asked):
            line = _ollama_line(self.model, done=False)
            return web.json_response({**line, "_debug_info": {"rendered_template": self.rendered}})
        form = _OllamaForm(self.model, self.prompt_tokens)
        return await self._play(request, form, self._next(asked), body.get("stream", True))

    def _ollama_refusal(self, body: dict[str, Any]) -> web.Response | None:
        model = body.get("model")
        if model not in (self.model, f"{self.model}:latest"):
            return _ollama_error(404, f"model '{model}' not found")
        if body.get("think") and "thinking" not in self.capabilities:
            return _ollama_error(400, f'"{model}" does not support thinking')
        if isinstance(body.get("think"), str) and not self.family.startswith("gpt"):
            return _ollama_error(
                400, f'think value "{body["think"]}" is not supported for this model'
            )
        if body.get("tools") and "tools" not in self.capabilities:
            return _ollama_error(
                400, f"registry.ollama.ai/library/{model}:latest does not support tools"
            )
        return None

    async def _show(self, _request: web.Request) -> web.Response:
        model = self.requests[-1].json.get("model")
        if model not in (self.model, f"{self.model}:latest"):
            return _ollama_error(404, f"model '{model}' not found")
        info = {
            "general.architecture": self.family,
            f"{self.family}.context_length": self.context_tokens,
            **({"general.parameter_count": self.parameters} if self.parameters else {}),
        }
        details = {"format": "gguf", "family": self.family, "families": [self.family]}
        return web.json_response(
            {
                "details": details,
                "model_info": info,
                "capabilities": self.capabilities,
                "template": self.template,
            }
        )

    async def _tags(self, _request: web.Request) -> web.Response:
        name = f"{self.model}:latest"
        return web.json_response({"models": [{"name": name, "model": name, "size": 1}]})

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({"version": self.version})

    # -- OpenAI's API ------------------------------------------------------------------------

    async def _openai_chat(self, request: web.Request) -> web.StreamResponse:
        asked = self.requests[-1]
        body = asked.json
        if not self.llama and body.get("model") not in (self.model, f"{self.model}:latest"):
            return _openai_error(404, f"model '{body.get('model')}' not found")
        if (slot := body.get("id_slot", -1)) in self.slots:
            self._use_slot(slot, PROMPT_TOKENS)
        form = _OpenAIForm(
            self.model, usage=bool(body.get("stream_options")), prompt_tokens=self.prompt_tokens
        )
        return await self._play(request, form, self._next(asked), body.get("stream", False))

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        asked = self.requests[-1]
        form = _CompletionForm(self.model, usage=True)
        return await self._play(request, form, self._next(asked), asked.json.get("stream", False))

    async def _models(self, _request: web.Request) -> web.Response:
        if self.llama:
            entry = {"id": f"/models/{self.model}.gguf", "owned_by": "llamacpp"}
            entry |= {"meta": {"n_params": self.parameters}} if self.parameters else {}
        elif self.owner == "vllm":
            context = {"root": self.model, "max_model_len": self.context_tokens}
            entry = {"id": self.model, "owned_by": "vllm", **context}
        else:
            tag = ":latest" if self.owner == "library" else ""
            entry = {"id": f"{self.model}{tag}", "owned_by": self.owner}
        data = [{**entry, "object": "model", "created": 0}]
        return web.json_response({"object": "list", "data": data})

    async def _running(self, _request: web.Request) -> web.Response:
        """Ollama's `/api/ps`, which knows a model once something was asked of it."""
        name = f"{self.model}:latest"
        loaded = {"name": name, "model": name, "context_length": self.context_tokens}
        return web.json_response({"models": [loaded] if self.chats else []})

    async def _lm_studio_models(self, _request: web.Request) -> web.Response:
        """LM Studio's own list (lmstudio.ai/docs/developer/rest/list)."""
        instance = {"id": self.model, "config": {"context_length": self.context_tokens}}
        listed = {"type": "llm", "key": self.model, "max_context_length": 131_072}
        loaded = [instance] if self.chats else []
        return web.json_response({"models": [{**listed, "loaded_instances": loaded}]})

    async def _props(self, _request: web.Request) -> web.Response:
        if not self.llama:
            return web.Response(status=404, text="404 page not found")
        tools = "tools" in self.capabilities
        return web.json_response(
            {
                "default_generation_settings": {"n_ctx": self.context_tokens},
                "total_slots": len(self.slots),
                "chat_template": "{% if enable_thinking %}{% endif %}"
                if "thinking" in self.capabilities
                else self.template,
                "chat_template_caps": {"supports_tools": tools, "supports_tool_calls": tools},
            }
        )

    async def _slots(self, _request: web.Request) -> web.Response:
        if not self.llama:
            return web.Response(status=404, text="404 page not found")
        states = [
            {"id": number, "is_processing": False, "n_prompt_tokens": kept}
            for number, kept in self.slots.items()
        ]
        # One that was never asked does not have the key.
        told = [{k: v for k, v in state.items() if v is not None} for state in states]
        return web.json_response(told)

    async def _llama_completion(self, _request: web.Request) -> web.Response:
        """llama.cpp's own endpoint, for a prompt of one token."""
        self._use_slot(self.requests[-1].json["id_slot"], 1)
        return web.json_response({"content": ".", "timings": {"prompt_n": 1, "cache_n": 0}})

    def _use_slot(self, number: int, tokens: int) -> None:
        if self.empties_slots:
            self.slots = {n: None if kept is None else 0 for n, kept in self.slots.items()}
        self.slots[number] = tokens

    # -- replies -----------------------------------------------------------------------------

    async def _play(
        self, request: web.Request, form: _Form, reply: Reply, stream: bool
    ) -> web.StreamResponse:
        try:
            if stream:
                return await self._play_streamed(request, form, reply)
            return await self._play_whole(request, form, reply)
        except asyncio.CancelledError:
            self._gone.release()
            raise
        except ConnectionResetError:
            self._gone.release()
            return web.Response()

    async def _play_whole(
        self, request: web.Request, form: _Form, reply: Reply
    ) -> web.StreamResponse:
        reason = "stop"
        for step in reply:
            match step:
                case Refuse():
                    return _refusal(form, step)
                case Break(message):
                    return form.error(500, message)
                case Raw(data):
                    return web.Response(body=data, content_type="application/json")
                case Vanish():
                    return web.Response(body=b"", content_type="application/json")
                case End(reason):
                    pass
                case Hang() | Wait() | Cut():
                    await _stall(request, step)
                case _:
                    pass
        return web.json_response(form.whole(reply, reason))

    async def _play_streamed(
        self, request: web.Request, form: _Form, reply: Reply
    ) -> web.StreamResponse:
        if reply and isinstance(reply[0], Refuse):
            return _refusal(form, reply[0])
        response = web.StreamResponse(headers={"Content-Type": form.content_type})
        # The real servers send no byte, headers included, before there is something to say.
        started = False
        reason = "stop"
        for step in [*reply, None]:
            match step:
                case Hang() | Wait() | Cut():
                    await _stall(request, step)
                    continue
                case End(reason):
                    continue
                case Vanish():
                    break
                case Refuse():
                    raise AssertionError("an HTTP status cannot change in mid-reply")
                case _:
                    pass
            if not started:
                await response.prepare(request)
                started = True
            lines = form.end(reply, reason) if step is None else form.lines(step)
            for line in lines:
                await response.write(line)
            if isinstance(step, Break):
                break
        if not started:
            await response.prepare(request)
        await response.write_eof()
        return response


def _is_render_only(asked: Asked) -> bool:
    return b'"_debug_render_only"' in asked.body


def _is_schema_probe(asked: Asked) -> bool:
    return _SCHEMA_PROBE in asked.body


async def _stall(request: web.Request, step: Hang | Wait | Cut) -> None:
    if isinstance(step, Wait):
        await step.until.wait()
    elif isinstance(step, Hang):
        await asyncio.Event().wait()
    elif request.transport is not None:
        request.transport.abort()
        raise ConnectionResetError


def words(text: str) -> list[str]:
    """Pieces about as long as tokens, which make up `text` again."""
    return re.findall(r"\s*\S+|\s+$", text)


def _texts(reply: Reply) -> str:
    return "".join(step for step in reply if isinstance(step, str))


def _thoughts(reply: Reply) -> str:
    return "".join(step.text for step in reply if isinstance(step, Think))


def _calls(reply: Reply) -> list[Call]:
    return [step for step in reply if isinstance(step, Call)]


class _Form:
    """How one API writes a reply down."""

    content_type: str

    def __init__(self, model: str) -> None:
        self.model = model
        self.calls = 0

    def lines(self, step: Step) -> Iterable[bytes]:
        raise NotImplementedError

    def end(self, reply: Reply, reason: str) -> Iterable[bytes]:
        raise NotImplementedError

    def whole(self, reply: Reply, reason: str) -> dict[str, Any]:
        raise NotImplementedError

    def error(self, status: int, message: str) -> web.Response:
        raise NotImplementedError


class _OllamaForm(_Form):
    content_type = "application/x-ndjson"

    def __init__(self, model: str, prompt_tokens: int | None = None) -> None:
        super().__init__(model)
        self._prompt_tokens = prompt_tokens

    def lines(self, step: Step) -> Iterable[bytes]:
        match step:
            case str(text):
                messages = [{"content": word} for word in words(text)]
            case Think(text):
                messages = [{"content": "", "thinking": word} for word in words(text)]
            case Call():
                messages = [{"content": "", "tool_calls": [self._call(step)]}]
            case Break(message):
                return [json.dumps({"error": message}).encode() + b"\n"]
            case Raw(data):
                return [data]
            case _:
                raise AssertionError(step)
        return [self._line({"role": "assistant", **message}) for message in messages]

    def end(self, reply: Reply, reason: str) -> Iterable[bytes]:
        message = {"role": "assistant", "content": ""}
        return [
            self._line(
                message,
                done=True,
                done_reason=reason,
                **_ollama_figures(reply, self._prompt_tokens),
            )
        ]

    def whole(self, reply: Reply, reason: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": _texts(reply)}
        if thoughts := _thoughts(reply):
            message["thinking"] = thoughts
        if calls := _calls(reply):
            message["tool_calls"] = [self._call(call) for call in calls]
        return _ollama_line(
            self.model,
            message,
            done=True,
            done_reason=reason,
            **_ollama_figures(reply, self._prompt_tokens),
        )

    def error(self, status: int, message: str) -> web.Response:
        return _ollama_error(status, message)

    def _call(self, call: Call) -> dict[str, Any]:
        function = {"index": self.calls, "name": call.name, "arguments": call.arguments}
        self.calls += 1
        return {"id": call.id or f"call_stand_in{self.calls}", "function": function}

    def _line(self, message: dict[str, Any], **more: Any) -> bytes:
        return json.dumps(_ollama_line(self.model, message, **more)).encode() + b"\n"


def _ollama_line(
    model: str, message: dict[str, Any] | None = None, *, done: bool = False, **more: Any
) -> dict[str, Any]:
    message = message or {"role": "assistant", "content": ""}
    created = "2026-01-05T12:00:00.000000001Z"
    return {"model": model, "created_at": created, "message": message, "done": done, **more}


def _ollama_figures(reply: Reply, prompt_tokens: int | None) -> dict[str, int]:
    spoken = len(words(_texts(reply))) + len(_calls(reply)) * 12
    return {
        "total_duration": 2_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": PROMPT_TOKENS if prompt_tokens is None else prompt_tokens,
        "prompt_eval_duration": 500_000,
        "eval_count": spoken,
        "eval_duration": 500_000,
    }


def _refusal(form: _Form, refuse: Refuse) -> web.Response:
    if refuse.body is None:
        return form.error(refuse.status, refuse.message)
    return web.json_response(refuse.body, status=refuse.status)


def _ollama_error(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)


class _OpenAIForm(_Form):
    content_type = "text/event-stream"
    kind = "chat.completion"

    def __init__(self, model: str, *, usage: bool, prompt_tokens: int | None = None) -> None:
        super().__init__(model)
        self.usage = usage
        self.prompt_tokens = prompt_tokens
        self.begun = False

    def lines(self, step: Step) -> Iterable[bytes]:
        match step:
            case str(text):
                deltas = [self._delta(content=word) for word in words(text)]
            case Think(text):
                deltas = [self._delta(reasoning_content=word) for word in words(text)]
            case Call():
                deltas = [self._delta(tool_calls=[part]) for part in self._call_parts(step)]
            case Break(message):
                error = {"code": 500, "message": message, "type": "server_error"}
                return [_event({"error": error})]
            case Raw(data):
                return [data]
            case _:
                raise AssertionError(step)
        return [*self._begin(), *map(_event, deltas)]

    def end(self, reply: Reply, reason: str) -> Iterable[bytes]:
        yield from self._begin()
        yield _event(
            self._choices([{**self._delta_body({}), "finish_reason": self._why(reply, reason)}])
        )
        if self.usage:
            figures = _openai_figures(reply, self.prompt_tokens)
            yield _event({**self._choices([]), **figures})
        yield b"data: [DONE]\n\n"

    def whole(self, reply: Reply, reason: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": _texts(reply)}
        if thoughts := _thoughts(reply):
            message["reasoning_content"] = thoughts
        if calls := _calls(reply):
            message["tool_calls"] = [
                {
                    "type": "function",
                    "function": {"name": c.name, "arguments": c.text},
                    "id": c.id or f"standIn{number}",
                }
                for number, c in enumerate(calls)
            ]
        choice = {"finish_reason": self._why(reply, reason), "index": 0, "message": message}
        whole = self._choices([choice])
        return {**whole, "object": self.kind, **_openai_figures(reply, self.prompt_tokens)}

    def error(self, status: int, message: str) -> web.Response:
        return _openai_error(status, message)

    def _begin(self) -> Iterable[bytes]:
        if not self.begun:
            self.begun = True
            yield _event(self._delta(role="assistant", content=None))

    def _call_parts(self, call: Call) -> Iterable[dict[str, Any]]:
        index = self.calls
        self.calls += 1
        size = max(1, -(-len(call.text) // call.pieces))
        first, *rest = [call.text[at : at + size] for at in range(0, len(call.text), size)] or [""]
        yield {
            "index": index,
            "id": call.id or f"standIn{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": first},
        }
        for piece in rest:
            yield {"index": index, "function": {"arguments": piece}}

    def _delta(self, **delta: Any) -> dict[str, Any]:
        return self._choices([{**self._delta_body(delta), "finish_reason": None}])

    def _delta_body(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"index": 0, "delta": delta}

    def _choices(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "choices": choices,
            "created": 1767614400,
            "id": "chatcmpl-standin",
            "model": self.model,
            "system_fingerprint": "b0-unknown",
            "object": f"{self.kind}.chunk",
        }

    def _why(self, reply: Reply, reason: str) -> str:
        return "tool_calls" if reason == "stop" and _calls(reply) else reason


class _CompletionForm(_OpenAIForm):
    """`/v1/completions`: text only."""

    kind = "text_completion"

    def _begin(self) -> Iterable[bytes]:
        return ()

    def _delta_body(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"text": delta.get("content", ""), "index": 0, "logprobs": None}

    def _choices(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**super()._choices(choices), "object": self.kind}

    def end(self, reply: Reply, reason: str) -> Iterable[bytes]:
        choice = {**self._delta_body({}), "finish_reason": reason}
        # Here the figures come with the last choice, not in an event of their own.
        yield _event({**self._choices([choice]), **_openai_figures(reply)})
        yield b"data: [DONE]\n\n"

    def whole(self, reply: Reply, reason: str) -> dict[str, Any]:
        choice = {"text": _texts(reply), "index": 0, "logprobs": None, "finish_reason": reason}
        return {**self._choices([choice]), **_openai_figures(reply)}


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


_TIMINGS: Final = (
    "prompt_ms",
    "prompt_per_token_ms",
    "prompt_per_second",
    "predicted_n",
    "predicted_ms",
    "predicted_per_token_ms",
    "predicted_per_second",
)


def _openai_figures(reply: Reply, prompt_tokens: int | None = None) -> dict[str, Any]:
    prompt = PROMPT_TOKENS if prompt_tokens is None else prompt_tokens
    spoken = _ollama_figures(reply, None)["eval_count"]
    return {
        "usage": {
            "completion_tokens": spoken,
            "prompt_tokens": prompt,
            "total_tokens": prompt + spoken,
            "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        },
        "timings": {
            "cache_n": CACHED_TOKENS,
            "prompt_n": PROMPT_TOKENS - CACHED_TOKENS,
            **dict.fromkeys(_TIMINGS, 1.0),
        },
    }


def _openai_error(status: int, message: str) -> web.Response:
    error = {"code": status, "message": message, "type": "server_error"}
    return web.json_response({"error": error}, status=status)
