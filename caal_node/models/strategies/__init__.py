"""The ways of asking a model: with its server's own tool calls, by text, or plainly."""

from caal_node.models.strategies.base import CallStrategy, Doubt, ReplyReader, StrategyName
from caal_node.models.strategies.json_reply import CallThresholds, JsonReplyStrategy
from caal_node.models.strategies.native import NativeStrategy
from caal_node.models.strategies.plain import PlainStrategy
from caal_node.models.strategies.styles import StyleName
from caal_node.models.strategies.text_protocol import TextProtocolStrategy

__all__ = [
    "CallStrategy",
    "CallThresholds",
    "Doubt",
    "JsonReplyStrategy",
    "NativeStrategy",
    "PlainStrategy",
    "ReplyReader",
    "StrategyName",
    "StyleName",
    "TextProtocolStrategy",
]
