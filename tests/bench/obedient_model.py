"""A model that does as it is told: `call NAME {"an": "argument"}` makes that call, then it speaks.

In this process as `StandInModel(answer=obey)`; `python -m tests.bench.obedient_model` serves it in
a process of its own, so that its work is in nobody else's figures.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from caal_node.models.child_process import end
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

WORDS: Final = "That is done, and all is well."


def told(tool: str, **arguments: Any) -> str:
    """What to say to have `tool` called."""
    return f"call {tool} {json.dumps(arguments)}"


def obey(asked: Asked) -> Reply:
    said = asked.json["messages"]
    last = said[-1]
    if last["role"] == "user" and last["content"].startswith("call "):
        _, tool, arguments = last["content"].split(" ", 2)
        return [Call(tool, json.loads(arguments), f"call_{len(said)}")]
    return [WORDS]


@asynccontextmanager
async def served() -> AsyncGenerator[str]:
    """The address (Ollama's API, model `stand-in`) of one in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.obedient_model", stdin=PIPE, stdout=PIPE
    )
    try:
        assert child.stdout is not None
        yield (await child.stdout.readline()).decode().strip()
    finally:
        await end(child)


async def _main() -> None:
    async with StandInModel(answer=obey) as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)  # until the other side lets go


if __name__ == "__main__":
    asyncio.run(_main())
