"""In which way a session will ask its model for tools, and what is known of the model before that.

A model was never tried, has passed or failed validation, or its finding is out of date.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Literal, TypeAlias

from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError, ModelError
from caal_node.evaluation.case import WAY_NAMES, Asking
from caal_node.evaluation.model_profiles import ModelProfiles, identify_in_time
from caal_node.evaluation.result import Identity, Thinking
from caal_node.evaluation.store import EvaluationStore, ValidationRecord
from caal_node.evaluation.suites import VERSION

logger = logging.getLogger("caal_node.evaluation")

ValidityState: TypeAlias = Literal["untried", "passed", "failed", "stale", "unreachable"]


@dataclass(frozen=True, slots=True)
class Validity:
    """What validation says of a model, with half a sentence for people on why.

    `unreachable` means that there is a finding, and nobody to ask whether it still holds.
    """

    state: ValidityState
    why: str
    asking: Asking | None = None
    """The way that was found to work best. None if no finding holds."""

    def unfit(self, *, only_validated: bool) -> str:
        """Return why a fallback of this validity is left out; "" if it is not."""
        if self.state == "failed" or (only_validated and self.state != "passed"):
            return f"{self.state}, {self.why}"
        return ""


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """The way in which a model is asked. None: a sample request settles it in the session."""

    asking: Asking | None
    why: str
    validity: Validity

    @property
    def words(self) -> str:
        """The way in words, for people."""
        if self.asking is None:
            return "a sample request settles it when a session begins"
        return WAY_NAMES[self.asking]

    @property
    def native_tools(self) -> bool | None:
        """The way as `LLM` takes it."""
        return None if self.asking is None else self.asking == "native"


async def choose(settings: Settings, store: EvaluationStore | None = None) -> StrategyChoice:
    """Return what is configured, else what a finding that still holds says, else how an earlier
    session came to ask, else None."""
    validity = await find_validity(settings, store)
    if settings.tool_calls != "auto":
        asking = "native" if settings.asks_natively else "text"
        return StrategyChoice(asking, "configured (CAAL_TOOL_CALLS)", validity)
    if settings.api == "completions":
        return StrategyChoice("text", "the completions API takes no tools", validity)
    if validity.asking is not None:
        return StrategyChoice(validity.asking, validity.why, validity)
    profile = await ModelProfiles(settings, store).recall()
    if profile is None:
        return StrategyChoice(None, validity.why, validity)
    why = f"in an earlier session {profile.why} (since {profile.at:%Y-%m-%d})"
    return StrategyChoice(profile.asking, why, validity)


async def find_validity(settings: Settings, store: EvaluationStore | None = None) -> Validity:
    """Return what the store says of the settings' model, held against its server as it is now.

    The server is asked only if there is a finding. Nothing is raised for a store that cannot be
    read: a session must begin without it.
    """
    try:
        store = store or EvaluationStore()
        records = await asyncio.to_thread(store.of, settings.api, settings.model)
    except ConfigError as error:
        logger.warning("%s", error)
        return Validity("untried", str(error))
    if not records:
        return Validity("untried", "never validated")
    try:
        identity = await identify_in_time(settings)
    except (ModelError, ConfigError) as error:
        return Validity("unreachable", str(error))
    return validity_of(records, identity, settings.model_address, settings.think)


def validity_of(
    records: list[ValidationRecord], identity: Identity, address: str, think: Thinking = False
) -> Validity:
    """Return the newest finding that holds for `identity` and its way of thinking, wherever it was
    made; else why none does.

    `records` are of one model, the newest first.
    """
    current = [
        record
        for record in records
        if record.identity == identity
        and record.suites_version == VERSION
        and record.think == think
    ]
    if current:
        found = current[0]
        said = f"{found.right} of {found.counted} right on {found.at[:10]}"
        state = "passed" if found.passed else "failed"
        return Validity(state, f"validated, {said}", found.asking)
    last = next((r for r in records if r.address == address), records[0])
    return Validity("stale", f"validated on {last.at[:10]}, but {_change(last, identity, think)}")


def _change(last: ValidationRecord, now: Identity, think: Thinking) -> str:
    if last.identity.server != now.server:
        return f"on {last.identity.server}, and this is {now.server}"
    if last.identity.digest != now.digest:
        return "the model has changed since"
    if last.identity.version != now.version:
        return f"with {now.server} {last.identity.version}, and this is {now.version}"
    if last.think != think and last.suites_version == VERSION:
        return "with another CAAL_THINK"
    return "by other checks than this version's"
