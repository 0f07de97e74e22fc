"""Keeps the results of tools after the window has dropped the calls that they belong to.

A person may ask "tell me more about the second one" minutes after a list was read out. The list is
kept here in its order, and the model gets it again with numbers. A program may add what it knows by
itself: `agent.tool_data.add("doorbell", {"seen": "a parcel"})` is read in the next turn.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, Final, cast

from caal_node.context.one_line_json import MIN_CHARS, JsonTexts, noted_items, to_line

MAX_ENTRIES: Final = 32
"""Results that are kept. A conversation refers back to fewer."""
MAX_BYTES: Final = 131_072
"""UTF-8 bytes that are kept: 128 KiB, which is all entries at their largest."""
MAX_AGE_S: Final = 1_800.0
"""Seconds that a result is kept. What a tool said half an hour ago is likely to have changed."""
ENTRY_CHARS: Final = 4_000
"""Characters of one result. A longer one would leave no room for others."""
ARGUMENT_CHARS: Final = 120
"""Characters of a call's arguments: enough to tell two searches apart."""
RENDER_CHARS: Final = 2_400
"""Characters of a rendered text by default: about 800 tokens."""

DATA_HEADING: Final = "(Earlier tool results, for reference. Not said by the user.)"
_OWN: Final = "own_"
"""The beginning of the ids of what no call has brought."""

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class ToolData:
    """One kept result. It is text, so that nobody can change it and its size is known."""

    call_id: str
    tool: str
    arguments: str = field(repr=False)
    line: str = field(repr=False)
    added_s: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """A result that `to_line` has written already."""

    text: str


