"""Which processes are taken for what a dead host's server has left: those, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.transports.process import (
    MARK,
    end_group,
    end_groups_of_dead_hosts,
    host_is_gone,
    kill_left_by_dead_hosts,
    kill_marked,
    make_group,
    new_mark,
)
from tests.stand_ins.kill_matrix import has_control_groups

SLEEPS = [sys.executable, "-I", "-S", "-c", "print(flush=True); import time; time.sleep(600)"]
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, *sys.argv[1:]], env={})
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def start(running: list[subprocess.Popen[str]], mark: str, *command: str) -> tuple[int, str]:
    """Start a process with a mark, and give its pid and its first line."""
    process = subprocess.Popen(
        command or SLEEPS, env={MARK: mark}, stdout=subprocess.PIPE, text=True
    )
    running.append(process)
    assert process.stdout is not None
    return process.pid, process.stdout.readline().strip()


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def mark_of(host: int) -> str:
    return new_mark().replace(f"-{os.getpid()}-", f"-{host}-")


def dead() -> int:
    """The pid of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    process.wait()
    return process.pid


def test_what_a_dead_host_left_is_killed_and_what_a_living_one_runs_is_not(
    running: list[subprocess.Popen[str]],
) -> None:
    ours, _ = start(running, new_mark())
    foreign, _ = start(running, "1" + mark_of(dead()))  # of another container
    left, child = start(
        running, mark_of(dead()), sys.executable, "-I", "-S", "-c", PARENT, *SLEEPS[1:]
    )
    kill_left_by_dead_hosts()
    assert lives(ours)
    assert lives(foreign)
    assert not lives(left)
    assert not lives(int(child)), "it has no mark, but descends from one that has"


def test_a_mark_is_killed_alone_and_spares_who_is_to_be_spared(
    running: list[subprocess.Popen[str]],
) -> None:
    mark = new_mark()
    (supervisor, _), (server, _) = start(running, mark), start(running, mark)
    other, _ = start(running, new_mark())
    kill_marked(mark, supervisor)
    assert [lives(pid) for pid in (supervisor, server, other)] == [True, False, True]


def test_a_number_that_was_given_out_again_is_no_host(
    running: list[subprocess.Popen[str]],
) -> None:
    pid, _ = start(running, "")
    first, child = psutil.Process(1).create_time(), psutil.Process(pid).create_time()
    assert host_is_gone(mark_of(pid), first), "who is younger than a server cannot be its host"
    assert not host_is_gone(mark_of(1), child)


@given(st.text() | st.integers().map(lambda pid: f"{new_mark().partition('-')[0]}-{pid}"))
def test_a_mark_that_is_none_is_read_without_harm(mark: str) -> None:
    us = psutil.Process().create_time()
    assert isinstance(host_is_gone(mark, us), bool)
    assert not host_is_gone(f"no{mark}", us)


needs_groups = pytest.mark.skipif(
    not has_control_groups(), reason="no control groups are to be had here"
)


def enter(group: str, pid: int) -> None:
    (Path(group) / "cgroup.procs").write_text(str(pid))


@needs_groups
def test_a_group_ends_with_all_that_is_in_it_and_in_groups_below_it(
    running: list[subprocess.Popen[str]],
) -> None:
    group = make_group(new_mark())
    (inner := Path(group) / "mcp-bridge-inner").mkdir()
    (plain, _), (below, _), (other, _) = (start(running, "") for _ in range(3))
    enter(group, plain)
    enter(str(inner), below)
    end_group(group)
    assert [lives(pid) for pid in (plain, below, other)] == [False, False, True]
    assert not Path(group).exists()
    end_group(group)  # a second time it is nothing


@needs_groups
def test_the_groups_of_dead_hosts_end_and_those_of_living_ones_do_not(
    running: list[subprocess.Popen[str]],
) -> None:
    dead_group, ours = make_group(mark_of(dead())), make_group(new_mark())
    (left, _), (kept, _) = start(running, ""), start(running, "")
    enter(dead_group, left)
    enter(ours, kept)
    try:
        end_groups_of_dead_hosts()
        assert [lives(left), lives(kept)] == [False, True]
        assert [Path(dead_group).exists(), Path(ours).exists()] == [False, True]
    finally:
        end_group(ours)


def test_where_no_group_is_to_be_had_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refused)
    assert make_group(new_mark()) == ""
    end_group("")
