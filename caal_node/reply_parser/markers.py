"""Every marker there is, and the one scanner that finds them in running text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from caal_node.reply_parser.format import Format
from caal_node.reply_parser.formats import formats
from caal_node.reply_parser.scan import prefix_pattern
from caal_node.reply_parser.thinking_markers import ANY_CLOSER, CLOSERS

STRAYS = (
    "</s>",
    "<s>",
    "[INST]",
    "[/INST]",
    "<end_of_turn>",
    "<tool_sep>",
    "</tool_sep>",
    "<response>",
    "</response>",
    "[END FINAL RESPONSE]",
    "<answer>",
    "</answer>",
)
"""Special tokens outside `<|...|>` that leak into replies and belong to no dialect."""

APART = "–"
"""Keeps apart what a marker stood between: no marker and no JSON goes on behind it."""
_SPECIAL = r"<[|｜](?:[^<>|｜\n–]{0,48}(?:[|｜](?:>|\Z)|\Z))"
"""Any `<|...|>`: a special token by its form, whether it is known or not."""
_NAMESPACES = ("atem:", "steptml:", "ifm|", "｜DSML｜")
"""Namespaces of tags that only calls use: every tag in them is a marker."""
_IN_NAMESPACE = "</?(?:" + "|".join(map(re.escape, _NAMESPACES)) + r")[^<>\n–]{0,120}"
_CUT_NAMESPACE = (
    "</?(?:"
    + "|".join(re.escape(name[:length]) for name in _NAMESPACES for length in range(len(name)))
    + r")\Z"
)

MAX_MARKER_CHARS = 128
MIN_CUT_CHARS = 3
"""The beginning of a marker that is this long at a reply's end was meant as one."""

TRIGGERS = re.compile(r"[<>\[\]{}`◁\n]")
"""Characters that may begin a marker, a bare call, a code fence or a new line, or end an object."""


@dataclass(frozen=True, slots=True)
class Markers:
    """What the scanner can find."""

    openers: dict[str, Format]
    thinking: frozenset[str]
    closing_thinking: frozenset[str]
    strays: frozenset[str]
    """Markers that mean nothing where running text is."""
    scan: re.Pattern[str]
    """Finds the next marker, its beginning at the text's end, or a single character that may
    begin a bare call (`{`, `[`), a code fence or a new line."""
    strip: re.Pattern[str]
    """All complete markers, to keep them out of text that is spoken as it stands."""


@cache
def markers() -> Markers:
    """Made once; the dialects do not change."""
    openers = {
        opener: dialect
        for dialect in formats()
        if not dialect.at_line
        for opener in dialect.openers
    }
    thinking = frozenset(CLOSERS)
    closing = frozenset(ANY_CLOSER)
    strays = {*STRAYS}
    for dialect in formats():
        strays.update(dialect.strays, () if dialect.tentative else dialect.closers)
    every = {*openers, *thinking, *closing, *CLOSERS.values(), *strays}
    solid = sorted(
        (m for m in every if m not in openers or not openers[m].tentative), key=len, reverse=True
    )
    return Markers(
        openers=openers,
        thinking=thinking,
        closing_thinking=closing,
        strays=frozenset(strays),
        scan=re.compile(
            prefix_pattern(every)
            + "|"
            + _SPECIAL
            + "|"
            + _IN_NAMESPACE
            + r"(?:>|\Z)"
            + "|"
            + _CUT_NAMESPACE
            + r"|[{\[\n]|`{1,3}"
        ),
        strip=re.compile(
            "|".join(map(re.escape, solid))
            + r"|<[|｜][^<>|｜\n–]{0,48}[|｜]>"
            + f"|{_IN_NAMESPACE}>"
        ),
    )


def is_marker(text: str) -> bool:
    """Whether `text` is a whole marker, and not just the beginning of one."""
    found = markers()
    return found.strip.fullmatch(text) is not None or text in found.openers


def without_markers(text: str) -> str:
    """`text` without its markers. What stood on either side of one must not become another, nor a
    call's name, so white space is left in its place."""
    strip = markers().strip
    return strip.sub(f" {APART} ", strip.sub(" ", text))


def cut_marker(text: str) -> int:
    """Where the beginning of a marker stands at the end of `text`; its length if there is none."""
    scan = markers().scan
    at = max(0, len(text) - MAX_MARKER_CHARS)
    while (found := scan.search(text, at)) is not None:
        if found.end() == len(text) and text[found.start()] in "<[]◁":
            return found.start()
        at = found.end() if found.end() > found.start() else found.end() + 1
    return len(text)


def spoken_rest(text: str) -> str:
    """What may be spoken of a marker's beginning that the reply broke off."""
    return text if len(text) < MIN_CUT_CHARS else ""
