"""The folder of the user's in which downloads are kept; every run shares it."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from caal_node.core.errors import ConfigError
from caal_node.core.paths import from_home

# Another run may be fetching the same gigabyte over a slow line; past this it counts as stuck.
LOCK_DEADLINE_S = 30 * 60


def root() -> Path:
    """Return `$CAAL_CACHE`, else the platform's cache folder. It need not exist yet."""
    if own := os.environ.get("CAAL_CACHE"):
        return from_home(own, "CAAL_CACHE")
    return user_cache_path("caal-node", appauthor=False)


def weights() -> Path:
    return root() / "weights"


def binaries() -> Path:
    return root() / "bin"


def make(folder: Path) -> Path:
    """Create `folder` and return it.

    Raises:
        ConfigError: The folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from error
    return folder


def disk_error(folder: Path, error: OSError) -> ConfigError:
    """Return what to tell the user about a write that failed."""
    reason = error.strerror or error
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ConfigError(
            f"{folder}: the disk is full ({reason}); "
            "make room, or set CAAL_CACHE to a folder on another disk"
        )
    return ConfigError(
        f"{folder}: cannot be written ({reason}); set CAAL_CACHE to a folder that can"
    )


@contextmanager
def locked(name: str, folder: Path, deadline_s: float = LOCK_DEADLINE_S) -> Generator[None]:
    """Hold `folder/name.lock`, so that runs side by side fetch a thing once.

    Raises:
        ConfigError: Another run held it past the deadline, or the file cannot be made.
    """
    path = make(folder) / f"{name}.lock"
    lock = FileLock(path, timeout=deadline_s)
    try:
        lock.acquire()
    except Timeout:
        raise ConfigError(
            f"{path}: held by another run for {deadline_s:.0f} s; stop that run and try again"
        ) from None
    except OSError as error:
        raise disk_error(folder, error) from error
    try:
        yield
    finally:
        lock.release()
