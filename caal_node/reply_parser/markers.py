"""The markers of all formats, and the one scanner that finds them in running text.

A marker is a text that is never spoken: an opener or a closer of a format, a special token, or the
beginning and the end of thinking. `caal_node.reply_parser.formats.MARKERS` is the table of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from caal_node.reply_parser.cursor import Cursor, Steps

THINKING_BLOCKS: dict[str, str] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<Think>": "</Think>",
    "<THINK>": "</THINK>",
    "<Thinking>": "</Thinking>",
    "<THINKING>": "</THINKING>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "<longcat_think>": "</longcat_think>",
    "<ifm|think>": "</ifm|think>",
    "<mm:think>": "</mm:think>",
    "◁think▷": "◁/think▷",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|content_thinking|>": "<|end_message|>",
}
"""Opener and closer of each family's thinking. Formats that mark it by a header read it there."""

LINE_THINKING: dict[str, str] = {
    f"<{tag}>": f"</{tag}>"
    for word in (
        *("analysis", "reflection", "scratchpad", "thoughts", "planning", "thought_process"),
        *("inner_monologue", "inner_thoughts", "inner_thought", "chain_of_thought"),
    )
    for tag in (word, word.capitalize(), word.upper())
}
"""Opener and closer of thinking for which prompts ask. People write these words, too, so one
counts at the beginning of a line only."""

THINKING_CLOSERS: tuple[str, ...] = (
    *(closer for closer in THINKING_BLOCKS.values() if closer != "<|end_message|>"),
    # Not <|end_message|>, as it ends speech, too.
    "<channel|>",
    "<unused95>",
    "[BEGIN FINAL RESPONSE]",  # Apriel's, behind thinking that nothing opens.
)
"""What may end thinking that began in the prompt, or whose opener was never written."""

_CLOSING_TAGS = tuple(closer for closer in THINKING_CLOSERS if closer.startswith("</"))


def thinking_closers(opener: str) -> tuple[str, ...]:
    """Return what closes the thinking that `opener` begins, its own closer first. Models open with
    one tag and close with another."""
    closer = THINKING_BLOCKS.get(opener) or LINE_THINKING[opener]
    if closer not in _CLOSING_TAGS and closer not in LINE_THINKING.values():
        return (closer,)
    spelled = (each for each in LINE_THINKING.values() if each.lower() == closer.lower())
    return tuple(dict.fromkeys((closer, *spelled, *_CLOSING_TAGS)))


_STRAYS = (
    *("</s>", "<s>", "[INST]", "[/INST]", "<end_of_turn>", "<tool_sep>", "</tool_sep>"),
    *("<response>", "</response>", "[END FINAL RESPONSE]", "<answer>", "</answer>"),
)
"""Special tokens outside `<|...|>` that leak into replies and belong to no format."""

SEPARATOR = "–"
"""Stands between what a marker separated: no marker and no JSON continues across it."""
SPECIAL = r"<[|｜][^<>|｜\n–]{0,48}[|｜]>"
"""Any `<|...|>`: a special token by its form, whether it is known or not."""
_SPECIAL_OR_CUT = r"<[|｜](?:[^<>|｜\n–]{0,48}(?:[|｜](?:>|\Z)|\Z))"
_NAMESPACES = ("atem:", "steptml:", "ifm|", "｜DSML｜")
"""Namespaces of tags that only calls use: every tag in them is a marker."""
_IN_NAMESPACE = "</?(?:" + "|".join(map(re.escape, _NAMESPACES)) + r")[^<>\n–]{0,120}"
_BY_FORM = re.compile(f"{SPECIAL}|{_IN_NAMESPACE}>")
"""Matches a marker that is known by its form, whatever its words are."""
_CUT_NAMESPACE = (
    "</?(?:"
    + "|".join(re.escape(name[:length]) for name in _NAMESPACES for length in range(len(name)))
    + r")\Z"
)
_SPACE = r"\s{0,32}"
"""More white space than any writer of JSON puts behind its first bracket."""
BEHIND_BRACKET = {"{": rf"{_SPACE}(?:\{{{_SPACE})?", "[": _SPACE}
"""What stands between a bracket and its content. An object may have two: `{{"name": ...}}`."""
_OBJECT = rf'(?<=\{{)(?={BEHIND_BRACKET["{"]}(?:"|\Z))'
"""Stands behind a bracket that may begin an object."""
_LIST = rf"(?<=\[)(?={_SPACE}(?:\{{|[^\W\d]|\Z))"
"""Stands behind a bracket that may begin a list of objects or of Python's calls."""
_MAX_MARKER_CHARS = 128
_MIN_CUT_CHARS = 3
"""The beginning of a marker that is this long at a reply's end was meant as one."""
_FIRST_CHARS = "<[]◁"
"""Characters with which markers begin."""
_FIRST_CHAR = re.compile(r"[<\[\]◁]")


