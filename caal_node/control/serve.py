"""`caal-node control`: the control API on an address of one's own."""

from __future__ import annotations

import logging
from typing import Final

import uvicorn

from caal_node.config.settings import Settings
from caal_node.control.app import make_app
from caal_node.control.livekit_rooms import LiveKitRooms
from caal_node.core.addresses import is_loopback

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
"""A reload is asked for by a person or a workflow, never by a crowd."""
STOP_S: Final = 5


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8889) -> None:
    """Serve until the process is told to stop.

    Raises:
        ConfigError: the token or LiveKit's address and keys are not set.
    """
    app = make_app(settings, LiveKitRooms.of(settings))
    if not is_loopback(host):
        logger.warning("%s is reachable from other machines, without TLS: put a proxy there.", host)
    uvicorn.run(
        app,
        host=host,
        port=port,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=STOP_S,
        server_header=False,
        log_config=None,
    )
