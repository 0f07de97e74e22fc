"""How calls, speech and results are written down in the text protocol.

There is one class for each style. A style writes what the prompt shows; the reply parser reads
replies of every style, whichever was asked for.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from caal_node.context.catalogue import told_catalogue
from caal_node.core.items import ToolsItem, UserItem
from caal_node.core.prompt_files import fill
from caal_node.reply_parser.escaping import escape_markers, escaped_value

# What a model reads of the tools that a conversation tells it of: a turn of the user's.
#
# It is no late instruction, as templates move those to the prompt's front, and everything behind
# would be read again.

CARRIER: Final = "use_tool"
"""The one tool that carries calls of told tools, where a server drops calls of tools that are not
in the request. It never changes, and nobody but the model's server knows it."""
_CARRIED: Final = f"Call them with {CARRIER}."
_BY_NAME: Final = "They can be called as well."


def told_natively(told: ToolsItem) -> UserItem:
    """Return what a model reads of `told` whose calls of them are carried."""
    return UserItem(fill("told_tools.md", how=_CARRIED, catalogue=told_catalogue(told)), told.id)


def told_by_text(told: ToolsItem, style: ProtocolStyle) -> UserItem:
    """Return what a model reads of `told` that calls them by their names.

    Behind the tools stands what a person may say for them, each with its call.
    """
    lines = [told_catalogue(told)]
    for name, example in told.examples.items():
        said = escape_markers(example.utterance)
        lines.append(f'"{said}" -> {style.calls([(name, escaped_value(example.arguments))])}')
    return UserItem(fill("told_tools.md", how=_BY_NAME, catalogue="\n".join(lines)), told.id)


StyleName: TypeAlias = Literal["jsonl", "xml", "markdown-json"]
WrittenCall: TypeAlias = tuple[str, Any]
"""A call: its name and its arguments."""


class ProtocolStyle(ABC):
    """Writes the three things that a conversation with tools holds."""

    rules: str
    """The file of `prompts/` that explains the style to the model."""

    @abstractmethod
    def calls(self, calls: Sequence[WrittenCall]) -> str:
        """Write all calls of one reply."""

    def speech(self, text: str) -> str:
        """Write a reply that is spoken."""
        return text

    @abstractmethod
    def observation(self, name: str, kind: str, value: Any) -> str:
        """Write what the tool `name` gave. `kind` is `result` or `error`."""


class JsonlStyle(ProtocolStyle):
    """Writes one object a line. It is the only style whose reply a JSON schema can hold."""

    rules = "protocol.md"

    def calls(self, calls: Sequence[WrittenCall]) -> str:
        rows = ({"type": "tool_call", "name": name, "arguments": args} for name, args in calls)
        return "\n".join(map(dump, rows))

    def speech(self, text: str) -> str:
        return dump({"type": "final_answer", "text": text})

    def observation(self, name: str, kind: str, value: Any) -> str:
        return dump({"type": "tool_observation", "name": name, kind: value})


class OneObjectStyle(JsonlStyle):
    """Writes all calls of a reply, or its speech, as one object. Its first key says which it is."""

    rules = "protocol_json_reply.md"

    def calls(self, calls: Sequence[WrittenCall]) -> str:
        return dump({"calls": [{"name": name, "arguments": args} for name, args in calls]})

    def speech(self, text: str) -> str:
        return dump({"say": text})


class XmlStyle(ProtocolStyle):
    """Writes calls in elements and speech as it is, as Hermes and Qwen models were trained on."""

    rules = "protocol_xml.md"

    def calls(self, calls: Sequence[WrittenCall]) -> str:
        return "\n".join(f"<tool_call>\n{_call(call)}\n</tool_call>" for call in calls)

    def observation(self, name: str, kind: str, value: Any) -> str:
        return f'<tool_observation name="{name}" kind="{kind}">\n{dump(value)}\n</tool_observation>'


class MarkdownJsonStyle(ProtocolStyle):
    """Writes calls in code fences and speech as it is, as coding models do by themselves."""

    rules = "protocol_markdown_json.md"

    def calls(self, calls: Sequence[WrittenCall]) -> str:
        return "\n".join(f"```json\n{_call(call)}\n```" for call in calls)

    def observation(self, name: str, kind: str, value: Any) -> str:
        return f"Tool observation ({kind} of {name}):\n```json\n{dump(value)}\n```"


STYLES: Final[Mapping[StyleName, ProtocolStyle]] = MappingProxyType(
    {"jsonl": JsonlStyle(), "xml": XmlStyle(), "markdown-json": MarkdownJsonStyle()}
)


def dump(value: Any) -> str:
    """Write JSON with the blanks that models write themselves, so examples look like replies."""
    return json.dumps(value, ensure_ascii=False)


def _call(call: WrittenCall) -> str:
    return dump({"name": call[0], "arguments": call[1]})
