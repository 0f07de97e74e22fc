"""The other kinds of file that servers are kept in: YAML (Goose, Continue) and TOML (Codex).

Their readers are libraries'. Lines are found beside them as well as can be: a complaint about what
has none says the line of what is around it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final, cast

import yaml

from mcp_bridge.config.document import MAX_DEPTH, Document, DocumentSyntaxError, Path
from mcp_bridge.config.json_file import parse_json

_MAX_VALUES: Final = 100_000
"""A YAML file may have so many, since an alias (`*x`) in a few lines can stand for millions."""
_TABLE: Final = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")
_KEY: Final = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")


def parse_document(text: str, file: str) -> Document:
    """Reads a file by the kind that its name says; anything else is JSON.

    Raises: DocumentSyntaxError.
    """
    match PurePath(file).suffix.lower():
        case ".yaml" | ".yml":
            return _parse_yaml(text)
        case ".toml":
            return _parse_toml(text)
        case _:
            return parse_json(text)


def _parse_yaml(text: str) -> Document:
    loader: Any = yaml.SafeLoader(text)  # its types are not told
    try:
        node = loader.get_single_node()
        if node is None:
            return Document({}, {(): 1})
        lines = dict[Path, int](_yaml_lines(node))
        value: Any = loader.construct_document(node)
    except RecursionError:
        raise DocumentSyntaxError("nested too deeply; flatten it", 1) from None
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        line = mark.line + 1 if mark else 1
        raise DocumentSyntaxError(f"{problem}; mend the YAML here", line) from None
    except ValueError as error:  # a date that is none
        raise DocumentSyntaxError(f"{error}; mend the YAML", 1) from None
    finally:
        loader.dispose()
    return Document(_with_text_keys(value), lines)


def _yaml_lines(root: yaml.Node) -> Iterator[tuple[Path, int]]:
    waiting: list[tuple[Path, yaml.Node]] = [((), root)]
    yield (), root.start_mark.line + 1
    for path, node in waiting:
        inner: list[tuple[str | int, yaml.Node, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
            inner = [(str(key.value), key, held) for key, held in pairs]
        elif isinstance(node, yaml.SequenceNode):
            inner = [
                (at, held, held) for at, held in enumerate(cast("list[yaml.Node]", node.value))
            ]
        for step, place, held in inner:
            if len(path) < MAX_DEPTH and len(waiting) < _MAX_VALUES:
                yield (*path, step), place.start_mark.line + 1
                waiting.append(((*path, step), held))


def _with_text_keys(value: Any) -> Any:
    """Gives the same with every key as a text, as JSON has them.

    Raises: DocumentSyntaxError, where it is too deep or too much.
    """
    left = iter(range(_MAX_VALUES))

    def copied(value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH or next(left, None) is None:
            raise DocumentSyntaxError("too deeply nested or too long; shorten it", 1)
        if isinstance(value, dict):
            members = cast("dict[Any, Any]", value)
            return {str(key): copied(held, depth + 1) for key, held in members.items()}
        if isinstance(value, list):
            return [copied(held, depth + 1) for held in cast("list[Any]", value)]
        return value

    return copied(value, 0)


def _parse_toml(text: str) -> Document:
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r" \(at line (\d+), column \d+\)", str(error))
        problem = str(error).partition(" (at ")[0]
        problem = f"{problem[:1].lower()}{problem[1:]}"
        raise DocumentSyntaxError(
            f"{problem}; mend the TOML here", int(at[1]) if at else 1
        ) from None
    except RecursionError:
        raise DocumentSyntaxError("nested too deeply; flatten it", 1) from None
    # The first line of a table is where it begins.
    return Document(_with_text_keys(value), dict(reversed(list(_toml_lines(text)))))


def _toml_lines(text: str) -> Iterator[tuple[Path, int]]:
    """Yields the lines of tables and of their plain keys."""
    yield (), 1
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.fullmatch(line):
            table = _table_path(header[1])
            for length in range(1, len(table) + 1):
                yield table[:length], number
        elif key := _KEY.match(line):
            yield (*table, key[1]), number


def _table_path(header: str) -> Path:
    """Gives the path of a table, by the library's own reading of its name."""
    path: list[str | int] = []
    try:
        inner: dict[str, Any] = tomllib.loads(f"[{header}]")
    except tomllib.TOMLDecodeError:  # it is a list in several lines
        return ()
    while inner:
        ((step, inner),) = inner.items()
        path.append(step)
    return tuple(path)
