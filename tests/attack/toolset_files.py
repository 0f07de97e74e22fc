"""Files and texts of a household that are larger than anybody's, and a file that has lost all."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from caal_node.core.errors import ToolFailure
from caal_node.models.child_process import end
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import BASE, ToolsetServices
from caal_node.toolsets.calendar import Calendar
from caal_node.toolsets.calendar.known_calendars import CalendarOptions
from caal_node.toolsets.documents import Documents, DocumentsOptions
from caal_node.toolsets.files import Files, FilesOptions
from caal_node.toolsets.home_assistant.devices import too_talkative
from caal_node.toolsets.home_assistant.links import McpServer, WebsocketServer
from caal_node.toolsets.timers import Timers
from caal_node.toolsets.timers.store import TimerStore
from tests.attack.harness import Ending, Probe, attack
from tests.attack.toolsets import TOOLSETS, home

NOW: Final = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)
"""A Monday."""
EVENTS: Final = 50_000
SERIES: Final = 5_000
CATEGORIES: Final = 300_000
DENTIST: Final = "BEGIN:VEVENT\nUID:0\nSUMMARY:Dentist\nDTSTART:20261124T150000Z\n"
_SENTENCE: Final = "The valve of the radiator is behind the washing machine. "
_TEXT_BYTES: Final = 4_000_000


async def _heard(work: Callable[[], Awaitable[Any]]) -> str:
    try:
        result = await work()
    except ToolFailure as failure:
        return failure.words or str(failure)
    return result.words if isinstance(result, VerbatimResult) else json.dumps(result)


@contextmanager
def _calendar(*events: str) -> Generator[Calendar]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Home.ics"
        path.write_text(f"BEGIN:VCALENDAR\n{''.join(events)}END:VCALENDAR\n", encoding="utf-8")
        options = CalendarOptions.model_validate(
            {"files": ["Home.ics"]}, context={BASE: path.parent}
        )
        yield Calendar(options, ToolsetServices(now=lambda: NOW, timezone=UTC))


def _event(number: int, more: str = "") -> str:
    at = NOW + timedelta(days=7, hours=number % 8_000)
    times = f"DTSTART:{at:%Y%m%dT%H%M%SZ}\n{more}"
    return f"BEGIN:VEVENT\nUID:{number}\nSUMMARY:Meeting\n{times}END:VEVENT\n"


async def _tomorrow_and_a_year(probe: Probe, *events: str) -> tuple[str, str]:
    """Ask for tomorrow, with the dentist, and for all that comes."""
    with _calendar(*events) as calendar:

        async def ask() -> tuple[str, str]:
            tomorrow = await _heard(lambda: calendar.check_calendar(when="tomorrow"))
            return tomorrow, await _heard(lambda: calendar.check_calendar(about="dentist"))

        return await probe.watch(ask)


_THERE: Final = "Tomorrow: Dentist"
_TOO_MANY: Final = (
    "The calendar Home has more events than I can read. Please ask about a shorter time."
)


@attack(TOOLSETS, "a calendar of 50,000 events", deadline_s=12)
async def many_events(probe: Probe) -> Ending:
    events = (f"{DENTIST}END:VEVENT\n", *map(_event, range(EVENTS - 1)))
    tomorrow, year = await _tomorrow_and_a_year(probe, *events)
    return Ending(tomorrow.startswith(_THERE) and year == _TOO_MANY, f"{tomorrow} {year}")


@attack(TOOLSETS, "a calendar of 5,000 series", deadline_s=24)
async def many_series(probe: Probe) -> Ending:
    series = (_event(each, "RRULE:FREQ=WEEKLY\n") for each in range(SERIES - 1))
    tomorrow, year = await _tomorrow_and_a_year(probe, f"{DENTIST}END:VEVENT\n", *series)
    return Ending(tomorrow.startswith(_THERE) and year == _TOO_MANY, f"{tomorrow} {year}")


@attack(TOOLSETS, "an event with 300,000 categories", deadline_s=6)
async def many_categories(probe: Probe) -> Ending:
    lines = "".join(f"CATEGORIES:{each}\n" for each in range(CATEGORIES))
    line = f"CATEGORIES:{','.join(map(str, range(CATEGORIES)))}\n"
    tomorrow, year = await _tomorrow_and_a_year(probe, DENTIST, lines, line, "END:VEVENT\n")
    kept = tomorrow.startswith(_THERE) and year.startswith("Dentist is tomorrow")
    return Ending(kept, f"{tomorrow} {year}")


_MARKDOWN: Final = {
    "one paragraph": _SENTENCE * (_TEXT_BYTES // len(_SENTENCE)),
    "lines": "a\n" * (_TEXT_BYTES // 2),
    "headings": "# a\nb\n" * (_TEXT_BYTES // 6),
    "links": "[a](b)*c*" * (_TEXT_BYTES // 9),
}


@attack(TOOLSETS, "Markdown of 4 MB is read, of every form", deadline_s=40, limit_s=180)
async def long_markdown(probe: Probe) -> Ending:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in _MARKDOWN.items():
            (Path(folder) / f"{name}.md").write_text(text, encoding="utf-8")
        files = Files(FilesOptions(folders=(Path(folder),)))

        async def read() -> list[str]:
            return [
                await _heard(lambda name=name: files.read_file(file=f"{name}.md", part=2))
                for name in _MARKDOWN
            ]

        heard = await probe.watch(read)
    kept = all('"part": 2' in each and len(each) < 10_000 for each in heard)
    return Ending(kept and "washing machine" in heard[0], heard[0][:80])


@attack(TOOLSETS, "Markdown of 4 MB is indexed, and more of it named", deadline_s=40, limit_s=180)
async def indexed_markdown(probe: Probe) -> Ending:
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at) / "notes"
        folder.mkdir()
        (folder / "long.md").write_text(_MARKDOWN["one paragraph"], encoding="utf-8")
        (folder / "log.txt").write_text("line\n" * 1_000_000, encoding="utf-8")
        services = ToolsetServices(state=Path(at) / "state")
        documents = Documents(DocumentsOptions(folders=(folder,)), services)

        async def read() -> tuple[str, str]:
            said = await documents.check()
            return said, await _heard(lambda: documents.ask_documents(question="radiator valve"))

        said, heard = await probe.watch(read)
    named = "log.txt (it has more than 4 MB, the most that is read of one file" in said
    return Ending(named and "washing machine" in heard, said)


_ASSIST: Final = r"""
import asyncio, json, sys
from aiohttp import web

