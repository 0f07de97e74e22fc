"""From `caal-node up` to a conversation in a real Chromium: typed, spoken, and by keyboard."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import socket
import sys
import wave
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
import pytest_asyncio
from livekit import api, rtc
from playwright.async_api import Page, expect

from caal_node.cli.demo.scenes import RATE_HZ, SpokenRequest, load_requests
from caal_node.cli.processes.livekit_server import find_server
from caal_node.speech import fetch_local, make_tts
from tests.stand_ins.browser import (
    CLICK_MS,
    PHONE,
    chromium,
    faults,
    find_chromium,
    opened,
    picture,
    say,
)
from tests.stand_ins.certificates import self_signed
from tests.stand_ins.spoken_words import spoken_by
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

pytestmark = [pytest.mark.livekit, pytest.mark.alone, pytest.mark.asyncio(loop_scope="module")]
expect.set_options(timeout=CLICK_MS)

START_S = 120.0
"""Seconds for the server, the worker and the page; ten on an idle machine."""
END_S = 30.0
QUESTION_S = 4
"""Seconds in which the agent asks aloud; a yes over the question may be lost."""
TRACE_S = 20.0
FIRST_TURN_MS = 90_000
"""A worker of its own finds out first how its model is asked, while the browser loads the page."""
FINDINGS_MS = 150_000.0
"""Milliseconds for all checks; ten thousand on an idle machine."""
CUT_S = 12.0
"""Seconds without LiveKit's server: the page has noticed by then."""
LINK = re.compile(rb"https?://\S+#key=\S+")
AGENT = '''
from livekit.agents import function_tool
from caal_node import CaalAgent, effect

class Home(CaalAgent):
    @function_tool
    @effect("destructive")
    async def unlock_door(self, door: str) -> str:
        """Unlock a door."""
        return f"unlocked {door}"

    @function_tool
    async def set_light(self, room: str, on: bool) -> str:
        """Switch a light."""
        return f"the light in the {room} is {'on' if on else 'off'}"

    @function_tool
    async def start_timer(self, minutes: float) -> str:
        """Start a timer."""
        return f"the timer runs for {minutes:g} minutes"
'''
ASKING = Path(__file__).parents[1] / "stand_ins" / "asking_mcp_server.py"
"""An MCP server that asks the person during a call."""
ORDER = {
    "message": "How shall I clean?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "room": {"type": "string", "title": "Room", "enum": ["kitchen", "bath"]},
            "passes": {"type": "integer", "title": "Passes", "default": 1},
            "wipe": {"type": "boolean", "title": "Wipe as well"},
        },
        "required": ["room", "wipe"],
    },
}
SETTINGS = """
CAAL_TRACE=trace.jsonl
CAAL_AGENT=home:Home
CAAL_TOOL_CALLS=native
"""
CONTROL_TOKEN = "a-token-of-the-control-api"  # noqa: S105 - it opens nothing
READY = re.compile("Listening|Ready|Ich höre zu|Bereit")
LIGHT = "turn on the kitchen light"
DOOR = "unlock the front door"
CLEAN = "clean up, please"
PASTA = "boil the pasta"
EGGS = "boil the eggs"
TIMER = re.compile("timer for")
"""The recorded request, as speech models write it."""


ANSWERS = {
    "light": "The kitchen light is on.",
    "door": "The door is open.",
    "timer": "The timer runs for five minutes.",
    "clean": "It is clean.",
}
CALLS = {
    "light": Call("set_light", {"room": "kitchen", "on": True}),
    "door": Call("unlock_door", {"door": "front"}),
    "timer": Call("start_timer", {"minutes": 5}),
    "clean": Call("cleaner__open", {}),
    "pasta": Call("set_timer", {"length": "2 hours", "name": "pasta"}),
    "eggs": Call("set_timer", {"length": "2 seconds", "name": "eggs"}),
    "ringing": Call("cancel_timer", {}),
}


def reply(asked: Asked) -> Reply:
    """Calls the tool that the person names, and then tells its result."""
    last = asked.json["messages"][-1]
    words = last["content"].lower()
    about = next((each for each in CALLS if each in words), "light")
    return (
        [ANSWERS["door" if "unlocked" in words else "clean" if "accept" in words else about]]
        if last["role"] == "tool"
        else [CALLS[about]]
    )


