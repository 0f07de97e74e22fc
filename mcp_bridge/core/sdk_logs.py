"""Keeps excerpts of messages out of the logs of the MCP SDK."""

from __future__ import annotations

import logging

_LOGGERS = (
    "mcp.client.streamable_http",
    "mcp.client.sse",
    "mcp.client.session",
    "mcp.shared.jsonrpc_dispatcher",
)


def drop_message_excerpts() -> None:
    """Drop what the SDK logs of a message that it cannot read: a traceback with an excerpt of it.

    Whoever made the call gets an error anyway. It holds for the whole process.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_has_no_traceback)


def _has_no_traceback(record: logging.LogRecord) -> bool:
    return not record.exc_info
