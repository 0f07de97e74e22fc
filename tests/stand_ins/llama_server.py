"""A real llama.cpp server on a port of its own, in a process of its own (`xllamacpp`)."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Final

READY_DEADLINE_S: Final = 60.0
"""Loading half a gigabyte on a busy machine; 2 s on an idle one."""

_SERVE: Final = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel = sys.argv[1], int(sys.argv[2]), int(sys.argv[4])
params.kv_unified = sys.argv[5] == "True"
# Two threads that wait for each other on a busy machine take a hundred times as long as one.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
if sys.argv[3]:
    params.chat_template = sys.argv[3]
server = xllamacpp.Server(params)
print("ready", server.listening_address, flush=True)
sys.stdin.read()  # until the other side lets go
"""


class LlamaDied(Exception):
    """The server ended, or did not answer in time; the message holds the end of its log."""


@contextlib.contextmanager
def running(
    gguf: Path,
    *,
    context_tokens: int = 4096,
    chat_template: str = "",
    slots: int = 1,
    unified: bool = False,
) -> Generator[str]:
    """Serve `gguf`; gives the server's address, without `/v1`.

    `chat_template` replaces the one in the file. Where the `slots` have one KV cache (`unified`, as
    llama-server does unless it is told how many there are), `context_tokens` are each one's, else
    they are shared out.

    Raises:
        LlamaDied: it did not start.
    """
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [
                *(sys.executable, "-c", _SERVE, str(gguf), str(context_tokens), chat_template),
                *(str(slots), str(unified)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            if (address := _address(server)) is None:
                log.seek(0)
                tail = log.read()[-2000:].decode(errors="replace")
                raise LlamaDied(f"llama.cpp did not start (exit code {server.poll()}):\n{tail}")
            yield address
        finally:
            server.kill()  # it keeps nothing that a gentler end would save
            server.communicate()


def _address(server: subprocess.Popen[str]) -> str | None:
    assert server.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(server.stdout, selectors.EVENT_READ)
        while selector.select(READY_DEADLINE_S):
            if not (line := server.stdout.readline()):
                return None
            if line.startswith("ready "):
                return line.split()[1]
    return None
