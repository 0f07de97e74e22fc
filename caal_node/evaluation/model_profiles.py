"""What sessions found out about each model, kept for the next one, which need not find out again.

A file a model, in the user's folder for state. It holds for the weights and the server it was found
with, and for `KEPT_DAYS`; `caal-node validate` goes before it. What cannot be read or written is
logged, and found out anew: a session must begin without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from caal_node.config.settings import Settings
from caal_node.core import paths
from caal_node.core.errors import ConfigError, ModelError
from caal_node.evaluation.model_identity import identify
from caal_node.evaluation.model_session import Asking

logger = logging.getLogger("caal_node.evaluation")

KEPT_DAYS: Final = 30
"""Then it is found out anew: what failed may have been the server's bad day."""
KEPT_FILES: Final = 50
WHY_CHARS: Final = 500
HEADS: Final = 20
"""Kept of one model: its agents' tables of tools, as they change."""
MAX_BYTES: Final = 8192
"""Of one file; we write some 1,000."""
IDENTIFY_S: Final = 3.0


class ModelProfile(BaseModel):
    """How a model was asked, why so, and what else was seen of it."""

    asking: Asking | None = None
    why: str = Field(default="", max_length=WHY_CHARS)
    at: datetime
    thinks_aloud: bool = False
    """Its replies begin in thinking that the prompt has opened."""
    bounds: dict[str, float] = Field(default_factory=dict[str, float], max_length=HEADS)
    """A prompt head's digest -> its bound; the newest last."""

    @property
    def words(self) -> str:
        return f"{self.why} (since {self.at:%Y-%m-%d})"


class ModelProfileStore:
    """Of the model of `settings`."""

    def __init__(self, settings: Settings, folder: Path | None = None) -> None:
        self._settings: Final = settings
        self._folder: Final = folder or paths.state_folder() / "standings"

    async def recall(self) -> ModelProfile | None:
        """None: nothing is known of how it is asked, or it no longer holds."""
        _, found = await self._found()
        return found if found and found.asking else None

    async def keep(self, asking: Asking, why: str) -> None:
        if self._settings.tool_calls != "auto":
            return  # somebody wants it so; that says nothing of the model
        path, found = await self._found(make=True)
        if path is not None:
            changed = {"asking": asking, "why": why[:WHY_CHARS], "at": _now()}
            await _keep(path, (found or ModelProfile(at=_now())).model_copy(update=changed))

    async def thinks_aloud(self) -> bool:
        _, found = await self._found()
        return found is not None and found.thinks_aloud

    async def keep_thinking(self, *, aloud: bool) -> None:
        path, found = await self._found(make=True)
        if path is not None:
            found = found or ModelProfile(at=_now())
            await _keep(path, found.model_copy(update={"thinks_aloud": aloud}))

    async def bound(self, head: str) -> float | None:
        _, found = await self._found()
        return found.bounds.get(head) if found else None

    async def keep_bound(self, head: str, bound: float) -> None:
        path, found = await self._found(make=True)
        if path is None:
            return
        found = found or ModelProfile(at=_now())
        others = [(key, value) for key, value in found.bounds.items() if key != head]
        newest = dict([*others, (head, bound)][-HEADS:])
        await _keep(path, found.model_copy(update={"bounds": newest}))

    async def _found(self, *, make: bool = False) -> tuple[Path | None, ModelProfile | None]:
        """The file, where the server says which model it has, and what still holds of it."""
        if not make and not await asyncio.to_thread(self._folder.is_dir):
            return None, None  # the server need not be asked who it is
        path = await self._file()
        found = path and await asyncio.to_thread(_read, path)
        if not found or _now() - found.at > timedelta(days=KEPT_DAYS):
            return path, None
        return path, found

    async def _file(self) -> Path | None:
        settings = self._settings
        try:
            async with asyncio.timeout(IDENTIFY_S):
                found = await identify(settings)
        except (ModelError, ConfigError, TimeoutError) as error:
            logger.debug("%s: not identified: %s", settings.model, type(error).__name__)
            return None
        key = "\0".join((settings.api, settings.model, found.server, found.version, found.digest))
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _now() -> datetime:
    return datetime.now(UTC)


async def _keep(path: Path, standing: ModelProfile) -> None:
    await asyncio.to_thread(_write, path, standing)


def _read(path: Path) -> ModelProfile | None:
    try:
        with path.open("rb") as file:
            return ModelProfile.model_validate_json(file.read(MAX_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        logger.warning("%s: cannot be read (%s); found out anew", path, type(error).__name__)
        return None


def _write(path: Path, standing: ModelProfile) -> None:
    # A name of its own: two rooms may write at once, and the last to finish is as good as any.
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(standing.model_dump_json())
        draft.replace(path)
        files = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for old in files[:-KEPT_FILES]:
            old.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("%s: cannot be written (%s)", path, error.strerror)
        with contextlib.suppress(OSError):
            draft.unlink()
