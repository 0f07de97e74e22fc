"""Which tests run side by side with pytest-xdist, and which have the machine to themselves.

A file's tests stay in one worker and in their order. Those that ask a model on this machine, or
listen and speak with one, all run in one worker, one after the other: each of them fills both
cores, and the model servers of the session are started once. Tests marked `alone` measure what a
person hears, to the tenth of a second; `--alone` says whether they are in this run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

MODELS = frozenset({"ollama", "model", "speech"})
"""Marks of tests that run models on this machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--alone",
        choices=("with", "without", "only"),
        default="with",
        help="tests marked `alone`: with all the others, left out, or nothing but them",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spares importing hundreds of files for the few tests in them that run alone."""
    if config.getoption("--alone") != "only" or collection_path.suffix != ".py":
        return None
    return "mark.alone" not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = list(_left_out(items, str(config.getoption("--alone"))))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_group(item)))
    # A worker takes group after group as they come, and what takes longest must not come last.
    items.sort(key=_from_long_to_short)


def _left_out(items: Iterable[pytest.Item], alone: str) -> Iterable[pytest.Item]:
    if alone == "with":
        return ()
    wanted = alone == "only"
    return (item for item in items if (item.get_closest_marker("alone") is not None) != wanted)


def _group(item: pytest.Item) -> str:
    marks = {mark.name for mark in item.iter_markers()}
    return "models" if marks & MODELS else item.nodeid.partition("::")[0]


def _from_long_to_short(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    if group is not None and group.args == ("models",):
        return 0
    return 2 if item.nodeid.startswith("tests/unit/") else 1
