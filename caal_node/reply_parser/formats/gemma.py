"""Gemma 4, FunctionGemma and MedGemma: `call:name{key:value}`."""

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.syntax.block import read_block

_CHANNEL_END = "<channel|>"
_THOUGHT, _THOUGHT_END = "<unused94>", "<unused95>"


def _read_channel(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    """`<|channel>thought`: no channel is for people. MedGemma's has tokens without a name."""
    yield from reading.source.take("thought")
    reading.begin_thinking((_THOUGHT_END if opener == _THOUGHT else _CHANNEL_END,))
    return True


FORMATS = (
    Format(
        name="gemma-channel",
        openers=("<|channel>", _THOUGHT),
        closers=(_CHANNEL_END, _THOUGHT_END),
        read=_read_channel,
    ),
    Format(
        name="gemma",
        openers=("<|tool_call>",),
        closers=("<tool_call|>",),
        strays=('<|"|>', "<turn|>"),
        read=read_block,
    ),
    Format(
        name="functiongemma",
        openers=("<start_function_call>",),
        closers=("<end_function_call>",),
        strays=("<escape>", "<end_of_turn>"),
        read=read_block,
    ),
)