@dataclass(frozen=True)
class Up:
    """What `caal-node up` has started."""

    link: str
    process: asyncio.subprocess.Process
    trace: Path
    """What its worker writes of all conversations."""
    metrics_port: int

    def livekit(self) -> psutil.Process:
        """Its LiveKit server."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return next(each for each in children if each.name().startswith("livekit-server"))


@asynccontextmanager
async def up(
    folder: Path, *options: str, speech: bool = False, settings: str = SETTINGS
) -> AsyncGenerator[Up]:
    """Run the command in a folder, and end it by Ctrl-C, with all that it has started."""
    find_chromium()
    if find_server() is None:
        pytest.skip("no livekit-server: put it on PATH")
    (folder / "home.py").write_text(AGENT, encoding="utf-8")
    (folder / ".env").write_text(settings, encoding="utf-8")
    (folder / ".env").chmod(0o600)
    (folder / "caal.toml").write_text("[toolsets.timers]\n", encoding="utf-8")
    (folder / "order.json").write_text(json.dumps(ORDER), encoding="utf-8")
    cleaner = {"command": sys.executable, "args": [str(ASKING), str(folder / "order.json")]}
    (folder / "mcp_servers.json").write_text(json.dumps({"cleaner": cleaner}), encoding="utf-8")
    (folder / "mcp_servers.json").chmod(0o600)
    with socket.socket() as free, socket.socket() as second:
        for each in (free, second):
            each.bind(("127.0.0.1", 0))
        port, metrics_port = (each.getsockname()[1] for each in (free, second))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIVEKIT_")}
    async with StandInModel(answer=reply) as model:
        own = {"CAAL_STATE": str(folder / "state"), "CAAL_CONFIG": str(folder / "config")}
        env = {**kept, **own, "OLLAMA_HOST": model.url, "CAAL_MODEL": model.model}
        env["OTEL_EXPORTER_PROMETHEUS_PORT"] = str(metrics_port)
        if not speech:
            env |= {"CAAL_STT": "none", "CAAL_TTS": "none", "CAAL_VAD": "none"}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "caal_node.cli", "up", "--no-browser", "--port", str(port)),
            *options,
            cwd=folder,
            env=env,
            stderr=PIPE,
        )
        assert process.stderr is not None
        said = b""
        try:
            async with asyncio.timeout(START_S):
                while (link := LINK.search(said)) is None:
                    line = await process.stderr.readline()
                    assert line, said.decode()
                    said += line
            yield Up(link[0].decode(), process, folder / "trace.jsonl", metrics_port)
        finally:
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(END_S):
                await process.communicate()
            assert [each for each in children if lives(each)] == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Up]:
    """One `up` for the tests that only type: each page has a room of its own."""
    async with up(tmp_path_factory.mktemp("up")) as started:
        yield started


def lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


async def start(page: Page) -> None:
    await page.get_by_role("button", name="Start talking").click()


async def write(page: Page, words: str) -> None:
    box = page.get_by_role("textbox", name="Type a message")
    await expect(page.get_by_text(READY).first).to_be_visible()
    await box.fill(words)
    await box.press("Enter")


async def test_typed_words_become_a_card_and_an_answer(here: Up) -> None:
    async with chromium() as browser, opened(browser, here.link) as page:
        assert "#" not in page.url, "the key stays in the address bar"
        await picture(page, "start")
        assert await faults(page) == []
        await start(page)
        await write(page, LIGHT)
        card = page.get_by_role("article").filter(has_text="Set light")
        await expect(card).to_contain_text("kitchen, on")
        await expect(card).to_contain_text("done")
        await expect(page.get_by_text("The kitchen light is on.").first).to_be_visible()
        await card.get_by_text("Details").click()
        await expect(card).to_contain_text("the light in the kitchen is on")
        await picture(page, "card")
        assert await faults(page) == []


@dataclass(frozen=True)
class Guest:
    """Somebody else in the page's room, and what they are sent."""

    room: rtc.Room
    seen: list[dict[str, Any]]

    def seen_of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.seen if each["type"] == kind]

    async def confirm(self, **message: Any) -> None:
        await self.room.local_participant.send_text(json.dumps(message), topic="caal.confirm")
        await asyncio.sleep(1)  # nothing tells of what is ignored


