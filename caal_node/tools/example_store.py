"""A file of examples that a model once made for tools whose authors wrote none.

    {"<digest of the tool>": {"tool": "get_time", "examples": [{"say": ..., "arguments": {}}]}}

The file is in the user's state folder, as JSON that a person may edit. A tool is identified by a
digest of what a model reads of it, so one that has changed is no longer given its old examples.
Examples are never made while somebody waits: `caal-node tools --make-examples` makes them once, for
every later process and room, whose prompts then all begin alike.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from caal_node.core.tool_spec import EXAMPLES_MAX, Example, ToolSpec
from caal_node.tools.argument_check import fits
from mcp_bridge.core.files import replace_file

logger = logging.getLogger("caal_node.tools")

FILE_NAME: Final = "examples.json"
MAX_BYTES: Final = 4 * 1024 * 1024
"""Enough for thousands of tools. A larger file was not written here."""


class _StoredExample(BaseModel):
    say: str = Field(min_length=1, max_length=500)
    arguments: dict[str, JsonValue] = {}


class _StoredTool(BaseModel):
    tool: str
    examples: list[_StoredExample] = Field(max_length=20)


_File: Final = TypeAdapter(dict[str, _StoredTool])


def digest(spec: ToolSpec) -> str:
    """Return a digest of what a model reads of the tool: a change makes its examples stale."""
    read = [spec.wanted, spec.description, spec.parameters]
    return hashlib.sha256(json.dumps(read, sort_keys=True, default=str).encode()).hexdigest()[:32]


class ExampleStore:
    """The file at `path`, read by the constructor. It blocks: use it in threads only."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._tools = _read(path)

    def get(self, spec: ToolSpec) -> tuple[Example, ...]:
        """Return the examples of the tool as it is now; those that do not fit it are left out."""
        if (stored := self._tools.get(digest(spec))) is None:
            return ()
        rows = (Example(row.say, row.arguments) for row in stored.examples[:EXAMPLES_MAX])
        return _fitting(rows, spec)

    def add(self, made: Mapping[str, tuple[ToolSpec, tuple[Example, ...]]]) -> None:
        """Add the examples of each tool in `made` (by any key), and replace the file in one step.

        Raises:
            OSError: it cannot be written.
        """
        for spec, examples in made.values():
            rows = [_StoredExample(say=e.utterance, arguments=dict(e.arguments)) for e in examples]
            self._tools[digest(spec)] = _StoredTool(tool=spec.wanted, examples=rows)
        content: Any = _File.dump_python(self._tools, mode="json")
        text = json.dumps(content, ensure_ascii=False, indent=1)
        replace_file(self.path, text.encode())


def with_examples(specs: Iterable[ToolSpec], path: Path) -> list[ToolSpec]:
    """Return the tools, each with its author's examples, or else with those in the file at `path`.

    An author's example that does not fit the tool's schema is left out: it would teach a call that
    is refused.
    """
    store = ExampleStore(path)
    complete: list[ToolSpec] = []
    for spec in specs:
        examples = _fitting(spec.examples, spec)
        if len(examples) < len(spec.examples):
            left_out = len(spec.examples) - len(examples)
            logger.warning("%s: %d examples do not fit its schema", spec.wanted, left_out)
        complete.append(replace(spec, examples=examples or store.get(spec)))
    return complete


def _fitting(examples: Iterable[Example], spec: ToolSpec) -> tuple[Example, ...]:
    return tuple(e for e in examples if fits(spec.parameters, e.arguments))


def _read(path: Path) -> dict[str, _StoredTool]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError("it is too large")
        return _File.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, ValidationError) as error:
        # A session works without examples, so a file that cannot be read must not stop it.
        logger.warning(
            "%s is left unread (%s); mend it, or delete it and run: "
            "caal-node tools --make-examples",
            *(path, type(error).__name__),
        )
        return {}
