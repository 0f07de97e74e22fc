"""A test fails when it leaves a process that nobody waited for.

Its transport would outlive the test's event loop, and the garbage collector would report it in
whichever test runs by then.
"""

from __future__ import annotations

from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import Generator
from typing import Any

import pytest

_started: set[Any] = set()
_init = BaseSubprocessTransport.__init__


def _recorded_init(self: Any, *arguments: Any, **named: Any) -> None:
    _started.add(self)  # No collector takes it before its test is over.
    _init(self, *arguments, **named)


def pytest_configure() -> None:
    setattr(BaseSubprocessTransport, "__init__", _recorded_init)  # noqa: B010 - typed as final


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    result = yield  # The fixtures' teardown closes the test's loop.
    # What is over has let go of its loop.
    gone = {each for each in _started if each._loop is None or each._loop.is_closed()}
    left = [each for each in gone if each._loop is not None and _is_open(each)]
    _started.difference_update(gone)
    for each in left:
        each._closed = True  # It is told here, and not by the collector in another test as well.
    if left:
        pids = sorted(each.get_pid() for each in left)
        pytest.fail(f"{item.nodeid} waited for no end of the processes {pids}")
    return result


def _is_open(transport: Any) -> bool:
    return transport.get_returncode() is None or not transport.is_closing()
