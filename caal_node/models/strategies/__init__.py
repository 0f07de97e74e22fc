"""The strategies for having a model call tools: natively, as one JSON reply, by a text protocol, or
not at all.

Each strategy is one small class: `request` writes what the server is sent, and `reader` reads what
it answers. `text_protocol` is the simplest one to read first.
"""

from caal_node.models.strategies.base import (
    CallStrategy,
    Doubt,
    NativeStrategy,
    ReplyReader,
    StrategyName,
)
from caal_node.models.strategies.prompt import StyleName
from caal_node.models.strategies.text_protocol import (
    JsonReplyStrategy,
    PlainStrategy,
    TextProtocolStrategy,
)

__all__ = [
    "CallStrategy",
    "Doubt",
    "JsonReplyStrategy",
    "NativeStrategy",
    "PlainStrategy",
    "ReplyReader",
    "StrategyName",
    "StyleName",
    "TextProtocolStrategy",
]
