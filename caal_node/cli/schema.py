"""The JSON schema of `caal.toml`, for editors: completion, descriptions, and slips underlined.

`caal-node schema` prints it with the options of all installed toolsets. The package has it with the
options of its own, in `caal.schema.json`, and a test holds the two together. The reader says more:
which file is missing, and what a tool's or a model's name means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from pydantic.json_schema import GenerateJsonSchema

import caal_node
from caal_node.config.setting_tables import ENABLED, TABLE
from caal_node.config.settings import Settings
from caal_node.toolsets.base import ConfiguredToolset
from caal_node.toolsets.installed import installed
from caal_node.toolsets.registry import load

FILE: Final = Path(caal_node.__file__).with_name("caal.schema.json")
_VARIABLE: Final = {"type": "string", "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"}
"""An option of a toolset may be the variable that has its value."""
_NULL: Final = {"type": "null"}
_MOST: Final = {"array": "maxItems", "object": "maxProperties"}


class _ForToml(GenerateJsonSchema):
    """Pydantic's schema without what TOML or a reader has no use for."""

    ignored_warning_kinds: Any = frozenset({"non-serializable-default"})

    def generate(self, schema: Any, mode: Any = "validation") -> Any:
        return _for_toml(super().generate(schema, mode))


def schema(toolsets: Mapping[str, type[ConfiguredToolset]]) -> dict[str, Any]:
    """Return the schema, in Draft 2020-12, with the options of these toolsets."""
    found: dict[str, Any] = Settings.model_json_schema(schema_generator=_ForToml)
    definitions: dict[str, Any] = found.pop("$defs")
    tables: dict[str, Any] = found["properties"][TABLE]
    tables["properties"] = {}
    for name, kind in toolsets.items():
        options: dict[str, Any] = kind.Options.model_json_schema(schema_generator=_ForToml)
        definitions |= options.pop("$defs", {})
        properties: dict[str, Any] = options.get("properties", {})
        options["properties"] = {
            ENABLED: {"type": "boolean", "default": True},
            **{option: _or_variable(each) for option, each in properties.items()},
        }
        tables["properties"][name] = options | {"description": kind.SUMMARY}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "caal.toml",
        **found,
        "description": "The settings of caal-node.",
        "$defs": definitions,
    }


def written(toolsets: Mapping[str, type[ConfiguredToolset]]) -> str:
    """Return the schema as its file has it."""
    return json.dumps(schema(toolsets), indent=2, ensure_ascii=False) + "\n"


def print_schema() -> None:
    """Print the schema with the options of all installed toolsets.

    Raises:
        ConfigError: one of them cannot be imported; the message names it.
    """
    print(written({name: load(name) for name in installed()}), end="")


def _or_variable(option: dict[str, Any]) -> dict[str, Any]:
    kept = {key: option.pop(key) for key in ("description", "default") if key in option}
    return {**kept, "anyOf": [option, _VARIABLE]}


def _for_toml(node: Any) -> Any:
    """Leave out titles, which repeat the names, and null, which TOML has not.

    A default that is a table or null goes too: what a table's keys are is said at the keys.
    """
    if isinstance(node, list):
        return [_for_toml(each) for each in cast("list[Any]", node) if each != _NULL]
    if not isinstance(node, dict):
        return node
    found = cast("dict[str, Any]", node)
    if isinstance(found.get("properties"), dict):
        found["properties"] = {name: _for_toml(each) for name, each in found["properties"].items()}
    if isinstance(found.get("description"), str):
        found["description"] = " ".join(found["description"].split())
    kept = {
        key: each if key in ("properties", "default") else _for_toml(each)
        for key, each in found.items()
        if key != "title" and not (key == "default" and (each is None or isinstance(each, dict)))
    }
    if len(of := kept.get("anyOf", ())) == 1:
        kept |= kept.pop("anyOf")[0]
    # A limit on a list or table, or on either a text or a list, is written as if on a text.
    if kept.get("type") != "string" and (most := kept.pop("maxLength", None)) is not None:
        for each in (kept, *of):
            if (key := _MOST.get(each.get("type", ""))) is not None:
                each[key] = most
    return kept
