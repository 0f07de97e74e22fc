"""Fetch what the tests use and a fresh machine lacks; say what will be skipped without it.

Run by `make test-rest`. A second run finds everything in the cache.
"""

from __future__ import annotations

from rich.console import Console

from caal_node import weights
from caal_node.cli.processes.livekit_server import obtain_server
from caal_node.core.errors import ConfigError
from tests import weight_wheels
from tests.e2e import mcp_servers
from tests.stand_ins import virtual_sound
from tests.stand_ins.node import NotInstalled
from tests.stand_ins.ollama_server import find_ollama

_USED = (
    (weights.QWEN_CODER_05B, "tests that ask a real small model"),
    (weights.WHISPER_TINY_EN, "tests that listen"),
    (weights.PIPER_JOE, "tests that speak"),
    (weights.MINILM, "tests of searches by meaning with the real model"),
)


def main() -> None:
    console = Console(highlight=False)
    if obtain_server(console) is None:
        console.print("skipped: tests in a real room (no livekit-server, and no Go to build one)")
    if find_ollama() is None:
        console.print("skipped: tests on a real Ollama (none on PATH; .ci/build-ollama makes one)")
    if lacks := virtual_sound.missing():
        console.print(f"skipped: tests with a microphone and a loudspeaker ({lacks})")
    try:
        mcp_servers.obtain()
    except (NotInstalled, ConfigError) as error:
        console.print(f"skipped: tests on real MCP servers ({error})", markup=False)
    for weight, what in _USED:
        try:
            weight_wheels.obtain(weight, console)
        except ConfigError as error:
            console.print(f"skipped: {what} ({error})")


if __name__ == "__main__":
    main()
