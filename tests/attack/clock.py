"""The machine's clock jumps."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

from tests.attack.harness import Ending, Probe, attack

_TURN: Final = ["user", "assistant"]
_CALLING_TURN: Final = ["user", "assistant", "tool", "assistant"]
_ROLES: Final = ["system", *_TURN, *_TURN, *_CALLING_TURN, "user"]


@attack("clock", "it is set back by a day in mid-conversation", deadline_s=40)
async def set_back(probe: Probe) -> Ending:
    async def talked() -> Any:
        talk = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.clock_step_talk"), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await talk.communicate()
        return json.loads(said)

    found = await probe.watch(talked)
    kept = (
        found["heard"][1] == "So much for two."
        and found["heard"][3] == "So much for four."
        and found["calls"] == 1
        and found["roles"] == _ROLES
    )
    return Ending(kept=kept, heard=" ".join(found["heard"]))
