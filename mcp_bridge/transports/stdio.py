"""Speaks JSON-RPC over a process's stdin and stdout, one message on each line.

The SDK's own transport grows one line without a bound and parses it on the event loop. This one
caps lines, cuts giant answers in a worker thread, tells at once when the process dies, and leaves
nothing of the process behind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, RequestId

from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.protocol.inbound_filter import Flooded, InboundFilter
from mcp_bridge.protocol.messages import (
    CappedLine,
    error_answer,
    read_lines,
    read_message,
    refusal,
)
from mcp_bridge.transports.process import spawn

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Longer lines are thrown away while they arrive; so much is held in memory for each server."""

Incoming: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def stdio_transport(
    config: ServerConfig, max_chars: int, inbound: InboundFilter, on_close: Callable[[str], None]
) -> AsyncGenerator[Streams]:
    """Starts the process, yields its read and write streams, and ends it and all that it started.

    `on_close` is called once, with the reason, when the process ends or its pipes break by
    themselves; not when the caller leaves.

    Raises:
        ServerUnavailable: it could not be started.
    """
    process = await spawn(config)
    to_session, from_server = anyio.create_memory_object_stream[Incoming](0)
    from_session, to_server = anyio.create_memory_object_stream[SessionMessage](0)
    leaving = False

    async def read() -> None:
        with to_session:
            try:
                async for line in read_lines(process.stdout, MAX_LINE_BYTES):
                    if (message := await _message(line, inbound, max_chars)) is not None:
                        await to_session.send(SessionMessage(message))
                reason = ""
            except Flooded as flood:
                process.kill()
                reason = f"was ended, as it {flood}; its logs belong on stderr"
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                reason = ""
            if not leaving:
                on_close(config.redact(reason or await process.wait_for_end()))

    def refuse(request: RequestId) -> None:
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            from_session.send_nowait(SessionMessage(refusal(request)))

    inbound.refuse = refuse

    async def write() -> None:
        async with to_server:
            try:
                async for message in to_server:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
            except OSError:
                process.close_output()  # whoever cannot be asked will not answer

    async with anyio.create_task_group() as tasks:
        try:
            for work in (process.watch, read, write):
                tasks.start_soon(work)
            yield from_server, from_session
        finally:
            leaving = True
            # Bounded: every wait in `stop` has a deadline.
            with anyio.CancelScope(shield=True):
                from_server.close()
                from_session.close()
                await anyio.lowlevel.checkpoint()  # lets the writer pass on what it accepted
                await process.stop()
            tasks.cancel_scope.cancel()


async def _message(
    line: CappedLine, inbound: InboundFilter, max_chars: int
) -> JSONRPCMessage | None:
    if line.too_long:
        await inbound.drop("messages that are too long", line.size)
        said = f"the answer is over {MAX_LINE_BYTES // 1024**2} MiB; ask for less"
        return error_answer(*line.ends(), said)
    text = line.content()
    return await read_message(text, max_chars) if await inbound.admits(text) else None
