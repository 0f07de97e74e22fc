"""A test fails when the project's own code blocks the event loop.

Audio frames are 20 ms long; a file read or a lock that takes longer is heard. Only calls that come
through this project's modules count: what LiveKit does on its own loop is not ours to mend.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster

MODULES = ["caal_node", "mcp_bridge", "n8n"]


@pytest.fixture(autouse=True)
def no_blocking_calls(request: pytest.FixtureRequest) -> Iterator[None]:
    """Raises BlockingError where a blocking call is made with an event loop running."""
    guard = BlockBuster(MODULES)
    guard.activate()
    yield
    guard.deactivate()
