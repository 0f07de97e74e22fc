"""Redacts what is logged, whoever logs it: this package, LiveKit, a model's plugin.

A filter of a logger does not see what the loggers below it log, so the filter is put on the
handlers. LiveKit logs arguments and what people said as fields of a record (`lk.pii.arguments`), so
those are redacted as well as messages and tracebacks.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from caal_node.redaction.outgoing import OutgoingRedaction

LOGGERS: Final = ("caal_node", "mcp_bridge", "n8n", "livekit")
"""Loggers whose own handlers are filtered, as the root's are."""
_OWN: Final = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__)
"""The fields that every record has."""
_FORMATTER: Final = logging.Formatter()


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


@contextmanager
def logs_redacted(redaction: OutgoingRedaction) -> Generator[None]:
    """Redact what the handlers that there are now write, until the end of the block."""
    log_filter = RedactingFilter(redaction)
    handlers = tuple(_handlers())
    for handler in handlers:
        handler.addFilter(log_filter)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(log_filter)


def _handlers() -> Iterator[logging.Handler]:
    loggers: list[Any] = [logging.getLogger()]
    loggers += [
        logger
        for name, logger in logging.Logger.manager.loggerDict.items()
        if name.partition(".")[0] in LOGGERS and isinstance(logger, logging.Logger)
    ]
    seen: set[int] = set()
    for handler in (handler for logger in loggers for handler in logger.handlers):
        if id(handler) not in seen:
            seen.add(id(handler))
            yield handler
