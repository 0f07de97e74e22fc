"""Which processes are taken for what a dead host's server has left: those, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.transports.orphan_reaper import (
    MARK,
    host_is_gone,
    kill_left_by_dead_hosts,
    kill_marked,
    new_mark,
)

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
    first, child = psutil.Process(1), psutil.Process(pid)
    assert host_is_gone(mark_of(pid), first), "who is younger than a server cannot be its host"
    assert not host_is_gone(mark_of(1), child)


@given(st.text() | st.integers().map(lambda pid: f"{new_mark().partition('-')[0]}-{pid}"))
def test_a_mark_that_is_none_is_read_without_harm(mark: str) -> None:
    us = psutil.Process()
    assert isinstance(host_is_gone(mark, us), bool)
    assert not host_is_gone(f"no{mark}", us)
