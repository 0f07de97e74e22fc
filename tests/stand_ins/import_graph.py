"""Who imports whom in a tree of packages, read as text: modules, rooms, rings, names given twice.

A room is a folder of a package, or a module that lies beside those folders. Every import counts,
wherever it stands: one in a function, and one under `if TYPE_CHECKING`, is an arrow that a reader
follows all the same. What a package's own `__init__` imports does not count, nor an import of it,
as it only gathers names.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Graph: TypeAlias = dict[str, set[str]]
"""Each name and those that it imports."""


@dataclass(frozen=True)
class Module:
    """One file of a package, by its dotted name."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]


def read_modules(root: Path, packages: Iterable[str]) -> dict[str, Module]:
    """Every module of the packages under `root`, by name; a folder's `__init__` has its name."""
    found: dict[str, Module] = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    return found


def names_imported(module: Module) -> set[str]:
    """Full dotted names, wherever they are imported: `a.b.c` for `from a.b import c`."""
    here = module.name.split(".")
    if module.path.name != "__init__.py":
        here = here[:-1]
    names: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{stem}.{alias.name}" for alias in node.names}
    return names


def module_graph(modules: Mapping[str, Module]) -> Graph:
    """Imports between modules. What is no module itself is a name of the module before it."""
    packages = {module.package for module in modules.values()}
    graph: Graph = {}
    for name in modules.keys() - packages:
        imported = names_imported(modules[name])
        found = {other if other in modules else other.rpartition(".")[0] for other in imported}
        graph[name] = (found & modules.keys()) - packages - {name}
    return graph


def room_of(module: str) -> str:
    """`caal_node.models.backends.base` is in the room `caal_node.models`."""
    return ".".join(module.split(".")[:2])


def room_graph(modules: Graph) -> Graph:
    """Imports between rooms, of those between modules."""
    graph: Graph = defaultdict(set)
    for name, others in modules.items():
        graph[room_of(name)] |= {room_of(other) for other in others} - {room_of(name)}
    return dict(graph)


def rings(graph: Graph) -> list[set[str]]:
    """Groups whose members all import each other, directly or through others."""
    reached = {name: _reached(graph, name) for name in graph}
    groups = {
        frozenset(other for other in reached[name] if name in reached.get(other, ()))
        for name in graph
        if name in reached[name]
    }
    return sorted(map(set, groups), key=sorted)


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    ahead = list(graph[start])
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += graph.get(name, ())
    return found


def backward_imports(modules: Graph, layers: Iterable[Iterable[str]]) -> list[str]:
    """Imports from a room into one of a later layer. Rooms that are in no layer are passed over."""
    height = {room: level for level, rooms in enumerate(layers) for room in rooms}
    return sorted(
        f"{name} imports {other}"
        for name, others in modules.items()
        for other in others
        if room_of(name) in height
        and room_of(other) in height
        and height[room_of(other)] > height[room_of(name)]
    )


def imports_inside(modules: Graph, rooms: Iterable[str]) -> list[str]:
    """The imports that lead from one of the rooms to another of them."""
    inside = set(rooms)
    return sorted(
        f"{name} imports {other}"
        for name, others in modules.items()
        for other in others
        if room_of(name) != room_of(other) and {room_of(name), room_of(other)} <= inside
    )


def classes_named_twice(modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Public classes of one name in two modules of a package, and those modules."""
    homes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, module in modules.items():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[module.package, node.name].append(name)
    return {f"{package}: {name}": at for (package, name), at in homes.items() if len(at) > 1}
