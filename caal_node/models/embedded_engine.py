"""llama.cpp's server in a child process, for machines that have no model's server of their own.

A child, because loading holds the interpreter for seconds and because a crash or a runaway
thread of the engine must not be ours. It speaks the OpenAI-compatible API on loopback.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Self

import httpx2

from caal_node.core.errors import CaalError, ConfigError, ModelError
from caal_node.http_client import open_client, tls_for
from caal_node.models import child_process

READY_DEADLINE_S = 120.0
"""Seconds for loading a 1.1 GB file from a cold, slow disk; a warm one needs 2 to 6 s."""
STATE_DEADLINE_S = 20.0
"""Seconds for 20 MB to or from a slow disk."""
PROMPT_CACHE_MIB = 512
"""Room for the whole context of a small model, twice."""
LOG_TAIL_BYTES = 8_000
"""Bytes of the log's end, which are enough to find the reason in."""

_CHILD = Path(__file__).with_name("embedded_engine_child.py")


class EmbeddedEngine:
    """Runs the server: `async with EmbeddedEngine(path) as engine:`, then ask `engine.base_url`.

    Args:
        model: A GGUF file.
        ctx: The context, in tokens.
        threads: Threads for prompts and for generation; None is the number of usable cores.
        prompt_cache_mib: Room for states of earlier prompts that the engine keeps outside its
            slot, so that one odd request does not cost the conversation its prefix. The engine's
            own default is 8 GiB; 0 is none, as with Ollama.
        states: A folder for what the engine has read, see `keep` and `recall`; None keeps nothing.
        log: Where the engine's words go; None is a file of its own that a clean end removes.
        ready_deadline_s: Seconds for loading.
    """

    def __init__(
        self,
        model: Path,
        *,
        ctx: int = 8192,
        threads: int | None = None,
        prompt_cache_mib: int = PROMPT_CACHE_MIB,
        states: Path | None = None,
        log: Path | None = None,
        ready_deadline_s: float = READY_DEADLINE_S,
    ) -> None:
        self.model = Path(model)
        self.name = self.model.stem
        """The name to send as `model`, to which the server answers."""
        self.log = log
        self._settings = {
            "model": str(self.model),
            "name": self.name,
            "ctx": ctx,
            "threads": threads or usable_cores(),
            "prompt_cache_mib": prompt_cache_mib,
            # llama.cpp appends the name of a state to this as it is.
            "states": f"{states}{os.sep}" if states else "",
        }
        self._ready_deadline_s = ready_deadline_s
        self._own_log = log is None
        self._process: Process | None = None
        self._address: str | None = None

    @property
    def base_url(self) -> str:
        """The address, `http://127.0.0.1:PORT/v1`, once the engine is open."""
        if self._address is None:
            raise RuntimeError("the engine is not open")
        return f"{self._address}/v1"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def __aenter__(self) -> Self:
        self._check()
        try:
            async with asyncio.timeout(self._ready_deadline_s):
                await self._start()
        except TimeoutError:
            await self._stop(deadline_s=0)  # While it loads it does not look at standard input.
            raise ModelError(
                f"{self.model.name} was not loaded within {self._ready_deadline_s:.0f} s; "
                f"see {self.log}"
            ) from None
        except BaseException:
            await self._stop(deadline_s=0)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the child and wait until it is gone. Closing twice is fine."""
        died = self._process is not None and not self.alive
        await self._stop()
        if self._own_log and not died and self.log is not None:
            self.log.unlink(missing_ok=True)
            self.log = None

    async def keep(self, name: str) -> bool:
        """Write what the engine has read and still holds to `states`, for a later `recall`."""
        return await self._state("save", name)

    async def recall(self, name: str) -> bool:
        """Have the engine hold what `keep` wrote under `name`. False means that it did not.

        A prompt that begins like it is then not read again: on two cores the demo is ready in 12 s
        instead of 35. A state of other weights or settings is refused by the engine.
        """
        return await self._state("restore", name)

    async def _state(self, action: str, name: str) -> bool:
        # A state saves time and nothing else, so an engine that cannot give one is no error.
        try:
            async with (
                asyncio.timeout(STATE_DEADLINE_S),
                open_client(
                    trust_env=False, timeout=None, verify=await tls_for(self._address or "")
                ) as client,
            ):
                answer = await client.post(
                    f"{self._address}/slots/0", params={"action": action}, json={"filename": name}
                )
        except (httpx2.HTTPError, TimeoutError):
            return False
        return answer.is_success

    def _check(self) -> None:
        require_engine()
        if not self.model.is_file():
            raise ConfigError(f"{self.model}: no such file; give the path of a GGUF file")

    async def _start(self) -> None:
        if self.log is None:
            handle, name = tempfile.mkstemp(prefix="caal-engine-", suffix=".log")
            os.close(handle)
            self.log = Path(name)
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                # With -P the script's folder cannot shadow the libraries that it imports.
                *(sys.executable, "-P", str(_CHILD), json.dumps(self._settings)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                # Ctrl-C is for the parent, which then closes this in order.
                start_new_session=True,
            )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        answer: dict[str, str] = json.loads(line) if line.strip() else {}
        if "address" not in answer:
            raise await asyncio.to_thread(self._failure, answer.get("error"))
        self._address = answer["address"]
        tls = await tls_for(self._address)
        async with open_client(trust_env=False, verify=tls) as client:
            (await client.get(f"{self._address}/health")).raise_for_status()

    def _failure(self, reason: str | None) -> CaalError:
        assert self.log is not None
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        errors = [line for line in lines if "error" in line.lower() or "fail" in line.lower()]
        why = (errors[:1] or [reason or "the engine ended without a word"])[0].strip()[:200]
        return ConfigError(
            f"{self.model}: cannot be loaded ({why}); give another GGUF file, or see {self.log}"
        )

    async def _stop(self, *, deadline_s: float = child_process.CLOSE_DEADLINE_S) -> None:
        process, self._process, self._address = self._process, None, None
        if process is not None:
            await child_process.end(process, deadline_s=deadline_s)


def require_engine() -> None:
    """Raises: ConfigError: the extra with the engine is not installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigError("the embedded engine is not installed; pip install 'caal-node[embedded]'")


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
