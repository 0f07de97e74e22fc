"""States of readers that wait for a certain text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

from caal_node.reply_parser.scan import prefix_pattern
from caal_node.reply_parser.states import Step, Waiting

_MAX_STOP_CHARS = 64


class Until(Waiting):
    """Waits for one of `stops`; `held` is the end of the text that may become one."""

    __slots__ = ("_finder", "_held", "_prefixes", "_states")

    def __init__(
        self,
        finder: re.Pattern[str],
        prefixes: re.Pattern[str],
        states: dict[str, Until],
        held: str,
    ) -> None:
        super().__init__()
        self._finder = finder
        self._prefixes = prefixes
        self._states = states
        self._held = held

    def step(self, piece: str) -> Step | None:
        text = self._held + piece
        if self._finder.search(text) is not None:
            return None
        return self.keep(piece, (None, self.behind(text), piece))

    def behind(self, text: str) -> Until:
        """The state behind `text`, in which there is no stop."""
        found = self._prefixes.search(text, max(0, len(text) - _MAX_STOP_CHARS))
        held = text[found.start() :] if found is not None else ""
        state = self._states.get(held)
        if state is None:
            state = Until(self._finder, self._prefixes, self._states, held)
            self._states[held] = state
        return state


@lru_cache(maxsize=512)
def until(stops: tuple[str, ...]) -> tuple[re.Pattern[str], int, Until]:
    """What finds the first of `stops`, how long they get, and the state that waits for them."""
    ordered = sorted(stops, key=len, reverse=True)
    finder = re.compile("|".join(re.escape(stop) for stop in ordered))
    states: dict[str, Until] = {}
    states[""] = Until(finder, re.compile(prefix_pattern(stops)), states, "")
    return finder, max(map(len, stops)), states[""]


class Beginning(Waiting):
    """Waits while the text is the beginning of one of `literals`, and not yet the whole of it."""

    __slots__ = ("_literals", "_text")

    def __init__(self, literals: tuple[str, ...], text: str) -> None:
        super().__init__()
        self._literals = literals
        self._text = text

    def step(self, piece: str) -> Step | None:
        text = self._text + piece
        longer = tuple(whole for whole in self._literals if len(whole) > len(text))
        if not any(whole.startswith(text) for whole in longer):
            return None
        return self.keep(piece, (None, Beginning(longer, text), piece))


@lru_cache(maxsize=512)
def beginning(literals: tuple[str, ...], text: str) -> Beginning:
    """The state that waits to know which of `literals` it is that begins with `text`."""
    return Beginning(literals, text)


class Only(Waiting):
    """Waits while nothing comes but what `pattern` matches, which is as many of some characters as
    there are."""

    __slots__ = ("_pattern",)

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self._pattern = re.compile(pattern)

    def step(self, piece: str) -> Step | None:
        whole = self._pattern.fullmatch(piece) is not None
        return self.keep(piece, (None, self, piece)) if whole else None


SPACE = Only(r"\s+")


class Limited(Waiting):
    """The same, but for so many characters only. It counts, so every wait needs one of its own."""

    __slots__ = ("_left", "_state")

    def __init__(self, state: Waiting, left: int) -> None:
        super().__init__()
        self._state = state
        self._left = left

    def step(self, piece: str) -> Step | None:
        self._left -= len(piece)
        step = self._state.steps.get(piece) or self._state.step(piece)
        if step is None or self._left <= 0:
            return None
        self._state = cast("Waiting", step[1])
        return None, self, piece
