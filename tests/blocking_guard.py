"""A test fails when the project's own code blocks the event loop.

Audio frames are 20 ms long; a sleep, a socket or a file that takes longer is heard. Only calls
that come through this project's modules count (what LiveKit does on its own loop is not ours to
fix), and of file systems only reading and writing: looking a name up takes microseconds. The
command line and the demo have no room to disturb.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from blockbuster import BlockBuster, BlockBusterFunction

MODULES = ["caal_node", "mcp_bridge", "n8n"]
WITHOUT_A_ROOM = ["caal_node.cli", "caal_node.cli.demo"]
START_UP = {
    "caal_node/config/file.py": {"from_file"},
    "caal_node/prompt_builder.py": {"instructions_of"},
    "caal_node/room/cue_files.py": {"load_wav"},
    "caal_node/toolsets/base.py": {"_home_zone"},
    "caal_node/toolsets/installed.py": {"installed"},
    "caal_node/speech/local_models.py": {"_read_config"},
    "mcp_bridge/config/servers_file.py": {"_read"},
    "<frozen importlib._bootstrap>": {"_find_and_load"},
}
"""Small files that are read once, when something is made, and modules that are loaded at their
first use; nothing plays or listens before that."""


def _watched() -> list[BlockBusterFunction]:
    guard = BlockBuster(MODULES, excluded_modules=WITHOUT_A_ROOM)
    watched = [each for name, each in guard.functions.items() if not name.startswith("os.")]
    for function in watched:
        for file, names in START_UP.items():
            function.can_block_in(file, names)
    return watched


_WATCHED: Final = _watched()
"""Made once: it takes longer than most tests."""


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """Raises BlockingError where a blocking call is made with an event loop running."""
    for function in _WATCHED:
        function.activate()
    yield
    for function in _WATCHED:
        function.deactivate()
