"""A trace of the conversation in a local file, with the times of each turn: one event a line.

By default a line says when, what, by which tool, how it ended and how long that took, and of texts
only how many characters they have. The whole of it, redacted, is written where the owner asks for
that (`content` of the setting). `at` is the wall clock's time, for people; `mono_s` is the
monotonic clock's in seconds, which counts from a moment of its own and is exact (docs/operate.md).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from livekit.agents import (
    AgentSession,
    AgentStateChangedEvent,
    ConversationItemAddedEvent,
    FunctionToolsExecutedEvent,
    llm,
)
from livekit.agents.metrics import LLMMetrics

from caal_node.core.events import AgentVoice, Event, ModelRequestEnded, PersonSpoke, Timing, to_json
from caal_node.models.llm import LLM
from caal_node.redaction.outgoing import NAMES, OutgoingRedaction
from mcp_bridge.core.files import make_private_folder
from mcp_bridge.security.ownership import folder_fault, is_checked

# Finds out when a person and the agent speak in a session, and how long other models' requests
# take, for the trace.
#
# Requests of our own `LLM` are told where they are made (`caal_node.models.model_connection`).


class TurnTiming:
    """Tells `tell` the timing of what happens in `session`, until `close`.

    `now` is the wall clock in seconds, as LiveKit notes times of speech by it.
    """

    def __init__(
        self,
        session: AgentSession[Any],
        tell: Callable[[Timing], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._session: Final = session
        self._tell: Final = tell
        self._now: Final = now
        self._model: llm.LLM | None = None
        session.on("agent_state_changed", self._on_agent_state)
        session.on("conversation_item_added", self._on_item)

    def follow(self, model: llm.LLM) -> None:
        """Tell of the requests to `model`, where it is one of another LiveKit plugin."""
        if not isinstance(model, LLM):
            self._model = model
            model.on("metrics_collected", self._on_metrics)

    def close(self) -> None:
        self._session.off("agent_state_changed", self._on_agent_state)
        self._session.off("conversation_item_added", self._on_item)
        if self._model is not None:
            self._model.off("metrics_collected", self._on_metrics)

    def _on_agent_state(self, event: AgentStateChangedEvent) -> None:
        if "speaking" in (event.new_state, event.old_state):
            output = self._session.output
            heard = output.audio is not None and output.audio_enabled
            self._tell(AgentVoice(event.new_state == "speaking", heard))

    def _on_item(self, event: ConversationItemAddedEvent) -> None:
        item = event.item
        if not isinstance(item, llm.ChatMessage) or item.role != "user":
            return
        began = item.metrics.get("started_speaking_at")
        ended = item.metrics.get("stopped_speaking_at")
        if began is None or ended is None:
            return
        transcribed_s = item.metrics.get("transcription_delay")
        self._tell(
            PersonSpoke(
                spoke_ms=_ms(ended - began),
                silent_ms=_ms(self._now() - ended),
                transcribed_ms=None if transcribed_s is None else _ms(transcribed_s),
            )
        )

    def _on_metrics(self, metrics: object) -> None:
        if isinstance(metrics, LLMMetrics):
            self._tell(
                ModelRequestEnded(
                    took_ms=_ms(metrics.duration),
                    first_ms=_ms(metrics.ttft) if metrics.ttft >= 0 else None,
                    outcome="closed" if metrics.cancelled else "ok",
                    prompt_tokens=metrics.prompt_tokens or None,
                    cached_tokens=metrics.prompt_cached_tokens if metrics.prompt_tokens else None,
                    completion_tokens=metrics.completion_tokens or None,
                )
            )


def _ms(seconds: float) -> int:
    """Return milliseconds. A clock that was set back gives none."""
    return max(0, round(seconds * 1000))


MAX_FILE_BYTES: Final = 64 << 20
"""Bytes after which nothing is added: half a million events, or a day of whole ones."""
MAX_WAITING: Final = 1_000
"""Lines that wait for a slow disk. More are left out, and the log says so."""
CLOSE_S: Final = 3.0
"""Seconds for the last lines when the conversation ends."""
MONOTONIC_DIGITS: Final = 4
"""Digits behind the point of `mono_s`: a tenth of a millisecond, less than any wait that counts."""
_MODE: Final = 0o600
_FLAGS: Final = (
    os.O_WRONLY
    | os.O_APPEND  # several rooms may write one file, each line as a whole
    | os.O_CREAT
    | getattr(os, "O_NOFOLLOW", 0)  # a link could lead to any file of the user's
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO would wait for its other end
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_SHOWN: Final = NAMES | {"by", "verdict"}
"""Texts of events, and of the decisions about a call, that are names and no content."""

_log = logging.getLogger(__name__)


class TraceFile:
    """An event listener that writes a trace. Make it on the running event loop, and close it.

    What goes wrong with the file is logged once, and the conversation goes on without a trace.
    """

    def __init__(
        self,
        path: Path,
        *,
        redaction: OutgoingRedaction,
        with_content: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`redaction` is for results; events are redacted before a listener gets them."""
        self._path: Final = path
        self._redaction: Final = redaction
        self._with_content: Final = with_content
        self._now: Final = now
        self._monotonic: Final = monotonic
        self._session: Final = secrets.token_hex(4)
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(MAX_WAITING)
        self._is_full = False
        self._task = asyncio.create_task(self._run(), name="caal-trace")

    def __call__(self, event: Event) -> None:
        fields = json.loads(to_json(event))
        self._add(fields.pop("type"), fields if self._with_content else _sizes(fields))

    def note_results(self, event: FunctionToolsExecutedEvent) -> None:
        """Write what came of a round of calls: LiveKit's event `function_tools_executed`."""
        for call, output in zip(event.function_calls, event.function_call_outputs, strict=False):
            fields: dict[str, Any] = {
                "call_id": call.call_id,
                "tool": call.name,
                "is_error": output.is_error,
                "output": output.output,
            }
            if self._with_content:
                fields["output"] = self._redaction.text(output.output)
            self._add("tool_result", fields if self._with_content else _sizes(fields))

    async def aclose(self) -> None:
        """Write what waits, for at most CLOSE_S, and close the file."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._queue.put(None)
                await asyncio.shield(self._task)
        except TimeoutError:
            _log.warning("trace: closed with %d lines waiting", self._queue.qsize())
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _add(self, kind: str, fields: Mapping[str, Any]) -> None:
        if self._task.done():
            return
        line = {
            "at": self._now().isoformat(timespec="milliseconds"),
            "mono_s": round(self._monotonic(), MONOTONIC_DIGITS),
            "session": self._session,
            "type": kind,
            **fields,
        }
        try:
            self._queue.put_nowait(
                json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)
            )
        except asyncio.QueueFull:
            if not self._is_full:
                _log.warning("trace: %s is too slow; events are left out", self._path)
            self._is_full = True

    async def _run(self) -> None:
        try:
            handle = await asyncio.to_thread(open_trace, self._path)
        except OSError as error:
            _log.error("CAAL_TRACE: %s: %s; there is no trace", self._path, error.strerror)
            return
        try:
            is_over = False
            while not is_over:
                lines = [await self._queue.get()]
                while not self._queue.empty():
                    lines.append(self._queue.get_nowait())
                is_over = lines[-1] is None
                await asyncio.to_thread(_write, handle, [line for line in lines if line])
        except OSError as error:
            _log.error("CAAL_TRACE: %s: %s; the trace ends", self._path, error.strerror)
        finally:
            os.close(handle)


def open_trace(path: Path) -> int:
    """Open the file to add to it, for its user alone, and return its descriptor.

    Raises:
        OSError: It cannot be written, or what is there is no file of this user's alone.
    """
    make_private_folder(path.parent)
    if is_checked() and (wrong := folder_fault(path.parent, os.geteuid())) is not None:
        raise PermissionError(0, f"its folder {wrong}")
    handle = os.open(path, _FLAGS, _MODE)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no regular file")
        if is_checked() and (status.st_uid != os.geteuid() or status.st_nlink > 1):
            raise PermissionError(0, "it belongs to somebody else, or has a second name")
        if is_checked() and stat.S_IMODE(status.st_mode) != _MODE:
            os.fchmod(handle, _MODE)
    except OSError:
        os.close(handle)
        raise
    return handle


def _write(handle: int, lines: Sequence[str]) -> None:
    if os.fstat(handle).st_size > MAX_FILE_BYTES:
        raise OSError(0, f"it has more than {MAX_FILE_BYTES >> 20} MiB; move it away")
    # A lone surrogate cannot be written.
    data = "".join(f"{line}\n" for line in lines).encode(errors="replace")
    while data:
        data = data[os.write(handle, data) :]


def _sizes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return names, numbers and flags as they are; of all else the characters that it has."""
    shown: dict[str, Any] = {}
    for name, value in fields.items():
        if name in _SHOWN or value is None or isinstance(value, bool | int | float):
            shown[name] = value
        elif name == "decisions":
            shown[name] = [_sizes(each) for each in value]
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            shown[f"{name}_chars"] = len(text)
    return shown
