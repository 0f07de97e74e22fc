"""What a model reads of the tools that a conversation tells it of: a turn of the user's.

It is no late instruction, as templates move those to the prompt's front, and everything behind
would be read again.
"""

from __future__ import annotations

from typing import Final

from caal_node.context.catalogue import told_catalogue
from caal_node.core.items import ToolsItem, UserItem
from caal_node.core.prompt_files import fill
from caal_node.models.strategies.styles import ProtocolStyle
from caal_node.reply_parser.escaping import escape_markers, escaped_value

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