class ToolDataCache:
    """The newest results of tools. Past a limit of number, size or age the oldest are deleted.

    Only successful results belong here, as nobody refers back to an error. Call ids must be unique
    in a conversation, as they are the keys.
    """

    def __init__(
        self,
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        max_age_s: float = MAX_AGE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_entries < 1 or max_bytes < 1 or max_age_s <= 0:
            raise ValueError("max_entries, max_bytes and max_age_s must be above zero")
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._clock = clock
        self._entries: dict[str, ToolData] = {}
        self._size_bytes = 0
        self._added = 0

    def __len__(self) -> int:
        self._expire()
        return len(self._entries)

    def __contains__(self, call_id: object) -> bool:
        self._expire()
        return call_id in self._entries

    @property
    def size_bytes(self) -> int:
        """The UTF-8 bytes of everything that is kept."""
        self._expire()
        return self._size_bytes

    def __iter__(self) -> Iterator[ToolData]:
        """Everything that is kept, the oldest first."""
        self._expire()
        return iter(tuple(self._entries.values()))

    def add(self, name: str, data: Any) -> None:
        """Keep what a program knows by itself, under a name that tells the model what it is.

        The model reads it from the next turn on, in front of the person's words, and what was added
        under the same name before stays. Data without content is not kept.
        """
        self._added += 1
        self.add_result(f"{_OWN}{self._added}", name, "", data)

    @property
    def own_ids(self) -> tuple[str, ...]:
        """The ids of what `add` has added, the oldest first."""
        return tuple(entry.call_id for entry in self if entry.call_id.startswith(_OWN))

    def message(
        self, call_ids: Iterable[str] | None = None, *, max_chars: int = RENDER_CHARS
    ) -> str:
        """Return the message by which the model gets the data of `call_ids`, as `render` writes it.

        None takes everything that is kept. The message is empty where nothing is.
        """
        ids = [entry.call_id for entry in self] if call_ids is None else call_ids
        text = self.render(ids, max_chars=max_chars)
        return f"{DATA_HEADING}\n{text}" if text else ""

    def add_result(
        self, call_id: str, tool: str, arguments: Mapping[str, Any] | str, value: Any
    ) -> None:
        """Keep the result of a call, in place of an earlier one of the same call.

        A value that is too large is shortened with a note (see `to_line`). Values without content
        are not kept. A call that brought the same as an earlier one takes its place, as a list
        that is read out twice would fill the room of others.
        """
        if value is None or (isinstance(value, Sized) and len(value) == 0):
            return
        self._remove(call_id)
        # A character has at most four bytes, so the text is never larger than the whole cache.
        max_chars = max(MIN_CHARS, min(ENTRY_CHARS, self._max_bytes // 4))
        line = value.text if isinstance(value, WrittenLine) else None
        if line is None or len(line) > max_chars:
            line = to_line(value if line is None else line, max_chars=max_chars)
        argument_line = to_line(arguments, max_chars=ARGUMENT_CHARS) if arguments else "{}"
        if not call_id.startswith(_OWN):
            same = (tool, argument_line, line)
            for entry in tuple(self._entries.values()):
                if (entry.tool, entry.arguments, entry.line) == same:
                    self._remove(entry.call_id)
        size = sum(len(text.encode()) for text in (call_id, tool, argument_line, line))
        self._entries[call_id] = ToolData(call_id, tool, argument_line, line, self._clock(), size)
        self._size_bytes += size
        self._expire()

    def clear(self) -> None:
        self._entries.clear()
        self._size_bytes = 0

    def render(self, call_ids: Iterable[str], *, max_chars: int = RENDER_CHARS) -> str:
        """Write the kept results of these calls, oldest call first, in at most `max_chars`.

        Each call is a block: its tool and arguments, then its result, with the items of lists on
        numbered lines. The newest result gets half of the room, the one before it half of the
        rest, and so on; a line says how many did not fit. The text is empty when nothing is kept.
        """
        self._expire()
        found = [self._entries[each] for each in dict.fromkeys(call_ids) if each in self._entries]
        blocks: list[str] = []
        left = max_chars
        for entry in reversed(found):
            missing = len(found) - len(blocks)
            reserve = len(_omitted_note(missing)) + 1 if missing > 1 else 0
            room = left - reserve
            # Half of what is left, so that one long result does not hide all those before it.
            block = (_block(entry, room // 2) if missing > 1 else None) or _block(entry, room)
            if block is None:
                break
            blocks.append(block)
            left -= len(block) + 1
        missing = len(found) - len(blocks)
        if blocks and missing and len(note := _omitted_note(missing)) <= left:
            blocks.append(note)
        return "\n".join(reversed(blocks))

    def _expire(self) -> None:
        oldest_s = self._clock() - self._max_age_s
        while self._entries:
            oldest = next(iter(self._entries.values()))
            if (
                oldest.added_s >= oldest_s
                and len(self._entries) <= self._max_entries
                and self._size_bytes <= self._max_bytes
            ):
                return
            self._remove(oldest.call_id)

    def _remove(self, call_id: str) -> None:
        if (entry := self._entries.pop(call_id, None)) is not None:
            self._size_bytes -= entry.size_bytes


def _omitted_note(count: int) -> str:
    return f"({count} older results not shown)" if count > 1 else "(1 older result not shown)"


def _block(entry: ToolData, max_chars: int) -> str | None:
    """Write the entry in at most `max_chars`, or return None where that is too little for it."""
    own = entry.call_id.startswith(_OWN)
    title = f"{entry.tool}:" if own else f"{entry.tool} {entry.arguments}:"
    room = max_chars - len(title) - 1
    limit = room
    line = entry.line
    while True:
        if len(line) <= limit and len(body := _numbered(line)) <= room:
            return f"{title}\n{body}"
        limit = limit * 9 // 10  # the numbers and new lines mostly take a tenth
        if limit < MIN_CHARS:
            return None
        line = to_line(entry.line, max_chars=limit)


def _numbered(line: str) -> str:
    """Put the items of a JSON line's outermost lists on lines numbered from 1.

    So the model can look up "the second one".
    """
    value = JsonTexts().read(line)
    if isinstance(value, list):
        return "\n".join(_items(value))
    if not isinstance(value, dict):
        return line
    members = cast(dict[str, Any], value)
    lists = {
        name: cast(list[Any], each)
        for name, each in members.items()
        if each and isinstance(each, list)
    }
    others = {name: each for name, each in members.items() if name not in lists}
    lines = [_encode(others)] if others or not lists else []
    for name, each in lists.items():
        lines += [f"{name}:", *_items(each)]
    return "\n".join(lines)


def _items(values: list[Any]) -> list[str]:
    return [
        each if noted_items([each]) else f"{number}. {_item_text(each)}"
        for number, each in enumerate(values, 1)
    ]


def _item_text(value: object) -> str:
    if isinstance(value, str) and len(value.splitlines()) == 1:
        return value
    return _encode(value)
