"""Reads settings from the environment and `caal.toml`, and explains a wrong one in one line.

Each value keeps its place in words, so that an error can name `caal.toml, line 3, num_ctx` or
`CAAL_NUM_CTX`. The command line also reads variables from `.env.local` and `.env`.
"""

from __future__ import annotations

import difflib
import io
import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from dotenv import dotenv_values
from pydantic import ValidationError

from caal_node.config.setting_tables import TABLE as TOOLSETS
from caal_node.config.setting_tables import (
    Cues,
    Fallbacks,
    ToolCalls,
    Trace,
    is_short,
    switched,
    toolset_tables,
)
from caal_node.core.addresses import without_userinfo
from caal_node.core.errors import ConfigError
from caal_node.policy.places import Places
from caal_node.policy.policy import Policy
from caal_node.policy.reader import TABLE, read_policy
from caal_node.redaction.secret_shapes import without_secrets

MAX_FILE_BYTES: Final = 1 << 20
"""A settings file with examples for a few hundred tools is a tenth of this."""
PREFIX: Final = "CAAL_"
_SHARED_PREFIXES: Final = ("ollama_", "n8n_", "livekit_")
"""Settings that other programs read too keep the names that those programs gave them."""
_OTHER_NAMES: Final = {
    "LIVEKIT_HOST": "LIVEKIT_URL",
    "N8N_API": "N8N_API_KEY",
    "N8N_API_URL": "N8N_URL",
    "N8N_BASE_URL": "N8N_URL",
    "N8N_HOST": "N8N_URL",
    "N8N_TOKEN": "N8N_API_KEY",
    "OLLAMA_BASE_URL": "OLLAMA_HOST",
    "OLLAMA_MODEL": "CAAL_MODEL",
    "OLLAMA_URL": "OLLAMA_HOST",
}
"""What other programs call a setting."""
_SHARED_LIKENESS: Final = 0.75
"""Likeness behind the family's name; below it the name is another program's own."""
FILE_ONLY: Final = frozenset({"examples", TABLE, TOOLSETS})
"""Tables, which no variable can hold."""

SHOWN_CHARS: Final = 60
"""Characters of a wrong value that the message quotes: enough to recognise it in a file."""
REMEDY_CHARS: Final = 240
"""Characters of what is to be written in place of a removed setting, which quotes its value."""
# What to write, by the beginning of the name of pydantic's error; the first that fits is taken.
_REMEDIES: Final = {
    "value_error": "{error}",
    "literal_error": "write {expected}",
    "int": "write a whole number",
    "float": "write a number",
    "bool": "write on or off",
    "less_than": "write at most {le}",
    "greater_than_equal": "write at least {ge}",
    "greater_than": "write more than {gt}",
    "string_too_short": "write something; it is empty",
    "string_too_long": "shorten it to {max_length} characters",
    "string": "write a text in quotes",
    "path": "write a file's path in quotes",
    "too_long": "keep at most {max_length}",
    "too_short": "write at least {min_length}",
    "tuple": "write a list of texts",
    "missing": "this is missing; write it",
    "extra_forbidden": "there is no such key; the keys are {keys}",
    "dict": "write a table",
    "mapping": "write a table",
    "invalid-json-value": "write a text, number, true, false, list or table",
    "model_type": 'write a table such as {{say = "..."}}',
    "union": "write a text or a number",
}


_TABLES: Final = {
    "examples": "say and arguments",
    "redaction": "personal, patterns, paths, local_models and secret_shapes",
    "tool_calls": ", ".join(ToolCalls.model_fields),
    "fallbacks": ", ".join(Fallbacks.model_fields),
    "cues": ", ".join(Cues.model_fields),
    "trace": ", ".join(Trace.model_fields),
}
"""Settings that are tables, with the keys that their rows may have."""


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """A value as it was written, and its place. A relative path starts from the folder `base`."""

    value: Any
    where: str
    base: Path
    """The folder of the file; the working directory for a variable."""
    file: Path = field(default_factory=Path, kw_only=True)
    inside: Mapping[str, str] = field(default_factory=dict[str, str])
    """The place of each key, where the value is a table, and of the keys of a table in it."""


def variable(field: str) -> str:
    """Return the variable of a field: `CAAL_NUM_CTX` of `num_ctx`, `N8N_URL` of `n8n_url`."""
    return field.upper() if field.startswith(_SHARED_PREFIXES) else PREFIX + field.upper()


