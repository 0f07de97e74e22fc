"""What a finished line means that is an object, a list, a tag or a call of a tool by its name.

The readers beside this one follow a call while it streams, and know it by its markers or by JSON's
own grammar. What they leave is read here, once it is whole, by a tolerant parser: Python's quotes,
bare keys, typographic quotes, comments, calls under whatever keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from caal_node.reply_parser.arguments import ARGUMENT_KEYS, allowed_types, load_json
from caal_node.reply_parser.events import ToolCall
from caal_node.reply_parser.literal_parser import (
    LiteralParser,
    UnquotedText,
    UnreadableLiteral,
    parse_keywords,
)
from caal_node.reply_parser.syntax.call_object import LIST_KEYS, NAME_KEYS, WRAPPING_KEYS
from caal_node.reply_parser.syntax.text_protocol import SPOKEN_KEYS
from caal_node.reply_parser.tool_index import ToolIndex, ToolSignature

WRAPPERS: Final = (
    *("functions", "function", "tools", "tool", "tool_call", "tool_calls", "call", "default_api"),
    *("api", "print", "await", "return", "action", "use", "run", "invoke", "execute", "json"),
    *("calling", "tool_code", "result"),
)
"""Words that small models put in front of a tool's name, or of a call's object."""
MAX_CHARS: Final = 8_192
"""A longer object is data, whatever it holds: no call of a spoken conversation is so long."""

QUOTES: Final = "\"'“”‘’"
NAMED_OBJECT: Final = re.compile(rf"([^\W\d_][^\W_]*+[_.:][\w.:-]*+)[ \t]*+\(?\{{\s*+[{QUOTES}]")
"""An object behind what must be a tool's name, known or not."""
WRAPPER: Final = re.compile(rf"((?:{'|'.join(WRAPPERS)})\b)[ \t\n.:(\]=]*+", re.IGNORECASE)
_NAME: Final = re.compile(r"[^\W\d][\w.:/-]*")
_ARGUMENTS_LABEL: Final = re.compile(
    rf"(?::\d+)?[ \t\n]*(?:(?:{'|'.join(ARGUMENT_KEYS)}|with)\b)?[ \t\n]*[:=]?[ \t\n]*",
    re.IGNORECASE,
)
_DOUBLED: Final = re.compile(rf"\A\{{\s*+(\{{\s*+[{QUOTES}].*\}})\s*+\}}\Z", re.DOTALL)
"""An object in `{{...}}`, from a template that was taken literally."""
_QUOTES: Final = str.maketrans("“”„«»‘’‚", '"""""\'\'\'')
_COMMENT: Final = re.compile(
    r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|//[^\n]*|(?<=\s)#[^\n]*',
    re.DOTALL,
)
TAG: Final = re.compile(r"</?([^\W\d][\w.:-]*+)(?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+>")
_ATTRIBUTE: Final = re.compile(r"(?<![\w-])([\w-]++)\s*+=\s*+(\"[^\"]*+\"|'[^']*+'|[^\s\"'>/]+)")
_NAMING_ATTRIBUTES: Final = frozenset({"name", "tool", "function"})
_NAMING_KEYS: Final = frozenset(NAME_KEYS) | {
    *("id", "method", "intent", "call", "command", "operation", "api", "tool_id", "use"),
}
"""Keys under which a tool's own name stands. Anywhere else it is a value like any other."""
_AROUND: Final = frozenset(
    {
        *("id", "type", "index", "tool_call_id", "call_id", "jsonrpc", "role", "status"),
        *("thought", "thoughts", "reasoning", "reason", "explanation", "description"),
        *("confidence", "emotion"),
    }
)
"""Keys that stand beside a call, or beside what is said, and are neither."""
_SPOKEN: Final = SPOKEN_KEYS | {
    *("reply", "speech", "speak", "final_answer", "assistant", "utterance", "spoken", "result"),
}
_WORDS: Final = re.compile(r"\[\s*(?!(?:true|false|null|none)\b)[^\W\d]", re.IGNORECASE)
_GIVES: Final = re.compile(r"[=:\"'{\[]")
_CALLED: Final = re.compile(
    rf"[\"'](?:{'|'.join(NAME_KEYS)})[\"']\s*+:\s*+[\"']([\w.-]+)", re.IGNORECASE
)
_CALLS: Final = re.compile(rf"\[\s*+\{{\s*+{_CALLED.pattern}", re.IGNORECASE)
NUMBERED: Final = re.compile(r"functions\.([^\W\d][\w.-]{0,63}):\d{1,4}\s*+(?=\{)")
"""What is left of a call of Kimi K2 where the server took its special tokens."""
_KINDS: Final[dict[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    UnquotedText: "string",
    list: "array",
    dict: "object",
}
_MAX_DEPTH: Final = 4


@dataclass(frozen=True, slots=True)
class MeantSpeech:
    """Words that stood in an object or between tags."""

    text: str


@dataclass(frozen=True, slots=True)
class MeantData:
    """Nothing that anybody can listen to."""

    tools: tuple[str, ...] = ()
    """The tools whose calls cannot be read."""
    markup: bool = False
    """Whether it is only a tag, without which nothing is missing."""


Meaning: TypeAlias = tuple[ToolCall, ...] | MeantSpeech | MeantData | None
"""None: it is speech as it stands."""


def meaning_of(text: str, tools: ToolIndex) -> Meaning:
    """Return what a whole line, or several that belong together, means.

    Nothing is a call unless it names a known tool, or gives exactly one tool all that it needs.
    """
    text = text.strip().strip("`").strip()
    if text.startswith("<"):
        return _meaning_of_tags(text, tools)
    if (named := _meaning_of_name(text, tools)) is not None:
        return named
    if NAMED_OBJECT.match(text):
        return MeantData()
    if text[:1] not in ("{", "["):
        # The end of an object whose beginning got lost, or a stray bracket.
        return MeantData() if text[:1] in ('"', "'", ",", "}", "]") else None
    try:
        value = value_of(text)
    except UnreadableLiteral:
        return MeantData(_named_in(text, tools))
    if isinstance(value, list) and (text[0] == "{" or _WORDS.match(text)):
        return None  # `{1, 2, 3}` is a set, as people write them; `[laughs]` is no list.
    return _meaning_of_value(value, tools) or MeantData(_named_in(text, tools))


def value_of(text: str) -> Any:
    """Return the value of an object or a list, however it is quoted.

    Raises:
        UnreadableLiteral: it is none, it ends too early, or something stands behind it.
    """
    try:
        return load_json(text)
    except ValueError:
        pass
    if len(text) > MAX_CHARS:
        raise UnreadableLiteral("too long")
    text = _DOUBLED.sub(r"\1", text)
    plain = _COMMENT.sub(lambda found: found[1] or "", text.translate(_QUOTES)).strip()
    parser = LiteralParser(plain)
    value = parser.value()
    if parser.cut or parser.skip_space() not in ("", ";", "."):
        raise UnreadableLiteral("not one value")
    return value


def _meaning_of_value(value: Any, tools: ToolIndex, depth: int = 0) -> Meaning:
    """Return what an object or a list means; None: it is data."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, list):
        return _meaning_of_list(cast("list[Any]", value), tools, depth)
    if not isinstance(value, dict):
        return None
    given = {str(key): one for key, one in cast("dict[Any, Any]", value).items()}
    if (call := _call_of(given, tools)) is not None:
        return call
    for key, inner in given.items():
        wraps = key.lower() in (*WRAPPING_KEYS, *LIST_KEYS, *ARGUMENT_KEYS, "call", "result")
        if wraps and (found := _meaning_of_value(inner, tools, depth + 1)):
            return found
    if (words := _words_of(given)) is not None:
        takes = any(given.keys() <= tool.properties.keys() for tool in tools.signatures)
        # What a tool takes under the same key may be its argument, and may be an answer.
        return None if takes or meaning_of(words, tools) is not None else MeantSpeech(words)
    tool = tools.by_arguments(set(given))
    if tool is None or not _fit(given, tool):
        return None
    return (ToolCall(tool.name, given),)


def _meaning_of_list(items: list[Any], tools: ToolIndex, depth: int) -> Meaning:
    if len(items) == 2 and isinstance(items[0], str) and isinstance(items[1], dict):
        tool = tools.named(items[0])
        return None if tool is None else _called(tool, items[1])
    calls: list[ToolCall] = []
    for item in items:
        found = _meaning_of_value(item, tools, depth + 1)
        if not isinstance(found, tuple):
            return None
        calls += found
    return tuple(calls) or None


def _call_of(given: Mapping[str, Any], tools: ToolIndex) -> Meaning:
    """Return the call of an object with a tool's name in it, as a key or under one."""
    if len(given) == 1:
        ((key, inner),) = given.items()
        if (tool := tools.by_name.get(key)) is not None and isinstance(inner, dict | None):
            return _called(tool, inner or {})
    named = [
        (key, tool)
        for key, value in given.items()
        if key.lower() in _NAMING_KEYS and isinstance(value, str)
        if (tool := tools.named(value)) is not None and key not in tool.properties
    ]
    if len(named) != 1:
        return None
    key, tool = named[0]
    rest = {k: v for k, v in given.items() if k != key}
    inner: list[Any] = [
        v for k, v in rest.items() if k not in tool.properties and isinstance(v, dict)
    ]
    under = [v for k, v in rest.items() if k.lower() in ARGUMENT_KEYS and isinstance(v, str)]
    beside = {k: v for k, v in rest.items() if k in tool.properties or k.lower() not in _AROUND}
    arguments: Any = beside
    if len(inner) == 1:
        arguments = inner[0]
    elif len(under) == 1 and "{" in under[0]:
        try:
            arguments = value_of(under[0])
        except UnreadableLiteral:
            return MeantData((tool.name,))
    return _called(tool, arguments)


def _called(tool: ToolSignature, arguments: Any) -> Meaning:
    """Return the call of `tool`, if it takes the arguments and needs no others."""
    if not isinstance(arguments, dict):
        return MeantData((tool.name,))
    given = cast("dict[str, Any]", arguments)
    takes = set(tool.required) <= given.keys() <= tool.properties.keys()
    return (ToolCall(tool.name, given),) if takes else MeantData((tool.name,))


def _fit(given: Mapping[str, Any], tool: ToolSignature) -> bool:
    """Return whether arguments without a name are surely `tool`'s: it needs some, and the values
    are of their types."""
    return bool(tool.required) and all(
        _KINDS.get(value.__class__, "null")
        in (kinds := allowed_types(tool.properties[key], tool.schema))
        or not kinds
        for key, value in given.items()
    )


def _words_of(given: Mapping[str, Any]) -> str | None:
    """Return the words of an object that holds an answer and nothing else."""
    words = [value for key, value in given.items() if key.lower() in _SPOKEN]
    others = {key.lower() for key in given} - _SPOKEN - _AROUND
    if len(words) != 1 or others or not isinstance(words[0], str):
        return None
    return words[0].strip() or None


def _meaning_of_name(text: str, tools: ToolIndex) -> Meaning:
    """Return the call of a text that begins with a tool's name, or one behind other words of
    calls."""
    at = 1 if text[:1] == "[" else 0
    while (wrapper := WRAPPER.match(text, at)) is not None and wrapper.end() > at:
        if wrapper.end() == wrapper.end(1):
            return None
        at = wrapper.end()
    if at > 1 and text.startswith("{" if text.startswith("[") else ("{", "["), at):
        return meaning_of(text[at:], tools)  # once: the rest begins with a bracket of its own
    name = _NAME.match(text, at)
    written = name.group().rstrip(":.") if name is not None else ""
    tool = tools.by_name.get(written) or tools.by_name.get(written.partition(":")[0])
    if tool is None:
        return MeantData() if NUMBERED.match(text) else None
    at += len(tool.name)
    at += text[at : at + 1] == "]"
    label = _ARGUMENTS_LABEL.match(text, at)
    rest = text[label.end() if label is not None else at :].strip()
    if text.startswith("["):
        rest = rest.removesuffix("]")
    if rest.startswith("("):
        # Also `print(set_timer(minutes=5))`, whose last bracket is the wrapper's.
        inner = rest[1:].rstrip(";. \n")
        if not inner.endswith(")"):
            return MeantData((tool.name,))
        inner = inner.rstrip(") \n") if inner.count("(") == 0 else inner[:-1]
        if not inner.lstrip().startswith("{"):
            try:
                return _called(tool, parse_keywords(inner, tuple(tool.properties), literal=True))
            except UnreadableLiteral:
                # `stop (for now)` may be a person's words.
                return MeantData((tool.name,)) if _GIVES.search(inner) else None
        rest = inner.strip()
    if not rest.startswith("{"):
        return None
    try:
        return _called(tool, value_of(rest))
    except UnreadableLiteral:
        return MeantData((tool.name,))


def _meaning_of_tags(text: str, tools: ToolIndex) -> Meaning:
    """Return what a text means that begins with a tag; None: it is more than tags."""
    first = TAG.match(text)
    if first is None:
        return None
    if text.startswith("</") and first.end() == len(text):
        return MeantData(markup=True)
    name = first[1]
    closed = text.endswith((f"</{name}>", f"</{name.lower()}>"))
    inner = text[first.end() : text.rfind("</")] if closed and first.end() < len(text) else ""
    if not closed and first.end() < len(text):
        if name not in tools.by_name or text[first.end() :].lstrip()[:1] != "{":
            return None
        inner = text[first.end() :]
    attributes = {m[1]: m[2].strip("\"'") for m in _ATTRIBUTE.finditer(first.group())}
    named = [v for k, v in attributes.items() if k in _NAMING_ATTRIBUTES and tools.named(v)]
    tool = tools.by_name.get(name) or (tools.named(named[0]) if named else None)
    if tool is not None:
        given = {k: v for k, v in attributes.items() if not (named and k in _NAMING_ATTRIBUTES)}
        return _called(tool, given | _inner_arguments(inner.strip(), tool))
    said = TAG.sub("", inner).strip()
    words = len(said.split()) > 1 or said.endswith((".", "!", "?"))
    wordy = words and said[:1] not in ("{", "[", "<")
    return MeantSpeech(said) if wordy else MeantData(markup=not said)


def _inner_arguments(inner: str, tool: ToolSignature) -> dict[str, Any]:
    """Return the arguments between a call's tags: an object, elements, or the one that it needs."""
    if inner.startswith("{"):
        try:
            value = value_of(inner)
        except UnreadableLiteral:
            return {"": inner}
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {"": inner}
    if inner.startswith("<"):
        elements = {
            key: body for key in tool.properties if (body := _element(inner, key)) is not None
        }
        return elements or {"": inner}
    if inner and len(tool.required) == 1:
        return {tool.required[0]: inner}
    return {"": inner} if inner else {}


def _element(text: str, name: str) -> str | None:
    _, opened, behind = text.partition(f"<{name}>")
    body, closed, _ = behind.partition(f"</{name}>")
    return body.strip() if opened and closed else None


def _named_in(text: str, tools: ToolIndex) -> tuple[str, ...]:
    """Return the tool that data names, if it names one only; of a list of calls, all of them."""
    head = text[:MAX_CHARS]
    calls = _CALLS.match(head) is not None
    names = _CALLED.findall(head) if calls else _NAME.findall(head)
    named = tuple(dict.fromkeys(name for name in names if name in tools.by_name))
    return named if calls or len(named) == 1 else ()
