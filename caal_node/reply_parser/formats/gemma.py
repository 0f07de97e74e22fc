"""Gemma 4, FunctionGemma and MedGemma: `call:name{key:value}`."""

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.block import read_block

_CHANNEL_END = "<channel|>"
_THOUGHT, _THOUGHT_END = "<unused94>", "<unused95>"


def _read_channel(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read `<|channel>thought`. No channel is for people. MedGemma's has tokens without a name."""
    yield from context.cursor.take("thought")
    context.begin_thinking((_THOUGHT_END if opener == _THOUGHT else _CHANNEL_END,))
    return True


FORMATS = (
    CallFormat(
        name="gemma-channel",
        openers=("<|channel>", _THOUGHT),
        closers=(_CHANNEL_END, _THOUGHT_END),
        read=_read_channel,
    ),
    CallFormat(
        name="gemma",
        openers=("<|tool_call>",),
        closers=("<tool_call|>",),
        strays=('<|"|>', "<turn|>"),
        read=read_block,
    ),
    CallFormat(
        name="functiongemma",
        openers=("<start_function_call>",),
        closers=("<end_function_call>",),
        strays=("<escape>", "<end_of_turn>"),
        read=read_block,
    ),
)
