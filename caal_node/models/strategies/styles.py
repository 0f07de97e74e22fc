"""How calls, speech and results are written down in the text protocol.

One object a style. A style writes what the prompt shows; replies of every style are understood by
`caal_node.reply_parser`, whichever was asked for.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

StyleName: TypeAlias = Literal["jsonl", "xml", "markdown-json"]
Written: TypeAlias = tuple[str, Any]
"""A call: name and arguments."""


class ProtocolStyle(typing.Protocol):
    rules: str
    """The file of `prompts/` that explains it."""

    def calls(self, calls: Sequence[Written]) -> str: ...

    def speech(self, text: str) -> str: ...

    def observation(self, name: str, kind: str, value: Any) -> str:
        """`kind` is `result` or `error`."""
        ...


class JsonlStyle:
    """An object a line. The only one that a JSON schema can hold a reply to."""

    rules = "protocol.md"

    def calls(self, calls: Sequence[Written]) -> str:
        rows = ({"type": "tool_call", "name": name, "arguments": args} for name, args in calls)
        return "\n".join(map(dump, rows))

    def speech(self, text: str) -> str:
        return dump({"type": "final_answer", "text": text})

    def observation(self, name: str, kind: str, value: Any) -> str:
        return dump({"type": "tool_observation", "name": name, kind: value})


class OneObjectStyle(JsonlStyle):
    """All calls of a reply, or its speech, in one object; the key comes first and decides."""

    rules = "protocol_one_reply.md"

    def calls(self, calls: Sequence[Written]) -> str:
        return dump({"calls": [{"name": name, "arguments": args} for name, args in calls]})

    def speech(self, text: str) -> str:
        return dump({"say": text})


class XmlStyle:
    """Calls in elements, speech as it is: what Hermes and Qwen models were trained on."""

    rules = "protocol_xml.md"

    def calls(self, calls: Sequence[Written]) -> str:
        return "\n".join(f"<tool_call>\n{_call(call)}\n</tool_call>" for call in calls)

    def speech(self, text: str) -> str:
        return text

    def observation(self, name: str, kind: str, value: Any) -> str:
        return f'<tool_observation name="{name}" kind="{kind}">\n{dump(value)}\n</tool_observation>'


class MarkdownJsonStyle:
    """Calls in code fences, speech as it is: what coding models write by themselves."""

    rules = "protocol_markdown_json.md"

    def calls(self, calls: Sequence[Written]) -> str:
        return "\n".join(f"```json\n{_call(call)}\n```" for call in calls)

    def speech(self, text: str) -> str:
        return text

    def observation(self, name: str, kind: str, value: Any) -> str:
        return f"Tool observation ({kind} of {name}):\n```json\n{dump(value)}\n```"


STYLES: Final[Mapping[StyleName, ProtocolStyle]] = MappingProxyType(
    {"jsonl": JsonlStyle(), "xml": XmlStyle(), "markdown-json": MarkdownJsonStyle()}
)


def dump(value: Any) -> str:
    # With the blanks that models write by themselves, so that example and reply look alike.
    return json.dumps(value, ensure_ascii=False)


def _call(call: Written) -> str:
    return dump({"name": call[0], "arguments": call[1]})
