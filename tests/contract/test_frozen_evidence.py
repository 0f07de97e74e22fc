"""What a move or a merge of code must not change: see `tests/frozen.py`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.frozen import FOLDER, MARK_CHARS, PARTS, RECORD, WRITTEN, corpora, events_of, writers

LINES_SHOWN: Final = 40
CHARS_SHOWN: Final = 2_000


@pytest.mark.parametrize(
    "part", [pytest.param("tools", marks=pytest.mark.long), *sorted(PARTS.keys() - {"tools"})]
)
async def test_nothing_frozen_has_changed(part: str) -> None:
    now = dict(await PARTS[part]())
    if part == "words" and writers() != (FOLDER / "writers.txt").read_text(encoding="utf-8"):
        # Other versions write these otherwise; what is ours alone is compared all the same.
        for name in WRITTEN:
            del now[name]
    before = {name: (FOLDER / name).read_text(encoding="utf-8") for name in now}
    changed = [name for name in now if now[name] != before[name]]
    told = "\n".join(line for name in changed for line in difference(name, before[name], now[name]))
    assert not changed, (
        f"{', '.join(changed)} changed:\n{told}\n"
        f"If that is meant, record it anew: {RECORD} {part}; and read the diff."
    )


def difference(name: str, before: str, now: str) -> Iterator[str]:
    """Say what has changed in a file, a part of it at most."""
    if name == "requests.json":
        yield from changed_requests(json.loads(before), json.loads(now))
    elif name == "replies_read.json":
        yield from changed_replies(json.loads(before), json.loads(now))
    else:
        lines = difflib.unified_diff(
            before.splitlines(), now.splitlines(), f"{name} as frozen", f"{name} now", "", "", 1, ""
        )
        yield from (line[:CHARS_SHOWN] for line, _ in zip(lines, range(LINES_SHOWN), strict=False))


def changed_requests(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Say which requests of each conversation have other bytes."""
    for talk in sorted({*before, *now}):
        old, new = before.get(talk, []), now.get(talk, [])
        other = [
            at for at, (was, now_is) in enumerate(zip(old, new, strict=False)) if was != now_is
        ]
        if old != new:
            first = f", from number {other[0]} on" if other else ""
            yield f"{talk}: {len(old)} requests, now {len(new)}; {len(other)} differ{first}"


def changed_replies(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Say which replies are read in another way, and what the first of each file gives now."""
    given = corpora()
    for file in sorted({*before, *now}):
        old, new = before.get(file, {}), now.get(file, {})
        if old == new:
            continue
        yield f"{file}: {old.get('replies')} replies, events {old.get('events')}"
        yield f"  now {new.get('replies')} replies, events {new.get('events')}"
        old_marks, new_marks = "".join(old.get("marks", ())), "".join(new.get("marks", ()))
        for at, reply in enumerate(given.get(file, ())):
            part = slice(at * MARK_CHARS, (at + 1) * MARK_CHARS)
            if old_marks[part] != new_marks[part]:
                yield f"  reply {at}: {reply.text!r}"
                yield f"  gives {events_of(reply)}"[:CHARS_SHOWN]
                break
