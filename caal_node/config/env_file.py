"""`.env.local` and `.env` in the working directory: variables for the command line.

What is set already comes first, then `.env.local`, which LiveKit's tools write, then `.env`.
"""

from __future__ import annotations

import io
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from dotenv import dotenv_values

from caal_node.config.file import read_text

ENV_FILE: Final = Path(".env")
LOCAL_ENV_FILE: Final = Path(".env.local")


def read_env_files(env: MutableMapping[str, str]) -> dict[Path, tuple[str, ...]]:
    """Set the variables of both files that `env` has not, and return their names by file.

    Raises:
        ConfigError: A file cannot be read, or others may write it.
    """
    read = {path: read_env_file(env, path) for path in (LOCAL_ENV_FILE, ENV_FILE)}
    return {path: names for path, names in read.items() if names}


def read_env_file(env: MutableMapping[str, str], path: Path) -> tuple[str, ...]:
    """Set the variables of `path` that `env` has not, and return their names.

    A variable without a value is left out, as it counts as not set.

    Raises:
        ConfigError: The file cannot be read, or others may write it.
    """
    given = dotenv_values(stream=io.StringIO(read_text(path)), interpolate=False)
    new = {name: value for name, value in given.items() if value and name not in env}
    env.update(new)
    return tuple(new)
