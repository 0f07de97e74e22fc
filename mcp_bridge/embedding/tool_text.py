"""The texts of a tool that are embedded: two, whose vectors are added up.

The short text has the words of the tool's name, its description and the names of its parameters;
the long one has the parameters' descriptions too. The short one says what a tool is for, and the
long one tells it from others like it; together they find more than either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from mcp_bridge.core.tools import ToolInfo

MAX_SHORT_CHARS: Final = 1_000
MAX_LONG_CHARS: Final = 700
"""These are some 200 and 150 word pieces, 0.1 s of one core each; what follows repeats itself."""
_DESCRIPTION_CHARS: Final = 120
"""The cap of one parameter's description."""
_WORD_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")


def tool_texts(tool: ToolInfo) -> tuple[str, ...]:
    """Return one or two texts. Tools with the same texts are one to the embedder."""
    declared: object = tool.input_schema.get("properties")
    properties: Mapping[str, object] = (
        cast("Mapping[str, object]", declared) if isinstance(declared, Mapping) else {}
    )
    utterances = (example.say for example in tool.examples)
    about = " ".join((f"{_words(tool.tool)}.", tool.description, *utterances))
    names = [_words(name) for name in properties]
    short = " ".join((about, *names))[:MAX_SHORT_CHARS].strip()
    described = list(_described_parameters(properties))
    if not described:
        return (short,)
    return short, " ".join((about, *described))[:MAX_LONG_CHARS].strip()


def _described_parameters(properties: Mapping[str, object]) -> Iterator[str]:
    for name, schema in properties.items():
        if isinstance(schema, Mapping):
            description = cast("Mapping[str, Any]", schema).get("description")
            if isinstance(description, str) and description.strip():
                yield f"{_words(name)}: {description[:_DESCRIPTION_CHARS]}"


def _words(name: str) -> str:
    return _WORD_BOUNDARY.sub(" ", name[:200]).strip()
