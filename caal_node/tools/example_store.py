"""Examples that a model once made for tools whose authors wrote none: one file, kept for good.

    {"<digest of the tool>": {"tool": "get_time", "examples": [{"say": ..., "arguments": {}}]}}

It lies in the user's state folder, as JSON that a person may mend. A tool is known by the digest of
what a model reads of it, so one that has changed is no longer given its old examples. Nothing is
made while somebody waits: `caal-node tools --make-examples` does it, once, for every process and
room after it, whose prompts then all begin alike.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from caal_node.core.tool_examples import EXAMPLES_MAX
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.tools.argument_check import fits

logger = logging.getLogger("caal_node.tools")

FILE_NAME: Final = "examples.json"
MAX_BYTES: Final = 4 * 1024 * 1024
"""Thousands of tools. More is no file of ours."""


class _Row(BaseModel):
    say: str = Field(min_length=1, max_length=500)
    arguments: dict[str, JsonValue] = {}


class _Tool(BaseModel):
    tool: str
    examples: list[_Row] = Field(max_length=20)


_File: Final = TypeAdapter(dict[str, _Tool])


def digest(spec: ToolSpec) -> str:
    """Of what a model reads of the tool: a change makes its examples stale."""
    shown = [spec.wanted, spec.description, spec.parameters]
    return hashlib.sha256(json.dumps(shown, sort_keys=True, default=str).encode()).hexdigest()[:32]


class ExampleStore:
    """The file at `path`, read when this is made. Blocking: for threads and the command line."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._tools = _read(path)

    def of(self, spec: ToolSpec) -> tuple[Example, ...]:
        """Those of `spec` as it is now, less any that do not fit its schema."""
        if (kept := self._tools.get(digest(spec))) is None:
            return ()
        rows = (Example(row.say, row.arguments) for row in kept.examples[:EXAMPLES_MAX])
        return fitting(rows, spec)

    def keep(self, made: Mapping[str, tuple[ToolSpec, tuple[Example, ...]]]) -> None:
        """Add `made` (by any key) and write the file, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        for spec, examples in made.values():
            rows = [_Row(say=e.utterance, arguments=dict(e.arguments)) for e in examples]
            self._tools[digest(spec)] = _Tool(tool=spec.wanted, examples=rows)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(f".{os.getpid()}.tmp")
        written: Any = _File.dump_python(self._tools, mode="json")
        beside.write_text(json.dumps(written, ensure_ascii=False, indent=1), encoding="utf-8")
        beside.replace(self.path)


def fitting(examples: Iterable[Example], spec: ToolSpec) -> tuple[Example, ...]:
    """Those whose arguments fit the tool's schema: any other would teach a call that is refused."""
    return tuple(e for e in examples if fits(spec.parameters, e.arguments))


def with_made(specs: Iterable[ToolSpec], path: Path) -> list[ToolSpec]:
    """`specs`, those without examples given the ones that were made for them.

    Also checks what authors wrote: an example that does not fit its tool would teach a wrong call.
    """
    made = ExampleStore(path)
    done: list[ToolSpec] = []
    for spec in specs:
        kept = fitting(spec.examples, spec)
        if len(kept) < len(spec.examples):
            left_out = len(spec.examples) - len(kept)
            logger.warning("%s: %d examples do not fit its schema", spec.wanted, left_out)
        done.append(replace(spec, examples=kept or made.of(spec)))
    return done


def _read(path: Path) -> dict[str, _Tool]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError("it is too large")
        return _File.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, ValidationError) as error:
        # Examples help; a file that cannot be read must not keep anybody from speaking.
        logger.warning(
            "%s is left unread (%s); mend it, or delete it and run: "
            "caal-node tools --make-examples",
            *(path, type(error).__name__),
        )
        return {}
