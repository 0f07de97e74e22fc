"""What llama.cpp's server has beside OpenAI's API: its properties, and a slot for each room.

A slot keeps one prompt. A request that names none (`id_slot`) gets the slot whose prompt begins
most like its own. Rooms of one agent begin alike, so all of them get the same one, and each turn
reads its whole conversation again; with a slot of its own a room reads what is new. Whether that
is so depends on how the server was started: one with a unified KV cache empties every idle slot as
soon as another is asked, and a request that names an emptied slot reads its whole prompt (measured
on four rooms: 12 times the tokens of naming none). So it is tried first, with prompts of a token.

A state that a slot loses goes to the server's own memory (`--cache-ram`), where requests for other
slots find it, but not requests for an empty one: `RoomSlot` fills its slot with that one token, and
then the first prompt there finds the beginning that another room has had read.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

from filelock import FileLock, Timeout
from pydantic import BaseModel, TypeAdapter, ValidationError

from caal_node.core.errors import ConfigError, ModelError
from caal_node.core.paths import state_folder
from caal_node.models.backends.tool_calls import OR_NONE, Count, first_of

logger = logging.getLogger("caal_node.models")

SLOTS_READ: Final = 256
"""Slots of a server that are looked at; each takes memory for a context of its own."""
_DIGEST_CHARS: Final = 16
_FILLING: Final = {"prompt": ".", "n_predict": 1, "cache_prompt": True}
"""A prompt of one token, which begins like no conversation's."""


class _GenerationSettings(BaseModel):
    n_ctx: int | None = None


class _TemplateCapabilities(BaseModel):
    supports_tools: bool | None = None


class LlamaProps(BaseModel):
    """llama.cpp's `GET /props`."""

    build_info: Annotated[str | None, OR_NONE] = None
    model_path: Annotated[str | None, OR_NONE] = None
    default_generation_settings: _GenerationSettings = _GenerationSettings()
    chat_template: str = ""
    chat_template_caps: _TemplateCapabilities = _TemplateCapabilities()


class SlotState(BaseModel):
    """One entry of llama.cpp's `GET /slots`."""

    id: int
    is_processing: bool = False
    n_prompt_tokens: Count = None
    """Tokens that it keeps. A slot that was never asked tells none, nor do older builds."""

    @property
    def keeps_some(self) -> bool:
        return bool(self.n_prompt_tokens)


_SLOTS: Final = TypeAdapter(Annotated[list[SlotState], first_of(SLOTS_READ)])


class Fetcher(Protocol):
    """Asks one server small questions, as `HttpTransport` does."""

    address: str

    async def fetch(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes: ...


@dataclass(slots=True)
class SlotLease:
    """A slot that is this room's for as long as its lock is held, by whichever process."""

    number: int
    lock: FileLock
    """It is not held where every slot was taken: then the slot is shared with another room."""

    def note_use(self) -> None:
        """Note that the slot is used now, for rooms that find every slot taken."""
        try:
            os.utime(self.lock.lock_file)
        except OSError:
            logger.debug("slot %d: its use is not noted", self.number)

    def release(self) -> None:
        self.lock.release()


def lease_slot(folder: Path, numbers: Sequence[int]) -> SlotLease:
    """Take the first of `numbers` that no room has; where rooms have all, the one that was used
    least recently. `folder` has a lock for each, and is made. It blocks, so it belongs in a thread.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    locks = {
        # It may be released in another thread than the one that has acquired it.
        number: FileLock(folder / f"{number}.lock", timeout=0, thread_local=False)
        for number in numbers
    }
    for number, lock in locks.items():
        try:
            lock.acquire()
        except Timeout:
            continue
        lease = SlotLease(number, lock)
        lease.note_use()
        return lease
    oldest = min(numbers, key=lambda number: Path(locks[number].lock_file).stat().st_mtime_ns)
    return SlotLease(oldest, locks[oldest])


class RoomSlot:
    """The slot of one room on one server; none until `take` has found one."""

    def __init__(self, server: Fetcher) -> None:
        self._server: Final = server
        self._lease: SlotLease | None = None

    def use(self) -> dict[str, int]:
        """Return the fields by which a request of the room goes to its slot, if it has one."""
        if self._lease is None:
            return {}
        self._lease.note_use()
        return {"id_slot": self._lease.number}

    async def take(self) -> None:
        """Have the room's requests go to one slot, if the server has several and keeps them.

        Nothing is raised: without a slot of its own a room reads more, and that is all.
        """
        if self._lease is not None:
            return
        try:
            lease = await self._kept_lease()
        except (ModelError, ValidationError, ConfigError, OSError) as error:
            logger.debug("%s: no slot is asked for: %s", self._server.address, type(error).__name__)
            return
        if self._lease is None:
            self._lease = lease
        elif lease is not None:
            lease.release()

    def release(self) -> None:
        """Leave the slot to other rooms."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    async def _kept_lease(self) -> SlotLease | None:
        slots = await self._slots()
        if len(slots) < 2:
            return None
        digest = hashlib.sha256(self._server.address.encode()).hexdigest()[:_DIGEST_CHARS]
        # An empty slot is nobody's, also of rooms on other machines.
        numbers = [slot.id for slot in sorted(slots, key=lambda slot: slot.keeps_some)]
        lease = await asyncio.to_thread(lease_slot, state_folder() / "slots" / digest, numbers)
        kept = False
        try:
            kept = await self._keeps_slots(lease.number, slots)
        finally:
            if not kept:
                lease.release()
        if kept:
            logger.info("slot %d of %s is this room's", lease.number, self._server.address)
            return lease
        logger.info("%s empties its slots; start it with --no-kv-unified", self._server.address)
        return None

    async def _keeps_slots(self, own: int, slots: Sequence[SlotState]) -> bool:
        """Fill the slot `own`, and return whether the others still keep what they kept."""
        others = [slot for slot in slots if slot.id != own and not slot.is_processing]
        full = {slot.id for slot in others if slot.keeps_some}
        if not full:
            if not others:
                return False  # All are busy, so nothing can be seen.
            # The last one, as rooms that come take the first.
            full = {others[-1].id}
            await self._fill(others[-1].id)
        await self._fill(own)
        after = {slot.id: slot for slot in await self._slots()}
        return all(each in after and _is_kept(after[each]) for each in full)

    async def _slots(self) -> list[SlotState]:
        return _SLOTS.validate_json(await self._server.fetch("GET", "/../slots"))

    async def _fill(self, number: int) -> None:
        await self._server.fetch("POST", "/../completion", {**_FILLING, "id_slot": number})


def _is_kept(slot: SlotState) -> bool:
    return slot.keeps_some or slot.is_processing
