"""Understanding a model's reply: speech, thinking and tool calls, whatever format it writes.

It is pure: text goes in, events come out. `ReplyParser` takes a reply as it streams, `parse_reply`
takes it whole. `SpokenReplyParser` also keeps out of the speech what nobody can listen to.
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
    UnspokenData,
    summarise,
)
from caal_node.reply_parser.parser import ReplyParser, parse_reply
from caal_node.reply_parser.speech_filter import SpokenReplyParser

__all__ = [
    "BrokenCall",
    "Event",
    "ReasoningDelta",
    "Reply",
    "ReplyParser",
    "SpokenReplyParser",
    "TextDelta",
    "TextWasThinking",
    "ToolCall",
    "ToolCallEnd",
    "ToolCallStart",
    "UnknownCall",
    "UnspokenData",
    "parse_reply",
    "summarise",
]
