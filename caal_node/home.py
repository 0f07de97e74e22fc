"""`~` and `~name` at the beginning of a path in the configuration."""

from __future__ import annotations

from pathlib import Path

from caal_node.errors import ConfigError


def from_home(path: str, where: str) -> Path:
    """`path` with the home folder in place of `~`. where: the variable or key that it stands in.

    Raises:
        ConfigError: nobody has that name.
    """
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):  # ValueError: a NUL in the name
        head = Path(path).parts[0]
        raise ConfigError(
            f"{where}: {head!r} is nobody's home folder; write the whole path."
        ) from None
