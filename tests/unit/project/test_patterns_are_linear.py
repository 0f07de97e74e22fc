"""The work of every regular expression of the product grows as the text does, and no faster.

One that does not keeps the whole process from all else for as long as it works, thread or not.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from caal_node.core import tool_spec
from caal_node.grounding import fact_check
from caal_node.policy.rule import AnyOf
from caal_node.reply_parser import parse_context
from caal_node.reply_parser.cursor import _stop_finder  # pyright: ignore[reportPrivateUsage]
from caal_node.toolsets import calculator as calculator_toolset
from caal_node.toolsets import lists
from caal_node.toolsets.calculator import arithmetic
from caal_node.toolsets.lists.markdown_list import items_of
from mcp_bridge.security import programs
from tests.stand_ins.pattern_work import (
    MUCH_S,
    Found,
    Made,
    patterns_of_functions,
    patterns_of_modules,
    slowest,
    superlinear,
)


def _kept_by_modules() -> tuple[()]:
    """What these make is kept by modules, and found there."""
    return ()


MADE: Final[Mapping[str, Made]] = {
    "caal_node.config.file._line_of": {"path": r"(?:a[ \t]*\.[ \t]*)?(?:b|\"b\"|'b')"},
    "caal_node.evaluation.suites._says": {"word": "lamp"},
    "caal_node.grounding.request_words._pattern": _kept_by_modules,
    "caal_node.models.backends.base._is_named": {
        "alias": "penalty",
        "before": r"(?:^|[:'\"`.(]\s*)",
        "plain": "stop",
    },
    "caal_node.policy.rule.AnyOf.__init__": partial(AnyOf, ["*a*b*", "[ab]*c?", "*a*[b]*a*"]),
    "caal_node.redaction.secret_shapes._prefixed": _kept_by_modules,
    "caal_node.reply_parser.cursor._stop_finder": partial(_stop_finder, ("</think>", "```")),
    "caal_node.reply_parser.literal_parser.LiteralParser._string": {"mark": '"""'},
    "caal_node.reply_parser.literal_parser.LiteralParser._unquoted": {"ends": ",)]}"},
    "caal_node.reply_parser.markers.MarkerTable.__init__": _kept_by_modules,
    "caal_node.reply_parser.syntax.values.BracketStyle.__init__": _kept_by_modules,
    "caal_node.toolsets.calendar.ics_events._has_zone": {"name": "Europe/Berlin"},
    "mcp_bridge.discovery.tool_search.ToolFinder._matching_glob": {"glob": "*a*b*[cd]?"},
    "mcp_bridge.discovery.bm25.Vocabulary.__init__": _kept_by_modules,
    "mcp_bridge.security.programs._option": lambda: [
        re.compile(each.shapes) for each in programs.LAUNCHERS.values()
    ],
    "n8n.discovery.nodes._without_taken_apart": {"name": "body"},
    "n8n.discovery.nodes.mentions": {
        "name": "body",
        "alone": r"""(?!["']?\s*+\]?\s*+\??[.\[])""",
    },
    "n8n.discovery.nodes._reads": {"words": "body|data"},
    "n8n.notes.directives.directive": {"kind": "results"},
}

USED: Final = {
    "caal_node.policy.rule.AnyOf.__init__()": ("fullmatch",),
    "caal_node.tts_text.markdown_blocks._FORMULAS": ("match",),
    "mcp_bridge.discovery.tool_search.ToolFinder._matching_glob:481": ("match",),
    "mcp_bridge.security.programs.PATTERNS": ("fullmatch",),
}
"""How patterns are used that are kept in a container or an object."""

BOUNDED: Final = {
    "caal_node.core.tool_spec._LINE": tool_spec._LINE_CHARS,
    "caal_node.grounding.fact_check._BEGINS": fact_check._BEFORE_CHARS,
    "caal_node.reply_parser.parse_context._EXAMPLE": parse_context._TAIL_CHARS,
    "caal_node.toolsets.calculator._LATER": calculator_toolset.TEXT_CHARS,
    "caal_node.toolsets.calculator._OFFSET": calculator_toolset.TEXT_CHARS,
    "caal_node.toolsets.calculator.arithmetic._SHARE_OF": arithmetic.TEXT_CHARS,
    "caal_node.toolsets.calculator.units._PIECE": arithmetic.TEXT_CHARS,
    "caal_node.toolsets.lists._EDGE": lists.EDGED_CHARS_MAX,
    "mcp_bridge.security.programs._VERSION": programs._VERSION_CHARS,
}  # pyright: ignore[reportPrivateUsage]
"""Patterns whose work grows faster, and the most characters that each of them ever sees."""

EXCUSED: Final = {
    "caal_node.policy.rule._TOKEN": 'what is behind the last "]" is kept from it',
    "mcp_bridge.config.server_entry._FORM": "a form that has no end is refused, and is the last",
}


@pytest.fixture(scope="module")
def every() -> list[Found]:
    found = [*patterns_of_modules(), *patterns_of_functions(MADE)]
    found = [replace(each, uses=USED.get(each.place, each.uses)) for each in found]
    same = {(each.pattern.pattern, each.pattern.flags, each.uses): each for each in found}
    return list(same.values())


@pytest.mark.long
def test_the_work_of_every_pattern_grows_as_the_text_does(every: list[Found]) -> None:
    assert len(every) > 500
    wrong = {
        each.place: text
        for each in every
        if each.place not in BOUNDED and each.place not in EXCUSED and (text := superlinear(each))
    }
    assert not wrong


def test_a_pattern_that_is_bounded_takes_no_time_at_its_bound(every: list[Found]) -> None:
    places = {each.place for each in every}
    assert {*BOUNDED, *EXCUSED} <= places
    slow = {
        each.place: took
        for each in every
        if each.place in BOUNDED and (took := slowest(each, BOUNDED[each.place])) > MUCH_S
    }
    assert not slow


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"^- (\S.*?)[ \t]*$", "match"),
        (r"\s+$", "finditer"),
        (r"(\w+)=", "search"),
        (r"(?:a+)+!", "match"),
        (r"(?:\s*,\s*)+x", "match"),
        (r"\\\((.+?)\\\)", "search"),
        (r"<b>.*?</b>", "finditer"),
        (r"(?:[^,]*,)*x", "search"),
        (rb"\s+\n", "search"),
        (r"(?:ab|a)*\d*\d*x", "match"),
        (r"^subtract (.+?) from (.+)$", "match"),  # a hundredth of the first one's work
    ],
)
def test_a_pattern_with_a_fault_is_found(pattern: Any, use: str) -> None:
    assert superlinear(Found("here", re.compile(pattern), (use,)))


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"^- (\S.*?)(?<![ \t])[ \t]*+$", "match"),
        (r"(?<!\s)\s++$", "finditer"),
        (r"(?<!\w)(\w++)=", "search"),
        (r"a+!", "match"),
        (r"<b>[^<]{0,50}</b>", "finditer"),
    ],
)
def test_a_sound_pattern_is_not(pattern: str, use: str) -> None:
    assert not superlinear(Found("here", re.compile(pattern), (use,)))


def test_a_list_that_others_write_takes_no_time() -> None:
    began = time.process_time()
    items_of("- [ ] milk" + " " * 200_000 + "x\n")
    assert time.process_time() - began < 2.0
