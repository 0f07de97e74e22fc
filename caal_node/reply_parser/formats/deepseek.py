"""DeepSeek V3, R1 and V3.1, Cogito, Step 3, and Kimi K2: a begin and an end around every part."""

from caal_node.reply_parser.parse_context import CallFormat
from caal_node.reply_parser.syntax.block import read_block


def spellings(*words: str) -> tuple[str, ...]:
    """Return the ways of writing a marker: with full-width or plain bars, and with blocks,
    underscores or spaces."""
    spaces = ("▁", "_", " ", "\\_")
    return tuple(f"<{bar}{space.join(words)}{bar}>" for bar in ("｜", "|") for space in spaces)


FORMATS = (
    CallFormat(
        name="deepseek",
        openers=(
            *spellings("tool", "calls", "begin"),
            *spellings("tool", "call", "begin"),
            "<｜tool▁calls｜>",
        ),
        closers=spellings("tool", "calls", "end"),
        read=read_block,
    ),
    CallFormat(
        name="kimi-k2",
        openers=("<|tool_calls_section_begin|>",),
        closers=("<|tool_calls_section_end|>",),
        read=read_block,
    ),
)
