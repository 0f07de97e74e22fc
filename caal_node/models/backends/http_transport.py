"""HTTP to one model server, with deadlines, caps, and errors of our own tree.

A response is cut into pieces of one JSON value each, none longer than it may be.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import httpx2

from caal_node.core.errors import (
    ConfigError,
    ModelContextFull,
    ModelError,
    ModelLacksTools,
    ModelMissing,
    ModelOutside,
    ModelReplyError,
    ModelTimeout,
    ModelUnreachable,
)
from caal_node.http_client import LoopTurns, UnfitAnswer, open_client
from caal_node.network.guard import refusal_in

# What a model server's refusal means. The servers' own words decide, as statuses differ.

TEXT_MAX_CHARS: Final = 160
"""Characters of a server's words in our messages: llama.cpp may append a model's whole output."""

SAID_MAX_CHARS: Final = 4_000
"""Characters of a refusal that are searched for what is refused."""
_ECHOES: Final = frozenset({"input", "ctx", "url", "@type"})
"""Keys of an error under which a server repeats the request, or names a page."""

_NO_TOOLS: Final = re.compile(
    r"does not support tools"  # Ollama
    r"|tools param requires --jinja"  # llama.cpp started without its templates
    r"|requires --enable-auto-tool-choice",  # vLLM started without a tool parser
    re.IGNORECASE,
)
_NO_MODEL: Final = re.compile(
    r"\bmodel\s+([`'\"]?[^\s`'\"]+[`'\"]?\s+)?(not found|does not exist|is not loaded)",
    re.IGNORECASE,
)
_TOO_LONG: Final = re.compile(
    r"context (size|length|window)"  # llama.cpp, Ollama; "maximum context length": vLLM, OpenAI
    r"|prompt is too long",
    re.IGNORECASE,
)
_HUNG_UP: Final = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
_PEG: Final = re.compile(r"does not match the expected [\w-]+ format", re.IGNORECASE)


def server_words(body: bytes) -> str:
    """Return the message in an error's body, on one line and short; empty if there is none.

    Ollama writes `{"error": "words"}`; OpenAI's way is `{"error": {"message": "words"}}`, which
    Google puts into a list; vLLM and FastAPI servers have `message` or `detail` at the top, the
    latter as a list of what is wrong; a wrong address answers with plain text.
    """
    value = _first(_parsed(body))
    for key in ("error", "message", "detail"):
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            value = _first(inner.get(key, inner))
    if isinstance(value, dict) and "msg" in value:
        value = ": ".join(_texts(cast("object", value)))
    text = value if isinstance(value, str) else ""
    text = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    if match := _PEG.search(text):
        text = text[: match.end()]
    return text if len(text) <= TEXT_MAX_CHARS else f"{text[: TEXT_MAX_CHARS - 1]}…"


def refusal_words(body: bytes) -> str:
    """Return every text in an error's body but those that repeat the request."""
    return "\n".join(_texts(_parsed(body)))[:SAID_MAX_CHARS]


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def _first(value: object) -> object:
    return (
        cast("list[object]", value)[0]
        if isinstance(value, list) and value
        else cast("object", value)
    )


