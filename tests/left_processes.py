"""A test fails when it leaves a process that nobody waited for.

Its transport would outlive the test's event loop, and the garbage collector would report it in
whichever test runs by then.
"""

from __future__ import annotations

import weakref
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import Generator
from typing import Any

import pytest

_started: weakref.WeakSet[Any] = weakref.WeakSet()
_init = BaseSubprocessTransport.__init__


def _recorded_init(self: Any, *arguments: Any, **named: Any) -> None:
    _started.add(self)
    _init(self, *arguments, **named)


def pytest_configure() -> None:
    setattr(BaseSubprocessTransport, "__init__", _recorded_init)  # noqa: B010 - typed as final


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    result = yield  # The fixtures' teardown closes the test's loop.
    gone = [each for each in _started if each._loop.is_closed()]
    left = [t.get_pid() for t in gone if t.get_returncode() is None or not t.is_closing()]
    _started.difference_update(gone)
    if left:
        pytest.fail(f"{item.nodeid} waited for no end of the processes {left}")
    return result
