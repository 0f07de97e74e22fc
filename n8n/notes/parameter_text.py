"""Parameters as authors write them: `@param` lines, lists under a heading, a sentence of them.

One item has a name, and after it words for type, need, default, bounds and choices in any order and
between any brackets; what is none of these describes it. `city (required, string)`,
`**city**: string - which city`, `[days=1] {integer} 1-7`, `unit? c|f` are all read.
"""

from __future__ import annotations

import re
from typing import Final

from n8n.core.workflow_tool import Origin
from n8n.notes.attributes import EDGES, Attributes
from n8n.notes.parameter import MAX_NAME_CHARS, Parameter
from n8n.notes.sentences import parts_of, sentence_end

MAX_LISTED: Final = 40
"""Parameters of one sentence."""
_NAME: Final = re.compile(
    r"""\s*(?:and\s+)?(?P<dress>[*_`"']{0,3})(?P<open>\[?)(?P<name>[A-Za-z]\w*|_\w+)"""
    r"""(?:=(?P<default>[^\]\s]{1,80}))?(?P<close>\]?)(?P<mark>(?:[*?!](?!\*))?)[*_`"']{0,3}(?![\w*])"""
)
_GROUP: Final = re.compile(r"\(([^()]{0,400})\)?|\[([^\[\]]{0,400})\]?|\{([^{}]{0,40})\}")
_NOT_NAMES: Final = frozenset(("none", "nothing", "and"))


def from_param_line(line: str) -> dict[str, Parameter]:
    """`@param days integer required How many days`, in any of the usual orders, and JSDoc's.

    At most one parameter; none when there is no name.
    """
    _, _, text = line.partition("@")
    text = text.partition(" ")[2].strip()
    first = re.match(r"\{[^{}]{0,40}\}", text)
    head = first[0] if first else ""
    return dict([found] if (found := _item(text[len(head) :], "param", head)) else [])


def from_list_line(line: str, origin: Origin, *, required: bool = False) -> dict[str, Parameter]:
    """One line of a list under a heading: `- city (string, required): which city`."""
    found = _item(line, origin, required=required)
    return dict([found] if found else [])


def from_words(text: str, origin: Origin, *, required: bool = False) -> Parameter:
    """What stands for a parameter that has its name already: `string, required - which city`."""
    item = Attributes()
    _describe(item, text, bare_type=False)
    return item.parameter(origin, required)


def from_prose(text: str, *, required: bool = False) -> tuple[dict[str, Parameter], str]:
    """`city (required, string), days (optional, integer 1-7). More text.`

    The parameters, and what follows the sentence.
    """
    end = sentence_end(text)
    found: dict[str, Parameter] = {}
    for part in list(parts_of(text[:end]))[:MAX_LISTED]:
        if (item := _item(part, "prose", required=required)) is None:
            break
        found[item[0]] = item[1]
    return found, text[end:].lstrip(". ").strip()


def _item(
    text: str, origin: Origin, head: str = "", *, required: bool = False
) -> tuple[str, Parameter] | None:
    named = _NAME.match(text)
    if named is None or len(named["name"]) > MAX_NAME_CHARS or named["name"].lower() in _NOT_NAMES:
        return None
    item = Attributes()
    if named["mark"] and named["mark"] not in named["dress"]:
        item.required = named["mark"] != "?"
    if named["open"] and named["close"]:
        item.required = False
    item.default = named["default"]
    rest = text[named.end() :]
    if named["close"] and not named["open"]:
        rest = named["close"] + rest
    if head:
        item.group(head.strip("{}"))
    _describe(item, rest, bare_type=origin == "param")
    return named["name"], item.parameter(origin, required)


def _describe(item: Attributes, text: str, *, bare_type: bool) -> None:
    text = text.strip()
    while (group := _GROUP.match(text.lstrip(" :-–—"))) is not None:
        item.group(next(g for g in group.groups() if g is not None))
        text = text.lstrip(" :-–—")[group.end() :]
    before, bracket, after = text.partition("(")
    if bracket and not Attributes().words(before, whole=False, bare_type=bare_type).strip(EDGES):
        # `string (required): which city`: only meaning stands before the brackets.
        item.free(before, bare_type=bare_type)
        _describe(item, bracket + after, bare_type=bare_type)
    elif text:
        item.free(text, bare_type=bare_type)
