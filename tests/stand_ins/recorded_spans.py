"""The spans of LiveKit's tracer, kept in memory, as what an exporter of another tool is given."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from livekit.agents import telemetry
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class RecordedSpans:
    """`provider` records; `all` are the spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()

    def export(self) -> None:
        """Take in what ends from now on; what other processors change is changed by then."""
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def of(self, operation: str) -> list[ReadableSpan]:
        """The spans of that `gen_ai.operation.name`, in the order in which they began."""
        found = [span for span in self.all if of(span, "gen_ai.operation.name") == operation]
        return sorted(found, key=lambda span: span.start_time or 0)

    def named(self, name: str) -> ReadableSpan:
        return next(span for span in self.all if span.name == name)

    def above(self, span: ReadableSpan) -> list[str]:
        """The names of the spans around it, the innermost first."""
        by_id = {each.context.span_id: each for each in self.all}
        names = list[str]()
        while span.parent is not None and (outer := by_id.get(span.parent.span_id)) is not None:
            names.append(outer.name)
            span = outer
        return names


def of(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(name)


@contextmanager
def recorded_spans(*, allow_pii: bool = True) -> Generator[RecordedSpans]:
    """Record what LiveKit's tracer makes inside."""
    recorded = RecordedSpans()
    before = telemetry.tracer._tracer_provider  # pyright: ignore[reportPrivateUsage]  # no other way
    telemetry.set_tracer_provider(recorded.provider, allow_pii=allow_pii)
    recorded.export()
    try:
        yield recorded
    finally:
        telemetry.tracer.set_provider(before)


@contextmanager
def kept_provider() -> Generator[None]:
    """Let what is inside give LiveKit's tracer a provider; then close that, and take it back."""
    before = telemetry.tracer._tracer_provider  # pyright: ignore[reportPrivateUsage]  # no other way
    try:
        yield
    finally:
        given = telemetry.tracer._tracer_provider  # pyright: ignore[reportPrivateUsage]  # the same
        telemetry.tracer.set_provider(before)
        if given is not before and isinstance(given, TracerProvider):
            given.shutdown()
