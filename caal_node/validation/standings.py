"""How each model was asked last, kept between sessions: the next one then need not find out again.

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

from caal_node.errors import ConfigError, ModelError
from caal_node.settings import Settings
from caal_node.validation import place
from caal_node.validation.asking import Asking
from caal_node.validation.identity import identify

logger = logging.getLogger("caal_node.validation")

KEPT_DAYS: Final = 30
"""Then it is found out anew: what failed may have been the server's bad day."""
KEPT_FILES: Final = 50
MAX_BYTES: Final = 4096
"""Of one file; we write some 200."""
IDENTIFY_S: Final = 3.0


class Standing(BaseModel):
    """How a model was asked, and why so."""

    asking: Asking
    why: str = Field(max_length=500)
    at: datetime

    @property
    def words(self) -> str:
        return f"{self.why} (since {self.at:%Y-%m-%d})"


class Standings:
    """Of the model of `settings`."""

    def __init__(self, settings: Settings, folder: Path | None = None) -> None:
        self._settings: Final = settings
        self._folder: Final = folder or place.root() / "standings"

    async def recall(self) -> Standing | None:
        """None: nothing is known, or it no longer holds."""
        if not await asyncio.to_thread(self._folder.is_dir):
            return None  # the server need not be asked who it is
        path = await self._file()
        found = path and await asyncio.to_thread(_read, path)
        if not found or datetime.now(UTC) - found.at > timedelta(days=KEPT_DAYS):
            return None
        return found

    async def keep(self, asking: Asking, why: str) -> None:
        path = await self._file()
        if path is None:
            return
        standing = Standing(asking=asking, why=why[:500], at=datetime.now(UTC))
        await asyncio.to_thread(_write, path, standing)

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


def _read(path: Path) -> Standing | None:
    try:
        with path.open("rb") as file:
            return Standing.model_validate_json(file.read(MAX_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        logger.warning("%s: cannot be read (%s); found out anew", path, type(error).__name__)
        return None


def _write(path: Path, standing: Standing) -> None:
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
