"""Asks a model, the agent's or another, whether a call that LiveKit runs is what the person wants,
and whether what a turn's calls have found answers what they asked.

Another model's connection is made for one look and closed behind it, so that nothing is left open;
its server keeps the model loaded.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, cast

from livekit.agents import llm

from caal_node.config.settings import Settings
from caal_node.core.errors import CaalError
from caal_node.core.items import Item
from caal_node.core.model_ref import parse_reference
from caal_node.grounding.ledger import Ledger
from caal_node.models.backends.base import BackendRequest, Chunk
from caal_node.models.chat_context import call_confidence, to_items
from caal_node.models.llm import LLM
from caal_node.models.model_settings import backend_of
from caal_node.models.result_look import found_in, result_look_request
from caal_node.models.second_look import ProposedCall, read_second_look, second_look_request
from caal_node.tools.call_middleware import ToolCallRequest
from caal_node.tools.middleware.second_look import DOUBT_BELOW, LOOK_S
from caal_node.tools.read_back import asked_for

logger = logging.getLogger("caal_node.tools")

SAME_MODEL: Final = "same"
"""The word in place of a model's name that stands for the agent's own."""
ITEMS_MAX: Final = 40
"""Items at the end of the history that are looked through for the last things said."""


class SecondOpinion:
    """Looks at calls for `SecondLook`.

    `reference` returns the model that is asked, written as a fallback's; `SAME_MODEL` asks the
    agent's own, and "" none, so that the call's own confidence decides.
    """

    def __init__(self, settings: Settings, reference: Callable[[], str]) -> None:
        self._settings: Final = settings
        self._reference: Final = reference

    async def __call__(self, call: ToolCallRequest) -> float | None:
        """Return how likely the call is right; None where its model cannot be asked.

        Raises:
            CaalError: the model's server failed, or its address cannot be used.
        """
        if call.context is None:
            return None
        reference = self._reference()
        if not reference:
            return call_confidence(call.context.function_call)
        session = call.context.session
        talk = to_items(llm.ChatContext(session.history.items[-ITEMS_MAX:]))
        spec = call.entry.spec
        given = asked_for(spec, call.arguments)  # Nobody has asked for a default.
        judged = ProposedCall(call.entry.exposed, spec.description, given)
        request = second_look_request(talk, judged)
        model = cast("object", session.current_agent.llm or session.llm)
        return await _asked(self._settings, reference, request, model)


class ResultOpinion:
    """Looks at what the calls of a turn have found, before the model answers with it.

    Args:
        settings: Those by which another model is reached.
        reference: It returns the model that is asked, as for `SecondOpinion`; "" asks none.
        own_model: It returns the agent's own model.
        look_s: Seconds that a look may take.
    """

    def __init__(
        self,
        settings: Settings,
        reference: Callable[[], str],
        own_model: Callable[[], object],
        *,
        look_s: float = LOOK_S,
    ) -> None:
        self._settings: Final = settings
        self._reference: Final = reference
        self._own_model: Final = own_model
        self._look_s: Final = look_s

    async def doubts(self, talk: Sequence[Item], ledger: Ledger) -> bool:
        """Say whether what was found does not answer the newest words of `talk`.

        One request is sent at most. Where it fails or takes too long, there is no doubt.
        """
        if not (reference := self._reference()) or not (found := found_in(ledger)):
            return False
        request = result_look_request(talk, found)
        try:
            async with asyncio.timeout(self._look_s):
                judged = await _asked(self._settings, reference, request, self._own_model())
        except TimeoutError:
            why = f"nothing within {self._look_s:g} s"
        except CaalError as error:
            why = str(error)
        except Exception as error:  # a look is an extra, and no answer may end with it
            why = type(error).__name__
        else:
            if judged is not None:
                logger.info("what was found answers what was asked: %.2f", judged)
            return judged is not None and judged < DOUBT_BELOW
        logger.warning("what was found was not looked at a second time: %s", why)
        return False


async def _asked(
    settings: Settings, reference: str, request: BackendRequest, own_model: object
) -> float | None:
    """Return what the model of `reference` says; None where it cannot be asked."""
    if reference == SAME_MODEL:
        return await _read(own_model.ask_beside(request)) if isinstance(own_model, LLM) else None
    backend = backend_of(settings.with_model(parse_reference(reference)), "second_look_model", {})
    try:
        return await _read(backend.ask(request))
    finally:
        await backend.aclose()


async def _read(chunks: AsyncGenerator[Chunk]) -> float | None:
    async with aclosing(chunks) as reply:
        return await read_second_look(reply)