def from_environment(env: Mapping[str, str], fields: Collection[str]) -> dict[str, GivenSetting]:
    """Return the fields that `env` sets. An empty variable is not set, as compose files need.

    Raises:
        ConfigError: A variable is no setting any more.
    """
    for name in REMOVED:
        if text := env.get(variable(name), "").strip():
            is_number = text.isdecimal() and len(text) <= SHOWN_CHARS
            raise _refused(name, variable(name), int(text) if is_number else text)
    return {
        name: GivenSetting(text, variable(name), Path())
        for name in fields
        if name not in FILE_ONLY and (text := env.get(variable(name), "").strip())
    }


def unknown_variables(env: Mapping[str, str], fields: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each variable that is not a setting, with the most similar one that is, or "".

    Of the families that other programs read too, only those are meant that are written in place of
    a setting that is not set.
    """
    known = [variable(name) for name in fields if name not in FILE_ONLY]
    shared = [name for name in known if not name.startswith(PREFIX)]
    for name in sorted({*env} - {*known}):
        if name.startswith(PREFIX):
            yield name, _nearest(name, known)
        elif name.lower().startswith(_SHARED_PREFIXES):
            near = _OTHER_NAMES.get(name) or _nearest_of_family(name, shared)
            if near and near not in env:
                yield name, near


def from_file(path: Path, fields: Collection[str]) -> dict[str, GivenSetting]:
    """Return the fields that the TOML file at `path` sets, or none where there is no file.

    A key is a field (`num_ctx`) or its variable (`CAAL_NUM_CTX`).

    Raises:
        ConfigError: The file cannot be read, is no TOML, or has a key that is no setting.
    """
    text = read_text(path)
    table = _parsed(path, text)
    names = {name: name for name in fields} | {variable(name): name for name in fields}
    removed = {each: name for name in REMOVED for each in (name, variable(name))}
    given: dict[str, GivenSetting] = {}
    for key, value in table.items():
        where = f"{path}, line {_line_of(text, key)}, {key}"
        if (old := removed.get(key)) is not None:
            raise _refused(old, where, value, in_file=True)
        if (setting := names.get(key)) is None:
            hint = _nearest(key, list(names))
            remedy = f"Did you mean {hint}?" if hint else "Remove it."
            raise ConfigError(f"{where}: there is no such setting. {remedy}")
        if setting in given:
            raise ConfigError(f"{where}: this is set twice. Remove one of the two.")
        inside = {
            name: f"{path}, line {_line_of(text, name, key)}, {key}"
            for name in (cast("dict[str, object]", value) if isinstance(value, dict) else ())
        }
        inside |= {
            f"{name}.{under}": f"{path}, line "
            f"{_line_of(text, under, name, _line_of(text, name, key))}, {key}"
            for name, each in (cast("dict[str, object]", value) if inside else {}).items()
            for under in (cast("dict[str, object]", each) if isinstance(each, dict) else ())
        }
        if setting == TABLE:
            value = read_policy(cast("object", value), Places(str(path), text))
        if setting == TOOLSETS:
            lines = {name: place.rpartition(", ")[0] for name, place in inside.items()}
            try:
                value = toolset_tables(cast("object", value), path.parent, lines)
            except ValueError as error:
                raise ConfigError(f"{where}: {error}.") from None
        given[setting] = GivenSetting(value, where, path.parent, inside, file=path)
    return given


def _refused(name: str, where: str, value: Any, *, in_file: bool = False) -> ConfigError:
    """Return the error that says what to write instead of a removed setting."""
    instead = REMOVED[name](value)
    if not isinstance(instead, str):
        field, new, remark = instead
        if in_file:
            line = f"{field} = {_toml(new)}"
        else:
            line = f"{variable(field)}={new if isinstance(new, str) else json.dumps(new)}"
        instead = f"write {line} instead{remark}"
    sentence = without_secrets(" ".join(instead.split()))[:REMEDY_CHARS]
    return ConfigError(f"{where} is not a setting any more; {sentence}.")


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in pairs) + "}"
    return json.dumps(value, default=str)


def policy_in(path: Path) -> Policy:
    """Return the policy that the file has now; a plain one where it has none.

    Raises:
        ConfigError: The file cannot be read, or is no TOML.
    """
    text = read_text(path)
    policy = read_policy(_parsed(path, text).get(TABLE, {}), Places(str(path), text))
    return replace(policy, source=path)


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: {error or 'too deeply nested'}. Fix that line.") from error


def read_text(path: Path) -> str:
    """Return the file's text, "" where there is none.

    It names code and servers, so it must be its user's alone to write.

    Raises:
        ConfigError: It cannot be read, or others may write it.
    """
    try:
        if not path.exists():
            return ""
        # Here, as it takes a second, and most commands have no file or load the bridge anyway.
        from mcp_bridge.core.files import open_regular, read_rest
        from mcp_bridge.security.ownership import fault

        with open_regular(path) as file:
            if (wrong := fault(file.fileno(), path)) is not None:
                raise ConfigError(f"{path}: {wrong}.")
            data = read_rest(file, MAX_FILE_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError:
        raise ConfigError(
            f"{path}: larger than {MAX_FILE_BYTES} bytes. Is it the right file?"
        ) from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8. Save the file as UTF-8.") from error


def _line_of(text: str, key: str, parent: str = "", default: int = 1) -> int:
    """Search the line that sets or opens a key, since tomllib keeps no positions."""
    name = rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')"
    path = rf"(?:{re.escape(parent)}[ \t]*\.[ \t]*)?{name}" if parent else name
    found = re.search(rf"^[ \t]*(?:{path}[ \t]*[=.]|\[+[ \t]*{path}[ \t]*[\].])", text, re.M)
    return text.count("\n", 0, found.start()) + 1 if found else default


def _nearest(name: str, known: Collection[str]) -> str:
    return next(iter(difflib.get_close_matches(name, known, 1, 0.6)), "")


def _nearest_of_family(name: str, known: Collection[str]) -> str:
    """Return the most similar name that begins with the same word, which does not count."""
    family = f"{name.partition('_')[0]}_"
    ends = [each.removeprefix(family) for each in known if each.startswith(family)]
    near = difflib.get_close_matches(name.removeprefix(family), ends, 1, _SHARED_LIKENESS)
    return f"{family}{near[0]}" if near else ""


def explained(
    error: ValidationError, given: Mapping[str, GivenSetting], secrets: Collection[str]
) -> ConfigError:
    """Turn the first of pydantic's errors into a ConfigError, without the values of `secrets`."""
    first = error.errors(include_url=False)[0]
    field, *inside = (str(part) for part in first["loc"])
    source = given.get(field)
    if field in _TABLES and source is not None and is_short(source.value):
        inside = []
    where = source.where if source else variable(field)
    if inside and field in _TABLES:
        # pydantic also names the members of a union or a list; the tool's name is what helps.
        places: Mapping[str, str] = source.inside if source else {}
        place = places.get(".".join(inside[:2])) or places.get(inside[0], where)
        where = f"{place}, {'.'.join(inside)}"
    shown = ""
    if source is not None and field not in secrets and not inside:
        shown = f" {_shortened(source.value)} does not fit;"
    context = {"keys": _TABLES.get(field, ""), **first.get("ctx", {})}
    return ConfigError(f"{where}:{shown} {remedy(first['type'], context)}.")


def remedy(kind: str, context: Mapping[str, Any]) -> str:
    """Return what to write instead, by the name of pydantic's error and what it says of it."""
    for prefix, sentence in _REMEDIES.items():
        if kind.startswith(prefix):
            return sentence.format_map(context)
    return f"write another value ({kind})"


def _shortened(value: Any) -> str:
    shown = without_userinfo(value if isinstance(value, str) else repr(value))
    text = without_secrets(repr(shown) if isinstance(value, str) else shown)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


# Names of settings that are gone. Each is refused, with what to write instead.


class Instead(NamedTuple):
    """The setting to write, its value, and what else is to be known."""

    setting: str
    value: Any
    remark: str = ""


def _without(check: str, value: Any) -> Instead:
    return Instead("checks", f"-{check}" if switched(value) is False else "on")


def _fallbacks(key: str, value: Any) -> Instead:
    return Instead("fallbacks", {"models": ["llama3.2"], key: value}, ", with your models")


def _cue(kind: str, value: Any) -> Instead:
    remark = f", and name the file there {kind}.wav"
    return Instead("cues", str(Path(str(value)).parent), remark)


def _in_class(name: str, value: Any) -> str:
    return f"write {name} = {value!r} into the class of your CaalAgent"


def _window(tokens: Any) -> Instead:
    size = max(512, -(-tokens * 4 // 3)) if isinstance(tokens, int) else 8192
    return Instead("num_ctx", size, "; the window is three quarters of it")


REMOVED: Final[Mapping[str, Callable[[Any], Instead | str]]] = {
    "needless_calls": lambda value: _without("needless_calls", value),
    "references": lambda value: _without("references", value),
    "claims": lambda value: _without("claims", value),
    "facts": lambda value: _without("facts", value),
    "search_if_hedged": lambda value: _without("hedges", value),
    "text_protocol": lambda value: Instead("tool_calls", value),
    "server_runs_tools": lambda on: Instead("tool_calls", "server" if switched(on) else "auto"),
    "text_limits": lambda value: Instead(
        "tool_calls", value, '; what CAAL_TOOL_CALLS was is "by" in it'
    ),
    "text_iterations": lambda value: Instead("tool_calls", {"replies": value}),
    "text_calls": lambda value: Instead("tool_calls", {"calls": value}),
    "text_turn_calls": lambda value: Instead("tool_calls", {"turn_calls": value}),
    "text_payload": lambda value: Instead("tool_calls", {"payload": value}),
    "text_observation": lambda value: Instead("tool_calls", {"observation": value}),
    "text_seconds": lambda value: Instead("tool_calls", {"seconds": value}),
    "fallback_after": lambda value: _fallbacks("after", value),
    "use_only_validated_fallbacks": lambda on: _fallbacks("only_validated", switched(on) is True),
    "cue_tool": lambda value: _cue("tool", value),
    "cue_agent": lambda value: _cue("agent", value),
    "cue_error": lambda value: _cue("error", value),
    "agent_tools": lambda value: Instead("cues", {"agent_tools": value}),
    "trace_content": lambda on: Instead(
        "trace", {"file": "trace.jsonl", "content": switched(on) is True}, ", with your file"
    ),
    "show_arguments": lambda on: Instead("room_sees", "arguments" if switched(on) else "names"),
    "open_session_host": lambda on: Instead("room_sees", "everything" if switched(on) else "names"),
    "mcp_tokens": lambda value: Instead("tool_tokens", value),
    "window_tokens": _window,
    "window_turns": lambda value: _in_class("window_turns", value),
    "own_tools": lambda value: _in_class("own_tools", value),
    "speakable": lambda on: _in_class("speakable", switched(on) is not False),
    "mcp_new_tools": lambda value: (
        f'write "new_tools": "{value}" into each server\'s entry in mcp_servers.json'
    ),
    "timezone": lambda value: f"set the variable TZ={value}, for instance in .env",
    "metrics_port": lambda value: f"set the variable OTEL_EXPORTER_PROMETHEUS_PORT={value}",
    "n8n_poll": lambda _: "call POST /reload-tools from a schedule of n8n (docs/n8n.md)",
}
"""What replaces each setting that there was, by the value that was given."""


# `.env.local` and `.env` in the working directory: variables for the command line.
#
# What is set already comes first, then `.env.local`, which LiveKit's tools write, then `.env`.

ENV_FILE: Final = Path(".env")
LOCAL_ENV_FILE: Final = Path(".env.local")


def read_env_files(env: MutableMapping[str, str]) -> dict[Path, tuple[str, ...]]:
    """Set the variables of both files that `env` has not, and return their names by file.

    Raises:
        ConfigError: A file cannot be read, or others may write it.
    """
    read = {path: read_env_file(env, path) for path in (LOCAL_ENV_FILE, ENV_FILE)}
    return {path: names for path, names in read.items() if names}


def read_env_file(env: MutableMapping[str, str], path: Path) -> tuple[str, ...]:
    """Set the variables of `path` that `env` has not, and return their names.

    A variable without a value is left out, as it counts as not set.

    Raises:
        ConfigError: The file cannot be read, or others may write it.
    """
    given = dotenv_values(stream=io.StringIO(read_text(path)), interpolate=False)
    new = {name: value for name, value in given.items() if value and name not in env}
    env.update(new)
    return tuple(new)
