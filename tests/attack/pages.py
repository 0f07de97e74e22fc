"""Pages and other bodies in place of answers."""

from __future__ import annotations

from typing import Final

from tests.attack.harness import Ending, Probe, attack
from tests.conversation import FakeTier, conversation
from tests.stand_in_model import Call, StandInModel

PAGE: Final = "<a " * 10_000


@attack("pages", "a tool answers 30 kB of <a", deadline_s=4)
async def open_tags(probe: Probe) -> Ending:
    """Through a scripted tier; the attacks on n8n's own reader stand beside it."""

    async def page(*_: object) -> str:
        return PAGE

    script = [Call("get_weather", {"city": "Paris"})], ["That page says nothing."]
    async with (
        StandInModel(*script) as server,
        conversation(server, tier=FakeTier(answer=page)) as talk,
    ):
        heard = await probe.watch(lambda: talk.ask("How is the weather in Paris?"))
    return Ending(kept=heard == "That page says nothing.", heard=heard)
