"""Arguments in elements, whatever their namespace.

`<function=NAME><parameter=KEY>VALUE</parameter></function>`, and
`<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>` behind a name. Either may name the value's
type, as the attribute `type` or as `<arg_type>TYPE</arg_type>` between key and value. It counts
where no schema says more.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caal_node.reply_parser.arguments import allowed_types, parse_literal, typed, untyped
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.events import OpenCall
from caal_node.reply_parser.literal_parser import add
from caal_node.reply_parser.markers import SPECIAL
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.values import read_arguments

# Tags of the XML-like formats, whatever their namespace.
#
# Vocabularies write a space as one of `BYTE_SPACES`; decoders that leave it so, or drop it, make
# `<functionĠname="set_timer">` and `<functionname="set_timer">` of a tag.

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


_CALL_KINDS = ("invoke", "function", "tool_call", "function_call", "function_calls", "tool_calls")
_VALUE_KINDS = ("parameter", "param", "argument", "arg")
_CDATA = "<![CDATA["
_MAX_TYPE_CHARS = 32
_MAX_VALUE_CHARS = 2_000
"""How far behind a closer or a tag in a value the value's own closer is looked for."""


def read_elements(context: ParseContext, call_format: CallFormat, opened: Tag) -> Steps[None]:
    """Read a call whose arguments are elements, from behind `<function=NAME>` to its end."""
    cursor = context.cursor
    call = context.calls.open(opened.value)
    found: dict[str, Any] = {}
    if (yield from cursor.skip_space()) == "{":
        yield from read_arguments(cursor, call)
        yield from cursor.skip_space()
        yield from cursor.take_any(opened.closers)
        return
    while True:
        _, stop = yield from cursor.take_until(("<",))
        if not stop:
            call.cut_off()
            return
        tag = yield from read_tag(cursor)
        if tag is None:
            if (yield from cursor.has(1)):
                cursor.advance_by(1)
            continue
        if tag.closing and tag.kind in _CALL_KINDS:
            if tag.text not in opened.closers:
                cursor.unread(tag.text)
            break
        if tag.kind in ("invoke", "function", "tool_call") or tag.text in call_format.openers:
            cursor.unread(tag.text)  # The next call begins; this one was not closed.
            break
        if tag.text in call_format.closers:
            cursor.unread(tag.text)
            break
        key = _key_of(tag, call)
        if key is None:
            continue
        value, ended = yield from _read_value(cursor, call_format, opened, tag, call, key)
        if not ended:
            call.cut_off()
            return
        add(found, key, value)
    call.end(found)


def type_value(text: str, call: OpenCall, key: str, call_format: CallFormat, said: str = "") -> Any:
    """Return a value typed by its parameter's schema.

    said: the type that the text gives it; "" if it gives none.
    """
    tool = call.tool
    schema = tool.properties.get(key) if tool else None
    if said and not isinstance(schema, Mapping):
        schema = {"type": said}
    if not isinstance(schema, Mapping):
        return untyped(text) if call_format.untyped_json else text
    value = typed(text, schema, root=tool.schema if tool else None)
    if call_format.unquote and isinstance(value, str):
        bare = value.strip()
        if len(bare) > 1 and bare[0] == bare[-1] == '"':
            decoded = untyped(bare)
            return decoded if isinstance(decoded, str) and decoded != bare else bare[1:-1]
    return value


def _is_complete(call: OpenCall, found: Mapping[str, Any]) -> bool:
    """Return whether `found` is all that the tool takes, so that nothing can follow it."""
    tool = call.tool
    return (
        tool is not None
        and tool.properties.keys() == found.keys()
        and not tool.schema.get("additionalProperties")
        # A list may go on by its key, once for each item.
        and not any("array" in allowed_types(p, tool.schema) for p in tool.properties.values())
    )


def _key_of(tag: Tag, call: OpenCall) -> str | None:
    """Return the parameter to which an element gives a value."""
    if tag.closing or not tag.kind:
        return None
    if tag.kind in _VALUE_KINDS and tag.value:
        return tag.value
    if call.tool is not None:
        for name in call.tool.properties:
            if tag.text == f"<{name}>":
                return name
    return None


