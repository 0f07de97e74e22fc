"""`<tool_call>`: Hermes, Qwen 2.5, 3, 3-Coder and 3.5, GLM 4.5, Nemotron Nano, Step 3.5, Laguna.

The same markers hold JSON, `<function=...>` elements, or a name with `<arg_key>` pairs.
"""

from caal_node.reply_parser.parse_context import CallFormat
from caal_node.reply_parser.syntax.block import read_block

FORMATS = (
    CallFormat(
        name="hermes",
        openers=("<tool_call>",),
        closers=("</tool_call>",),
        strays=("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<tool_sep>"),
        read=read_block,
        unquote=True,
    ),
    CallFormat(
        name="laguna",
        openers=("<user>",),
        closers=("</user>",),
        read=read_block,
        unquote=True,
        tentative=True,
    ),
    CallFormat(
        # What models that were trained on other markers write in place of these.
        name="hermes-like",
        openers=("<tools>", "<tool>", "<tool_use>", "<functioncall>", "<json>", "<JSON>", "<xml>"),
        closers=(
            *("</tools>", "</tool>", "</tool_use>", "</functioncall>"),
            *("</json>", "</JSON>", "</xml>"),
        ),
        read=read_block,
        tentative=True,
    ),
    CallFormat(
        name="seed", openers=("<seed:tool_call>",), closers=("</seed:tool_call>",), read=read_block
    ),
    CallFormat(
        name="longcat",
        openers=("<longcat_tool_call>",),
        closers=("</longcat_tool_call>",),
        strays=(
            "<longcat_arg_key>",
            "</longcat_arg_key>",
            "<longcat_arg_value>",
            "</longcat_arg_value>",
        ),
        read=read_block,
        unquote=True,
    ),
    CallFormat(
        name="horizon",
        openers=("<ifm|tool_calls>", "<ifm|tool_call>"),
        closers=("</ifm|tool_calls>", "</ifm|tool_call>"),
        strays=("<ifm|arg_key>", "</ifm|arg_key>", "<ifm|arg_value>", "</ifm|arg_value>"),
        read=read_block,
        unquote=True,
    ),
)
