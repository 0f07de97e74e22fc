"""Signing in to a remote server: who is asked, what comes back, and where it may go."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
from collections.abc import Sequence

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthMetadata

from mcp_bridge import OAuth, ServerConfig, ServerUnavailable
from mcp_bridge.security.policy import is_public
from mcp_bridge.transports.oauth import JudgedTransport, SignInRequests

REMOTE = ServerConfig("files", transport="http", url="https://files.example/mcp")
BACK = "http://localhost:3000/callback"


class Person:
    """Comes back from every page with the same address."""

    def __init__(self, back: str = "") -> None:
        self.back = back
        self.shown: list[tuple[str, str]] = []

    async def __call__(self, server: str, page: str) -> str:
        self.shown.append((server, page))
        return self.back


def provider(person: Person) -> OAuthClientProvider:
    auth = OAuth(sign_in=person, redirect_uri=BACK).auth(REMOTE)
    assert isinstance(auth, OAuthClientProvider)
    return auth


async def test_the_host_shows_the_page_and_code_state_and_issuer_come_back() -> None:
    person = Person(f"{BACK}?code=c1&state=s1&iss=https%3A%2F%2Fas.example")
    context = provider(person).context
    assert context.redirect_handler is not None
    assert context.callback_handler is not None
    await context.redirect_handler("https://files.example/authorize?x=1")
    given = await context.callback_handler()
    assert person.shown == [("files", "https://files.example/authorize?x=1")]
    assert (given.code, given.state, given.iss) == ("c1", "s1", "https://as.example")
    # What came back is used up.
    assert (await context.callback_handler()).code == ""


@pytest.mark.parametrize("back", ["", BACK, f"{BACK}?error=access_denied", "x" * 20_000])
async def test_a_way_back_without_a_code_is_none(back: str) -> None:
    context = provider(Person(back)).context
    assert context.redirect_handler is not None
    assert context.callback_handler is not None
    await context.redirect_handler("https://files.example/authorize")
    assert (await context.callback_handler()).code == ""


@pytest.mark.parametrize(
    "config",
    [
        ServerConfig("a", command="server"),
        ServerConfig("a", transport="http", url=REMOTE.url, headers={"authorization": "Bearer x"}),
    ],
    ids=["stdio", "keyed"],
)
def test_a_server_that_needs_no_sign_in_gets_none(config: ServerConfig) -> None:
    assert OAuth(sign_in=Person(), redirect_uri=BACK).auth(config) is None


async def test_tokens_are_kept_by_server() -> None:
    oauth = OAuth(sign_in=Person(), redirect_uri=BACK)
    one, other = ServerConfig("a", transport="http"), ServerConfig("b", transport="http")
    assert oauth.stores(one) is oauth.stores(one)
    assert oauth.stores(one) is not oauth.stores(other)


# Where a sign-in may lead.


def requests(*found: str, authorization_servers: tuple[str, ...] = ()) -> SignInRequests:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return found

    config = dataclasses.replace(REMOTE, authorization_servers=authorization_servers)
    return SignInRequests(config, look_up)


@pytest.mark.parametrize("url", ["https://files.example/token", "https://FILES.example:443/x?y=1"])
async def test_the_own_origin_is_asked_wherever_it_is(url: str) -> None:
    assert await requests("127.0.0.1").check(url) == ()


async def test_a_public_address_is_asked_as_it_was_judged() -> None:
    found = "93.184.216.34", "2606:2800:220:1::1"
    assert await requests(*found).check("https://as.example/token") == found


@pytest.mark.parametrize(
    "address",
    """127.0.0.1 127.8.8.8 0.0.0.0 10.0.0.1 172.16.9.9 192.168.1.1 169.254.169.254 100.64.0.1
    192.0.0.8 192.0.2.1 198.18.0.1 203.0.113.9 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255
    :: ::1 ::ffff:127.0.0.1 ::127.0.0.1 fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd12::1 ff02::1
    2001:db8::1 2001::1 2002:7f00:1::1 3fff::1 64:ff9b::7f00:1 64:ff9b::a00:1 100::1
    """.split(),  # noqa: SIM905 - shorter than a list of 32 texts
)
async def test_no_other_address_is_asked(address: str) -> None:
    for found in ([address], ["93.184.216.34", address]):
        with pytest.raises(ServerUnavailable, match="neither its own address nor a public one"):
            await requests(*found).check("https://as.example/token")


def test_an_address_behind_a_translator_is_judged_by_what_it_leads_to() -> None:
    assert is_public("64:ff9b::5db8:d822")
    assert not is_public("localhost")


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:0", "2002::", "64:ff9b::"]))
def test_no_form_of_an_address_is_more_public_than_itself(
    address: ipaddress.IPv4Address, around: str
) -> None:
    place = 80 if around == "2002::" else 0
    number = int(ipaddress.IPv6Address(around)) + (int(address) << place)
    assert is_public(str(ipaddress.IPv6Address(number))) <= is_public(str(address))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://as.example/token", "not encrypted"),
        ("http://127.0.0.1:9000/token", "neither its own"),
        ("https://localhost:9000/token", "neither its own"),
        ("http://files.example/token", "not encrypted"),
        ("https://files.example@evil.example/", "no web address"),
        ("https://evil.example\\@files.example/", "no web address"),
        ("https://as.example/a b", "no web address"),
        ("https://as.example/\x1b[2J", "no web address"),
        ("https://аs.example/", "no web address"),
        ("https://as.example:port/", "no web address"),
        ("https://" + "a" * 20_000, "no web address"),
        ("javascript:alert(1)", "no web address"),
        ("file:///etc/passwd", "no web address"),
        ("//as.example/", "no web address"),
        ("", "no web address"),
    ],
)
async def test_what_is_no_encrypted_address_is_not_looked_up(url: str, words: str) -> None:
    with pytest.raises(ServerUnavailable, match=words):
        await requests("93.184.216.34").check(url)


async def test_a_page_is_judged_before_a_person_is_shown_it() -> None:
    person = Person(BACK)
    context = provider(person).context
    assert context.redirect_handler is not None
    with pytest.raises(ServerUnavailable, match="authorization_servers"):
        await context.redirect_handler("http://127.0.0.1:8123/api/restart")
    assert person.shown == []


async def test_an_address_that_the_owner_names_is_asked_wherever_it_is() -> None:
    named = requests("10.0.0.1", authorization_servers=("https://login.home",))
    assert await named.check("https://login.home/realms/x") == ()
    with pytest.raises(ServerUnavailable):
        await named.check("https://login.home:8443/realms/x")


async def test_a_proxy_of_the_owner_looks_names_up_and_is_given_no_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "direct.example")
    judged = requests("10.0.0.1")
    assert await judged.check("https://as.example/token") == ()
    for url in ("direct.example", "10.1", "0x7f000001", "2130706433", "[fe80::1]"):
        with pytest.raises(ServerUnavailable, match="neither its own"):
            await judged.check(f"https://{url}/token")


async def test_the_address_that_was_judged_is_the_one_connected_to() -> None:
    seen: list[tuple[str, str, str]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        host = str(request.url.host)
        seen.append((host, request.headers["host"], request.extensions["sni_hostname"]))
        if host == "2606:2800:220:1::1":
            raise httpx2.ConnectError("no route")
        return httpx2.Response(200, content=b"{}")

    judged = JudgedTransport(httpx2.MockTransport(answer), ["2606:2800:220:1::1", "93.184.216.34"])
    async with httpx2.AsyncClient(transport=judged) as client:
        response = await client.post("https://as.example:8443/token", content=b"x")
    assert (response.status_code, str(response.url)) == (200, "https://as.example:8443/token")
    assert seen == [
        ("2606:2800:220:1::1", "as.example:8443", "as.example"),
        ("93.184.216.34", "as.example:8443", "as.example"),
    ]


@pytest.mark.parametrize(
    ("methods", "shown"), [(["S256", "plain"], 1), (["plain"], 0), ([], 0), (None, 1)]
)
async def test_a_sign_in_that_says_it_has_no_pkce_is_not_begun(
    methods: list[str] | None, shown: int
) -> None:
    person = Person(BACK)
    context = provider(person).context
    context.oauth_metadata = OAuthMetadata.model_validate(
        {
            "issuer": "https://files.example",
            "authorization_endpoint": "https://files.example/authorize",
            "token_endpoint": "https://files.example/token",
            "code_challenge_methods_supported": methods,
        }
    )
    assert context.redirect_handler is not None
    with contextlib.suppress(ServerUnavailable):
        await context.redirect_handler("https://files.example/authorize")
    assert len(person.shown) == shown
