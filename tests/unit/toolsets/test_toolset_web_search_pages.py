"""Pages of the public web are fetched and read, and no others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import ToolBroke, ToolFailure, ToolRefused, ToolTimeout, ToolUnavailable
from caal_node.toolsets.http_service import LateClient
from caal_node.toolsets.web_search import page_fetch
from caal_node.toolsets.web_search.page_fetch import PAGE_BYTES, PageFetch, text_of

HTML = {"content-type": "text/html; charset=utf-8"}
NAMES = {
    "xn--bcher-kva.example": ["203.0.114.9"],
    "www.example.org": ["203.0.114.9"],
    "both.example.org": ["203.0.114.9", "192.168.1.1"],
    "router.example.org": ["192.168.1.1"],
    "six.example.org": ["2606:4700::1111"],
}


async def resolve(host: str, port: int) -> Sequence[str]:
    return NAMES.get(host, [])


def fetching(answer: Callable[[httpx2.Request], httpx2.Response]) -> PageFetch:
    client = LateClient(timeout_s=5, transport=httpx2.MockTransport(answer))
    return PageFetch(client, resolve=resolve)


def page(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, headers=HTML, text="<p>Hello.</p>")


async def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return page(request)

    fetched = await fetching(answer).fetch("https://www.example.org/a?b=c#d")
    assert fetched.body == b"<p>Hello.</p>"
    assert str(asked[0].url) == "https://203.0.114.9/a?b=c"
    assert asked[0].headers["host"] == "www.example.org"
    assert asked[0].extensions["sni_hostname"] == "www.example.org"


async def test_a_name_in_other_letters_is_asked_for_as_dns_has_it() -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return page(request)

    await fetching(answer).fetch("https://BÜCHER.example/öl?ä=ß")
    assert asked[0].headers["host"] == "xn--bcher-kva.example"
    assert asked[0].extensions["sni_hostname"] == "xn--bcher-kva.example"
    with pytest.raises(ToolFailure):
        await fetching(answer).fetch(f"https://{'ü' * 80}.example/")


async def test_an_address_of_ipv6_is_connected_to() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return page(request)

    await fetching(answer).fetch("http://six.example.org:8080/")
    assert asked == ["2606:4700::1111"]


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://[::ffff:192.168.1.1]/",
        "http://192.168.1.1/admin",
        "http://169.254.169.254/latest/meta-data",
        "http://router.example.org/",
        "http://both.example.org/",
        "http://user:pass@www.example.org/",
        "http://www.example.org:0/",
        "file:///etc/passwd",
        "ftp://www.example.org/",
        "https://[broken/",
        "",
    ],
)
async def test_nothing_but_a_public_page_is_fetched(address: str) -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return page(request)

    with pytest.raises((ToolRefused, ToolUnavailable)):
        await fetching(answer).fetch(address)
    assert asked == []


async def test_a_redirect_is_judged_like_the_first_address() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(302, headers={"location": "http://192.168.1.1/admin"})

    with pytest.raises(ToolRefused):
        await fetching(answer).fetch("https://www.example.org/")


async def test_redirects_are_followed_and_end() -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.path)
        if request.url.path == "/end":
            return page(request)
        return httpx2.Response(301, headers={"location": "/end" if len(seen) < 3 else "/again"})

    fetched = await fetching(answer).fetch("https://www.example.org/")
    assert fetched.address == "https://www.example.org/end"
    with pytest.raises(ToolBroke, match="on and on"):
        await fetching(answer).fetch("https://www.example.org/")


async def test_of_a_long_page_the_beginning_is_read() -> None:
    body = b"x" * (PAGE_BYTES + 50_000)
    answer = httpx2.Response(200, headers={"content-type": "text/plain"}, content=body)
    fetched = await fetching(lambda _: answer).fetch("https://www.example.org/")
    assert len(fetched.body) == PAGE_BYTES
    assert fetched.is_plain


@pytest.mark.parametrize(
    ("status", "kind"), [(404, "text/html"), (403, "text/html"), (200, "application/pdf")]
)
async def test_what_is_no_page_is_told_as_such(status: int, kind: str) -> None:
    answer = httpx2.Response(status, headers={"content-type": kind}, text="no")
    with pytest.raises(ToolBroke) as caught:
        await fetching(lambda _: answer).fetch("https://www.example.org/")
    assert caught.value.words


async def test_a_page_that_is_away_is_a_sentence() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no", request=request)

    with pytest.raises(ToolUnavailable) as caught:
        await fetching(answer).fetch("https://www.example.org/")
    assert caught.value.words == "I can't open that page right now."


@given(st.text(max_size=60))
def test_no_text_for_an_address_breaks_anything(address: str) -> None:
    def nowhere(request: httpx2.Request) -> httpx2.Response:
        raise AssertionError("it was fetched")

    async def fetch() -> None:
        with pytest.raises(ToolFailure):
            await fetching(nowhere).fetch(address)

    asyncio.run(fetch())


async def test_the_text_of_a_page_comes_without_its_menu() -> None:
    paragraph = "The blue team won the final on Sunday evening in front of many people."
    rest = "".join(
        f"<p>In minute {at} the ball went over the line once more.</p>" for at in range(9)
    )
    html = (
        "<html><head><title>Final</title></head><body><nav><a href='/'>Home</a></nav>"
        f"<article><h1>Final</h1><p>{paragraph}</p>{rest}</article></body></html>"
    )
    found = await text_of(html.encode())
    assert found.title == "Final"
    assert paragraph in found.text
    assert "Home" not in found.text


@pytest.mark.parametrize("html", [b"", b"\x00\xff", b"<" * 2_000])
async def test_what_is_no_page_has_no_text(html: bytes) -> None:
    assert (await text_of(html)).text == ""


async def test_a_page_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "slow.py"
    program.write_text("import threading\nthreading.Event().wait(600)\n")
    monkeypatch.setattr(page_fetch, "_PROGRAM", program)
    monkeypatch.setattr(page_fetch, "EXTRACTION_S", 0.2)
    with pytest.raises(ToolTimeout):
        await text_of(b"<p>x</p>")


async def test_the_process_that_reads_a_page_has_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "shows.py"
    program.write_text(
        "import json, os\n"
        "print(json.dumps({'title': 'x', 'date': '', 'text': str(dict(os.environ))}))"
    )
    monkeypatch.setattr(page_fetch, "_PROGRAM", program)
    monkeypatch.setenv("CAAL_API_KEY", "Zq7-key")
    monkeypatch.setenv("SOMEBODYS_TOKEN", "Zq7-token")
    assert "Zq7" not in (await text_of(b"<p>Hello.</p>")).text


async def test_a_program_that_writes_no_json_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "odd.py"
    monkeypatch.setattr(page_fetch, "_PROGRAM", program)
    for code in ("print('{')", f"print({json.dumps('[]')!r})", "raise SystemExit(3)"):
        program.write_text(code)
        with pytest.raises(ToolBroke):
            await text_of(b"<p>x</p>")
