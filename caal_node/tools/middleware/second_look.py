"""A second look at a call before it runs: where it is in doubt, the person is asked.

    agent.middleware.insert(0, SecondLook(lambda call: "my rule", judge))

It refuses nothing itself, and lets nothing run that another rule refuses: it only notes a doubt,
for which a `Confirmation` behind it asks. A look that fails or takes too long is no doubt.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final, TypeAlias

from caal_node.core.errors import CaalError
from caal_node.models.chat_context import call_confidence
from caal_node.tools.call_middleware import CallMiddleware, Preview, Proceed, ToolCallRequest
from caal_node.tools.read_back import read_back

logger = logging.getLogger("caal_node.tools")

LOOK_S: Final = 6.0
"""Seconds that a look may take. A person who waits longer for a lamp has given up on it."""
DOUBT_BELOW: Final = 0.5
"""The probability of a yes below which the person is asked."""
SURE_FROM: Final = 0.85
"""The call's own confidence from which it is not looked at a second time. Of 50 measured calls of
two models that are so sure, two were wrong."""

Look: TypeAlias = Callable[[ToolCallRequest], Awaitable[float | None]]
"""It returns how likely a call is what the person asked for; None where nothing came of it."""


class SecondLook(CallMiddleware):
    """Has a call judged once more, and notes a doubt.

    Args:
        covers: It returns the rule by which a call is looked at; "" where it is not.
        look: Whom it asks.
        look_s: Seconds that it may take.
        sure_from: The call's own confidence from which nobody is asked.
    """

    name: ClassVar[str] = "second_look"

    def __init__(
        self,
        covers: Callable[[ToolCallRequest], str],
        look: Look,
        *,
        look_s: float = LOOK_S,
        sure_from: float = SURE_FROM,
    ) -> None:
        self._covers: Final = covers
        self._look: Final = look
        self._look_s: Final = look_s
        self._sure_from: Final = sure_from

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        if call.context is None or call.caller.origin == "api" or not (line := self._covers(call)):
            return await proceed()
        own = call_confidence(call.context.function_call)
        if own is not None and own >= self._sure_from:
            call.note(self.name, "allowed", f"{line}; sure already: {own:.2f}", began)
            return await proceed()
        judged = await self._judged(call)
        if judged is None:
            call.note(self.name, "allowed", f"{line}; it could not be looked at", began)
        else:
            verdict = "doubted" if judged < DOUBT_BELOW else "allowed"
            call.note(self.name, verdict, f"{line}; a second look: {judged:.2f}", began)
        return await proceed()

    def preview(self, call: ToolCallRequest) -> Preview:
        if not (line := self._covers(call)):
            return Preview("allowed", "no second look")
        asked = read_back(call.entry.spec, call.arguments, call.redact)
        return Preview("allowed", f"{line}; a second look, and where in doubt a yes", asked)

    async def _judged(self, call: ToolCallRequest) -> float | None:
        """Return what the look says; None where it fails or takes too long."""
        try:
            async with asyncio.timeout(self._look_s):
                return await self._look(call)
        except TimeoutError:
            why = f"nothing within {self._look_s:g} s"
        except CaalError as error:
            why = str(error)
        except Exception as error:  # a look is an extra, and no call may end with it
            why = type(error).__name__
        logger.warning("%s was not looked at a second time: %s", call.entry.exposed, why)
        return None


def doubted(call: ToolCallRequest) -> str:
    """Return the line of the doubt for which a call needs a yes; "" where there is none."""
    return next((each.line for each in call.decisions if each.verdict == "doubted"), "")
