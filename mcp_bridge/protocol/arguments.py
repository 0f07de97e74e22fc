"""Whether the arguments of a call can be sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mcp_bridge.core.errors import BadArguments

MAX_ARGUMENT_BYTES: Final = 1024 * 1024
"""Of one call, as JSON. The SDK's own servers take up to 4 MiB; a model writes some 100 bytes."""


def check_arguments(name: str, arguments: Mapping[str, Any]) -> None:
    """What cannot be written would break the connection, and every other call with it.

    Raises: BadArguments.
    """
    try:
        written = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArguments(name, f"are not JSON ({type(error).__name__})") from None
    if len(written) > MAX_ARGUMENT_BYTES:
        raise BadArguments(name, f"are {len(written)} bytes; at most {MAX_ARGUMENT_BYTES} may be")
