"""The ways of asking a model: with its server's own tool calls, by a text protocol, or plainly."""

from caal_node.models.ways.native import Native
from caal_node.models.ways.plain import Plain
from caal_node.models.ways.port import Reader, Way
from caal_node.models.ways.protocol import Protocol

__all__ = ["Native", "Plain", "Protocol", "Reader", "Way"]
