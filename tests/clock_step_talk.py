"""A conversation whose machine has its clock set back by a day in between.

`python -m tests.clock_step_talk` prints what was said and what the model was sent, as JSON. It puts
itself in the place of the wall clock before LiveKit keeps that for its messages.
"""

from __future__ import annotations

import time

_wall = time.time
_behind_s = 0.0
time.time = lambda: _wall() - _behind_s

import asyncio  # noqa: E402
import json  # noqa: E402

from tests.conversation import conversation  # noqa: E402
from tests.stand_in_model import Asked, Call, Reply, StandInModel  # noqa: E402

DAY_S = 86_400.0


def answer(asked: Asked) -> Reply:
    last = asked.json["messages"][-1]
    if last["role"] == "user" and "weather" in last["content"]:
        return [Call("get_weather", {"city": "Paris"})]
    return [f"So much for {last['content']}."]


async def main() -> None:
    global _behind_s
    async with StandInModel(answer=answer) as server, conversation(server) as talk:
        heard = [await talk.ask("one")]
        _behind_s = DAY_S
        heard += [await talk.ask("two"), await talk.ask("weather"), await talk.ask("four")]
        roles = [message["role"] for message in server.chats[-1].json["messages"]]
        print(json.dumps({"heard": heard, "roles": roles, "calls": len(talk.tier.calls)}))


if __name__ == "__main__":
    asyncio.run(main())