def _texts(value: object) -> Iterator[str]:
    """Yield the texts within `value`; the path in `loc` is one."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _texts(each)
    elif isinstance(value, dict):
        for key, each in cast("dict[str, object]", value).items():
            if key == "loc" and isinstance(each, list):
                yield ".".join(map(str, cast("list[object]", each)))
            elif key not in _ECHOES:
                yield from _texts(each)


def failure(status: int, body: bytes, *, model: str, url: str, fix: str) -> ModelError:
    """Return the error that an HTTP answer other than 200 stands for.

    `fix` says how a missing model is brought, `url` is what was asked.
    """
    words = server_words(body)
    said = f": {words}" if words else ""
    if _NO_TOOLS.search(words):
        return ModelLacksTools(f"{model} takes no tools{said}")
    if _NO_MODEL.search(words):
        return ModelMissing(f"the model {model} is not there; {fix}")
    if status in (400, 413) and _TOO_LONG.search(words):
        return ModelContextFull(f"{url}: the prompt is too long{said}", status=status)
    if status in (401, 403):
        return ModelReplyError(
            f"{url} refuses the key (HTTP {status}); set CAAL_API_KEY", status=status
        )
    if status == 404:
        return ModelReplyError(
            f"{url} does not exist there (HTTP 404); check the address and CAAL_API", status=status
        )
    if status in (408, 504):
        return ModelTimeout(f"{url} gave up (HTTP {status}){said}")
    if status in (429, 502, 503, 529):  # 529 is Anthropic's.
        # There are too many requests, or the model is still being loaded: it is worth a retry.
        return ModelUnreachable(f"{url} is busy (HTTP {status}){said}")
    return ModelReplyError(
        f"{url} answered HTTP {status}{said}", status=status, said=refusal_words(body)
    )


LINE_MAX_BYTES: Final = 1_048_576
"""Bytes of one line, one event, or a whole unstreamed reply. They are 250,000 tokens of text."""
VALUES_MAX: Final = 8_192
"""JSON values in one of these, by its commas. More would hold the event loop for a frame, wherever
they are read; a reply of 1,000 tokens has at most as many commas."""
ANSWER_VALUES_MAX: Final = 65_536
"""JSON values in what a server says of itself, such as a long list of models, or in vectors."""
LINES_MAX: Final = 131_072
"""Lines of a whole reply, empty ones and comments too; a token takes one or two."""
ERROR_MAX_BYTES: Final = 16_384
"""Bytes of a refusal that are looked at for its words."""
REPLY_MAX_BYTES: Final = 8 * LINE_MAX_BYTES
"""Bytes of a whole streamed reply. A token comes in 120 (Ollama) to 280 bytes (llama.cpp), so they
are 30,000 tokens at least, over ten minutes of speech."""

WRITE_S: Final = 30.0
"""Seconds for handing over a part of the body. Only a server that does not read takes longer."""
Split: TypeAlias = Callable[[httpx2.Response], AsyncGenerator[bytes]]
"""Cuts a response into the pieces that are parsed one by one, as `json_lines` does."""


async def split_lines(
    chunks: AsyncIterable[bytes], *, line_max: int = LINE_MAX_BYTES
) -> AsyncGenerator[bytes]:
    """Yield the lines of `chunks` without their ends and the white space around them.

    Raises:
        ModelReplyError: a line is too long, or there are too many.
    """
    rest = bytearray()
    turns = LoopTurns()
    count = 0
    async for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            _check_size(len(rest) + end - start, line_max)
            line = bytes(rest) + chunk[start:end]
            rest.clear()
            if start:  # Whoever read the chunk has given the loop its turn before the first line.
                await turns.give()
            start = end + 1
            count += 1
            if count > LINES_MAX:
                raise ModelReplyError(f"the reply has more than {LINES_MAX:,} lines")
            yield line.strip()
        _check_size(len(rest) + len(chunk) - start, line_max)
        rest += chunk[start:]
    yield bytes(rest).strip()


async def json_lines(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the lines of NDJSON, Ollama's stream. An unstreamed reply is one line of it."""
    async with _lines(response) as lines:
        async for line in lines:
            if line:
                yield checked(line)


