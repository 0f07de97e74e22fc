"""What is known of a model before it is asked: never tried, passed, failed, or out of date."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError, ModelError
from caal_node.evaluation.model_identity import identify
from caal_node.evaluation.model_session import Asking
from caal_node.evaluation.result import Identity
from caal_node.evaluation.store import ValidationRecord, ValidationStore
from caal_node.evaluation.suites import VERSION

logger = logging.getLogger("caal_node.evaluation")

FIND_OUT_S: Final = 3.0
"""For all of it: a room that opens waits for this, where a server is there and does not answer."""

State: TypeAlias = Literal["untried", "passed", "failed", "stale", "unreachable"]


@dataclass(frozen=True, slots=True)
class Validity:
    """`why` is half a sentence for people. `unreachable`: there is a finding, and nobody to ask
    whether it still holds."""

    state: State
    why: str
    record: ValidationRecord | None = None

    def unfit(self, *, only_validated: bool) -> str:
        """Why a fallback of this validity is left out; "" where it is not."""
        if self.state == "failed" or (only_validated and self.state != "passed"):
            return f"{self.state}, {self.why}"
        return ""

    @property
    def asking(self) -> Asking | None:
        """The way that was found to work best; None where no finding holds."""
        holds = self.record is not None and self.state in ("passed", "failed")
        return self.record.asking if holds and self.record else None


async def find_validity(settings: Settings, store: ValidationStore | None = None) -> Validity:
    """What the store says of the settings' model, held against its server as it is now.

    The server is asked only where there is a finding. Nothing is raised for a store that cannot be
    read: a session must begin without it.
    """
    store = store or ValidationStore()
    try:
        records = await asyncio.to_thread(store.of, settings.api, settings.model)
    except ConfigError as error:
        logger.warning("%s", error)
        return Validity("untried", str(error))
    if not records:
        return Validity("untried", "never validated")
    try:
        async with asyncio.timeout(FIND_OUT_S):
            identity = await identify(settings)
    except (ModelError, ConfigError, TimeoutError) as error:
        why = str(error) or f"the server did not answer in {FIND_OUT_S:g} s"
        return Validity("unreachable", why, records[0])
    return validity_of(records, identity, settings.model_address)


def validity_of(records: list[ValidationRecord], identity: Identity, address: str) -> Validity:
    """The newest finding that holds for `identity`, wherever it was made; else why none does.

    `records` are of one model, the newest first.
    """
    current = [r for r in records if r.identity == identity and r.suites_version == VERSION]
    if current:
        found = current[0]
        said = f"{found.right} of {found.counted} right on {found.at[:10]}"
        return Validity("passed" if found.passed else "failed", f"validated, {said}", found)
    last = next((r for r in records if r.address == address), records[0])
    return Validity("stale", f"validated on {last.at[:10]}, but {_change(last, identity)}", last)


def _change(last: ValidationRecord, now: Identity) -> str:
    if last.identity.server != now.server:
        return f"on {last.identity.server}, and this is {now.server}"
    if last.identity.digest != now.digest:
        return "the model has changed since"
    if last.identity.version != now.version:
        return f"with {now.server} {last.identity.version}, and this is {now.version}"
    return "by other checks than this version's"
