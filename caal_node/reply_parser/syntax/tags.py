"""Tags of the XML-like dialects, whatever their namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.waiting import Limited, Only

MAX_TAG_CHARS = 240
_IN_TAG = Only("[^>]+")
_PARTS = re.compile(
    r"<(?P<close>/?)(?P<space>(?:[^\s<>=:/\"']*[:｜|]|longcat_)?)"
    r"(?P<kind>[A-Za-z_]+)(?P<rest>[^>]*)>?",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"<>]*)\"?|'([^'<>]*)'?)")
_TOKEN = re.compile(r"(?!\A)<[|｜][^<>]*[|｜]>")
_SPECIAL = re.compile(r"<[|｜][^<>|｜\n–]{0,48}[|｜]>")
"""As the scanner has it: else a tag would be passed over that is spoken elsewhere."""


@dataclass(frozen=True, slots=True)
class Tag:
    """`<space:kind=value attribute="...">`"""

    text: str
    kind: str
    """Without its namespace; "" for a special token (`<|...|>`)."""
    closing: bool
    value: str
    """What stands behind `=` (`<function=NAME>`), or in the attribute `name`."""
    equals: bool
    """Whether it is written `<kind=value>`."""
    attributes: dict[str, str]

    @property
    def closer(self) -> str:
        """The tag that ends this one."""
        head = re.match(r"<[^\s=>]+", self.text)
        return f"</{head.group()[1:]}>" if head else ""

    @property
    def head(self) -> str:
        """How a sibling of this one begins."""
        found = re.match(r"<[^\s=>]+[\s=]?", self.text)
        return found.group() if found else self.text


def read_tag(source: Cursor) -> Steps[Tag | None]:
    """Take the tag that begins here. None, and nothing taken: it is no tag."""
    length = 0
    while True:
        if not (yield from source.has(length + 1)):
            return None
        found = source.text.find(">", source.at + length)
        if found < 0:
            length = len(source.text) - source.at
            if length > MAX_TAG_CHARS:
                return None
            if not source.closed:
                source.waiting = Limited(_IN_TAG, MAX_TAG_CHARS + 1 - length)
            continue
        length = found + 1 - source.at
        if length > MAX_TAG_CHARS:
            return None
        if source.text.count('"', source.at, source.at + length) % 2:
            # A special token inside a quoted name: go on, unless the next tag begins.
            if not (yield from source.has(length + 2)):
                continue
            following = source.text[source.at + length : source.at + length + 2]
            if following[0] != "<" or following[1] in "|｜":
                continue
        return parse_tag(source.advance(source.at + length))


def parse_tag(text: str) -> Tag | None:
    if _SPECIAL.fullmatch(text) and not re.search(r"\w=", text):
        return Tag(text, "", False, "", False, {})
    parts = _PARTS.fullmatch(_TOKEN.sub("", text))
    if parts is None:
        return Tag(text, "?", False, "", False, {})
    rest = parts["rest"]
    attributes = {m[1]: m[2] if m[2] is not None else m[3] for m in ATTRIBUTE.finditer(rest)}
    equals = rest.startswith("=")
    return Tag(
        text=text,
        kind=parts["kind"].lower(),
        closing=bool(parts["close"]),
        value=rest[1:] if equals else attributes.get("name", ""),
        equals=equals,
        attributes=attributes,
    )
