"""Which room may import which: in one direction, never in a ring, and the pure ones do no I/O.

A room is a folder of a package, or a module that lies beside those folders
(`tests.stand_ins.import_graph`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.stand_ins.import_graph import (
    Graph,
    Module,
    backward_imports,
    classes_named_twice,
    imports_inside,
    module_graph,
    names_imported,
    read_modules,
    rings,
    room_graph,
    room_of,
)

ROOT = Path(__file__).parents[3]
PACKAGES = ("caal_node", "mcp_bridge", "n8n")

LAYERS = (
    ("core", "own_packages"),
    ("network", "policy", "redaction"),
    ("config", "http_client", "telemetry"),
    ("context", "grounding", "language", "reply_parser", "tts_text", "weights"),
    ("livekit_plugin",),
    ("models", "speech"),
    ("tools",),
    ("toolsets",),
    ("evaluation",),
    ("factories",),
    ("room", "control"),
    ("page", "client"),
    ("answers",),
    ("agent_options", "prompt_builder", "session_services", "tools_on_demand"),
    ("agent",),
    ("conversation", "extend"),
    ("testing",),
    ("cli",),
)
"""The rooms of caal_node: each imports from its own layer and from those above it alone."""

PURE = (
    "caal_node.context",
    "caal_node.core",
    "caal_node.grounding",
    "caal_node.language.hotwords",
    "caal_node.language.judge",
    "caal_node.language.judge",
    "caal_node.policy",
    "caal_node.redaction",
    "caal_node.reply_parser",
    "caal_node.tts_text",
    "caal_node.room.cue_policy",
    "caal_node.room.cues",
)
"""Rooms and modules of text and numbers in, text and numbers out: no LiveKit, network or clock."""
IO = ("livekit", "httpx2", "mcp", "ollama", "asyncio", "socket", "fastapi")


@cache
def product() -> dict[str, Module]:
    return read_modules(ROOT, PACKAGES)


@cache
def graph() -> Graph:
    return module_graph(product())


def inside(*places: str) -> list[str]:
    """The modules that are one of `places` or lie in one."""
    return [name for name in product() if f"{name}.".startswith(tuple(f"{p}." for p in places))]


def importing(modules: Iterable[str], *others: str) -> list[str]:
    """Imports by one of `modules` of one of `others`, or of something in it."""
    return [
        f"{module} imports {name}"
        for module in modules
        for name in sorted(names_imported(product()[module]))
        if f"{name}.".startswith(tuple(f"{other}." for other in others))
    ]


def test_a_pure_room_does_no_io() -> None:
    assert importing(inside(*PURE), *IO) == []


def test_every_pure_room_is_there() -> None:
    assert not [place for place in PURE if not inside(place)]


def test_the_bridge_and_n8n_stand_alone() -> None:
    assert importing(inside("mcp_bridge", "n8n"), "livekit", "caal_node") == []
    assert importing(inside("mcp_bridge"), "n8n") == []
    assert [
        line for line in importing(inside("n8n"), "mcp_bridge") if " mcp_bridge.core" not in line
    ] == []


def test_only_the_demo_and_the_command_line_import_the_command_line_and_the_demo() -> None:
    last = ("caal_node.cli", "caal_node.__main__")
    others = [module for module in inside("caal_node") if room_of(module) not in last]
    assert importing(others, *last) == []


def test_every_room_of_the_node_has_its_layer() -> None:
    rooms = {room_of(name).removeprefix("caal_node.") for name in inside("caal_node")}
    assert rooms - {"caal_node", "__main__"} == {room for layer in LAYERS for room in layer}


def test_no_import_runs_back() -> None:
    layers = [[f"caal_node.{room}" for room in layer] for layer in LAYERS]
    assert backward_imports(graph(), layers) == []


def test_no_modules_import_each_other_in_a_ring() -> None:
    assert rings(graph()) == []


def test_no_rooms_import_each_other_in_a_ring() -> None:
    found = rings(room_graph(graph()))
    assert not found, "\n".join(line for ring in found for line in imports_inside(graph(), ring))


def test_no_two_public_classes_of_a_package_share_a_name() -> None:
    assert classes_named_twice(product()) == {}


def test_understanding_a_reply_loads_no_livekit() -> None:
    code = "import sys, caal_node; caal_node.parse_reply; sys.exit('livekit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_a_command_line_is_read_without_livekit_and_the_mcp_sdk() -> None:
    """They take two seconds, which help, completion and a mistyped command need not wait for."""
    code = (
        "import sys, caal_node.cli.app, caal_node.config.process_guard;"
        "print({'livekit', 'mcp', 'numpy'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"


# That the tests above can fail: on trees made for it.


def house(root: Path, files: dict[str, str]) -> dict[str, Module]:
    """The modules of a package `house` with these files."""
    for name, text in {"__init__.py": "", **files}.items():
        path = root / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_modules(root, ["house"])


def test_rooms_that_import_each_other_are_found_where_no_modules_do(tmp_path: Path) -> None:
    files = {
        "kitchen/oven.py": "from house.cellar.wine import bottle",
        "kitchen/sink.py": "",
        "cellar/wine.py": "",
        "cellar/stairs.py": "from house.garden import gate",
        "garden.py": "def shed():\n    from house.kitchen import sink",
    }
    found = module_graph(house(tmp_path, files))
    assert rings(found) == []
    rooms = {"house.kitchen", "house.cellar", "house.garden"}
    assert rings(room_graph(found)) == [rooms]
    assert imports_inside(found, rooms) == [
        "house.cellar.stairs imports house.garden",
        "house.garden imports house.kitchen.sink",
        "house.kitchen.oven imports house.cellar.wine",
    ]


def test_a_ring_of_modules_is_found_however_it_is_written(tmp_path: Path) -> None:
    files = {
        "room/one.py": "from . import two",
        "room/two.py": "import house.room.three",
        "room/three.py": (
            "from typing import TYPE_CHECKING\n"
            "from house.room.four import name\n"
            "if TYPE_CHECKING:\n    from .one import Name\n"
        ),
        "room/four.py": "",
    }
    found = module_graph(house(tmp_path, files))
    assert rings(found) == [{"house.room.one", "house.room.two", "house.room.three"}]
    assert rings(room_graph(found)) == []


def test_the_names_gathered_by_a_package_make_no_ring(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from house.one import name",
        "one.py": "from house import other",
        "two.py": "import house.one",
    }
    found = module_graph(house(tmp_path, files))
    assert found == {"house.one": set(), "house.two": {"house.one"}}


def test_an_import_from_a_later_layer_is_found(tmp_path: Path) -> None:
    files = {
        "core/names.py": "",
        "tools/table.py": "from house.core.names import name\nfrom house.agent import Agent",
        "agent.py": "from house.core import names",
        "unlisted.py": "from house.agent import Agent",
    }
    found = module_graph(house(tmp_path, files))
    layers = [["house.core"], ["house.tools"], ["house.agent"]]
    assert backward_imports(found, layers) == ["house.tools.table imports house.agent"]


def test_a_public_class_name_given_twice_is_found(tmp_path: Path) -> None:
    files = {
        "one.py": "class Line: ...\nclass _Own: ...",
        "room/two.py": "class Line: ...\nclass _Own: ...\nclass Other: ...",
    }
    modules = house(tmp_path, files)
    assert classes_named_twice(modules) == {"house: Line": ["house.one", "house.room.two"]}