async def sse_data(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the data of each server-sent event. Comments, which keep connections warm, are none.

    Raises:
        ModelReplyError: an event, or all of them, is too long, or these are no events.
    """
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        raise ModelReplyError("what came is no event stream")
    data: list[bytes] = []
    size = 0
    async with _lines(response) as lines:
        async for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].lstrip())
                size += len(line)
                _check_size(size, LINE_MAX_BYTES)
            elif not line and data:
                yield checked(b"\n".join(data))
                data, size = [], 0


@asynccontextmanager
async def _lines(response: httpx2.Response) -> AsyncGenerator[AsyncGenerator[bytes]]:
    async with aclosing(response.aiter_raw()) as chunks, aclosing(split_lines(chunks)) as lines:
        yield lines


async def whole_body(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the whole body as one piece, for JSON that may stand on several lines.

    Raises:
        ModelReplyError: it is longer than a line may be.
    """
    yield checked(await _body(response))


async def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            _check_size(len(body) + len(chunk), LINE_MAX_BYTES)
            body += chunk
    return bytes(body)


async def _beginning(response: httpx2.Response) -> bytes:
    """Return as much of a body as is looked at for an error's words."""
    body = bytearray()
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > ERROR_MAX_BYTES:
                break
    return bytes(body[:ERROR_MAX_BYTES])


def checked(piece: bytes, values_max: int = VALUES_MAX) -> bytes:
    """Return `piece`, which is then read as JSON: its cost grows with its values, not its bytes.

    Raises:
        ModelReplyError: it has too many values.
    """
    if piece.count(b",") >= values_max:
        raise ModelReplyError(f"a line of the reply has more than {values_max:,} values")
    return piece


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise ModelReplyError(f"a line of the reply is longer than {limit:,} bytes")


@dataclass(frozen=True, slots=True)
class TransportDeadlines:
    """How long a server may take, in seconds."""

    connect: float = 5.0
    """For accepting a connection."""
    first: float = 120.0
    """From the request to the first piece that says something. A cold model is loaded first (8 GB
    from a slow disk take a minute), then it reads a prompt (20 tools take 51 s on two cores), and
    an unstreamed reply is written to its end as well."""
    between: float = 30.0
    """From one such piece to the next. Even 0.1 tokens a second keep it."""
    whole: float = 600.0
    """For all pieces, once the first's deadline has passed: ten minutes of speech."""


END_S: Final = 0.05
"""Seconds that the end of a response may take behind the last piece of its reply. With it read, the
next request goes out on the same connection; without it a new one is opened."""


class Patience:
    """When a reply has to go on, by the event loop's clock.

    Whoever reads the reply notes in `heard` that a piece says something, and it is renewed before
    the next one: comments, empty lines and empty events keep a connection warm, and could do so for
    ever.
    """

    def __init__(self, deadlines: TransportDeadlines, first_s: float | None = None) -> None:
        """`first_s` takes the place of the first piece's deadline."""
        self.first_s: Final = first_s or deadlines.first
        self._between_s: Final = deadlines.between
        self.due = _now() + self.first_s
        self._end: Final = self.due + deadlines.whole
        self.heard = False
        """Whether something was said since it was renewed."""
        self.is_over = False
        """Whether the reply is there as a whole, and only its response has to end."""

    def renew(self) -> None:
        self.heard = False
        self.due = min(_now() + self._between_s, self._end)

    def end(self) -> None:
        """Note that nothing more is wanted of the reply."""
        self.is_over, self.due = True, _now() + END_S


_json: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class HttpTransport:
    """One server's address, and connections to it. It is made without I/O; close it."""

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        api_key: str | None,
        deadlines: TransportDeadlines,
        start: str,
        fix: str,
    ) -> None:
        """`start` says how the server is started, `fix` how the missing model is brought.

        Raises:
            ConfigError: the key cannot stand in a header, or the address is none.
        """
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise ConfigError("CAAL_API_KEY has characters that no HTTP header can carry")
        try:
            url = httpx2.URL(base_url)
        except httpx2.InvalidURL as error:
            raise ConfigError(f"the model server's address is none: {error}") from error
        self.base_url: Final = base_url
        self.address: Final = f"{url.scheme}://{url.netloc.decode('ascii')}"
        self._secure: Final = url.scheme == "https"
        self._local: Final = _is_loopback(url.host)
        self._headers: Final = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.model: Final = model
        self.deadlines: Final = deadlines
        self._start, self._fix = start, fix
        self._client: httpx2.AsyncClient | None = None
        self._urls: dict[str, httpx2.URL] = {}
        """What was asked so far, by its path: to read an address takes longer than to send it."""
        self._tools: tuple[object, str] = None, "null"
        """The tools of the last request, which most requests have, and their JSON."""

    async def pieces(
        self, path: str, body: Mapping[str, Any], split: Split, patience: Patience
    ) -> AsyncGenerator[bytes]:
        """POST `body`, and yield the reply's pieces as `split` cuts them, each within `patience`.

        Once that is over, no piece is yielded any more. Closing it closes the connection.

        Raises:
            ModelError: one of its kinds.
        """
        content = self._encoded(body)
        async with (
            self._response("POST", path, content, patience.due, patience.first_s) as response,
            aclosing(split(response)) as pieces,
        ):
            while True:
                if patience.heard and not patience.is_over:
                    patience.renew()
                try:
                    async with asyncio.timeout_at(patience.due):
                        piece = await anext(pieces, None)
                except (TimeoutError, httpx2.HTTPError):
                    if patience.is_over:
                        return
                    raise
                if piece is None or patience.is_over:
                    return
                yield piece

    async def fetch(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """Ask a small question about the server, and return the whole body of its answer.

        Raises:
            ModelError: one of its kinds.
        """
        content = None if body is None else self._encoded(body)
        due = _now() + self.deadlines.between
        async with (
            self._response(method, path, content, due, self.deadlines.between) as response,
            asyncio.timeout_at(due),
        ):
            return checked(await _body(response), ANSWER_VALUES_MAX)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, content: bytes | None, due: float, first_s: float
    ) -> AsyncGenerator[httpx2.Response]:
        client = await self._connected()
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = httpx2.URL(f"{self.base_url}{path}")
        headers = {"Content-Type": "application/json"} if content is not None else {}
        request = client.build_request(method, url, content=content, headers=headers)
        with self._own_errors(first_s):
            response = await self._sent(client, request, due)
            try:
                if response.status_code != 200:
                    async with asyncio.timeout_at(due):
                        said = await _beginning(response)
                    asked = f"{self.base_url}{path}"
                    raise failure(
                        response.status_code, said, model=self.model, url=asked, fix=self._fix
                    )
                yield response
            finally:
                await response.aclose()

    async def _sent(
        self, client: httpx2.AsyncClient, request: httpx2.Request, due: float
    ) -> httpx2.Response:
        connected = False

        async def trace(event: str, _: object) -> None:
            nonlocal connected
            connected = connected or event == "connection.connect_tcp.started"

        request.extensions["trace"] = trace
        try:
            async with asyncio.timeout_at(due):
                while True:
                    try:
                        return await client.send(request, stream=True)
                    except _HUNG_UP:
                        # A server may close a connection that it had kept, just as it is used
                        # again (seen with llama.cpp). A new one that is closed is an error.
                        if connected:
                            raise
        except _HUNG_UP as error:
            # Nothing has been said yet, so the same request may be sent again.
            raise ModelUnreachable(f"{self.address} hung up before it answered") from error

    async def _connected(self) -> httpx2.AsyncClient:
        if self._client is not None:
            return self._client
        # A full context reads the system's certificates for 50 to 130 ms: in a thread, and only
        # where there is something to verify.
        context = (
            await asyncio.to_thread(httpx2.create_ssl_context)
            if self._secure
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        if self._client is None:  # Nobody else made it while the certificates were read.
            self._client = open_client(
                REPLY_MAX_BYTES,
                verify=context,
                headers=self._headers,
                # Reading has deadlines of its own, which depend on what has come already.
                timeout=httpx2.Timeout(None, connect=self.deadlines.connect, write=WRITE_S),
                # A proxy of the environment cannot reach this machine's loopback.
                trust_env=not self._local,
            )
        return self._client

    def _encoded(self, body: Mapping[str, Any]) -> bytes:
        """Write compact JSON: 1.2 ms for 120 kB, which are a full context of 30,000 tokens.

        The same body always gives the same bytes. A lone surrogate, which UTF-8 cannot carry,
        becomes `?`.
        """
        tools: object = body.get("tools")
        if tools is not self._tools[0] or not isinstance(tools, tuple):  # which stays as it is
            self._tools = tools, _json(tools)
        members = (
            f"{_json(name)}:{self._tools[1] if name == 'tools' else _json(value)}"
            for name, value in body.items()
        )
        return f"{{{','.join(members)}}}".encode(errors="replace")

    @contextmanager
    def _own_errors(self, first_s: float) -> Generator[None]:
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            if (why := refusal_in(error)) is not None:
                raise ModelOutside(
                    f"{why}, of the model server at {self.address}; add it there, or fix "
                    "the address"
                ) from error
            raise ModelUnreachable(
                f"no model server answers at {self.address}; {self._start}"
            ) from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise ModelTimeout(
                f"{self.address} did not go on in time (first piece {first_s:g} s, "
                f"then {self.deadlines.between:g} s, {self.deadlines.whole:g} s in all)"
            ) from error
        except UnfitAnswer as error:
            raise ModelReplyError(f"{self.address} {error}") from error
        except httpx2.HTTPError as error:
            raise ModelReplyError(f"{self.address} broke off the connection") from error


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
