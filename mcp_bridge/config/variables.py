"""Fills in `${NAME}` in the texts of an entry, and keeps what a person answered for one.

    ${NAME}, ${env:NAME}     the variable of the environment; the second is Cursor's and VS Code's
    ${NAME:-text}            with a fallback, where it is not set or empty
    ${input:ID}              what a person answered when they were asked for it (VS Code)
    $${                      the two characters `${` themselves

`spellings.py` has filled in `${workspaceFolder}` and the like before. Any other `${...}` is an
error: sent as it stands, it would be a wrong password, and nobody would know why. A `$` without a
brace behind it is a `$`.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError

from mcp_bridge.config.document import FileValue, as_object
from mcp_bridge.config.entry_model import InputEntry
from mcp_bridge.core.files import read_capped, replace_file
from mcp_bridge.core.sanitize import looks_secret

TEXT_KEYS: Final = ("command", "args", "env", "env_file", "cwd", "url", "headers", "token")
"""The keys of an entry whose texts may hold variables."""

_ESCAPE: Final = "$${"
_INPUT: Final = re.compile(r"\$\{input:([^}$]+)\}")
_FORM: Final = re.compile(
    r"\$\$\{"
    r"|\$\{(?P<written>(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*))"
    r"(?::-(?P<fallback>(?:[^}$]|\$(?!\{))*))?\}"
    r"|\$\{input:(?P<input>[^}$]+)\}"
    r"|\$\{(?P<kind>[A-Za-z]{1,20}:)?(?P<closed>[^}]*\})?"
)
"""This matches the escape, a variable, an input, or anything else that begins like one. A fallback
holds no variable."""


def inputs_in(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Gives the ids of the inputs that an entry refers to."""
    found: list[str] = []
    for key in TEXT_KEYS:
        value = entry.get(key)
        held = [value, *as_object(value).values()]
        if isinstance(value, list):
            held = cast("list[Any]", value)
        found += [name for text in held if isinstance(text, str) for name in _INPUT.findall(text)]
    return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class VariableExpander:
    """Fills in one server's variables, and remembers what it filled in."""

    environ: Mapping[str, str]
    inputs: Mapping[str, InputEntry] = field(default_factory=dict[str, InputEntry])
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What a person has answered, by the input's id."""
    secrets: list[str] = field(default_factory=list[str])
    """Every value that was filled in: messages can do without them."""
    sealed: list[str] = field(default_factory=list[str])
    """Those of them that look like keys."""

    def expand(self, text: FileValue) -> str:
        """Gives a text of the file with its variables filled in.

        Raises: ConfigError, where a variable is not set, or a `${` means nothing here.
        """
        return _FORM.sub(lambda form: self._value(form, text), text.value)

    def _value(self, form: re.Match[str], text: FileValue) -> str:
        if form[0] == _ESCAPE:
            return "${"
        if form["input"] is not None:
            return self._input(form["input"], text)
        name = form["name"]
        if name is None:
            # What stands in the braces may be half of a password: it is not repeated.
            shown = f"${{{form['kind'] or ''}...{'}' if form['closed'] else ''}"
            text.refuse(
                f'"{shown}" means nothing here; write ${{NAME}} for a variable of the '
                'environment, or $${ for the two characters "${"'
            )
        found = self.environ.get(name) or form["fallback"]
        if found is None:
            written = form["written"]
            text.refuse(f"${{{written}}} is not set; set it, or write ${{{written}:-fallback}}")
        self.secrets.append(found)
        if looks_secret(name, found):
            self.sealed.append(found)
        return found

    def _input(self, name: str, text: FileValue) -> str:
        asked = self.inputs.get(name)
        found = self.answers.get(name) or (asked.default if asked else None)
        if not found:
            what = (asked.description if asked else "") or name
            text.refuse(
                f"waits for an answer to {what[:80]!r}; run: caal-node mcp inputs, or write "
                f"${{NAME}} in place of ${{input:{name}}} for a variable of the environment"
            )
        self.secrets.append(found)
        if asked is None or asked.password or looks_secret(name, found):
            self.sealed.append(found)
        return found


# What a person answered for `${input:ID}`, kept for good.

logger = logging.getLogger(__name__)

_MAX_BYTES: Final = 1024 * 1024
_ANSWERS: Final = TypeAdapter(dict[str, dict[str, str]])


class InputAnswers:
    """Answers by the file that asks and the id that it asks by, in one file for its user alone.

    It uses the disk, so call it in a thread.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(path)

    def of(self, file: str | os.PathLike[str]) -> Mapping[str, str]:
        """Gives the answers for one file of servers; none where they cannot be read."""
        try:
            return self._read().get(_key(file), {})
        except (OSError, ValidationError, ValueError):
            logger.warning("the answers in %s cannot be read; give them again", self.path)
            return {}

    def keep(self, file: str | os.PathLike[str], answers: Mapping[str, str]) -> None:
        """Adds answers to those of one file. Raises: OSError, where they cannot be written.

        A file that cannot be read as one of ours is set aside, for a person to look at.
        """
        try:
            kept = self._read()
        except ValueError:
            self.path.replace(self.path.with_suffix(".damaged"))
            kept = {}
        kept[_key(file)] = {**kept.get(_key(file), {}), **answers}
        replace_file(self.path, json.dumps(kept, indent=1).encode())

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            return _ANSWERS.validate_json(read_capped(self.path, _MAX_BYTES))
        except FileNotFoundError:
            return {}


def _key(file: str | os.PathLike[str]) -> str:
    return str(Path(file).resolve())
