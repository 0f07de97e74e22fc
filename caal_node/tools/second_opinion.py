"""Asks a model whether a call that LiveKit runs is what the person wants: the agent's, or another.

Another model's connection is made for one look and closed behind it, so that nothing is left open;
its server keeps the model loaded.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from livekit.agents import llm

from caal_node.config.settings import Settings
from caal_node.core.model_ref import parse_reference
from caal_node.models.backends.base import BackendRequest, Chunk
from caal_node.models.chat_context import call_confidence, to_items
from caal_node.models.llm import LLM
from caal_node.models.model_settings import backend_of
from caal_node.models.second_look import ProposedCall, read_second_look, second_look_request
from caal_node.tools.call_middleware import ToolCallRequest

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
        judged = ProposedCall(call.entry.exposed, spec.description, call.arguments)
        request = second_look_request(talk, judged)
        if reference != SAME_MODEL:
            return await self._by_another(reference, request)
        model = session.current_agent.llm or session.llm
        if not isinstance(model, LLM):
            return None
        return await _read(model.ask_beside(request))

    async def _by_another(self, reference: str, request: BackendRequest) -> float | None:
        settings = self._settings.with_model(parse_reference(reference))
        backend = backend_of(settings, "second_look_model", {})
        try:
            return await _read(backend.ask(request))
        finally:
            await backend.aclose()


async def _read(chunks: AsyncGenerator[Chunk]) -> float | None:
    async with aclosing(chunks) as reply:
        return await read_second_look(reply)
