"""The schema of caal.toml takes what the settings take, and what the documents show."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from caal_node.cli.schema import FILE, schema, written
from caal_node.config.settings import Settings, load_settings
from caal_node.core.errors import ConfigError
from caal_node.policy import limit_rules, reader
from caal_node.policy.reader import LimitTable, RuleTable, ToolsTable
from caal_node.toolsets.installed import installed
from caal_node.toolsets.registry import load

ROOT = Path(__file__).parents[3]
OUR_TOOLSETS = {
    name: load(name)
    for name, entry in installed().items()
    if entry.value.startswith("caal_node.toolsets.")
}
VALIDATOR = Draft202012Validator(schema(OUR_TOOLSETS))
SHORT_FORMS = """
checks = "-claims"
checks = ["claims", "facts"]
cues = false
fallbacks = ["llama3.2", "openai:local@http://127.0.0.1:8080/v1"]
think = "low"
keep_alive = -1
network = "local,192.168.7.0/24"
model_servers = "http://127.0.0.1:8080/v1,http://127.0.0.1:8081/v1"
trace = "trace.jsonl"
examples = {get_weather = [{say = "how warm is it", arguments = {city = "Oslo"}}]}
embedding = "ollama:nomic-embed-text"
tool_calls = {by = "text", calls = 8}
"""
WRONG = """
num_ctxt = 8192
num_ctx = 100
num_ctx = "many"
api = "olama"
checks = ["claim"]
think = "very"
detection = "whole"
fallbacks = {model = ["x"]}
trace = {content = true}
tools = {mode = "closed"}
tools = {effects = {"a_*" = "delete"}}
tools = {rules = [{tools = ["a_*"]}]}
tools = {rules = [{tool = ["a_*"], then = "deny"}]}
tools = {limits = [{tools = ["a_*"]}]}
tools = {limits = [{per_hour = 0}]}
toolsets = {lists = {folders = "x"}}
toolsets = {weather = {units = "kelvin"}}
toolsets = {timers = {enabled = "yes"}}
examples = {get_weather = [{says = "x"}]}
redaction = {personal = ["name"]}
"""


def _examples() -> dict[str, str]:
    """Return every block of TOML in the documents that is not of another file."""
    found: dict[str, str] = {}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        blocks = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        for number, block in enumerate(blocks, 1):
            if "[project" not in block:
                found[f"{page.name} {number}"] = block
    return found


def _faults(text: str) -> list[str]:
    document: dict[str, Any] = tomllib.loads(text)
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(document)]


def test_the_file_is_what_the_settings_give() -> None:
    assert FILE.read_text(encoding="utf-8") == written(OUR_TOOLSETS), (
        "run: caal-node schema > caal_node/caal.schema.json"
    )
    Draft202012Validator.check_schema(json.loads(FILE.read_text(encoding="utf-8")))


def test_it_has_all_settings_and_describes_each() -> None:
    found = schema(OUR_TOOLSETS)
    assert list(found["properties"]) == list(Settings.model_fields)
    described = {
        name
        for name, each in found["properties"].items()
        if "description" in each or "description" in found["$defs"][each["$ref"].split("/")[-1]]
    }
    assert described == set(Settings.model_fields)


@pytest.mark.parametrize("where", _examples())
def test_the_examples_of_the_documents_fit(where: str) -> None:
    assert _faults(_examples()[where]) == []


@pytest.mark.parametrize("line", SHORT_FORMS.strip().splitlines())
def test_what_the_settings_take_fits(tmp_path: Path, line: str) -> None:
    (tmp_path / "caal.toml").write_text(line)
    load_settings({}, tmp_path / "caal.toml")
    assert _faults(line) == []


@pytest.mark.parametrize("text", WRONG.strip().splitlines())
def test_a_slip_does_not_fit(text: str) -> None:
    assert _faults(text) != []


def test_a_setting_that_is_gone_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "caal.toml").write_text("text_calls = 8\n")
    with pytest.raises(ConfigError):
        load_settings({}, tmp_path / "caal.toml")
    assert _faults("text_calls = 8") != []


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        (ToolsTable, reader._KEYS),
        (RuleTable, reader._RULE_KEYS),
        (LimitTable, limit_rules._KEYS),
    ],
)
def test_the_tables_of_rules_have_the_keys_that_are_read(
    table: type[BaseModel], keys: tuple[str, ...]
) -> None:
    assert set(table.model_fields) == set(keys)
