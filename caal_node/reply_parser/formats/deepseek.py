"""DeepSeek V3, R1 and V3.1, Cogito, Step 3, and Kimi K2: a begin and an end around every part."""

from caal_node.reply_parser.format import Format
from caal_node.reply_parser.syntax.block import read_block


def written(*words: str) -> tuple[str, ...]:
    """A marker's spellings: full-width or plain bars; blocks, underscores or spaces."""
    spaces = ("▁", "_", " ", "\\_")
    return tuple(f"<{bar}{space.join(words)}{bar}>" for bar in ("｜", "|") for space in spaces)


FORMATS = (
    Format(
        name="deepseek",
        openers=(
            *written("tool", "calls", "begin"),
            *written("tool", "call", "begin"),
            "<｜tool▁calls｜>",
        ),
        closers=written("tool", "calls", "end"),
        read=read_block,
    ),
    Format(
        name="kimi-k2",
        openers=("<|tool_calls_section_begin|>",),
        closers=("<|tool_calls_section_end|>",),
        read=read_block,
    ),
)
