"""Callers of the control API: with no token, with too much, too many, too curious."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from caal_node.config.settings import load_settings
from caal_node.control.messages import (
    CallAnswer,
    CallTool,
    ListAnswer,
    ReloadReport,
    ToolsAnswer,
    ToolsRequest,
    ToolSummary,
)
from caal_node.control.room_agents import LiveKitRooms
from caal_node.core.errors import CaalError
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.agent_rooms import AgentRooms
from tests.stand_ins.control_server import BEARER, Answer, ControlServer, control_server, request
from tests.stand_ins.conversation import conversation
from tests.stand_ins.fake_rooms import FakeRooms
from tests.stand_ins.stand_in_model import StandInModel

CONTROL: Final = "control"
IDLE: Final = 600
CROWD: Final = 200
UNREAD: Final = 200
TOOLS: Final = 1_500
PAUSE_S: Final = 0.1
INNER_WORDS: Final = "an-inner-servers-own-words"


def kitchen() -> FakeRooms:
    return FakeRooms({"kitchen": ["agent"]})


def told(answer: Answer | None) -> str:
    """What a caller was told, in words."""
    if answer is None:
        return "(hung up)"
    return f"{answer.status} {answer.detail or json.dumps(answer.body)}"


def refused(answer: Answer | None, *statuses: int) -> bool:
    """Whether it is an error of these statuses in the documented shape."""
    return answer is not None and answer.status in statuses and bool(answer.detail)


@attack(CONTROL, "an empty token, and one of a character", deadline_s=1)
async def weak_tokens(probe: Probe) -> Ending:
    async def start() -> list[str]:
        return [_started_with(token) for token in ("", "x", "password")]

    said = await probe.watch(start)
    kept = all("caal.toml, line 2, control_token" in words for words in said)
    return Ending(kept=kept, heard=" | ".join(said))


def _started_with(token: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "caal.toml")
        file.write_text(f'\ncontrol_token = "{token}"\n', encoding="utf-8")
        try:
            load_settings({}, file)
        except CaalError as error:
            return str(error).replace(folder, "")
        return f"{token!r} is taken"


@attack(CONTROL, f"{IDLE} sockets that say nothing, or half a header", deadline_s=2)
async def idle_sockets(probe: Probe) -> Ending:
    async with control_server(kitchen()) as api:
        idle = [await api.connect() for _ in range(IDLE)]
        for caller in idle[::2]:
            await caller.send(request("/reload-tools")[:-2])
        answer = await probe.watch(lambda: api.ask("/reload-tools"))
        for caller in idle:
            caller.close()
    return Ending(kept=answer is not None and answer.status == 200, heard=told(answer))


@attack(CONTROL, "sockets without end", deadline_s=4)
async def socket_flood(probe: Probe) -> Ending:
    """The flood goes on while the callers with the token ask; each of them is served."""
    async with control_server(kitchen()) as api:
        flooding = asyncio.create_task(_flood(api))

        async def ask() -> list[Answer | None]:
            answers: list[Answer | None] = []
            for _ in range(5):
                await asyncio.sleep(PAUSE_S)
                answers.append(await api.ask("/reload-tools"))
            return answers

        try:
            answers = await probe.watch(ask)
        finally:
            flooding.cancel()
            await asyncio.gather(flooding, return_exceptions=True)
    heard = Counter(map(told, answers))
    return Ending(
        kept=all(one is not None and one.status == 200 for one in answers),
        heard=" | ".join(f"{count} x {words[:40]}" for words, count in heard.items()),
    )


async def _flood(api: ControlServer) -> None:
    callers: list[Any] = []
    try:
        while True:
            for _ in range(20):
                with contextlib.suppress(OSError):
                    callers.append(await api.connect())
            for caller in callers[:-600]:
                caller.close()
            del callers[:-600]
            await asyncio.sleep(0.005)
    finally:
        for caller in callers:
            caller.close()


@attack(CONTROL, "a body without an end behind a wrong token", deadline_s=7)
async def endless_body(probe: Probe) -> Ending:
    head = b"POST /model HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with control_server(kitchen()) as api:
        caller = await api.connect()
        sent = 0

        async def pour() -> Answer | None:
            nonlocal sent
            await caller.send(head)
            answer = await caller.answer()
            ended = asyncio.create_task(caller.hung_up())
            while not ended.done() and sent < 100:
                await caller.send(b"8000\r\n" + bytes(0x8000) + b"\r\n")
                sent += 1
                await asyncio.sleep(PAUSE_S)
            return answer

        answer = await probe.watch(pour)
        caller.close()
    heard = f"{told(answer)}; closed after {sent} chunks"
    return Ending(kept=refused(answer, 401) and sent < 70, heard=heard)


@attack(CONTROL, "60,000 header fields at once", deadline_s=2)
async def many_headers(probe: Probe) -> Ending:
    data = request("/reload-tools", header="a:\r\n" * 60_000)
    async with control_server(kitchen()) as api:
        caller = await api.connect()

        async def ask() -> tuple[Answer | None, Answer | None]:
            sending = asyncio.create_task(caller.send(data))
            answer = await caller.answer()
            await sending
            return answer, await api.ask("/reload-tools")

        answer, next_one = await probe.watch(ask)
        caller.close()
    # What is still on its way when the server hangs up makes the system drop the answer.
    kept = answer is None or answer.status == 400
    return Ending(
        kept=kept and next_one is not None and next_one.status == 200,
        heard=f"{told(answer)}; the next one: {told(next_one)}",
    )


@attack(CONTROL, "answers that nobody reads", deadline_s=5)
async def unread_answers(probe: Probe) -> Ending:
    one = request("/api/openapi.json", method="GET")
    async with control_server(kitchen()) as api:
        caller = await api.connect()
        caller.reader.set_exception(ConnectionError())  # nothing is read from here on
        caller.writer.transport.pause_reading()  # type: ignore[attr-defined]

        async def ask() -> Answer | None:
            for _ in range(UNREAD):
                await caller.send(one)
                await asyncio.sleep(0.01)
            return await api.ask("/reload-tools")

        answer = await probe.watch(ask)
        caller.close()
    return Ending(kept=answer is not None and answer.status == 200, heard=told(answer))


@attack(CONTROL, "what is no HTTP, and what is only nearly", deadline_s=3)
async def no_http(probe: Probe) -> Ending:
    nonsense = (
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /model HTTP/1.1\r\nHost: c\r\nContent-Length: -1\r\n\r\n",
        b"GET /nowhere HTTP/1.0\r\n\r\n",
        b"DELETE /model HTTP/1.1\r\nHost: c\r\n\r\n",
        b"POST /model HTTP/1.1\r\nHost: c\r\n"
        + BEARER.encode()
        + b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
        b"GET /health HTTP/1.1\r\nHost: c\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    )
    async with control_server(kitchen()) as api:

        async def ask() -> list[Answer | None]:
            answers: list[Answer | None] = []
            for data in nonsense:
                caller = await api.connect()
                await caller.send(data)
                answers.append(await caller.answer())
                caller.close()
            return answers

        answers = await probe.watch(ask)
    *errors, upgraded = answers
    kept = all(one is not None and one.status in (400, 404, 405) for one in errors)
    return Ending(
        kept=kept and upgraded is not None and upgraded.status == 200,
        heard=" | ".join(map(told, answers)),
    )


@attack(CONTROL, "a megabyte of [] and of 1.5 as arguments", deadline_s=3)
async def dense_json(probe: Probe) -> Ending:
    lists = b'{"name": "t", "arguments": {"x": [' + b"[]," * 340_000 + b"1]}}"
    floats = b'{"name": "t", "arguments": {"x": [' + b"1.5," * 250_000 + b"1]}}"
    async with control_server(kitchen()) as api:
        await api.ask("/api/tools", b"[]")

        async def ask() -> list[Answer | None]:
            return [await api.ask("/api/tools", body) for body in (lists, floats)]

        answers = await probe.watch(ask)
    return Ending(
        kept=all(refused(one, 413, 422) for one in answers), heard=" | ".join(map(told, answers))
    )


@attack(CONTROL, "deep nesting, keys twice, no UTF-8, numbers of 5,000 digits", deadline_s=3)
async def strange_json(probe: Probe) -> Ending:
    bodies = (
        b'{"a":' * 3_000,
        b"[" * 16_000,
        b'{"model": "m", "model": "n"}',
        b'{"model": "\xff"}',
        b'{"model": "\\ud800"}',
        b'{"model": ' + b"9" * 5_000 + b"}",
    )
    rooms = kitchen()
    async with control_server(rooms) as api:
        await api.ask("/model", b"[]")

        async def ask() -> list[Answer | None]:
            return [await api.ask("/model", body) for body in bodies]

        answers = await probe.watch(ask)
    return Ending(
        kept=all(refused(one, 422) for one in answers) and not rooms.asked,
        heard=" | ".join(map(told, answers)),
    )


@attack(CONTROL, f"{CROWD} reloads at once", deadline_s=5)
async def crowd_of_reloads(probe: Probe) -> Ending:
    reloads = 0

    async def reload(*_: object) -> ReloadReport:
        nonlocal reloads
        reloads += 1
        await asyncio.sleep(0.3)
        return ReloadReport(tool_count=3)

    async with control_server(AgentRooms(on_reload=reload)) as api:
        callers = [await api.connect() for _ in range(CROWD)]

        async def ask() -> list[Answer | None]:
            for caller in callers:
                caller.writer.write(request("/reload-tools"))
                await asyncio.sleep(0)
            return [await caller.answer() for caller in callers]

        answers = await probe.watch(ask)
        for caller in callers:
            caller.close()
    counts = Counter(map(told, answers))
    heard = " | ".join(f"{count} x {words[:50]}" for words, count in counts.items())
    served = all(one is not None and one.status == 200 for one in answers)
    return Ending(kept=served and reloads <= CROWD // 10, heard=f"{reloads} reloads: {heard}")


@attack(CONTROL, "/model names an inner server", deadline_s=5)
async def inner_server(probe: Probe) -> Ending:
    """A server that only this machine reaches, as 169.254.169.254 is in a cloud."""
    asked = 0

    async def inner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 26\r\n\r\n" + INNER_WORDS.encode())
        writer.close()

    metadata = await asyncio.start_server(inner, "127.0.0.1", 0)
    port = metadata.sockets[0].getsockname()[1]
    async with (
        metadata,
        StandInModel(["One."], ["Still here."]) as model,
        conversation(model) as talk,
        control_server(AgentRooms(on_model=talk.agent.on_model)) as api,
    ):
        await talk.ask("hello")

        async def ask() -> tuple[list[Answer | None], str]:
            answers = [
                await api.ask("/model", json.dumps({"model": "m", **where}).encode())
                for where in (
                    {"base_url": f"http://127.0.0.1:{port}"},
                    {"base_url": f"http://127.0.0.1:{port}/v1", "api": "openai"},
                    {"base_url": f"http://127.0.0.1:11434@127.0.0.1:{port}"},
                )
            ]
            return answers, await talk.ask("are you there?")

        answers, spoken = await probe.watch(ask)
    heard = " | ".join(map(told, answers))
    kept = all(refused(one, 403, 422) for one in answers) and not asked
    return Ending(
        kept=kept and INNER_WORDS not in heard and spoken == "Still here.",
        heard=f"{spoken} {heard}; the inner server was asked {asked} times",
    )


def _planted(folder: str) -> str:
    Path(folder, "planted.py").write_text("def run(): ...\n", encoding="utf-8")
    return folder


@attack(CONTROL, "/model names code where a plugin's model is in use", deadline_s=5)
async def named_code(probe: Probe) -> Ending:
    """With CAAL_API=livekit a model's name is `module:factory`; the caller must not choose it."""
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, _planted(folder))
        async with (
            StandInModel(["One."], ["Still here."]) as model,
            conversation(model) as talk,
            control_server(AgentRooms(on_model=talk.agent.on_model)) as api,
        ):
            await talk.ask("hello")
            talk.model._api = "livekit"  # pyright: ignore[reportPrivateUsage]
            answer = await probe.watch(lambda: api.ask("/model", b'{"model": "planted:run"}'))
    ran = "planted" in sys.modules
    return Ending(
        kept=refused(answer, 403, 422, 502) and not ran, heard=f"{told(answer)}; ran: {ran}"
    )


