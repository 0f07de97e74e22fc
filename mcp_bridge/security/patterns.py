"""Looks for strangers' regular expressions in linear time and bounded memory.

Python's own engine may take for ever (`^(a+)+$`) and holds the interpreter meanwhile. So patterns
go to the engine of Rust, which never goes back in a text, in the dialect of ECMA-262 as
jsonschema-rs reads it. What it does not take (look-ahead, back references, huge repetitions) cannot
be looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from jsonschema_rs import RegexOptions, validator_for

MAX_PATTERN_CHARS: Final = 256
"""The length of a pattern; one for a date with its time takes some 120."""
_MAX_CLASSES: Final = 24
"""How often `\\d`, `\\s`, `\\p{...}` and the like may stand in a pattern: the time for reading them
grows with the square of their number, to 3 ms for so many."""
_CLASS: Final = re.compile(r"\\[dDwWsSpP]")
_ESCAPED: Final = re.compile(r"\\[^<>]", re.DOTALL)
_OTHER_DIALECT: Final = re.compile(r"\(\?[a-zA-Z-]|\[\^?\]|\[[^\]]*(?:\[|&&|--|~~)|[*+?}]\+|\\[<>]")
"""Flags within the pattern, classes that Rust reads as sets of sets, possessive repetition, and the
edges of words: other things, or nothing, in ECMA-262, and some are slow to compile."""
_SIZES: Final = ((2_000, 0.3), (4_000, 0.6), (8_000, 2.0), (64_000, 8.0))
"""The bytes that a compiled pattern may have, and the microseconds that each character of a text
takes it at worst. A UUID's has 4,000."""
_STATES_BYTES: Final = 200_000
"""So much of a pattern's states the engine may keep while it looks."""
_KEPT: Final = 128
"""So many patterns are kept, those of many tools; 35 MB where all of them are hostile."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that can be looked for."""

    is_in: Callable[[str], bool]
    char_us: float
    """The microseconds that each character of a text takes at worst."""


def compile_us(pattern: str) -> float:
    """Gives the microseconds that `compiled` may take for a pattern that is new, as measured."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return 0.0
    classes, repeats, chars = len(_CLASS.findall(pattern)), pattern.count("{"), len(pattern)
    return 200.0 + 6 * chars + chars**2 / 20 + 6 * classes**2 + 150 * repeats


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> Pattern | None:
    """Gives the pattern ready to be looked for; None where that cannot be done within bounds."""
    if len(pattern) > MAX_PATTERN_CHARS or len(_CLASS.findall(pattern)) > _MAX_CLASSES:
        return None
    if _OTHER_DIALECT.search(_ESCAPED.sub("x", pattern)):
        return None
    for size, char_us in _SIZES:
        options = RegexOptions(size_limit=size, dfa_size_limit=_STATES_BYTES)
        try:
            found = validator_for({"pattern": pattern}, pattern_options=options, offline=True)
        except ValueError:
            continue
        return Pattern(found.is_valid, char_us)
    return None