@asynccontextmanager
async def talking_beside_a_guest(here: Up, page: Page) -> AsyncGenerator[Guest]:
    async with page.expect_response("**/page/join") as joined:
        await start(page)
    join = await (await joined.value).json()
    await expect(page.get_by_text(READY).first).to_be_visible()  # the agent listens to the page
    guest = Guest(rtc.Room(), [])
    reading: set[asyncio.Task[None]] = set()

    def on_text(reader: rtc.TextStreamReader, _: str) -> None:
        async def read() -> None:
            guest.seen.append({"topic": reader.info.topic, **json.loads(await reader.read_all())})

        reading.add(asyncio.create_task(read()))

    for topic in ("caal.tools", "caal.page"):
        guest.room.register_text_stream_handler(topic, on_text)
    await guest.room.connect(join["url"], guest_token(here, join["room"]))
    try:
        yield guest
    finally:
        await guest.room.disconnect()
        await asyncio.gather(*reading)


async def test_only_the_button_of_the_page_confirms_and_guests_see_no_arguments(
    here: Up,
) -> None:
    async with (
        chromium() as browser,
        opened(browser, here.link) as page,
        talking_beside_a_guest(here, page) as guest,
    ):
        await write(page, DOOR)
        card = page.get_by_role("article").filter(has_text="Unlock door")
        await expect(card.get_by_role("button", name="Yes")).to_be_visible()
        await picture(page, "question")
        assert await faults(page) == []
        (asked,) = guest.seen_of("confirmation_asked")
        answer = {key: asked[key] for key in ("call_id", "arguments_hash")}
        await guest.confirm(**answer, yes=True)
        await expect(card.get_by_role("button", name="Yes")).to_be_visible()
        await card.get_by_role("button", name="Yes").click()
        await expect(card).to_contain_text("done")
        await expect(page.get_by_text("The door is open.").first).to_be_visible()
    assert {each["topic"] for each in guest.seen} == {"caal.tools"}
    assert [each["arguments"] for each in guest.seen_of("tool_call_started")] == [None]
    assert all(not each.get("result") for each in guest.seen)


async def test_a_servers_question_is_a_form_that_the_page_alone_can_fill_in(here: Up) -> None:
    async with (
        chromium() as browser,
        opened(browser, here.link) as page,
        talking_beside_a_guest(here, page) as guest,
    ):
        await write(page, CLEAN)
        card = page.get_by_role("article").filter(has_text="cleaner server")
        form = card.get_by_role("form", name="How shall I clean?")
        await expect(form).to_be_visible()
        await picture(page, "form")
        assert await faults(page) == []
        (asked,) = guest.seen_of("question_asked")
        names = {key: asked[key] for key in ("call_id", "question_id")}
        await guest.confirm(**names, content={"room": 0, "wipe": False})
        send = form.get_by_role("button", name="Send answer")
        await send.click()  # the browser says that the room is missing
        await expect(form.get_by_label("Room")).to_be_focused()
        await form.get_by_label("Room").select_option("bath")
        await form.get_by_label("Passes").fill("3")
        await form.get_by_label("Wipe as well").focus()
        await page.keyboard.press("Space")
        await page.keyboard.press("Enter")
        await expect(card).to_contain_text("You answered in the form.")
        await expect(card).to_contain_text("done")
        await expect(form).to_have_count(0)
        await expect(page.get_by_text("It is clean.").first).to_be_visible()
        await card.get_by_text("Details").click()
        result = card.get_by_role("definition").filter(has_text="accept")
        for part in ("bath", "3", "true"):
            await expect(result).to_contain_text(part)
        assert await faults(page) == []
    assert (asked["message"], asked["fields"]) == ("", [])
    (ended,) = guest.seen_of("question_ended")
    assert (ended["answer"], ended["by"]) == ("accepted", "form")


async def test_a_servers_question_can_be_refused_or_answered_in_words(here: Up) -> None:
    async with chromium() as browser, opened(browser, here.link) as page:
        await start(page)
        await write(page, CLEAN)
        refuse = page.get_by_role("button", name="Do not answer")
        await refuse.click()
        await expect(page.get_by_text("You refused to answer in the form.")).to_be_visible()
        await expect(refuse).to_have_count(0)
        await write(page, CLEAN)
        await expect(refuse).to_be_visible()
        box = page.get_by_role("textbox", name="Type a message")
        for words in ("the kitchen", "yes"):
            await box.fill(words)
            await box.press("Enter")
        await expect(page.get_by_text("You answered by voice or text.")).to_be_visible()
        await expect(refuse).to_have_count(0)


