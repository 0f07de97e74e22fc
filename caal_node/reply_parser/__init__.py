"""Understanding a model's reply: speech, thinking and tool calls, whatever format it writes.

It is pure: text goes in, events come out. `ReplyParser` takes a reply as it streams, `parse_reply`
takes it whole.
"""

from caal_node.reply_parser.events import (
    BrokenCall,
    Event,
    ReasoningDelta,
    Reply,
    TextDelta,
    TextWasThinking,
    ToolCall,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
    summarise,
)
from caal_node.reply_parser.parser import ReplyParser, parse_reply

__all__ = [
    "BrokenCall",
    "Event",
    "ReasoningDelta",
    "Reply",
    "ReplyParser",
    "TextDelta",
    "TextWasThinking",
    "ToolCall",
    "ToolCallEnd",
    "ToolCallStart",
    "UnknownCall",
    "parse_reply",
    "summarise",
]
