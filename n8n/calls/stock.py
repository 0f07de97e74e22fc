"""n8n's own replies, told from those that authors send: nobody meant them to be heard.

Seen on n8n 2.41.1. Errors of its own have `code` and `message`, and a `stacktrace` outside
production; three replies have a `message` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from n8n.core.http import Reply

FAILED: Final = "Error in workflow"
"""A node failed; only the record of the run says which, and why."""
NO_DATA: Final = (
    "Workflow executed successfully but no data was returned",
    "Workflow executed successfully but the last node did not return any data",
)
"""With a 200."""
NO_ITEM: Final = (
    "No item to return was found",
    "No item was found to return",
    "No binary data was found to return",
)
NO_RESPOND_NODE: Final = "No Respond to Webhook node found in the workflow"
NOT_ALLOWED: Final = "IP is not allowed to access the webhook!"
_ERROR_KEYS: Final = frozenset(("code", "message", "hint", "stacktrace"))
_CHALLENGE: Final = 'Basic realm="Webhook"'
"""Of each refusal of a Webhook node's own, whatever its kind of authentication."""


def is_stock(body: Mapping[str, Any]) -> bool:
    """Whether n8n wrote this reply, and not the workflow's author."""
    said = body.get("message")
    if set(body) == {"message"}:
        return said == FAILED or said in NO_DATA
    return body.get("code") == 0 and "message" in body and body.keys() <= _ERROR_KEYS


def is_challenge(reply: Reply) -> bool:
    """Whether the Webhook node itself turned the request away."""
    return reply.headers.get("www-authenticate") == _CHALLENGE
