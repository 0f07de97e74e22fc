"""Tags of the XML-like formats, whatever their namespace.

Vocabularies write a space as one of `BYTE_SPACES`; decoders that leave it so, or drop it, make
`<functionĠname="set_timer">` and `<functionname="set_timer">` of a tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.markers import SPECIAL

MAX_TAG_CHARS = 240
BYTE_SPACES = "Ġ▁"
"""What stands for a space in the vocabularies of BPE and of SentencePiece."""
SPACES_IN_TAGS = (" ", *BYTE_SPACES, "")
"""What may stand between a tag's kind and its attribute."""
_PARTS = re.compile(
    r"<(?P<close>/?)(?P<space>(?:[^\s<>=:/\"']*[:｜|]|longcat_)?) ?"
    r"(?P<kind>[A-Za-z_]+)(?P<rest>[^>]*)>?",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"<>]*)\"?|'([^'<>]*)'?)")
_TOKEN_INSIDE = re.compile(r"(?!\A)<[|｜][^<>]*[|｜]>")
_SPECIAL_TOKEN = re.compile(SPECIAL)
_SPACE_OR_VALUE = re.compile(rf"\"[^\"]*\"|[{BYTE_SPACES}]")
_HEAD = re.compile(r"<(?P<name>(?:[^\s=>]*[｜|] )?[^\s=>]+)[\s=]?")
_BAR_IN_DSML = re.compile(r"(?<=DSML)｜ ?")
_GLUED = re.compile(r"(</?(?:[^\s<>=:/\"']*[:｜|])?(?:function|invoke|param(?:eter)?))(name=[\"'])")


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
        return self.closers[0]

    @property
    def closers(self) -> tuple[str, ...]:
        """The tags that end this one, in all spellings."""
        head = _HEAD.match(_spaced(self.text))
        return spellings(f"</{head['name']}>") if head else ("",)

    @property
    def heads(self) -> tuple[str, ...]:
        """How a sibling of this one begins, in all spellings."""
        head = _HEAD.match(self.text)
        return spellings(head.group() if head else self.text)


def spellings(tag: str) -> tuple[str, ...]:
    """Return the ways of writing a tag: models put a space behind DSML's namespace, or none."""
    if _BAR_IN_DSML.search(tag) is None:
        return (tag,)
    return tuple(_BAR_IN_DSML.sub(bar, tag, count=1) for bar in ("｜", "｜ "))


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


def _spaced(text: str) -> str:
    """Return a tag with spaces where they belong."""
    if "Ġ" in text or "▁" in text:
        text = _SPACE_OR_VALUE.sub(lambda m: " " if m[0] in BYTE_SPACES else m[0], text)
    return _GLUED.sub(r"\1 \2", text, count=1) if "name=" in text else text


def parse_tag(text: str) -> Tag:
    """Return what the tag `text` says."""
    if _SPECIAL_TOKEN.fullmatch(text) and not re.search(r"\w=", text):
        return Tag(text, "")
    parts = _PARTS.fullmatch(_TOKEN_INSIDE.sub("", _spaced(text)))
    if parts is None:
        return Tag(text, "?")
    rest = parts["rest"]
    attributes = {m[1]: m[2] if m[2] is not None else m[3] for m in ATTRIBUTE.finditer(rest)}
    equals = rest.startswith("=")
    if equals and attributes:  # `<parameter=minutes type="integer">`
        found = ATTRIBUTE.search(rest)
        rest = rest[: found.start()].rstrip() if found is not None else rest
    return Tag(
        text=text,
        kind=parts["kind"].lower(),
        closing=bool(parts["close"]),
        value=rest[1:] if equals else attributes.get("name", ""),
        equals=equals,
        attributes=attributes,
    )
