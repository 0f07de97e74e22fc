"""Servers that want a person to sign in, and choose where we go for it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from caal_node.cli import login as signing
from caal_node.config.settings import Settings
from caal_node.core import paths
from caal_node.core.errors import ConfigError
from mcp_bridge import OAuth, ServerConfig, ServerManager, SignIns
from mcp_bridge.transports import oauth as oauth_transport
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.signing_mcp_server import signing_server

HEAD_BYTES: Final = 64 * 1024
WELL_KNOWN: Final = "/.well-known/oauth-"


@dataclass
class Service:
    """A small HTTP server on this machine. It answers by path, and counts who came."""

    answers: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, tuple[str, bytes]])
    """Status line and headers, and body, by path; anything else is a 401 with `challenge`."""
    challenge: str = ""
    connections: int = 0
    asked: list[str] = field(default_factory=list[str])
    origin: str = ""
    drips: bool = False
    """Whether a body comes one byte at a time, for ever."""

    def document(self, path: str, **content: Any) -> None:
        self.answers[path] = (
            "200 OK\r\ncontent-type: application/json",
            json.dumps(content).encode(),
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = head.split(" ", 2)
            self.asked.append(f"{method} {path}")
            refused = f"401 Unauthorized\r\nwww-authenticate: {self.challenge}", b""
            status, body = self.answers.get(urlsplit(path).path, refused)
            ends = "connection: close\r\n" if self.drips else f"content-length: {len(body)}\r\n"
            writer.write(f"HTTP/1.1 {status}\r\n{ends}connection: close\r\n\r\n".encode())
            while self.drips and body:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
            for start in range(0, len(body), HEAD_BYTES):
                writer.write(body[start : start + HEAD_BYTES])
                await writer.drain()
        writer.close()


@asynccontextmanager
async def service() -> AsyncGenerator[Service]:
    made = Service()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=HEAD_BYTES)
    made.origin = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        listening.close()


def metadata(origin: str, **other: str) -> Mapping[str, Any]:
    return {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "registration_endpoint": f"{origin}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        **other,
    }


def wants_sign_in(server: Service, **endpoints: str) -> None:
    """Makes `server` an honest one but for `endpoints`."""
    resource = f"{server.origin}{WELL_KNOWN}protected-resource"
    server.challenge = f'Bearer resource_metadata="{resource}"'
    server.document(
        f"{WELL_KNOWN}protected-resource",
        resource=f"{server.origin}/mcp",
        authorization_servers=[server.origin],
    )
    server.document(f"{WELL_KNOWN}authorization-server", **metadata(server.origin, **endpoints))
    server.document(
        "/register",
        client_id="us",
        redirect_uris=["http://127.0.0.1/"],
        token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
    )


def room_of(url: str) -> Settings:
    folder = paths.state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "mcp_servers.json"
    file.write_text(json.dumps({"diary": {"url": url}}), encoding="utf-8")
    return Settings(mcp_servers=file)


async def signs_in(probe: Probe, server: Service, opened: list[str]) -> str:
    """A person signs in to `server`; gives what they are told. Pages go to `opened`."""

    loop = asyncio.get_running_loop()

    async def work() -> str:
        def open_page(page: str) -> bool:
            opened.append(page)
            loop.call_soon_threadsafe(signing_in.cancel)
            return True

        signing.webbrowser.open = open_page
        settings = room_of(f"{server.origin}/mcp")
        signing_in = asyncio.create_task(signing.login(settings, "diary"))
        try:
            await signing_in
        except ConfigError as told:
            return str(told)
        except asyncio.CancelledError:
            return f"the page {opened[-1]} was opened"
        return "signed in"

    return await probe.watch(work)


async def fails_with(server: Service, oauth: OAuth) -> str:
    """A room with such a server; gives what is wrong with it."""
    config = ServerConfig("diary", transport="http", url=f"{server.origin}/mcp")
    async with ServerManager([config], oauth=oauth) as manager:
        return manager.failed["diary"]


@attack("sign in", "the server's challenge names another service here", deadline_s=4)
async def challenge_elsewhere(probe: Probe) -> Ending:
    async with service() as victim, service() as server:
        server.challenge = f'Bearer resource_metadata="{victim.origin}/admin?do=it"'
        told = await signs_in(probe, server, [])
    return Ending(kept=victim.connections == 0 and "authorization_servers" in told, heard=told)


@attack("sign in", "a room's server turns, and its challenge names another service", deadline_s=4)
async def room_is_sent_elsewhere(probe: Probe) -> Ending:
    """Nobody signs in here: the room has what was kept, which the server does not take any more."""
    async with service() as victim, service() as server:
        server.challenge = f'Bearer resource_metadata="{victim.origin}/admin?do=it"'
        config = ServerConfig("diary", transport="http", url=f"{server.origin}/mcp")
        kept = SignIns(paths.sign_ins())
        client = OAuthClientInformationFull(client_id="us", redirect_uris=[AnyUrl("http://x/")])
        tokens = {"access_token": "a-token", "refresh_token": "another"}
        await kept(config).set_tokens(OAuthToken.model_validate(tokens))
        await kept(config).set_client_info(client)
        told = await probe.watch(partial(fails_with, server, OAuth(stores=kept)))
    return Ending(kept=victim.connections == 0 and "authorization_servers" in told, heard=told)


@attack("sign in", "the registration is at a path of another service here", deadline_s=4)
async def registration_elsewhere(probe: Probe) -> Ending:
    async with service() as victim, service() as server:
        wants_sign_in(server, registration_endpoint=f"{victim.origin}/reload-tools")
        told = await signs_in(probe, server, [])
    return Ending(kept=victim.connections == 0 and "authorization_servers" in told, heard=told)


@attack("sign in", "its documents redirect to another service here", deadline_s=4)
async def redirected_documents(probe: Probe) -> Ending:
    async with service() as victim, service() as server:
        wants_sign_in(server)
        for path in (f"{WELL_KNOWN}protected-resource", f"{WELL_KNOWN}authorization-server"):
            server.answers[path] = f"307 Gone\r\nlocation: {victim.origin}/admin", b""
        told = await signs_in(probe, server, [])
        kept = victim.connections == 0 and f"page {server.origin}/" in told
    return Ending(kept=kept, heard=told)


@attack("sign in", "a public name leads to this machine", deadline_s=4)
async def name_leads_here(probe: Probe) -> Ending:
    """Looked up by a stand-in: first for the documents, then for the endpoint for tokens."""
    heard = ""
    async with service() as victim, service() as server:
        port = urlsplit(victim.origin).port
        for found in (["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"]):

            async def look_up(host: str, port: int, found: list[str] = found) -> list[str]:
                return found

            async def agrees(server: str, page: str) -> str:
                state = parse_qs(urlsplit(page).query)["state"][0]
                return f"http://127.0.0.1/?code=c&state={state}"

            elsewhere = f"https://login.example:{port}"
            wants_sign_in(server, token_endpoint=f"{elsewhere}/token")
            work = partial(fails_with, server, OAuth(sign_in=agrees, look_up=look_up))
            heard = await probe.watch(work)
            if "login.example" not in heard or victim.connections:
                return Ending(kept=False, heard=f"{found}: {heard}")
    return Ending(kept=victim.connections == 0, heard=heard)


@attack("sign in", "the page to open is a service of this network", deadline_s=4)
async def page_elsewhere(probe: Probe) -> Ending:
    heard, opened = "", list[str]()
    async with service() as victim, service() as server:
        pages = (f"{victim.origin}/restart", "https://192.168.1.1/apply?", "https://[fe80::1]/")
        for page in pages:
            wants_sign_in(server, authorization_endpoint=page)
            heard = await signs_in(probe, server, opened)
            if opened or "has its sign-in at" not in heard:
                return Ending(kept=False, heard=f"{page}: {heard}")
    return Ending(kept=victim.connections == 0, heard=heard)


@attack("sign in", "a document of 50 MB, packed and not", deadline_s=4)
async def giant_documents(probe: Probe) -> Ending:
    heard = list[str]()
    async with service() as server:
        wants_sign_in(server)
        path = f"{WELL_KNOWN}protected-resource"
        status, _ = server.answers[path]
        packed = await asyncio.to_thread(gzip.compress, b" " * 50_000_000)
        giant = b'{"resource": "' + b"x" * 50_000_000
        for answer in ((status, giant), (f"{status}\r\ncontent-encoding: gzip", packed)):
            server.answers[path] = answer
            heard.append(await signs_in(probe, server, []))
        server.document(path, resource=1, authorization_servers=[1] * 10_000)
        heard.append(await signs_in(probe, server, []))
    kept = "over 32 KiB" in heard[0] and "packs its sign-in" in heard[1]
    return Ending(kept=kept, heard=" / ".join(heard))


@attack("sign in", "a document that comes byte by byte, for ever", deadline_s=2)
async def endless_document(probe: Probe) -> Ending:
    oauth_transport.DEADLINE_S = 1.5
    async with service() as server:
        wants_sign_in(server)
        server.drips = True
        told = await signs_in(probe, server, [])
    return Ending(kept="diary" in told and "opened" not in told, heard=told)


@attack("sign in", "others crowd the page that the browser comes back to", deadline_s=4)
async def crowded_way_back(probe: Probe) -> Ending:
    """Programs and pages here: without the secret, under other names, long, silent, and many."""
    answers = list[str]()

    async def ask(port: int, text: str, host: str = "127.0.0.1") -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with suppress(OSError):
            writer.write(f"GET {text} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            answers.append((await reader.read(100)).decode())
        writer.close()

    async def person(page: str) -> None:
        given = parse_qs(urlsplit(page).query)
        back, state = urlsplit(given["redirect_uri"][0]), given["state"][0]
        port = back.port or 0
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        await ask(port, f"{back.path}?code=stolen&state=x", back.netloc)
        await ask(port, f"{back.path}?code=stolen&state=%C3%A9", back.netloc)
        await ask(port, f"{back.path}?code=stolen", back.netloc)
        await ask(port, f"{back.path}?code=stolen&state={state}", "rebound.example")
        await ask(port, f"{back.path}?code={'x' * 1_000_000}&state={state}", back.netloc)
        assert (await browser.get(page)).is_success
        for _, writer in silent:
            writer.close()

    browser = httpx2.AsyncClient(follow_redirects=True, trust_env=False)
    async with browser, signing_server() as provider:
        await browser.get(provider.url)
        loop, going = asyncio.get_running_loop(), list[asyncio.Future[None]]()

        def open_page(page: str) -> bool:
            going.append(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(person(page), loop),
                                             loop=loop))  # fmt: skip
            return True

        signing.webbrowser.open = open_page
        settings = room_of(provider.url)

        async def work() -> str:
            try:
                async with asyncio.timeout(5):
                    await signing.login(settings, "diary")
                await asyncio.gather(*going)
            except (ConfigError, TimeoutError) as error:
                return f"{type(error).__name__}: {error}"
            return "signed in"

        heard = await probe.watch(work)
    let_in = [answer for answer in answers if answer.startswith("HTTP/1.1 200")]
    return Ending(kept=heard == "signed in" and not let_in, heard=heard)
