"""Options for an agent whose `__init__` does not take them, as LiveKit's own agents are written."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypedDict, Unpack


class AgentOptions(TypedDict, total=False):
    """Those of `CaalAgent`'s arguments that a command or a test gives; it says what they are."""

    settings: Any
    tiers: Any
    on_event: Any
    cue_sink: Any
    warm: bool


_GIVEN: Final[ContextVar[AgentOptions]] = ContextVar("caal_agent_options")


@contextmanager
def options_given(**options: Unpack[AgentOptions]) -> Generator[None]:
    """Have each agent that is made inside take `options`, unless its class gives them itself.

    with options_given(settings=plain_settings(), tiers={}):
        agent = MyAgent()
    """
    token = _GIVEN.set(options)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def given_options() -> AgentOptions:
    """Return the options that hold here."""
    return _GIVEN.get({})