async def test_timers_count_down_outlive_a_reload_and_are_stopped_when_they_ring(
    here: Up,
) -> None:
    async with chromium() as browser, opened(browser, here.link) as page:
        await start(page)
        await write(page, PASTA)
        timers = page.get_by_role("region", name="Timers and alarms")
        pasta = timers.get_by_role("listitem").filter(has_text="pasta")
        await expect(pasta).to_contain_text(re.compile(r"1:5\d:\d\d"))
        await page.reload()
        await start(page)
        await expect(pasta).to_contain_text(re.compile(r"1:5\d:\d\d"))
        await write(page, EGGS)
        eggs = timers.get_by_role("listitem").filter(has_text="eggs")
        await expect(eggs).to_contain_text("rings now")
        await picture(page, "timers")
        assert await faults(page) == []
        await timers.get_by_role("button", name="Stop").click()
        await expect(eggs).to_have_count(0)
        await expect(pasta).to_be_visible()


def guest_token(here: Up, room: str) -> str:
    """A token as the owner of the LiveKit server makes one for somebody else."""
    config = json.loads(here.livekit().environ()["LIVEKIT_CONFIG"])
    ((key, secret),) = config["keys"].items()
    grants = api.VideoGrants(room_join=True, room=room)
    return api.AccessToken(key, secret).with_identity("guest").with_grants(grants).to_jwt()


async def test_a_second_browser_without_the_key_is_told_what_to_open(here: Up) -> None:
    async with chromium() as browser:
        async with opened(browser, here.link.partition("#")[0]) as page:
            await expect(
                page.get_by_text("Open the link that caal-node up printed")
            ).to_be_visible()
            assert await faults(page) == []
        async with opened(browser, f"{here.link}x") as page:
            await start(page)
            await expect(page.get_by_text("Open the printed link")).to_be_visible()


async def test_the_keyboard_alone_is_enough_and_so_is_a_phone(here: Up) -> None:
    async with (
        chromium() as browser,
        opened(browser, here.link, size=PHONE, dark=True, locale="de-DE") as page,
    ):
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        box = page.get_by_role("textbox")
        await expect(box).to_be_visible()
        for _ in range(20):
            if await box.evaluate("each => each === document.activeElement"):
                break
            await page.keyboard.press("Tab")
        await expect(page.get_by_text(READY).first).to_be_visible()
        await page.keyboard.type(DOOR)
        await page.keyboard.press("Enter")
        yes = page.get_by_role("button", name="Ja", exact=True)
        await expect(yes).to_be_visible()
        await picture(page, "question-phone")
        assert await faults(page) == []
        for _ in range(40):
            if await yes.evaluate("each => each === document.activeElement"):
                break
            await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("The door is open.").first).to_be_visible()
        width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE[0]


async def test_cards_outlive_a_lost_connection(here: Up) -> None:
    async with chromium() as browser, opened(browser, here.link) as page:
        await start(page)
        await write(page, LIGHT)
        card = page.get_by_role("article").filter(has_text="Set light")
        await expect(card).to_contain_text("done")
        server = here.livekit()
        server.suspend()
        try:
            await asyncio.sleep(CUT_S)  # the server's, whose clock is the wall's
        finally:
            server.resume()
        await expect(card).to_contain_text("done")
        await expect(page.get_by_role("textbox", name="Type a message")).to_be_enabled()
        await write(page, DOOR)
        await expect(page.get_by_role("button", name="Yes", exact=True)).to_be_visible()


async def test_a_workers_trace_and_metrics_have_the_turn(here: Up) -> None:
    """The trace that the worker has written of this conversation is opened in the page."""
    async with chromium() as browser, opened(browser, here.link) as page:
        await start(page)
        await write(page, LIGHT)
        await expect(page.get_by_text(ANSWERS["light"]).first).to_be_visible()
        await page.get_by_role("button", name="Look").click()
        file = page.get_by_label("Trace file")
        turns = page.get_by_role("region", name=re.compile("Times of the turn “Turn "))
        async with asyncio.timeout(TRACE_S):
            while True:  # a turn is written when it is over
                async with page.expect_response("**/page/trace"):
                    await file.set_input_files(here.trace)
                if await turns.count() and await turns.first.get_by_text("Set light").count():
                    break
        await expect(turns.first).to_contain_text("request 1")
        async with httpx2.AsyncClient() as http:
            counted = (await http.get(f"http://127.0.0.1:{here.metrics_port}/metrics")).text
        assert re.search(r"^caal_turns_total [1-9]", counted, re.MULTILINE)
        await picture(page, "trace")
        assert await faults(page) == []
        await file.set_input_files(Path(__file__))
        await expect(page.get_by_text("the file, line 1: ")).to_be_visible()


