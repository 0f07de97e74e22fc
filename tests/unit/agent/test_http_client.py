"""What an answer over HTTP may cost: its bytes, its pieces, its packing, its cookies, its head."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from caal_node import http_client
from caal_node.http_client import UnfitAnswer, open_client
from mcp_bridge.core.bounded_http import HEAD_BYTES

URL = "http://server.test/"


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def answered(
    *pieces: bytes, max_bytes: int = 10, times: int = 1, **headers: str
) -> tuple[bytes, list[httpx2.Request]]:
    """Ask a server so many times that answers with `pieces`, and return the last body."""
    asked: list[httpx2.Request] = []
    names = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, headers=names, stream=Pieces(*pieces))

    body = b""
    async with open_client(max_bytes, transport=httpx2.MockTransport(answer)) as client:
        for _ in range(times):
            body = (await client.get(URL)).content
    return body, asked


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "GZIP", "gzip, gzip", "odd"])
async def test_a_packed_answer_is_refused(coding: str) -> None:
    with pytest.raises(UnfitAnswer, match="packs its answers"):
        await answered(b"x", content_encoding=coding)


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
async def test_a_plain_answer_is_asked_for_and_read(coding: str) -> None:
    body, (asked,) = await answered(b"ab", b"c", content_encoding=coding)
    assert (body, asked.headers["accept-encoding"]) == (b"abc", "identity")


@pytest.mark.parametrize("pieces", [(b"x" * 11,), (b"x" * 6, b"x" * 5), (b"x",) * 11])
async def test_an_answer_past_its_limit_is_refused(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(UnfitAnswer, match="longer than 10 bytes"):
        await answered(*pieces)
    assert (await answered(*pieces, max_bytes=11))[0] == b"x" * 11


async def test_an_answer_in_too_many_pieces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "PIECES_MAX", 3)
    with pytest.raises(UnfitAnswer):
        await answered(*[b""] * 4)
    assert (await answered(*[b"x"] * 3))[0] == b"xxx"


async def test_cookies_are_not_kept() -> None:
    _, asked = await answered(b"x", times=2, set_cookie="id=1")
    assert ["cookie" in each.headers for each in asked] == [False, False]


@asynccontextmanager
async def answering(answer: bytes) -> AsyncGenerator[str]:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize(("size", "is_read"), [(HEAD_BYTES // 2, True), (2 * HEAD_BYTES, False)])
async def test_a_giant_head_is_refused(size: int, is_read: bool) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"a:b\r\n" * (size // 5) + b"\r\n"
    async with answering(head + b"ok") as url, open_client(trust_env=False) as client:
        if is_read:
            assert (await client.get(url)).content == b"ok"
        else:
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.get(url)


async def test_interim_heads_do_not_count_as_the_answers() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" * (HEAD_BYTES // 10)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n"
    async with answering(interim + head + b"x" * 40_000) as url, open_client() as client:
        assert len((await client.get(url)).content) == 40_000


async def test_a_giant_head_behind_an_interim_one_is_refused() -> None:
    head = b"HTTP/1.1 200 OK\n" + b"a:b\n" * (HEAD_BYTES // 2) + b"\n"
    async with answering(b"HTTP/1.1 103 Early Hints\n\n" + head) as url, open_client() as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get(url)


async def test_a_client_of_another_package_has_no_such_bounds() -> None:
    open_client()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"a:b\r\n" * (HEAD_BYTES // 3) + b"\r\n"
    async with answering(head + b"ok") as url, httpx2.AsyncClient(trust_env=False) as client:
        assert (await client.get(url)).content == b"ok"


async def test_certificates_are_read_once_in_a_thread_and_only_for_https(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = list[threading.Thread]()

    def counted() -> ssl.SSLContext:
        made.append(threading.current_thread())
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(http_client.httpx2, "create_ssl_context", counted)
    http_client._authorities.cache_clear()
    plain = await http_client.tls_for("http://home.local")
    assert plain.get_ca_certs() == []
    assert plain.verify_mode is ssl.CERT_REQUIRED
    contexts = [await http_client.tls_for("https://home.local") for _ in range(3)]
    http_client._authorities.cache_clear()
    assert len(set(map(id, contexts))) == len(made) == 1
    assert made[0] is not threading.main_thread()
