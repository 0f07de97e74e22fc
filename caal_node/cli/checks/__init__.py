"""The checks of `caal-node doctor`: each is one small function that returns its findings.

A check is run with a deadline, and never ends in an exception. To add one, write it in the module
of its subject, and name it with a deadline in `doctor.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from caal_node.config.settings import Settings

Status: TypeAlias = Literal["ok", "warn", "fail"]
T = TypeVar("T")

MAX_FOUND_CHARS: Final = 300
"""Servers' own words are quoted in findings, and may be long."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part; `fix` is one line that says what to do, or gives a hint."""

    name: str
    status: Status
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A function that checks one part, and how long it may take."""

    name: str
    run: Callable[[Settings], Awaitable[Sequence[Finding]]]
    deadline_s: float


def ok(name: str, found: str, hint: str = "") -> Finding:
    return Finding(name, "ok", found, hint)


def warn(name: str, found: str, fix: str) -> Finding:
    return Finding(name, "warn", one_line(found), one_line(fix))


def fail(name: str, found: str, fix: str) -> Finding:
    return Finding(name, "fail", one_line(found), one_line(fix))


def fail_from(name: str, message: str, separator: str = "; ", fix: str = "See above.") -> Finding:
    """Return a failure from an error's message, which has its own fix after `separator`."""
    found, _, own = message.partition(separator)
    return fail(name, found, own or fix)


def one_line(text: str) -> str:
    """Return the text in one line, cut, without control characters (a terminal would obey them)."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= MAX_FOUND_CHARS else f"{plain[:MAX_FOUND_CHARS]}..."


async def run_check(check: Check, settings: Settings) -> Sequence[Finding]:
    """Run the check, and return a finding whatever happens."""
    try:
        async with asyncio.timeout(check.deadline_s):
            return await check.run(settings)
    except TimeoutError:
        found = f"no answer within {check.deadline_s:g} s"
        return [fail(check.name, found, "Check that it runs and can be reached from here.")]
    except Exception as error:  # one check must not hide what the others found
        found = f"could not be checked ({type(error).__name__}: {error})"
        return [fail(check.name, found, "This is a fault of doctor itself: please report it.")]


async def in_thread(work: Callable[[], T]) -> T:
    """Run what blocks. Unlike asyncio.to_thread's, a thread that hangs does not hold the exit."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # what has begun is not cancelled, only given up

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)
