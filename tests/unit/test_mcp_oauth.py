"""Signing in to a remote server: who is asked, what comes back, and where it may go."""

from __future__ import annotations

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider

from mcp_bridge import OAuth, ServerConfig
from mcp_bridge.core.server_config import ServerSecrets
from mcp_bridge.protocol.inbound_filter import InboundFilter
from mcp_bridge.transports.http import HttpMonitor, http_client

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
    await context.redirect_handler("https://as.example/authorize?x=1")
    given = await context.callback_handler()
    assert person.shown == [("files", "https://as.example/authorize?x=1")]
    assert (given.code, given.state, given.iss) == ("c1", "s1", "https://as.example")
    # What came back is used up.
    assert (await context.callback_handler()).code == ""


@pytest.mark.parametrize("back", ["", BACK, f"{BACK}?error=access_denied", "x" * 20_000])
async def test_a_way_back_without_a_code_is_none(back: str) -> None:
    context = provider(Person(back)).context
    assert context.redirect_handler is not None
    assert context.callback_handler is not None
    await context.redirect_handler("https://as.example/authorize")
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


async def test_a_sign_in_at_a_plain_http_address_is_refused_before_anything_is_sent() -> None:
    auth = OAuth(sign_in=Person(), redirect_uri=BACK).auth(REMOTE)
    async with await http_client(
        REMOTE, HttpMonitor(1000, ServerSecrets(REMOTE), InboundFilter(REMOTE.name)), auth
    ) as client:
        check = client.event_hooks["request"][0]
        with pytest.raises(httpx2.UnsupportedProtocol, match="plain http"):
            await check(httpx2.Request("POST", "http://as.example/token"))
        await check(httpx2.Request("POST", "https://as.example/token"))
        await check(httpx2.Request("POST", "http://127.0.0.1:8000/token"))