ROWS = int(sys.argv[1])
row = "- names: Lamp {0}\n  domain: light\n  state: 'on'\n  areas: Hall\n"
text = json.dumps({"result": "Live Context:\n" + "".join(row.format(at) for at in range(ROWS))})
tools = {"tools": [{"name": "assist__GetLiveContext"}]}
content = {"content": [{"type": "text", "text": text}]}


async def post(request):
    result = tools if (await request.json())["method"] == "tools/list" else content
    return web.json_response({"jsonrpc": "2.0", "id": 1, "result": result})


async def main():
    app = web.Application()
    app.router.add_post("/api/mcp/assist", post)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
"""


@asynccontextmanager
async def assist(rows: int) -> AsyncGenerator[McpServer]:
    """A Home Assistant's MCP server in a process of its own, with so many devices."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _ASSIST, str(rows)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield McpServer(f"http://127.0.0.1:{int(await process.stdout.readline())}", "token")
    finally:
        await end(process, deadline_s=1.0)


async def _read(server: WebsocketServer | McpServer) -> str:
    try:
        async with server.open() as link:
            return f"{len((await link.read_home()).devices)} devices"
    except ToolFailure as failure:
        return failure.words or str(failure)


async def _told_by_assist(probe: Probe, rows: int) -> str:
    async with assist(1) as warm, assist(rows) as server:
        await _read(warm)
        return await probe.watch(lambda: _read(server))


@attack(TOOLSETS, "Home Assistant's MCP server tells of 25,000 devices", deadline_s=13)
async def many_rows(probe: Probe) -> Ending:
    heard = await _told_by_assist(probe, 25_000)
    return Ending(heard == "2000 devices", heard)


@attack(TOOLSETS, "Home Assistant's MCP server tells of 50,000 devices", deadline_s=13)
async def too_many_rows(probe: Probe) -> Ending:
    heard = await _told_by_assist(probe, 50_000)
    return Ending(heard == too_talkative().words, heard)


@attack(TOOLSETS, "Home Assistant sends a message of 9 MiB", deadline_s=13)
async def giant_message(probe: Probe) -> Ending:
    async with home("giant") as server:
        heard = await probe.watch(lambda: _read(server))
    return Ending(heard == too_talkative().words, heard)


@attack(TOOLSETS, "the file of timers has lost all its bytes", deadline_s=4)
async def empty_timers(probe: Probe) -> Ending:
    with tempfile.TemporaryDirectory() as at:
        services = ToolsetServices(state=Path(at), now=lambda: NOW, timezone=UTC)
        before = TimerStore(Path(at))
        await before.all()
        await before.aclose()
        before.path.write_bytes(b"")
        timers = Timers(None, services)

        async def ask() -> list[str]:
            return [await _heard(timers.list_timers) for _ in range(2)]

        first, second = await probe.watch(ask)
        await timers.aclose()
        kept = await asyncio.to_thread(Path(f"{before.path}.damaged").exists)
    told = "lost" in first and second == "Nothing is set."
    return Ending(kept and told, f"{first} | {second}")
