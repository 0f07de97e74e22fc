"""Which tests run when: in `make test` or in `make test-rest`, side by side or alone.

`--part=quick` leaves out the long tests: those that need a model, a room or a real server, that run
whole commands, and those marked `long`. `--part=long` has these alone, `--part=rest` the property
tests once more as well, with all their examples.

A file's tests stay in one worker and in their order. Those that ask a model on this machine, or
listen and speak with one, all run in one worker, one after the other: each of them fills both
cores, and the model servers of the session are started once. Tests marked `alone` measure what a
person hears, to the tenth of a second; `--alone` says whether they are in this run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

MODELS = frozenset({"ollama", "model", "speech"})
"""Marks of tests that run models on this machine."""
LONG = MODELS | {"livekit", "alone", "long"}
"""Marks of tests that `make test` leaves out, beside all of `tests/e2e`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--alone",
        choices=("with", "without", "only"),
        default="with",
        help="tests marked `alone`: with all the others, left out, or nothing but them",
    )
    parser.addoption(
        "--part",
        choices=("all", "quick", "long", "rest"),
        default="all",
        help="all tests, those of `make test`, the others, or those of `make test-rest`",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spares importing hundreds of files for the few tests in them that run alone."""
    if config.getoption("--alone") != "only" or collection_path.suffix != ".py":
        return None
    return "mark.alone" not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = str(config.getoption("--part"))
    left_out = [
        *_left_out(items, str(config.getoption("--alone"))),
        *(item for item in items if not _is_in(part, item)),
    ]
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


def _is_in(part: str, item: pytest.Item) -> bool:
    is_long = item.nodeid.startswith("tests/e2e/") or any(
        mark.name in LONG for mark in item.iter_markers()
    )
    if part == "rest":
        return is_long or is_hypothesis_test(getattr(item, "obj", None))
    return part == "all" or is_long == (part == "long")


def _group(item: pytest.Item) -> str:
    marks = {mark.name for mark in item.iter_markers()}
    return "models" if marks & MODELS else item.nodeid.partition("::")[0]


def _from_long_to_short(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    if group is not None and group.args == ("models",):
        return 0
    return 2 if item.nodeid.startswith("tests/unit/") else 1
