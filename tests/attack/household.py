"""What a household keeps, damaged or made to be: timers, the index, documents, pages, reminders."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import tempfile
import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from caal_node.agent import CaalAgent
from caal_node.core.errors import ToolFailure
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.source import Undoable, VerbatimResult
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.documents import Documents, DocumentsOptions
from caal_node.toolsets.memory import Memory
from caal_node.toolsets.timers import Timers
from caal_node.toolsets.timers.entry import Entry
from caal_node.toolsets.timers.store import TimerStore
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.small_pdf import small_pdf

HOUSEHOLD: Final = "household"
NOW: Final = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)
DAMAGES: Final = 30
"""Files that are damaged at random, each in another way."""


async def _heard(work: Callable[[], Awaitable[Any]]) -> str:
    try:
        result = await work()
    except ToolFailure as failure:
        return failure.words or str(failure)
    is_said = isinstance(result, VerbatimResult | Undoable) and result.words is not None
    return result.words if is_said else json.dumps(result)


def _services(folder: str | Path) -> ToolsetServices:
    return ToolsetServices(state=Path(folder), now=lambda: NOW, timezone=UTC)


class _Silent:
    """An announcer of a room where nothing is due."""

    place = "kitchen"

    async def announce(self, words: str, *, cue: Any = None) -> bool:
        return True

    def on_arrival(self, tell: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


@attack(HOUSEHOLD, "a reminder of 500,000 characters", deadline_s=2)
async def long_reminder(probe: Probe) -> Ending:
    with tempfile.TemporaryDirectory() as folder:
        services = ToolsetServices(
            state=Path(folder), now=lambda: NOW, timezone=UTC, announcer=_Silent()
        )
        timers = Timers(None, services)
        names = "call mum " * 400, "call mum " * 60_000

        async def ask(text: str) -> list[str]:
            return [
                await _heard(lambda: timers.set_reminder(text=text, when="in an hour")),
                await _heard(lambda: timers.set_timer(length="1 hour", name=text)),
                await _heard(lambda: timers.set_alarm(when="at 7", name=text)),
                await _heard(lambda: timers.set_alarm(when=text)),
                await _heard(lambda: timers.set_timer(length=text)),
                await _heard(lambda: timers.cancel_timer(which=text)),
            ]

        async def work() -> list[str]:
            return [*await ask(names[0]), *await ask(names[1]), await _heard(timers.list_timers)]

        heard = await probe.watch(work)
        await timers.aclose()
    too_long = "That's too long for me to read out. Can you say it in a few words?"
    kept = heard[:3] == [too_long] * 3 and heard[-1] == "Nothing is set."
    kept = kept and all("at most 4000 characters; shorten it" in each for each in heard[6:12])
    return Ending(kept and all(len(each) < 300 for each in heard), " | ".join(heard))


def _damaged(data: bytes, number: int) -> bytes:
    """Return a file cut short, of other bytes, or with some of its pages overwritten."""
    dice = random.Random(number)
    match number % 4:
        case 0:
            return data[: dice.randrange(1, len(data))]
        case 1:
            return dice.randbytes(len(data))
        case 2:
            at = dice.randrange(100, len(data))
            return data[:at] + dice.randbytes(min(2_000, len(data) - at)) + data[at + 2_000 :]
        case _:
            changed = bytearray(data)
            for _ in range(200):
                changed[dice.randrange(len(data))] = dice.randrange(256)
            return bytes(changed)


@attack(HOUSEHOLD, "files of timers that are damaged in 30 ways", deadline_s=20)
async def damaged_timers(probe: Probe) -> Ending:
    """Whatever is told of each, the next reminder is kept, and a loss is said once."""
    told: list[str] = []
    with tempfile.TemporaryDirectory() as at:
        whole = TimerStore(Path(at))
        for number in range(100):
            await whole.add(Entry("reminder", f"water plant {number}", NOW.timestamp() + 3_600))
        await whole.aclose()
        data = whole.path.read_bytes()

        async def one(number: int) -> str:
            folder = Path(at) / str(number)
            folder.mkdir()
            path = folder / whole.path.name
            path.write_bytes(_damaged(data, number))
            services = ToolsetServices(
                state=folder, now=lambda: NOW, timezone=UTC, announcer=_Silent()
            )
            timers = Timers(None, services)
            try:
                first = await _heard(timers.list_timers)
                told.append(first)
                set_one = await _heard(
                    lambda: timers.set_reminder(text="feed the cat", when="in 10 minutes")
                )
                second = await _heard(timers.list_timers)
            finally:
                await timers.aclose()
            lost = "lost" in first
            if lost != await asyncio.to_thread(Path(f"{path}.damaged").exists):
                return f"{number}: nothing is kept aside: {first}"
            if "feed the cat" not in set_one or "feed the cat" not in second or "lost" in second:
                return f"{number}: {first} / {set_one} / {second}"
            return ""

        async def work() -> list[str]:
            return [why for number in range(DAMAGES) if (why := await one(number))]

        wrong = await probe.watch(work)
    lost = sum("lost" in each for each in told)
    return Ending(not wrong and lost > DAMAGES // 2, " | ".join(wrong) or f"{lost} said to be lost")


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@attack(HOUSEHOLD, "indexes of documents that are damaged in 30 ways", deadline_s=40, limit_s=120)
async def damaged_index(probe: Probe) -> Ending:
    """It is made anew of the documents, so that each question is answered, and it is said once."""
    warnings = _Warnings()
    logging.getLogger("caal_node.toolsets.documents").addHandler(warnings)
    with tempfile.TemporaryDirectory() as at:
        notes = Path(at) / "notes"
        notes.mkdir()
        for number in range(40):
            text = f"The valve of radiator {number} is behind the washing machine.\n" * 20
            (notes / f"radiator {number}.md").write_text(text, encoding="utf-8")

        def documents() -> Documents:
            return Documents(DocumentsOptions(folders=(notes,)), _services(Path(at) / "state"))

        before = documents()
        await before.check()
        await before.ask_documents(question="radiator valve")
        [path] = (Path(at) / "state").glob("index-*.db")
        data = path.read_bytes()

        async def one(number: int) -> str:
            path.write_bytes(_damaged(data, number))
            warnings.said.clear()
            one = documents()
            heard = [
                await _heard(lambda: one.ask_documents(question="radiator valve")) for _ in range(2)
            ]
            if not all("washing machine" in each for each in heard) or len(warnings.said) > 1:
                return f"{number}: {heard[0][:80]} / {heard[1][:80]} / {warnings.said}"
            return ""

        async def work() -> list[str]:
            return [why for number in range(DAMAGES) if (why := await one(number))]

        wrong = await probe.watch(work)
    return Ending(not wrong, " | ".join(wrong)[:1_000] or "washing machine")


def _stream(data: bytes, packed: bytes, *filters: str) -> bytes:
    """Put a stream of `packed` bytes in the place of the first page's text."""
    head, _, rest = data.partition(b"5 0 obj\n")
    _, _, tail = rest.partition(b"endobj\n")
    named = " ".join(f"/{each}" for each in filters)
    body = f"<< /Length {len(packed)} /Filter [{named}] >>\nstream\n".encode()
    return head + b"5 0 obj\n" + body + packed + b"\nendstream\nendobj\n" + tail


