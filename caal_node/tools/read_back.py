"""A call in one plain sentence, which a person is asked to say yes to.

The sentence is made of the tool's name and the call's arguments alone, by no model: of
`home__unlock_door {"door": "front"}` it is "Shall I use home to unlock door: front?". What is
too long to be said, it says that it leaves out, and defaults that nobody gave are not said.
`arguments_hash` stands for all of the call.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, cast

from caal_node.core.prompt_files import read, sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.reply_parser.tool_index import mapping

VALUE_CHARS: Final = 100
"""Characters of one value that are read out: 7 seconds of speech. More is not listened to."""
MAX_VALUES: Final = 6
"""Values that are read out; nobody keeps more in mind."""
NAMED_MORE: Final = 4
"""Of the values that are left out, so many are named."""
COUNTED_MORE: Final = 1_000
"""Of the values that are left out, so many are counted; the rest is "more than 1000"."""
PATH_NAMES: Final = 3
"""Of the names on the way to a value that lies deep, so many of the last are said."""
NAME_CHARS: Final = 40
"""Characters of a name that are read out."""
_SECRET_CHARS: Final = 4_096
"""So many characters behind what is read out are looked at, since one cut in a secret's middle
would leave half of it. No secret of the settings is longer."""
_HASH_CHARS: Final = 32
"""Hexadecimal digits of a call's hash: 128 bits, which nobody finds a second call for."""
_SAY: Final[Mapping[str, str]] = tomllib.loads(read("confirmation.toml"))["say"]
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_SENTENCE_END: Final = re.compile(r"(?<![.!?。！？…])[.!?。！？…]++(?=\s|$)")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Co", "Cs"})


def say(key: str, **values: str) -> str:
    """Return a text of `[say]` in `prompts/confirmation.toml` with its placeholders filled."""
    # One pass: a value may itself hold what looks like a placeholder.
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), _SAY[key])


def arguments_hash(exposed: str, arguments: Mapping[str, Any]) -> str:
    """Return 32 hexadecimal digits that stand for exactly this call, whatever its keys' order."""
    text = json.dumps([exposed, arguments], sort_keys=True, default=_plain, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]


def read_back(
    spec: ToolSpec, arguments: Mapping[str, Any], redact: Callable[[str], str] = str
) -> str:
    """Return the question whether the call may run, as one sentence.

    `redact` takes secrets out of each value. A value cannot end the sentence.
    """
    tool, said = in_words(spec, arguments, redact)
    if spec.tier == "mcp":
        tool = say("tool_of_server", server=_words(spec.source), tool=tool)
    return say("ask_with", tool=tool, arguments=said) if said else say("ask", tool=tool)


def would_have(
    spec: ToolSpec, arguments: Mapping[str, Any], redact: Callable[[str], str] = str
) -> str:
    """Return one sentence of what the call would have done, in the words of `read_back`."""
    tool, said = in_words(spec, arguments, redact)
    if spec.tier == "mcp":
        tool = say("server_used", server=_words(spec.source), tool=tool)
    if not said:
        return sentence("would_have").replace("{tool}", tool)
    text = sentence("would_have_with")
    return re.sub(r"\{(\w+)\}", lambda found: {"tool": tool, "arguments": said}[found[1]], text)


def in_words(
    spec: ToolSpec, arguments: Mapping[str, Any], redact: Callable[[str], str]
) -> tuple[str, str]:
    """Return the words of a tool's name, and its arguments as one phrase, "" for none."""
    tool = _words(spec.own_name or spec.name)
    spoken = list(_values(asked_for(spec, arguments), redact))
    if spoken and f" {tool}".endswith(f" {spoken[0][0]}"):
        spoken[0] = "", spoken[0][1]  # "unlock door: front" and not "unlock door: door front"
    said = [say("value", name=name, value=value).strip() for name, value in spoken[:MAX_VALUES]]
    if rest := spoken[MAX_VALUES:]:
        names = ", ".join(name for name, _ in rest[:NAMED_MORE])
        more = "more_values" if len(rest) <= COUNTED_MORE else "uncounted_values"
        said.append(say(more, count=str(min(len(rest), COUNTED_MORE)), names=names))
    return tool, ", ".join(said)


