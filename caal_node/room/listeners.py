"""Who is told of events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from caal_node.core.events import Event

EventListener: TypeAlias = Callable[[Event], None]
"""Told of every event, in order, on the event loop; must not block."""

_log = logging.getLogger(__name__)


class Listeners:
    """Tells each in turn. One that fails is logged, and stops neither the others nor a call."""

    def __init__(self, listeners: Sequence[EventListener]) -> None:
        self._listeners = tuple(listeners)

    def tell(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                _log.exception("a listener failed on %s", event.type)