def _hostile_pdfs() -> dict[str, bytes]:
    good = small_pdf([["The boiler is serviced in May."]])
    bomb = zlib.compress(b"BT (a) Tj ET " * (64 << 20 // 8), 9)
    return {
        "no table": good.replace(b"startxref", b"startxxxx"),
        "table elsewhere": good.replace(b"startxref\n", b"startxref\n99999999"),
        "table in a ring": good.replace(b"trailer\n<<", b"trailer\n<< /Prev 9"),
        "pages": good.replace(b"/Count 1", b"/Count 999999999"),
        "ring of pages": good.replace(b"/Kids [4 0 R]", b"/Kids [2 0 R 2 0 R]"),
        "kids": good.replace(b"/Kids [4 0 R]", b"/Kids [" + b"4 0 R " * 300_000 + b"]"),
        "deep": good.replace(b"/Kids [4 0 R]", b"/Kids " + b"[" * 100_000),
        "bomb": _stream(good, bomb, "FlateDecode"),
        "bomb in a bomb": _stream(good, zlib.compress(bomb, 9), "FlateDecode", "FlateDecode"),
        "size": good.replace(b"/Size 6", b"/Size 2147483647"),
        "nothing": b"%PDF-1.7\n",
    }


@attack(
    HOUSEHOLD,
    "PDFs with broken tables, a billion pages and bombs",
    deadline_s=200,
    limit_s=280,
    tries=1,
)
async def hostile_pdfs(probe: Probe) -> Ending:
    with tempfile.TemporaryDirectory() as at:
        notes = Path(at) / "notes"
        notes.mkdir()
        for name, data in (await asyncio.to_thread(_hostile_pdfs)).items():
            (notes / f"{name}.pdf").write_bytes(data)
        (notes / "radiator.md").write_text("The valve is behind the machine.", encoding="utf-8")
        documents = Documents(DocumentsOptions(folders=(notes,)), _services(Path(at) / "state"))

        async def read() -> tuple[str, str]:
            said = await documents.check()
            return said, await _heard(lambda: documents.ask_documents(question="valve"))

        said, heard = await probe.watch(read)
    return Ending("cannot be read" in said and "behind the machine" in heard, said)


@attack(HOUSEHOLD, "a page of memory becomes UTF-16 while facts are stored", deadline_s=20)
async def utf_16_memory(probe: Probe) -> Ending:
    facts = [f"I have read book {number}" for number in range(6)]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "terminal.md"
        page.write_text("- I am called Ida\n", encoding="utf-8")
        agent = CaalAgent(
            settings=plain_settings(),
            tiers={},
            warm=False,
            tools=[Memory(services=_services(folder))],
        )
        script = [[ScriptedCall("remember_fact", {"fact": fact})] for fact in facts]
        model = ScriptedModel(*script)
        async with AgentConversation(agent, model) as talk:

            async def work() -> list[str]:
                heard = [(await talk.say(f"Remember that {fact}.")).text for fact in facts[:2]]
                text = await asyncio.to_thread(page.read_text, "utf-8")
                await asyncio.to_thread(page.write_text, text, "utf-16")
                heard += [(await talk.say(f"Remember that {fact}.")).text for fact in facts[2:4]]
                assert await asyncio.to_thread(page.read_text, "utf-16") == text
                await asyncio.to_thread(page.write_text, text, "utf-8")
                return heard + [
                    (await talk.say(f"Remember that {fact}.")).text for fact in facts[4:]
                ]

            heard = await probe.watch(work)
        lines = page.read_text("utf-8").splitlines()
    there = [fact for fact in facts if f"- {fact} (2026-11-23)" in lines]
    said = [words.startswith("I'll remember that you have read book") for words in heard]
    kept = there == [*facts[:2], *facts[4:]] and said == [True, True, False, False, True, True]
    return Ending(kept and "- I am called Ida" in lines, f"{heard[2]} | {there}")
