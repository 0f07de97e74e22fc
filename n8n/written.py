"""Parameters as authors write them into notes: `@param` lines, and a sentence of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from n8n.parameters import MAX_NAME_CHARS, Parameter, choices, type_schema, typed

_NEED: Mapping[str, bool] = {"required": True, "mandatory": True, "optional": False}
MAX_LISTED = 40
"""Parameters of one sentence."""
_RANGE = re.compile(r"^(-?\d{1,15}(?:\.\d{1,9})?)\s*(?:-|–|\.\.|to)\s*(-?\d{1,15}(?:\.\d{1,9})?)$")
_BOUND = re.compile(r"^(min|max)(?:imum)?\s*[:=]?\s*(-?\d{1,15}(?:\.\d{1,9})?)$")
_DEFAULT = re.compile(r"^defaults?(?:\s+to|\s+is)?\s*[:=]?\s*(.+)$", re.IGNORECASE)
_ONE_OF = re.compile(r"\bone of:?\s+([^;]+)", re.IGNORECASE)
_JSDOC_NAME = re.compile(r"^(\[?)([A-Za-z_]\w*)(?:=([^\]]*))?\]?[:,]?$")
_PROSE_NAME = re.compile(r"\s*(?:and\s+)?[`\"']?([A-Za-z_]\w*)[`\"']?\s*")


def from_param_line(line: str) -> dict[str, Parameter]:
    """`@param days integer required How many days`, in any of the usual orders, and JSDoc's.

    At most one parameter; none when there is no name.
    """
    words = line.split()[1:]
    schema: dict[str, Any] = {}
    required = False
    if words and words[0].startswith("{"):
        schema.update(type_schema(words.pop(0)) or {})
    named = _JSDOC_NAME.match(words.pop(0)) if words else None
    if named is None or len(named[2]) > MAX_NAME_CHARS:
        return {}
    while words:
        word = words[0].strip("(),;:").lower()
        if (known := type_schema(word)) is not None and "type" not in schema:
            schema.update(known)
        elif word in _NEED:
            required = _NEED[word]
        elif "|" in word and not word.startswith("|") and "enum" not in schema:
            schema.update({"type": "string", "enum": choices(words[0].strip("(),;:"))})
        else:
            break
        words.pop(0)
    if text := " ".join(words).lstrip("-–: ").strip():
        schema["description"] = text
    if named[3] is not None:
        schema["default"] = typed(named[3], schema)
    return {named[2]: Parameter(schema, required and not named[1], "param")}


def from_prose(text: str) -> tuple[dict[str, Parameter], str]:
    """`city (required, string), days (optional, integer 1-7). More text.`

    The parameters, and what follows the sentence.
    """
    found: dict[str, Parameter] = {}
    at = 0
    for _ in range(MAX_LISTED):
        if (named := _PROSE_NAME.match(text, at)) is None:
            break
        at = named.end()
        attributes = ""
        if text[at : at + 1] == "(":
            close = text.find(")", at)
            close = len(text) if close < 0 else close
            attributes, at = text[at + 1 : close], min(close + 1, len(text))
        end = _item_end(text, at)
        words = text[at:end].strip(" :-–")
        if len(named[1]) <= MAX_NAME_CHARS and named[1].lower() not in ("none", "nothing"):
            found[named[1]] = _from_attributes(attributes, words)
        at = end
        if text[at : at + 1] not in (",", ";"):
            break
        at += 1
    return found, text[at:].lstrip(". ").strip()


def _from_attributes(attributes: str, words: str) -> Parameter:
    schema: dict[str, Any] = {}
    required = False
    told = [words] if words else []
    default: str | None = None
    offered: list[str] = []
    if (listed := _ONE_OF.search(attributes)) is not None:
        offered = choices(listed[1])
        attributes = attributes[: listed.start()] + attributes[listed.end() :]
    for part in filter(None, (p.strip() for p in re.split(r"[,;]", attributes))):
        head, _, tail = part.partition(" ")
        if part.lower() in _NEED:
            required = _NEED[part.lower()]
        elif (fallback := _DEFAULT.match(part)) is not None:
            default = fallback[1]
        elif (bounds := _bounds(part)) is not None:
            schema.update(bounds)
        elif (known := type_schema(head)) is not None and "type" not in schema:
            schema.update(known)
            if (bounds := _bounds(tail)) is not None:
                schema.update(bounds)
            elif tail:
                told.append(tail)
        elif "|" in part and not offered:
            offered = choices(part)
        else:
            told.append(part)
    if offered:
        schema.setdefault("type", "string")
        schema["enum"] = [typed(choice, schema) for choice in offered]
    if told:
        schema["description"] = ", ".join(told)
    if default is not None:
        schema["default"] = typed(default, schema)
    return Parameter(schema, required, "prose")


def _item_end(text: str, at: int) -> int:
    for i in range(at, len(text)):
        if text[i] in ",;" or (text[i] == "." and not text[i + 1 : i + 2].strip()):
            return i
    return len(text)


def _bounds(text: str) -> dict[str, float] | None:
    text = text.strip().lower()
    if (both := _RANGE.match(text)) is not None:
        return {"minimum": _number(both[1]), "maximum": _number(both[2])}
    if (one := _BOUND.match(text)) is not None:
        return {f"{one[1]}imum": _number(one[2])}
    return None


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
