"""Calls in elements: Qwen 3-Coder without its wrapping, MiniMax M2, MiniCPM, DSML, dots, Olmo."""

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.syntax.block import read_block


def _read_opened(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    """The opener is itself the beginning of a call's tag."""
    reading.source.unread(opener)
    made = yield from read_block(reading, dialect, opener)
    if not made:
        yield from reading.source.take(opener)
    return made


_BAR = "｜DSML｜"

FORMATS = (
    Format(
        name="function-element",
        openers=("<function=", '<function name="', "<function name='"),
        closers=("</tool_call>",),
        strays=("</function>", "<parameter=", "</parameter>", '<param name="', "</param>"),
        read=_read_opened,
    ),
    Format(
        name="invoke-element",
        openers=('<invoke name="', f'<{_BAR}invoke name="'),
        closers=(f"</{_BAR}function_calls>", f"</{_BAR}tool_calls>"),
        strays=("</invoke>", '<parameter name="', f"</{_BAR}invoke>", f"</{_BAR}parameter>"),
        read=_read_opened,
    ),
    Format(
        name="minimax",
        openers=("<minimax:tool_call>",),
        closers=("</minimax:tool_call>",),
        read=read_block,
    ),
    Format(
        name="dsml",
        openers=(f"<{_BAR}function_calls>", f"<{_BAR}tool_calls>"),
        closers=(f"</{_BAR}function_calls>", f"</{_BAR}tool_calls>"),
        strays=(f'<{_BAR}parameter name="',),
        read=read_block,
    ),
    Format(
        name="dots",
        openers=("<dots_function_call>",),
        closers=("</dots_function_call>",),
        read=read_block,
    ),
    Format(
        name="olmo",
        openers=("<function_calls>",),
        closers=("</function_calls>",),
        read=read_block,
    ),
)
