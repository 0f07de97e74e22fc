"""Gemma 4 and FunctionGemma: `call:name{key:value}`."""

from caal_node.replies.reading import Dialect
from caal_node.replies.syntax.block import read_block

DIALECTS = (
    Dialect(
        name="gemma",
        openers=("<|tool_call>",),
        closers=("<tool_call|>",),
        strays=("<|tool_response>", "<tool_response|>", '<|"|>', "<|turn>", "<turn|>"),
        read=read_block,
    ),
    Dialect(
        name="functiongemma",
        openers=("<start_function_call>",),
        closers=("<end_function_call>",),
        strays=(
            "<escape>",
            "<start_function_response>",
            "<end_function_response>",
            "<start_of_turn>",
            "<end_of_turn>",
        ),
        read=read_block,
    ),
)
