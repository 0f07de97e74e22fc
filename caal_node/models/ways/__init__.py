"""The ways of asking a model: with its server's own tool calls, by text, or plainly."""

from caal_node.models.ways.native import Native
from caal_node.models.ways.one_reply import OneReply, Thresholds
from caal_node.models.ways.plain import Plain
from caal_node.models.ways.port import Doubt, Reader, Way, WayName
from caal_node.models.ways.protocol import Protocol
from caal_node.models.ways.styles import StyleName

__all__ = [
    "Doubt",
    "Native",
    "OneReply",
    "Plain",
    "Protocol",
    "Reader",
    "StyleName",
    "Thresholds",
    "Way",
    "WayName",
]
