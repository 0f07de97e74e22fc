"""Tags of the XML-like formats, whatever their namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.markers import SPECIAL

MAX_TAG_CHARS = 240
_PARTS = re.compile(
    r"<(?P<close>/?)(?P<space>(?:[^\s<>=:/\"']*[:｜|]|longcat_)?)"
    r"(?P<kind>[A-Za-z_]+)(?P<rest>[^>]*)>?",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"<>]*)\"?|'([^'<>]*)'?)")
_TOKEN_INSIDE = re.compile(r"(?!\A)<[|｜][^<>]*[|｜]>")
_SPECIAL_TOKEN = re.compile(SPECIAL)


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag, written as `<space:kind=value attribute="...">`."""

    text: str
    """The whole tag as it is written."""
    kind: str
    """Its name without the namespace; "" for a special token (`<|...|>`), "?" for no tag."""
    closing: bool = False
    value: str = ""
    """What stands behind `=` (`<function=NAME>`), or in the attribute `name`."""
    equals: bool = False
    """Whether it is written `<kind=value>`."""
    attributes: dict[str, str] = field(default_factory=dict[str, str])

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


def read_tag(cursor: Cursor) -> Steps[Tag | None]:
    """Take the tag that begins here. None: it is no tag, and nothing was taken."""
    length = 0
    while True:
        if not (yield from cursor.has(length + 1)):
            return None
        found = cursor.text.find(">", cursor.at + length)
        length = (found + 1 if found >= 0 else len(cursor.text)) - cursor.at
        if length > MAX_TAG_CHARS:
            return None
        if found < 0:
            continue
        if cursor.text.count('"', cursor.at, cursor.at + length) % 2:
            # A special token inside a quoted name: go on, unless the next tag begins.
            if not (yield from cursor.has(length + 2)):
                continue
            following = cursor.text[cursor.at + length : cursor.at + length + 2]
            if following[0] != "<" or following[1] in "|｜":
                continue
        return parse_tag(cursor.advance_by(length))


def parse_tag(text: str) -> Tag:
    """Return what the tag `text` says."""
    if _SPECIAL_TOKEN.fullmatch(text) and not re.search(r"\w=", text):
        return Tag(text, "")
    parts = _PARTS.fullmatch(_TOKEN_INSIDE.sub("", text))
    if parts is None:
        return Tag(text, "?")
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
