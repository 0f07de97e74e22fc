"""`.env` in the working directory: variables for the command line, below those that are set."""

from __future__ import annotations

import io
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from dotenv import dotenv_values

from caal_node.config.file import read_text

ENV_FILE: Final = Path(".env")


def read_env_file(env: MutableMapping[str, str], path: Path = ENV_FILE) -> tuple[str, ...]:
    """Set the variables of `path` that `env` has not, and return their names.

    A variable without a value is left out, as it counts as not set.

    Raises:
        ConfigError: The file cannot be read, or others may write it.
    """
    given = dotenv_values(stream=io.StringIO(read_text(path)), interpolate=False)
    new = {name: value for name, value in given.items() if value and name not in env}
    env.update(new)
    return tuple(new)