def _read_value(
    cursor: Cursor, call_format: CallFormat, opened: Tag, tag: Tag, call: OpenCall, key: str
) -> Steps[tuple[Any, bool]]:
    """Return a parameter's value, and whether it came to its end."""
    if tag.kind == "param" and (yield from cursor.take(_CDATA)):
        text, stop = yield from cursor.take_until(("]]>",))
        yield from cursor.take("]]>")
        yield from cursor.take_any(tag.closers)
        return type_value(text, call, key, call_format), bool(stop)
    text, ended = yield from _take_value(cursor, call_format, opened, tag, call, key)
    yield from cursor.take_any(tag.closers)
    if tag.equals:
        # One newline on either side frames the value.
        text = text.removeprefix("\n").removesuffix("\n")
    elif tag.kind == "param":
        text = html.unescape(text)
    is_string = tag.attributes.get("string")
    if is_string == "true":
        return text, ended
    if is_string == "false":
        return parse_literal(text.strip()), ended
    said = tag.attributes.get("type", "")
    return type_value(text, call, key, call_format, said), ended


def _take_value(
    cursor: Cursor, call_format: CallFormat, opened: Tag, tag: Tag, call: OpenCall, key: str
) -> Steps[tuple[str, bool]]:
    """Take a value's text, and return it and whether it came to its end.

    Nothing in it is escaped. It ends at its last closer in front of the next parameter or of the
    call's end; where closers are missing, at that parameter or end.
    """
    heads = tag.heads if tag.kind in _VALUE_KINDS else ()
    stops = tuple({*tag.closers, *heads, *opened.closers, *call_format.closers})
    parts: list[str] = []
    while True:
        text, stop = yield from cursor.take_until(stops)
        parts.append(text)
        if not stop:
            return "".join(parts), False
        if stop in tag.closers:
            cursor.advance_by(len(stop))
            following = yield from _next_stop(cursor, stops, heads, call, key)
            if following not in tag.closers:
                is_text = isinstance(type_value("".join(parts), call, key, call_format), str)
                if following is None and is_text and (yield from cursor.peek()):
                    cursor.take_rest()  # The reply may have been cut inside the value.
                    return "".join(parts), False
                cursor.unread(stop)
                return "".join(parts), True
            parts.append(stop)
        elif stop in heads:
            if not (yield from _is_text(cursor, call, key)):
                return "".join(parts), True
            parts.append(cursor.advance_by(len(stop)))
        else:
            over = yield from _call_is_over(cursor, call_format, stop)
            ends = (*tag.closers, *heads, *opened.heads)
            rest, found = yield from cursor.take_until(ends, _MAX_VALUE_CHARS)
            if found in tag.closers:
                parts.append(rest)  # Code and notes show such tags.
                continue
            value = "".join(parts)
            is_text = isinstance(type_value(value, call, key, call_format), str)
            if (
                is_text
                and not (over and value.strip())
                and not found
                and not (yield from cursor.peek())
            ):
                return value + rest, False
            cursor.unread(rest)
            return value, True


def _next_stop(
    cursor: Cursor, stops: tuple[str, ...], heads: tuple[str, ...], call: OpenCall, key: str
) -> Steps[str | None]:
    """Return the first of `stops` that comes, without taking anything: "" where none is near, and
    None where the reply ends first. A head that is text is passed."""
    passed: list[str] = []
    left = _MAX_VALUE_CHARS
    while True:
        text, stop = yield from cursor.take_until(stops, left)
        passed.append(text)
        left -= len(text) + len(stop)
        framed = not "".join(passed).strip()  # Nothing else stands between two parameters.
        if stop not in heads or framed or left < 0 or not (yield from _is_text(cursor, call, key)):
            over = not stop and not (yield from cursor.peek())
            cursor.unread("".join(passed))
            return None if over else stop
        passed.append(cursor.advance_by(len(stop)))


def _is_text(cursor: Cursor, call: OpenCall, key: str) -> Steps[bool]:
    """Return whether the head that comes is a part of the value of `key`: it is no parameter's."""
    tool = call.tool
    if tool is None or not tool.properties:
        return False
    tag = yield from read_tag(cursor)
    if tag is None:
        return True
    cursor.unread(tag.text)
    return tag.value not in tool.properties and "string" in allowed_types(
        tool.properties.get(key), tool.schema
    )


def _call_is_over(cursor: Cursor, call_format: CallFormat, stop: str) -> Steps[bool]:
    """Return whether nothing but the call's end stands at `stop`, so that its value is over: the
    same closer twice stands in a value."""
    yield from cursor.take(stop)
    yield from cursor.skip_space()
    space = cursor.skipped
    others = tuple(closer for closer in call_format.closers if closer != stop)
    over = (yield from cursor.peek_any(others)) is not None
    cursor.unread(stop + space)
    return over


