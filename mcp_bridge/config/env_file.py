"""The file that an entry takes further variables from, a NAME=value on each line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from dotenv import dotenv_values

from mcp_bridge.config.document import FileValue
from mcp_bridge.core.files import expand_home, open_regular, read_rest
from mcp_bridge.security import ownership

_MAX_BYTES: Final = 64 * 1024


def read_env_file(place: FileValue, written: str, folder: Path) -> dict[str, str]:
    """Reads the file that `place` names. A relative one is looked for in `folder`.

    Raises: ConfigError, where it cannot be read, or others may write it.
    """
    path = folder / expand_home(written)
    try:
        with open_regular(path) as opened:
            if (fault := ownership.fault(opened.fileno(), path)) is not None:
                place.refuse(fault)
            text = read_rest(opened, _MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        place.refuse(f"{path.name} cannot be read ({error.strerror}); mend its path or mode")
    except ValueError:
        place.refuse(f"{path.name} is over {_MAX_BYTES} bytes or no UTF-8; is it the right file?")
    found = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return {name: value for name, value in found.items() if value is not None}
