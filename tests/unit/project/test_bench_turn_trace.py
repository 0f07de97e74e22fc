"""What counts as a file, as a move, and as before the first byte, on files made for it."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.bench.turn_trace import TurnTrace, TurnTracer

FILES = {
    "__init__.py": "",
    "front.py": """
from house.back import add, grow, sorted_by, talk

def plain(): return add(1, 2)
def alone(): return len([n for n in (1, 2)])
def through_a_library(): return sorted_by([2, 1], lambda n: n)
def steps(): return list(grow())
async def waits(): return await talk()
""",
    "back.py": """
import asyncio, types

@types.coroutine
def pause(): yield

def add(a, b): return a + b
def sorted_by(values, key): return sorted(values, key=key)
def grow():
    yield 1
    yield 2
async def talk():
    await pause()
    return 1
""",
}
FRONT, BACK = str(Path("house/front.py")), str(Path("house/back.py"))


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    (tmp_path / "house").mkdir()
    for name, text in FILES.items():
        (tmp_path / "house" / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield SimpleNamespace(front=import_module("house.front"), root=tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "house"]:
        del sys.modules[name]


def traced(house: SimpleNamespace, work: Callable[[], object], port: int = 0) -> TurnTrace:
    tracer, before = TurnTracer(house.root, ["house"]), sys.getprofile()
    tracer.install()
    try:
        with tracer.tracing(port) as trace:
            work()
    finally:
        tracer.uninstall()
        sys.setprofile(before)
    return trace


def test_a_call_into_another_file_and_back_is_two_moves(house: SimpleNamespace) -> None:
    trace = traced(house, house.front.plain)
    assert trace.moves == {(FRONT, BACK): 1, (BACK, FRONT): 1}
    assert trace.calls == {FRONT: 1, BACK: 1}
    assert trace.before_first_byte is None


def test_what_stays_in_a_file_is_no_move(house: SimpleNamespace) -> None:
    trace = traced(house, house.front.alone)
    assert (trace.moves.total(), set(trace.calls)) == (0, {FRONT})


def test_a_library_in_between_is_not_seen(house: SimpleNamespace) -> None:
    # Into sorted_by, out of it to the key's function twice, and back each time.
    assert traced(house, house.front.through_a_library).moves.total() == 6


def test_every_resumption_counts(house: SimpleNamespace) -> None:
    # Twice to a value, and once to the end.
    assert traced(house, house.front.steps).moves == {(FRONT, BACK): 3, (BACK, FRONT): 3}


def test_a_wait_is_a_move_back_and_going_on_one_forth(house: SimpleNamespace) -> None:
    def work() -> None:
        waiting = house.front.waits()
        waiting.send(None)
        with pytest.raises(StopIteration):
            waiting.send(None)

    assert traced(house, work).moves == {(FRONT, BACK): 2, (BACK, FRONT): 2}


def test_threads_are_seen_and_each_has_a_stack_of_its_own(house: SimpleNamespace) -> None:
    def work() -> None:
        thread = threading.Thread(target=house.front.plain)
        thread.start()
        thread.join()

    assert traced(house, work).moves.total() == 2


def test_moves_before_the_first_byte_to_the_server_are_told_apart(house: SimpleNamespace) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", 0)) as other,
        closing(socket.create_connection(other.getsockname())) as elsewhere,
        closing(socket.create_connection(server.getsockname())) as connected,
    ):

        def work() -> None:
            house.front.plain()
            elsewhere.send(b"x")
            house.front.plain()
            connected.send(b"x")
            house.front.plain()
            connected.send(b"x")

        trace = traced(house, work, server.getsockname()[1])
    assert (trace.before_first_byte, trace.moves.total()) == (4, 6)
