"""Calls in elements: Qwen 3-Coder without its wrapping, MiniMax M2, MiniCPM, DSML, dots, Olmo."""

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.block import read_block
from caal_node.reply_parser.syntax.elements import SPACES_IN_TAGS, spellings


def _read_opened(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read a block whose opener is itself the beginning of a call's tag."""
    context.cursor.unread(opener)
    made = yield from read_block(context, call_format, opener)
    if not made:
        yield from context.cursor.take(opener)
    return made


def _named(*kinds: str, quotes: str = '"') -> tuple[str, ...]:
    """Return how tags begin that have their name as an attribute."""
    return tuple(
        f"<{kind}{space}name={quote}"
        for kind in kinds
        for space in SPACES_IN_TAGS
        for quote in quotes
    )


def _dsml(*tags: str) -> tuple[str, ...]:
    """Return tags like `/invoke` in DSML's namespace."""
    names = (f"<{'/' * (tag[0] == '/')}｜DSML｜{tag.lstrip('/')}>" for tag in tags)
    return tuple(spelling for name in names for spelling in spellings(name))


FORMATS = (
    CallFormat(
        name="function-element",
        openers=("<function=", *_named("function", quotes="\"'")),
        closers=("</tool_call>",),
        strays=("</function>", "<parameter=", "</parameter>", *_named("param"), "</param>"),
        read=_read_opened,
    ),
    CallFormat(
        name="invoke-element",
        openers=_named("invoke", "｜DSML｜invoke", "｜DSML｜ invoke"),
        closers=_dsml("/function_calls", "/tool_calls"),
        strays=(
            *("</invoke>", *_dsml("/invoke", "/parameter")),
            *_named("parameter"),
        ),
        read=_read_opened,
    ),
    CallFormat(
        name="minimax",
        openers=("<minimax:tool_call>",),
        closers=("</minimax:tool_call>",),
        read=read_block,
    ),
    CallFormat(
        name="dsml",
        openers=_dsml("function_calls", "tool_calls"),
        closers=_dsml("/function_calls", "/tool_calls"),
        strays=_named("｜DSML｜parameter", "｜DSML｜ parameter"),
        read=read_block,
    ),
    CallFormat(
        name="dots",
        openers=("<dots_function_call>",),
        closers=("</dots_function_call>",),
        read=read_block,
    ),
    CallFormat(
        name="olmo", openers=("<function_calls>",), closers=("</function_calls>",), read=read_block
    ),
)
