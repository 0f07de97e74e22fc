"""Where settings are written: the environment and `caal.toml`, with the place of each value.

A value is kept with the words that lead a person back to it, so that a wrong one can be reported
as `caal.toml, line 3, num_ctx` or `CAAL_NUM_CTX`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from caal_node.core.errors import ConfigError

MAX_FILE_BYTES: Final = 1 << 20
"""A settings file with examples for a few hundred tools is a tenth of this."""
PREFIX: Final = "CAAL_"
_OTHERS: Final = ("ollama_", "n8n_", "livekit_")
"""Settings that other programs read as well keep the names those programs gave them."""


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """A value as it was written, and where. `base`: the folder a relative path starts from."""

    value: Any
    where: str
    base: Path
    inside: Mapping[str, str] = field(default_factory=dict[str, str])
    """For a table: where each of its keys is."""


def variable(field: str) -> str:
    """`num_ctx` -> `CAAL_NUM_CTX`; `n8n_url` -> `N8N_URL`."""
    return field.upper() if field.startswith(_OTHERS) else PREFIX + field.upper()


def from_environment(env: Mapping[str, str], fields: Collection[str]) -> dict[str, GivenSetting]:
    """The fields that `env` sets. An empty variable counts as not set, as compose files need."""
    return {
        name: GivenSetting(text, variable(name), Path())
        for name in fields
        if name != "examples" and (text := env.get(variable(name), "").strip())
    }


def unknown_variables(env: Mapping[str, str], fields: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each CAAL_ variable that is no setting, with the nearest name that is one (or "")."""
    known = [variable(name) for name in fields if name != "examples"]
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known:
            yield name, _nearest(name, known)


def from_file(path: Path, fields: Collection[str]) -> dict[str, GivenSetting]:
    """The fields that the TOML file at `path` sets; none when there is no such file.

    A key is a field (`num_ctx`) or its variable (`CAAL_NUM_CTX`).

    Raises:
        ConfigError: the file cannot be read, is no TOML, or has a key that is no setting.
    """
    text = _read(path)
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: {error or 'too deeply nested'}. Mend that line.") from error
    names = {name: name for name in fields} | {variable(name): name for name in fields}
    given: dict[str, GivenSetting] = {}
    for key, value in table.items():
        where = f"{path}, line {_line_of(text, key)}, {key}"
        if (setting := names.get(key)) is None:
            hint = _nearest(key, list(names))
            mend = f"Did you mean {hint}?" if hint else "Remove it."
            raise ConfigError(f"{where}: there is no such setting. {mend}")
        if setting in given:
            raise ConfigError(f"{where}: this is set twice. Remove one of the two.")
        inside = {
            name: f"{path}, line {_line_of(text, name, key)}, {key}"
            for name in (cast("dict[str, object]", value) if isinstance(value, dict) else ())
        }
        given[setting] = GivenSetting(value, where, path.parent, inside)
    return given


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_FILE_BYTES} bytes. Is it the right file?")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8. Save the file as UTF-8.") from error


def _line_of(text: str, key: str, parent: str = "") -> int:
    """The line that sets or opens a key. tomllib keeps no positions, so look for it."""
    name = rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')"
    path = rf"(?:{re.escape(parent)}[ \t]*\.[ \t]*)?{name}" if parent else name
    found = re.search(rf"^[ \t]*(?:{path}[ \t]*[=.]|\[+[ \t]*{path}[ \t]*[\].])", text, re.M)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _nearest(name: str, known: Collection[str]) -> str:
    return next(iter(difflib.get_close_matches(name, known, 1, 0.6)), "")
