"""One finding, and how a look is run: with a deadline, and never as an exception."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from caal_node.config.settings import Settings

Status: TypeAlias = Literal["ok", "warn", "fail"]
T = TypeVar("T")

MAX_FOUND_CHARS: Final = 300
"""Servers' own words are quoted in findings, and may be long."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part; `mend` is one line that says what to do, or a hint."""

    name: str
    status: Status
    found: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class FindingCheck:
    """A function that looks at one part, and how long it may take."""

    name: str
    at: Callable[[Settings], Awaitable[Sequence[Finding]]]
    deadline_s: float


def ok(name: str, found: str, hint: str = "") -> Finding:
    return Finding(name, "ok", found, hint)


def warn(name: str, found: str, mend: str) -> Finding:
    return Finding(name, "warn", one_line(found), one_line(mend))


def fail(name: str, found: str, mend: str) -> Finding:
    return Finding(name, "fail", one_line(found), one_line(mend))


def told(name: str, message: str, separator: str = "; ", mend: str = "See above.") -> Finding:
    """A failure from an error that tells its own mend after the first `separator`."""
    found, _, own = message.partition(separator)
    return fail(name, found, own or mend)


def one_line(text: str) -> str:
    """Without control characters (a terminal would obey them) and without an end."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= MAX_FOUND_CHARS else f"{plain[:MAX_FOUND_CHARS]}..."


async def take(look: FindingCheck, settings: Settings) -> Sequence[Finding]:
    """Look, and give a finding whatever happens."""
    try:
        async with asyncio.timeout(look.deadline_s):
            return await look.at(settings)
    except TimeoutError:
        found = f"no answer within {look.deadline_s:g} s"
        return [fail(look.name, found, "Check that it runs and can be reached from here.")]
    except Exception as error:  # one look must not hide what the others found
        found = f"could not be checked ({type(error).__name__}: {error})"
        return [fail(look.name, found, "This is a fault of doctor itself: please report it.")]


async def in_thread(work: Callable[[], T]) -> T:
    """Run what blocks. Unlike asyncio.to_thread's, a thread that hangs does not hold the exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # T, where there is no error

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True).start()
    return await done