@attack(CONTROL, f"a catalogue of {TOOLS:,} tools, and a megabyte as an argument", deadline_s=8)
async def large_answers(probe: Probe) -> Ending:
    """Agent and control process are one here, so both ends are measured."""
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "d" * 60} for n in range(20)},
    }
    tools = [
        ToolSummary(
            name=f"server__tool{n}",
            tier="mcp",
            server="server",
            tool=f"tool{n}",
            description="d" * 400,
            input_schema=schema,
            offered=False,
        )
        for n in range(TOOLS)
    ]
    text = "x" * 1_000_000

    async def answer(asked: ToolsRequest) -> ToolsAnswer:
        if isinstance(asked, CallTool):
            return CallAnswer(
                name=asked.name,
                tier="mcp",
                server="server",
                call_id="api_1",
                duration_ms=1,
                result=asked.arguments["x"],
                truncated=False,
            )
        return ListAnswer(tools=tools, failed={})

    call = json.dumps({"name": "server__tool1", "arguments": {"x": text}}).encode()
    async with control_server(AgentRooms(answer)) as api:

        async def ask() -> list[Answer | None]:
            listed = await api.ask("/api/tools", method="GET")
            return [listed, await api.ask("/api/tools", call)]

        listed, called = await probe.watch(ask)
    assert listed is not None
    assert called is not None
    heard = f"{listed.status}, {len(listed.body.get('tools', []))} tools; {called.status}"
    kept = len(listed.body.get("tools", [])) == TOOLS and called.body.get("result") == text
    return Ending(kept=kept, heard=heard)


@attack(CONTROL, "what answers at LIVEKIT_URL has no end", deadline_s=8)
async def endless_livekit(probe: Probe) -> Ending:
    """Once as it is, and once compressed a thousandfold."""
    bomb = gzip.compress(bytes(64 << 20))
    heads = (
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n", b"\r\n"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb),
            bomb,
            b"",
        ),
    )
    served = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        head, piece, end = heads[served % 2]
        served += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head)
            for _ in range(1 if served % 2 == 0 else 100_000):
                writer.write(piece + (bytes(0x10000) if end else b"") + end)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with control_server(LiveKitRooms(url, "key", "secret" * 8)) as api:

            async def ask() -> list[Answer | None]:
                return [await api.ask("/reload-tools") for _ in heads]

            answers = await probe.watch(ask)
    return Ending(
        kept=all(refused(one, 503) for one in answers), heard=" | ".join(map(told, answers))
    )