async def test_the_page_shows_servers_switches_and_what_doctor_finds(here: Up) -> None:
    async with chromium() as browser, opened(browser, here.link) as page:
        await start(page)
        await page.get_by_role("button", name="Steer").click()
        for name in ("Sounds of tools", "Claims"):
            switch = page.get_by_role("switch", name=name)
            await expect(switch).to_be_checked()
            await switch.click()
            await expect(switch).not_to_be_checked()
        await page.get_by_role("button", name="Reload tools").click()
        await expect(page.get_by_text(re.compile(r"^\d+ tools?: "))).to_be_visible()
        async with page.expect_response("**/page/findings", timeout=FINDINGS_MS) as looked:
            await page.get_by_role("button", name="Check now").click()
        findings = (await (await looked.value).json())["findings"]
        await expect(page.get_by_text("in order").first).to_be_visible()
        await picture(page, "findings")
        assert await faults(page) == []
    status = {each["name"]: each["status"] for each in findings}
    assert status["model server"] == status["livekit"] == "ok"


async def test_over_https_one_port_has_the_page_livekit_and_the_control_api(tmp_path: Path) -> None:
    certfile, keyfile = self_signed(tmp_path)
    options = ("--ssl-certfile", str(certfile), "--ssl-keyfile", str(keyfile), "--host", "0.0.0.0")  # noqa: S104 - as for other devices
    settings = f"{SETTINGS}CAAL_CONTROL_TOKEN={CONTROL_TOKEN}\n"
    async with (
        up(tmp_path, *options, settings=settings) as here,
        chromium() as browser,
        opened(browser, here.link, any_certificate=True) as page,
    ):
        assert page.url.startswith("https://localhost:")
        async with page.expect_websocket() as opening, page.expect_response("**/join") as joined:
            await start(page)
        assert (await opening.value).url.startswith("wss://localhost:")
        room = (await (await joined.value).json())["room"]
        await write(page, LIGHT)
        card = page.get_by_role("article").filter(has_text="Set light")
        await expect(card).to_contain_text("done", timeout=FIRST_TURN_MS)
        await expect(page.get_by_text("The kitchen light is on.").first).to_be_visible()
        bearer = {"Authorization": f"Bearer {CONTROL_TOKEN}"}
        said = await page.request.post(
            f"{here.link.partition('#')[0]}say",
            headers=bearer,
            data={"text": "Dinner is ready.", "room_name": room},
        )
        assert await said.json() == {"status": "said", "room_name": room, "reason": None}
        await expect(page.get_by_text("Dinner is ready.").first).to_be_visible()


@pytest.mark.speech
async def test_words_and_a_yes_are_heard_and_answered_by_voice(tmp_path: Path) -> None:
    await asyncio.to_thread(fetch_local, stt="local", tts="local")
    voice = make_tts("local")
    assert voice is not None
    timer = next(each for each in load_requests() if "timer" in each.words)
    door = await spoken_by(voice, "Please unlock the front door.")
    yes = await spoken_by(voice, "Yes, please.")
    await voice.aclose()
    async with (
        up(tmp_path, speech=True) as here,
        chromium() as browser,
        opened(browser, here.link, speaks=True) as page,
    ):
        await start(page)
        await expect(page.get_by_text("Listening").first).to_be_visible()
        await say(page, wav(timer))
        await expect(page.get_by_text(TIMER).first).to_be_visible()
        card = page.get_by_role("article").filter(has_text="Start timer")
        await expect(card).to_contain_text("done")
        await expect(page.get_by_text("Speaking").first).to_be_visible()
        await picture(page, "speaking")
        await expect(page.get_by_text(ANSWERS["timer"]).first).to_be_visible()
        await expect(page.get_by_text("Listening").first).to_be_visible()
        await say(page, wav(door))
        card = page.get_by_role("article").filter(has_text="Unlock door")
        await expect(card.get_by_role("button", name="Yes")).to_be_visible()
        await expect(page.get_by_text("Your answer?").first).to_be_visible()
        await asyncio.sleep(QUESTION_S)
        await say(page, wav(yes))
        await expect(card).to_contain_text("done")
        await expect(page.get_by_text(ANSWERS["door"]).first).to_be_visible()


def wav(spoken: SpokenRequest) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, RATE_HZ, 0, "NONE", ""))
        out.writeframes(spoken.samples.tobytes())
    return file.getvalue()
