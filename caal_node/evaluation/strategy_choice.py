"""Which way a session will ask its model for tools, and why."""

from __future__ import annotations

from dataclasses import dataclass

from caal_node.config.settings import Settings
from caal_node.evaluation.model_profiles import ModelProfileStore
from caal_node.evaluation.model_session import Asking
from caal_node.evaluation.store import ValidationStore
from caal_node.evaluation.validity import Validity, find_validity


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """`asking` None: a sample request settles it when a session begins."""

    asking: Asking | None
    why: str
    validity: Validity

    @property
    def words(self) -> str:
        """For people."""
        if self.asking is None:
            return "a sample request settles it when a session begins"
        return "its server's own tool calls" if self.asking == "native" else "the text protocol"

    @property
    def native_tools(self) -> bool | None:
        """As `LLM` takes it."""
        return None if self.asking is None else self.asking == "native"


async def choose(settings: Settings, store: ValidationStore | None = None) -> StrategyChoice:
    """What is configured, else what a finding that still holds says, else how an earlier session
    came to ask, else None."""
    validity = await find_validity(settings, store)
    if settings.tool_calls != "auto":
        return StrategyChoice(settings.tool_calls, "configured (CAAL_TOOL_CALLS)", validity)
    if settings.api == "completions":
        return StrategyChoice("text", "the completions API takes no tools", validity)
    if validity.asking is not None:
        return StrategyChoice(validity.asking, validity.why, validity)
    standing = await ModelProfileStore(settings).recall()
    if standing is None:
        return StrategyChoice(None, validity.why, validity)
    return StrategyChoice(standing.asking, f"in an earlier session {standing.words}", validity)
