"""Checks values against schemas that servers send: arguments before a call, answers after it.

Where a schema asks for more work than a check may do (`schema_walk.py`), nothing more is checked
and no fault is found: the tool's own server judges.
"""

from __future__ import annotations

import logging
from typing import Final

from mcp_bridge.security.schema_keywords import KEYWORDS
from mcp_bridge.security.schema_walk import Check, Fault, TooMuchWork

logger = logging.getLogger(__name__)

_MAX_TOLD: Final = 1_000
"""So many tools are named in the log as too much work; nobody has more."""
_told: Final[set[str]] = set()


def faults_of(schema: object, value: object, name: str) -> list[Fault]:
    """Gives what in `value`, which is JSON, does not fit `schema`; `name` is the tool's.

    There are none where the schema asks for too much: that is logged, once for each name.
    """
    try:
        return list(Check(schema, KEYWORDS).faults(schema, value, (), 0))
    except TooMuchWork:
        if name not in _told and len(_told) < _MAX_TOLD:
            _told.add(name)
            logger.warning("%s: its schema asks for too much work; values go unchecked", name)
        return []
