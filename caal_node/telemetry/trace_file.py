"""A trace of the conversation in a local file: the spans of LiveKit's tracer, one a line.

A line is OTLP's JSON encoding of one span, so that collectors and viewers read the file:
https://opentelemetry.io/docs/specs/otel/protocol/file-exporter. By default it has names, numbers
and times alone. Contents, redacted, are written where the owner asks for that (`content` of the
setting), as far as the spans have any: LiveKit strips them first where the process is guarded and
its tracer has a provider of somebody else's.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from google.protobuf.json_format import MessageToDict
from livekit.agents import telemetry
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.environment_variables import OTEL_SERVICE_NAME
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status
from opentelemetry.util.types import Attributes, AttributeValue

from caal_node.config.setting_tables import Trace
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.telemetry.turn_times import MAX_FILE_BYTES
from mcp_bridge.core.files import make_private_folder
from mcp_bridge.security.ownership import folder_fault, is_checked

DELAY_MS: Final = 500
"""Milliseconds after which a span that has ended is in the file."""
FLUSH_S: Final = 3.0
"""Seconds for the last spans when a conversation ends."""
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
_NAMES: Final = frozenset(
    {
        "error.type",
        "exception.type",
        "gen_ai.agent.name",
        "gen_ai.conversation.id",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.model",
        "gen_ai.tool.call.id",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "lk.eou.outcome",
        "lk.eou.source",
        "lk.function_tool.name",
        "lk.speech_id",
        "mcp.method.name",
        "mcp.protocol.version",
        "network.transport",
    }
)
"""Attributes whose texts are names and no content; so are all of `caal.*`."""
_IDS: Final = ("traceId", "spanId", "parentSpanId")

_log = logging.getLogger(__name__)
_traces: Final[
    WeakKeyDictionary[TracerProvider, dict[Path, tuple[TraceFile, BatchSpanProcessor]]]
] = WeakKeyDictionary()
"""The files that are written, and what writes them. A provider never lets a processor go."""


def write_trace(setting: Trace, redaction: OutgoingRedaction) -> BatchSpanProcessor:
    """Have the spans of LiveKit's tracer written to a file, and return what writes them.

    Spans that have begun before are not written, so call it before the session starts. The tracer
    keeps the provider that it has; without one it is given one.
    """
    provider = telemetry.tracer._tracer_provider  # pyright: ignore[reportPrivateUsage]  # no other way
    if not isinstance(provider, TracerProvider):
        name = os.environ.get(OTEL_SERVICE_NAME) or "caal-node"
        provider = TracerProvider(resource=Resource({SERVICE_NAME: name}))
        telemetry.set_tracer_provider(provider, allow_pii=setting.content)
    files = _traces.setdefault(provider, {})
    if (known := files.get(setting.file)) is not None:
        file, processor = known
        file.share(setting, redaction)
        return processor
    file = TraceFile(setting.file, redaction=redaction, with_content=setting.content)
    processor = BatchSpanProcessor(file, schedule_delay_millis=DELAY_MS)
    files[setting.file] = file, processor
    provider.add_span_processor(processor)
    return processor


async def flush(processor: BatchSpanProcessor) -> None:
    """Write the spans that have ended, for at most FLUSH_S: a disk may never answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(FLUSH_S):
            await asyncio.to_thread(processor.force_flush)


class TraceFile(SpanExporter):
    """Writes spans to a file. What goes wrong with it is logged once, and ends the trace alone."""

    def __init__(
        self, path: Path, *, redaction: OutgoingRedaction, with_content: bool = False
    ) -> None:
        self._path: Final = path
        self._redactions = (ref(redaction),)
        """Those of the agents that write it. A span does not say whose it is."""
        self._with_content = with_content
        self._handle: int | None = None
        self._is_over = False

    def share(self, setting: Trace, redaction: OutgoingRedaction) -> None:
        """Write for one more agent: no secrets of any, and contents only if all want them."""
        alive = (each for each in self._redactions if each() not in (None, redaction))
        self._redactions = (*alive, ref(redaction))
        self._with_content = self._with_content and setting.content

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write spans; the processor calls it in a thread of its own."""
        if self._is_over:
            return SpanExportResult.FAILURE
        try:
            if self._handle is None:
                self._handle = open_trace(self._path)
            _write(self._handle, [line_of(self._shown(span)) for span in spans])
        except OSError as error:
            _log.error("CAAL_TRACE: %s: %s; the trace ends", self._path, error.strerror)
            self.shutdown()
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._is_over = True
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _shown(self, span: ReadableSpan) -> ReadableSpan:
        """Return the span with what may be written of it."""
        return ReadableSpan(
            span.name,
            span.context,
            parent=span.parent,
            resource=span.resource,
            attributes=self._attributes(span.attributes),
            events=[
                Event(each.name, self._attributes(each.attributes), each.timestamp)
                for each in span.events
            ],
            kind=span.kind,
            status=Status(span.status.status_code),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    def _attributes(self, given: Attributes) -> dict[str, AttributeValue]:
        given = given or {}
        redactions = [each for at in self._redactions if (each := at()) is not None]
        if self._with_content and redactions:
            return {name: _redacted(value, redactions) for name, value in given.items()}
        return {
            name: value
            for name, value in given.items()
            if isinstance(value, bool | int | float)
            or (isinstance(value, str) and (name in _NAMES or name.startswith("caal.")))
        }


def _redacted(value: AttributeValue, redactions: Sequence[OutgoingRedaction]) -> AttributeValue:
    if isinstance(value, str):
        for redaction in redactions:
            value = redaction.text(value)
        return value
    if isinstance(value, bool | int | float | bytes):
        return value
    return [str(_redacted(each, redactions)) for each in value or ()]


def line_of(span: ReadableSpan) -> str:
    """Write a span as a line of OTLP's JSON, in which ids are hexadecimal."""
    message: Any = encode_spans([span])
    line = MessageToDict(message, use_integers_for_enums=True)
    (written,) = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for name in _IDS:
        if name in written:
            written[name] = base64.b64decode(written[name]).hex()
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


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
