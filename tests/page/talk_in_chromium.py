"""Plays a conversation in the built page: a real LiveKit server, Chromium, and a stand-in agent.

Build the page first (`npm ci && npm run build` in `caal_node/page/client`). It needs the package
`playwright`, which is no dependency of ours, a Chromium of the system, and a livekit-server
(`caal-node demo` builds one):

    python -m tests.page.talk_in_chromium

The page is served here, with its policy; `caal-node up` has tests of its own. It prints what was
checked, and exits with 1 if something is not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.server
import json
import sys
import threading
from pathlib import Path
from typing import Any, Final

from livekit import rtc
from playwright.async_api import Page, async_playwright, expect

from tests.livekit_server import KillableServer, find_server
from tests.page.look_at_scenes import POLICY

STATIC: Final = Path(__file__).parents[2] / "caal_node" / "page" / "static"
KEY: Final = "the-key"
ROOM: Final = "page"
USER: Final = "person"
INSECURE_HOST: Final = "page.test"
"""A name that leads to this machine and that no browser trusts."""
HASH: Final = "4846fc54141069d96e2dbf94b792f925"
QUESTION: Final = "Shall I unlock door: front?"


class PageServer:
    """Serves the built page and answers its requests, as `caal-node up` does."""

    def __init__(self, livekit: KillableServer) -> None:
        outer = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args, directory=str(STATIC))

            def end_headers(self) -> None:
                self.send_header("Content-Security-Policy", POLICY)
                super().end_headers()

            def do_GET(self) -> None:
                if self.path in ("/tools", "/model"):
                    self.answer()
                else:
                    super().do_GET()

            def do_POST(self) -> None:
                self.answer()

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(length)
                known = self.headers["Authorization"] == f"Bearer {KEY}"
                if not known or self.headers["X-Caal-Page"] != "1":
                    status, body = 401, outer.refused
                else:
                    status, body = 200, outer.answers[self.path]()
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.refused = {"status": "error", "detail": "Open the link of this very server."}
        self.answers: dict[str, Any] = {
            "/join": lambda: {
                "url": livekit.livekit.url,
                "token": livekit.livekit.token(ROOM, USER),
                "room": ROOM,
                "identity": USER,
                "expires_s": 3600,
            },
            "/tools": lambda: {
                "tools": [
                    {
                        "name": "unlock_door",
                        "tier": "mcp",
                        "server": "home",
                        "description": "Unlocks a door.",
                        "offered": True,
                        "verdict": "ask",
                        "effect": "destructive",
                    }
                ],
                "failed": {},
            },
            "/model": lambda: {"model": "stand-in", "api": "none"},
            "/reload": lambda: {
                "tool_count": 1,
                "added": [],
                "removed": [],
                "changed": ["unlock_door"],
                "failed": {},
            },
        }
        self._handler = Handler
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._serve()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def start_again(self) -> None:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), self._handler)
        self._serve()

    def _serve(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}/#key={KEY}"


class StandInAgent:
    """Joins the room as an agent and answers each typed message with a turn."""

    def __init__(self, livekit: KillableServer) -> None:
        self._livekit = livekit
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        self.confirmed: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self.muted: asyncio.Queue[bool] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def join(self) -> None:
        self._room = room = rtc.Room()
        room.register_text_stream_handler("lk.chat", self._reads(self.heard.put_nowait))
        room.register_text_stream_handler(
            "caal.confirm", self._reads(lambda text: self.confirmed.put_nowait(json.loads(text)))
        )
        room.on("track_muted", lambda participant, _: self.muted.put_nowait(True))
        room.on("track_unmuted", lambda participant, _: self.muted.put_nowait(False))
        await room.connect(
            self._livekit.livekit.url, self._livekit.livekit.token(ROOM, "agent", agent=True)
        )
        source = rtc.AudioSource(48_000, 1)
        await room.local_participant.publish_track(
            rtc.LocalAudioTrack.create_audio_track("voice", source)
        )
        await self.set(**{"lk.agent.state": "listening", "caal.state": "idle"})

    async def leave(self) -> None:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._room.disconnect(), 5)

    async def set(self, **values: str) -> None:
        await self._room.local_participant.set_attributes(values)

    async def event(self, topic: str = "caal.page", **fields: object) -> None:
        to = [USER] if topic == "caal.page" else []
        await self._room.local_participant.send_text(
            json.dumps(fields), topic=topic, destination_identities=to
        )

    async def says(self, text: str) -> None:
        attributes = {"lk.transcription_final": "false", "lk.segment_id": "SG_1"}
        writer = await self._room.local_participant.stream_text(
            topic="lk.transcription", attributes=attributes
        )
        for word in text.split(" "):
            await writer.write(word + " ")
        await writer.aclose(attributes={"lk.transcription_final": "true"})

    async def hears(self, text: str, *, final: bool) -> None:
        await self._room.local_participant.send_text(
            text,
            topic="lk.transcription",
            attributes={
                "lk.transcription_final": "true" if final else "false",
                "lk.segment_id": "SG_user",
            },
        )

    def _reads(self, take: Any) -> Any:
        def handler(reader: rtc.TextStreamReader, identity: str) -> None:
            async def read() -> None:
                take(await reader.read_all())

            task = asyncio.create_task(read())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return handler


def passed(what: str) -> None:
    print(f"ok  {what}", flush=True)


async def play(
    page: Page, agent: StandInAgent, server: PageServer, livekit: KillableServer
) -> None:
    await page.goto(server.link)
    assert "key" not in page.url, page.url
    passed("the key is out of the address bar")
    await page.get_by_role("button", name="Start talking").click()
    stage = page.locator(".stage-name")
    await expect(stage).to_have_text("Listening", timeout=20_000)
    passed("it listens")

    await page.locator(".talk-button").click()
    assert await asyncio.wait_for(agent.muted.get(), 5)
    await expect(stage).to_have_text("Muted")
    await page.locator(".stage-area").click()
    assert not await asyncio.wait_for(agent.muted.get(), 5)
    await expect(stage).to_have_text("Listening")
    passed("the button and the state mute and unmute")
    worker = await page.evaluate(
        "navigator.serviceWorker.ready.then((each) => each.active.scriptURL)"
    )
    assert worker.endswith("/sw.js"), worker
    passed("the service worker is there")

    await page.locator(".sound summary").click()
    await page.get_by_label("Push to talk").check()
    assert await asyncio.wait_for(agent.muted.get(), 5)
    await page.locator(".sound summary").click()
    await page.locator(".transcript").focus()
    await page.keyboard.down(" ")
    assert not await asyncio.wait_for(agent.muted.get(), 5)
    await page.keyboard.up(" ")
    assert await asyncio.wait_for(agent.muted.get(), 5)
    await page.locator(".sound summary").click()
    await page.get_by_label("Push to talk").uncheck()
    assert not await asyncio.wait_for(agent.muted.get(), 5)
    await page.locator(".sound summary").click()
    passed("space talks while it is held")

    await page.get_by_label("Type a message").fill("Unlock the door")
    await page.keyboard.press("Enter")
    assert await asyncio.wait_for(agent.heard.get(), 5) == "Unlock the door"
    await agent.event(type="user", text="Unlock the door")
    await agent.set(**{"lk.agent.state": "thinking"})
    await expect(stage).to_have_text("Thinking")
    call = {"call_id": "call_1", "tool": "unlock_door", "tier": "mcp", "source": "home"}
    await agent.event("caal.tools", type="tool_call_started", **call, arguments=None)
    await agent.event(type="tool_call_started", **call, arguments={"door": "front"})
    await agent.set(**{"caal.state": "tool", "caal.tool": "unlock_door"})
    card = page.locator(".call")
    await expect(card).to_contain_text("Unlock door · front")
    await agent.event(
        type="tool_progress", **call, done=1, total=4, message="<b>Turning</b> the key"
    )
    await expect(card).to_contain_text("<b>Turning</b> the key")
    await agent.event(
        type="confirmation_asked",
        call_id="call_1",
        tool="unlock_door",
        words=QUESTION,
        arguments_hash=HASH,
    )
    await expect(card).to_contain_text(QUESTION)
    await expect(stage).to_have_text("Your answer?")
    await page.get_by_role("button", name="Yes", exact=True).click()
    answer = await asyncio.wait_for(agent.confirmed.get(), 5)
    assert answer == {"call_id": "call_1", "arguments_hash": HASH, "yes": True}, answer
    await agent.event(
        type="confirmation_ended", call_id="call_1", tool="unlock_door", answer="yes", by="button"
    )
    await expect(page.get_by_role("button", name="Yes", exact=True)).to_have_count(0)
    await agent.event(
        type="tool_call_ended",
        call_id="call_1",
        tool="unlock_door",
        tier="mcp",
        outcome="ok",
        duration_ms=1200,
        decisions=[],
        reason="",
        result="unlocked",
    )
    await expect(card).to_contain_text("done")
    await agent.event("caal.tools", type="user", text="An echo for everyone")
    await agent.set(**{"caal.state": "idle", "lk.agent.state": "speaking"})
    await expect(stage).to_have_text("Speaking")
    await agent.says("The door is unlocked.")
    await expect(page.locator(".words-agent")).to_contain_text("The door is unlocked.")
    await agent.set(**{"lk.agent.state": "listening"})
    assert await page.locator(".words").count() == 2
    assert await page.locator(".call").count() == 1
    passed("a typed turn: words, a card, its progress, its question, its answer")

    await page.get_by_role("button", name="Steer").click()
    await expect(page.locator(".tool")).to_contain_text("Unlock door")
    await page.get_by_role("button", name="Reload tools").click()
    await expect(page.locator(".said-status").last).to_contain_text("1 changed")
    await page.get_by_role("button", name="Look").click()
    await expect(page.locator(".turn")).to_contain_text("first spoken word after")
    await page.get_by_role("button", name="Talk").click()
    passed("steer and look")

    await agent.event(type="tool_call_started", **{**call, "call_id": "call_2"}, arguments={})
    await expect(page.locator(".call")).to_have_count(2)
    livekit.kill()
    await agent.leave()
    await expect(stage).to_have_text("Reconnecting", timeout=20_000)
    passed("it says that it reconnects")
    server.stop()
    await expect(page.locator(".problem")).to_contain_text("Check that", timeout=90_000)
    await expect(page.locator(".call").last).to_contain_text("end unknown")
    livekit.start()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.locator(".problem")).to_contain_text("server does not answer", timeout=20_000)
    passed("it says what is gone, and keeps the cards")
    server.start_again()
    await agent.join()
    await expect(stage).to_have_text("Listening", timeout=60_000)
    await expect(page.locator(".call")).to_have_count(2)
    await agent.hears("and now", final=False)
    await agent.hears("And now again.", final=True)
    await expect(page.locator(".words").last).to_contain_text("And now again.")
    passed("it comes back by itself and goes on")


async def play_without_microphone(page: Page, agent: StandInAgent, server: PageServer) -> None:
    await page.goto(server.link)
    await page.get_by_role("button", name="Start talking").click()
    await expect(page.locator(".notice")).to_contain_text("microphone", timeout=20_000)
    await page.get_by_label("Type a message").fill("Hello")
    await page.keyboard.press("Enter")
    assert await asyncio.wait_for(agent.heard.get(), 5) == "Hello"
    passed("without a microphone it says so, and one can type")


async def play_on_insecure_origin(page: Page, agent: StandInAgent, server: PageServer) -> None:
    await page.goto(server.link.replace("127.0.0.1", INSECURE_HOST))
    await page.get_by_role("button", name="Start talking").click()
    await expect(page.locator(".notice")).to_contain_text("https or on localhost", timeout=20_000)
    await page.get_by_label("Type a message").fill("Hello")
    await page.keyboard.press("Enter")
    assert await asyncio.wait_for(agent.heard.get(), 5) == "Hello"
    passed("on an insecure origin it says what to open, and one can type")


async def play_with_wrong_key(page: Page, server: PageServer) -> None:
    await page.goto(server.link.replace(KEY, "another"))
    await page.get_by_role("button", name="Start talking").click()
    await expect(page.locator(".problem")).to_contain_text("Open the link of this very server.")
    passed("a wrong key: the server's own words")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    binary = find_server()
    if binary is None or not (STATIC / "index.html").is_file():
        parser.error("it needs a livekit-server and the built page")
    livekit = KillableServer(binary)
    livekit.start()
    agent = StandInAgent(livekit)
    await agent.join()
    server = PageServer(livekit)
    errors: list[str] = []
    async with async_playwright() as playwright:
        # Without the last flag, Chromium offers no connection where there is no network.
        arguments = [
            "--no-sandbox",
            "--use-fake-device-for-media-stream",
            f"--host-resolver-rules=MAP {INSECURE_HOST} 127.0.0.1",
            "--allow-loopback-in-peer-connection",
        ]
        browser = await playwright.chromium.launch(executable_path=options.chromium, args=arguments)
        try:
            allowed = await browser.new_context(permissions=["microphone"], locale="en-GB")
            page = await allowed.new_page()
            page.on("console", lambda said: errors.append(said.text))
            page.on("pageerror", lambda error: errors.append(str(error)))
            await play(page, agent, server, livekit)
            await allowed.close()
            denied = await browser.new_context(locale="en-GB")
            await play_without_microphone(await denied.new_page(), agent, server)
            await play_on_insecure_origin(await denied.new_page(), agent, server)
            await play_with_wrong_key(await denied.new_page(), server)
        finally:
            await browser.close()
            await agent.leave()
            livekit.close()
    # After a failure, livekit-client asks the server by HTTP why; the policy forbids it.
    violations = [each for each in errors if "Security Policy" in each and "/validate?" not in each]
    print(*violations, sep="\n")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
