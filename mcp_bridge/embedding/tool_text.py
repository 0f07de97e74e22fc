"""What of a tool is embedded: two texts, whose vectors are added up.

The short one is the words of its name, its description and its parameters' names; the long one has
the parameters' descriptions too. The short one says what a tool is for, the long one tells it from
others like it; together they find more than either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from mcp_bridge.core.tools import ToolInfo

MAX_SHORT_CHARS: Final = 1_000
MAX_LONG_CHARS: Final = 700
"""Some 200 and 150 word pieces: 0.1 s of one core each. What comes later says the same again."""
_ABOUT_CHARS: Final = 120
"""Of one parameter's description."""
_SEAM: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")


def tool_texts(tool: ToolInfo) -> tuple[str, ...]:
    """One or two texts. Tools with the same ones are one to the embedder."""
    found: object = tool.input_schema.get("properties")
    properties: Mapping[str, object] = (
        cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {}
    )
    said = (example.say for example in tool.examples)
    about = " ".join((f"{_words(tool.tool)}.", tool.description, *said))
    names = [_words(name) for name in properties]
    short = " ".join((about, *names))[:MAX_SHORT_CHARS].strip()
    told = list(_told(properties))
    return (short, " ".join((about, *told))[:MAX_LONG_CHARS].strip()) if told else (short,)


def _told(properties: Mapping[str, object]) -> Iterator[str]:
    for name, schema in properties.items():
        if isinstance(schema, Mapping):
            about = cast("Mapping[str, Any]", schema).get("description")
            if isinstance(about, str) and about.strip():
                yield f"{_words(name)}: {about[:_ABOUT_CHARS]}"


def _words(name: str) -> str:
    return _SEAM.sub(" ", name[:200]).strip()
