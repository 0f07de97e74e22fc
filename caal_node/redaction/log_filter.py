"""Redacts what is logged, whoever logs it: this package, LiveKit, a model's plugin.

A filter of a logger does not see what the loggers below it log, and one of a handler is not on the
handlers that come later. So records are redacted once, in place, where every logger passes them to
whatever handlers there are by then (`logging.Logger.callHandlers`). That belongs to the whole
process, so it is done only once `redact_all_logs` has been called; before, only the loggers of this
package's own modules redact. LiveKit logs arguments and what users say as fields of a record
(`lk.pii.arguments`), so those are redacted as well as messages and tracebacks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from caal_node.redaction.outgoing import OutgoingRedaction

_OWN: Final = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__)
"""The fields that every record has."""
_FORMATTER: Final = logging.Formatter()
_PACKAGES: Final = ("caal_node", "mcp_bridge", "n8n")


class RedactingFilter(logging.Filter):
    """Lets every record pass, redacted. A record in which nothing is found stays as it is."""

    def __init__(self, redaction: OutgoingRedaction) -> None:
        super().__init__()
        self._redaction: Final = redaction

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            self._redact(record)
        except Exception as error:
            # The record may hold what could not be redacted, and its arguments what cannot be told.
            record.msg, record.args = "a record was left out (%s)", (type(error).__name__,)
            record.exc_info = record.exc_text = None
        return True

    def _redact(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if (found := self._redaction.text(message)) != message:
            record.msg, record.args = found, None
        text = record.exc_text
        if not text and record.exc_info and record.exc_info[0] is not None:
            text = _FORMATTER.formatException(record.exc_info)
        if text and (found := self._redaction.text(text)) != text:
            # With it a formatter would write the traceback anew.
            record.exc_info, record.exc_text = None, found
        fields = record.__dict__
        for name, value in [item for item in fields.items() if item[0] not in _OWN]:
            if isinstance(value, str | Mapping | list | tuple):
                fields[name] = self._redaction.value({name: value})[name]


class _RecordsOfAllLoggers:
    """Has the filters that are active now see each record before any handler does."""

    def __init__(self) -> None:
        self._filters: tuple[RedactingFilter, ...] = ()
        self._lock: Final = threading.Lock()
        self._outermost: Any = None

    def watch(self) -> None:
        """Begin to see records. A second call does nothing."""
        with self._lock:
            self._wrap_again()

    def add(self, log_filter: RedactingFilter) -> None:
        with self._lock:
            self._filters = (*self._filters, log_filter)
            if self._outermost is not None:
                self._wrap_again()

    def remove(self, log_filter: RedactingFilter) -> None:
        with self._lock:
            self._filters = tuple(each for each in self._filters if each is not log_filter)

    def _wrap_again(self) -> None:
        inner: Any = logging.Logger.callHandlers
        # Another package may have put its own function around ours, or in its place.
        if inner is self._outermost:
            return

        def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
            if self._outermost is call_handlers:  # so that two of ours redact once
                for each in self._filters:
                    each.filter(record)
            inner(logger, record)

        self._outermost = call_handlers
        logging.Logger.callHandlers = self._outermost


_RECORDS: Final = _RecordsOfAllLoggers()


def redact_all_logs() -> None:
    """Have `logs_redacted` redact what any logger of this process logs, from now on."""
    _RECORDS.watch()


@contextmanager
def logs_redacted(redaction: OutgoingRedaction) -> Generator[None]:
    """Redact what anybody logs until the end of the block, also by handlers that come meanwhile.

    Before `redact_all_logs` has been called, only what the modules of this package log that are
    imported by now.
    """
    log_filter = RedactingFilter(redaction)
    own = [*_own_loggers()]
    for logger in own:
        logger.addFilter(log_filter)
    _RECORDS.add(log_filter)
    try:
        yield
    finally:
        _RECORDS.remove(log_filter)
        for logger in own:
            logger.removeFilter(log_filter)


def _own_loggers() -> Iterator[logging.Logger]:
    for name in [*logging.root.manager.loggerDict]:
        if name.partition(".")[0] in _PACKAGES:
            yield logging.getLogger(name)
