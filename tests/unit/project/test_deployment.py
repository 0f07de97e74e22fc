"""The image, the compose file, the units and the release run what exists, as little as they may."""

from __future__ import annotations

import re
import shlex
import tomllib
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from dotenv import dotenv_values

from caal_node import __version__
from caal_node.cli.app import app
from caal_node.config.file import variable
from caal_node.config.settings import FIELDS

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES = ("weights", "worker", "control", "page")
DOCKERFILE = (ROOT / "Dockerfile").read_text()
UNITS = sorted((ROOT / "deploy").glob("*.service"))
RELEASE_TEXT = (ROOT / ".github" / "workflows" / "release.yml").read_text()
RELEASE: dict[str, Any] = yaml.safe_load(RELEASE_TEXT)
PLUGIN = ROOT / "packaging" / "livekit-plugins-caal" / "pyproject.toml"
_TAG = re.compile(r"[\w./-]+:v?\d[\w.-]*")
_REQUIRED = re.compile(r"\$\{(\w+):\?")


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _parse(words: list[str]) -> None:
    """Have the command line read the words of a command, without running it."""
    root: Any = typer.main.get_command(app)
    command = root.commands[words[0]]
    command.make_context(words[0], words[1:], resilient_parsing=False)


def _unit(path: Path) -> RawConfigParser:
    unit = RawConfigParser(strict=True, interpolation=None, comment_prefixes="#", delimiters="=")
    unit.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    unit.read_string(path.read_text())
    return unit


def test_images_are_pinned_to_a_version() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    images = [each["image"] for each in SERVICES.values() if each["image"] != "caal-node"]
    assert bases
    assert images
    assert [each for each in (*bases, *images) if not _TAG.fullmatch(each)] == []


def test_the_image_is_built_of_the_lock_and_runs_without_root() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*$", last, re.MULTILINE)
    assert 'VOLUME ["/var/lib/caal-node"]' in last
    assert "HEALTHCHECK --interval=60s" in last
    assert DOCKERFILE.count("uv sync --frozen") == 2
    (command,) = re.findall(r'^CMD \["(.*)"\]$', last, re.MULTILINE)
    _parse([command])


def test_what_the_wheel_is_made_of_is_sent_to_the_build_and_no_key_is() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    sent = {rule[1:] for rule in rules if rule.startswith("!")}
    hatch = _toml(ROOT / "pyproject.toml")["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert rules[0] == "*"
    assert {*hatch["only-include"], *hatch["force-include"]} <= sent
    assert {"pyproject.toml", "uv.lock", "hatch_build.py", "README.md", "LICENSE"} <= sent
    assert [name for name in sent if not (ROOT / name).exists()] == []
    assert not sent & {".env", ".env.local", "caal.toml", "mcp_servers.json", ".", ".git"}


def test_every_port_of_the_containers_is_on_loopback() -> None:
    livekit = yaml.safe_load(SERVICES["livekit"]["environment"]["LIVEKIT_CONFIG"])
    assert {each["network_mode"] for each in SERVICES.values()} == {"host"}
    assert [name for name, each in SERVICES.items() if "ports" in each] == []
    assert livekit["bind_addresses"] == ["127.0.0.1"]
    assert livekit["rtc"]["tcp_port"] == 0  # LiveKit would listen in every network
    assert livekit["rtc"]["interfaces"] == {"includes": ["lo"]}
    assert SERVICES["ollama"]["environment"]["OLLAMA_HOST"].startswith("127.0.0.1:")
    assert not any("--host" in SERVICES[name]["command"] for name in NODES)


@pytest.mark.parametrize("name", NODES)
def test_the_containers_commands_exist(name: str) -> None:
    _parse(SERVICES[name]["command"])


def test_containers_keep_no_privilege_and_come_back() -> None:
    for service in SERVICES.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["restart"] in ("unless-stopped", "on-failure:3")
    served = {"livekit", "ollama", "control", "page"}
    assert all("test" in SERVICES[name]["healthcheck"] for name in served)
    assert "healthcheck" not in SERVICES["worker"]  # it has the image's own


def test_a_missing_key_stops_compose_and_the_example_has_them_all() -> None:
    example = dotenv_values(ROOT / "deploy" / "compose.env.example")
    required = set(_REQUIRED.findall((ROOT / "compose.yaml").read_text()))
    assert required == {"LIVEKIT_API_KEY", "LIVEKIT_API_SECRET", "CAAL_CONTROL_TOKEN"}
    assert required <= set(example)
    assert not example["LIVEKIT_API_SECRET"]
    assert not example["CAAL_CONTROL_TOKEN"]
    assert set(example) - {"COMPOSE_PROFILES"} <= set(map(variable, FIELDS))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists_and_may_write_its_own_folders_alone(
    path: Path,
) -> None:
    service = _unit(path)["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program == "/opt/caal-node/bin/caal-node"
    _parse(words)
    assert service["DynamicUser"] == service["NoNewPrivileges"] == service["ProtectHome"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    assert service["StateDirectory"] == "caal-node"
    assert service["EnvironmentFile"] == "/etc/caal-node/environment"
    assert service["Restart"] == "always"


def test_the_units_differ_in_what_they_run_alone() -> None:
    worker, control = (
        _unit(ROOT / "deploy" / f"caal-node{end}.service") for end in ("", "-control")
    )
    own = {"Description", "ExecStart", "KillMode", "TimeoutStopSec"}
    for section in worker.sections():
        both = [
            {k: v for k, v in unit[section].items() if k not in own} for unit in (worker, control)
        ]
        assert both[0] == both[1]


def test_actions_are_pinned_and_only_publishing_gets_a_token() -> None:
    used = re.findall(r"uses: (\S+)(.*)", RELEASE_TEXT)
    assert used
    for action, remark in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", remark), action
    jobs = RELEASE["jobs"]
    assert RELEASE["permissions"] == {}
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["publish"]
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert "secrets." not in RELEASE_TEXT


def test_both_distributions_have_one_version() -> None:
    plugin = _toml(PLUGIN)["project"]
    locked = [
        each["version"]
        for each in _toml(ROOT / "uv.lock")["package"]
        if each["name"] == "caal-node"
    ]
    assert _toml(ROOT / "pyproject.toml")["project"]["version"] == __version__
    assert plugin["version"] == __version__
    assert plugin["dependencies"] == [f"caal-node=={__version__}"]
    assert locked == [__version__]
