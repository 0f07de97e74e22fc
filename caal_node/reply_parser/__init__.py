"""Understanding a model's reply: speech, thinking and tool calls, whatever the dialect.

Pure: text in, events out. `ReplyParser` takes a reply as it streams, `parse_reply` takes it whole.
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
)
from caal_node.reply_parser.parser import ReplyParser, parse_reply
from caal_node.reply_parser.summary import summarise

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