def asked_for(spec: ToolSpec, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `arguments` without those that are as if nobody had given them.

    These are optional ones with their schema's default, which LiveKit, a model or the tool fills
    in. The call's hash stands for them as well.
    """
    properties = mapping(spec.parameters.get("properties"))
    required = cast("Sequence[str]", spec.parameters.get("required") or ())
    return {
        name: value
        for name, value in arguments.items()
        if name in required
        or "default" not in (about := mapping(properties.get(name)))
        or not _is_default(value, about["default"])
    }


def _is_default(value: object, default: object) -> bool:
    if isinstance(value, Enum):
        value = value.value
    elif hasattr(value, "model_dump"):
        value = _plain(value)
    # True is no 1.
    return isinstance(value, bool) is isinstance(default, bool) and value == default


def _values(
    arguments: Mapping[str, Any], redact: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield each value within the arguments with its name, in their order.

    What lies deep has the last names on its way: `{"to": {"city": "Rome"}}` is "to city Rome".
    Only what can be read out is put into words, and no more is visited than is counted, as there
    may be a hundred thousand values.
    """
    open_: list[tuple[tuple[str, ...], object]] = [((key,), arguments[key]) for key in arguments]
    open_.reverse()
    found = 0
    while open_ and found <= MAX_VALUES + COUNTED_MORE:
        path, value = open_.pop()
        if hasattr(value, "model_dump"):
            value = _plain(value)
        if isinstance(value, Mapping) and value:
            inner = cast("Mapping[object, object]", value)
            open_ += reversed([((*path, str(key)), each) for key, each in inner.items()])
            continue
        if isinstance(value, (list, tuple)) and value:
            items = cast("Sequence[object]", value)
            if len(items) > 1 or isinstance(items[0], (Mapping, list, tuple)):
                open_ += reversed([(path, each) for each in items])
                continue
            value = items[0]
        found += 1
        if found > MAX_VALUES + NAMED_MORE:
            yield "", ""
            continue
        name = " ".join(map(_words, path[-PATH_NAMES:]))[:NAME_CHARS].strip()
        yield name, "" if found > MAX_VALUES else _value(cast("object", value), redact)


def _value(value: object, redact: Callable[[str], str]) -> str:
    if value is None or value in ("", [], {}, ()):
        return say("nothing")
    if isinstance(value, bool):
        return say("yes" if value else "no")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    raw = str(value)
    beginning = redact(raw[: VALUE_CHARS + _SECRET_CHARS])
    said = _in_one_sentence(beginning.replace("***", f" {say('secret')} "))
    if len(raw) <= VALUE_CHARS + _SECRET_CHARS and len(said) <= VALUE_CHARS:
        return said or say("nothing")
    # Behind what was looked at may lie the other half of a secret.
    shown = said[: min(VALUE_CHARS, len(said) // 2 or 1)].rstrip()
    return say("more_characters", text=shown, count=str(max(len(raw) - len(shown), 1)))


def _words(name: str) -> str:
    """Return the words of a name such as `unlock_door`, `unlockDoor` or `unlock-door`."""
    words = _WORD.findall(unicodedata.normalize("NFKC", name[: NAME_CHARS * 2]))
    return " ".join(word.lower() for word in words)[:NAME_CHARS].strip() or say("nothing")


def _in_one_sentence(text: str) -> str:
    """Return the text on one line, without marks that end a sentence or that nobody sees."""
    visible = (" " if unicodedata.category(c) in _INVISIBLE else c for c in text)
    line = " ".join("".join(visible).split())
    return " ".join(_SENTENCE_END.sub(",", line).rstrip(", :;").split())


def _plain(value: Any) -> Any:
    """Return the fields of what LiveKit has made of an object; anything else as text."""
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)