def read_pairs(cursor: Cursor, call_format: CallFormat, call: OpenCall, first: Tag) -> Steps[None]:
    """Read the keys and values of `call`, from behind the first `<arg_key>`, which is `first`."""
    key_close = first.closer
    value_open = first.text.replace("arg_key", "arg_value")
    call_close = key_close.replace("arg_key", "tool_call")
    found: dict[str, Any] = {}
    while True:
        key, stop = yield from cursor.take_until((key_close, *call_format.closers))
        if stop != key_close:
            if stop:
                call.end(found)
            else:
                call.cut_off()
            return
        yield from cursor.take(key_close)
        said = yield from _read_pair_type(cursor, first.text.replace("arg_key", "arg_type"))
        value, stop, certain = yield from _read_pair_value(
            cursor, key_close, value_open, tuple({first.text, call_close, *call_format.closers})
        )
        if value is not None:
            typed_value = type_value(value, call, key.strip(), call_format, said)
            if not stop or (not certain and isinstance(typed_value, str)):
                cursor.take_rest()  # It may belong to the value.
                call.cut_off()
                return
            add(found, key.strip(), typed_value)
        while (yield from cursor.skip_space()) == "\\" and (yield from cursor.take("\\n")):
            pass  # A newline that was escaped once too often.
        if (yield from cursor.take(first.text)):
            continue
        closing = yield from cursor.peek_any(call_format.closers)
        ends = (first.text, "\\n", *call_format.closers)
        if (
            closing is None
            and (yield from _reply_ends(cursor, ends))
            and not _is_complete(call, found)
        ):
            call.cut_off()
        else:
            call.end(found)
        return


def _reply_ends(cursor: Cursor, literals: tuple[str, ...]) -> Steps[bool]:
    """Return whether the reply ends here, or in the middle of one of `literals`, which is taken
    then."""
    if not (yield from cursor.peek()):
        return True
    rest = cursor.text[cursor.at :]
    if cursor.closed and any(literal.startswith(rest) for literal in literals):
        cursor.take_rest()
        return True
    return False


def _read_pair_type(cursor: Cursor, type_open: str) -> Steps[str]:
    """Return the type that stands between a key and its value; "" if none does."""
    yield from cursor.skip_space()
    space = cursor.skipped
    if not (yield from cursor.take(type_open)):
        cursor.unread(space)
        return ""
    type_close = type_open.replace("<", "</", 1)
    said, _ = yield from cursor.take_until(("<",), _MAX_TYPE_CHARS)
    yield from cursor.take(type_close)
    return said.strip().lower()


def _read_pair_value(
    cursor: Cursor, key_close: str, value_open: str, others: tuple[str, ...]
) -> Steps[tuple[str | None, str, bool]]:
    """Return the value behind a key, what ended it, and whether more text could not have gone on
    with it; None when there is no value."""
    value_close = value_open.replace("<", "</", 1)
    following = yield from cursor.skip_space()
    if following == "\\":
        yield from cursor.take("\\n")
        following = yield from cursor.skip_space()
    if not (yield from cursor.take(value_open)) and (
        not following or (yield from cursor.peek_any(others)) is not None
    ):
        return None, "", True
    stops, parts = (value_close, *others), list[str]()
    while True:
        text, stop = yield from cursor.take_until(stops)
        parts.append(text)
        certain = bool(stop)
        if stop == value_close:
            # The last one in front of the next key or the call's end is the value's own.
            cursor.advance_by(len(stop))
            text, following = yield from cursor.take_until(stops, _MAX_VALUE_CHARS)
            over = not following and not (yield from cursor.peek())
            cursor.unread(text)
            if following == value_close:
                parts.append(stop)
                continue
            bare = text.strip()
            begun = [each for each in stops if each.startswith(bare)]
            certain = not (over and bare) or (bool(begun) and value_close not in begun)
        elif stop:
            # A key's or a call's tag is a part of the value if the value goes on to its closer.
            ends = (value_close, value_open, key_close)
            text, following = yield from cursor.take_until(ends, _MAX_VALUE_CHARS)
            if following == value_close:
                parts.append(text)
                continue
            # At the reply's very end the tag is the call's, unless it ends one in the value.
            alone = text.strip() == stop and stop.replace("/", "") not in "".join(parts)
            certain = alone or bool(following or (yield from cursor.peek()))
            cursor.unread(text)
        return "".join(parts), stop, certain