class MarkerTable:
    """All markers, and the patterns that find them.

    openers: markers that begin a call, wherever they stand.
    tentative: openers that are ordinary text where no call follows (`<user>`).
    turn_openers: openers that begin another turn.
    strays: markers that mean nothing in running text, besides those that belong to no format.
    """

    def __init__(
        self,
        *,
        openers: frozenset[str],
        tentative: frozenset[str],
        turn_openers: frozenset[str],
        strays: frozenset[str],
    ) -> None:
        self.openers = openers
        self.tentative = tentative
        self.turn_openers = turn_openers
        self.strays = strays | set(_STRAYS)
        thinking = {*THINKING_BLOCKS, *THINKING_BLOCKS.values(), *THINKING_CLOSERS}
        self.in_line = frozenset((*LINE_THINKING, *LINE_THINKING.values()))
        """Markers at the beginning of a line, and ordinary text anywhere else."""
        every = {*openers, *thinking, *self.in_line, *self.strays}
        self.all = frozenset(every - tentative - self.in_line)
        """All markers with a fixed spelling that are never spoken."""
        self.scan = re.compile(
            f"{prefix_pattern(every)}|{_SPECIAL_OR_CUT}|{_IN_NAMESPACE}(?:>|\\Z)|{_CUT_NAMESPACE}"
            + rf"|[{{\[\n](?:(?<=\n)|{_OBJECT}|{_LIST})|`{{1,3}}"
        )
        """Finds the next marker, the beginning of one at the text's end, or characters that may
        begin an unmarked call (`{`, `[`), a code fence or a new line."""
        longest_first = sorted(self.all, key=len, reverse=True)
        self.strip = re.compile("|".join([*map(re.escape, longest_first), _BY_FORM.pattern]))
        """Finds complete markers, to keep them out of text that is spoken as it stands."""

    def is_marker(self, text: str) -> bool:
        """Return whether `text` is a whole marker, and not just the beginning of one."""
        known = text in self.all or text in self.openers or text in self.in_line
        return known or _BY_FORM.fullmatch(text) is not None

    def removed_from(self, text: str) -> str:
        """Return `text` without its markers.

        What stood on either side of one must become neither another marker nor a call's name, so
        white space and a separator stay in its place.
        """
        return self.strip.sub(f" {SEPARATOR} ", self.strip.sub(" ", text))

    def partial_start(self, text: str, start: int = 0) -> int:
        """Return where the beginning of a marker stands at the end of `text`; the length of `text`
        if there is none. start: where to begin to look."""
        at = max(start, len(text) - _MAX_MARKER_CHARS)
        while (first := _FIRST_CHAR.search(text, at)) is not None:
            found = self.scan.match(text, first.start())
            at = found.end() if found is not None else first.end()
            if found is not None and at == len(text):
                return first.start()
        return len(text)

    def peek(self, cursor: Cursor) -> Steps[str]:
        """Return the marker that comes next, without taking it; "" if none does."""
        while True:
            found = self.scan.match(cursor.text, cursor.at)
            text = found.group() if found is not None else ""
            if self.is_marker(text):
                return text
            at_end = cursor.at + len(text) == len(cursor.text)
            if not at_end or text in ("{", "\n", "```") or cursor.closed:
                return ""
            yield

    def skip_strays(self, cursor: Cursor) -> Steps[str]:
        """Skip white space and markers that open nothing; return the character behind them."""
        while (char := (yield from cursor.skip_space())) and char in _FIRST_CHARS:
            marker = yield from self.peek(cursor)
            if not marker or marker in self.openers:
                return char
            cursor.advance_by(len(marker))
        return char


def spoken_rest(text: str) -> str:
    """Return what may be spoken of a marker's beginning in which the reply ends."""
    return text if len(text) < _MIN_CUT_CHARS else ""


def prefix_pattern(words: Iterable[str], *, or_cut: bool = True) -> str:
    """Return a regular expression for any of `words`, and, unless `or_cut` is false, for the
    beginning of one at the text's end.

    It is a trie, so that very many words are found in one pass.
    """
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for char in word:
            node = node.setdefault(char, {})
        node[""] = {}
    branches = [re.escape(char) + _branch(child, or_cut) for char, child in sorted(root.items())]
    return "(?:" + "|".join(branches) + ")"


def _branch(node: dict[str, Any], or_cut: bool) -> str:
    items = [(char, child) for char, child in sorted(node.items()) if char]
    branches = [re.escape(char) + _branch(child, or_cut) for char, child in items]
    if not branches:
        return ""
    if "" in node:
        branches.append("")
    elif or_cut:
        # The text may end inside a word; then the match is the word's beginning.
        branches.append(r"\Z")
    return "(?:" + "|".join(branches) + ")"
