"""A list of calls between markers: Mistral, Granite, Phi, Jamba, Nemotron, Cohere and others."""

from caal_node.reply_parser.parse_context import CallFormat
from caal_node.reply_parser.syntax.block import read_block

FORMATS = (
    CallFormat(
        # Old: a JSON list. From v11 on: name, optional id, [ARGS], JSON.
        name="mistral",
        openers=("[TOOL_CALLS]",),
        closers=("[/TOOL_CALLS]",),
        strays=("[ARGS]", "[CALL_ID]"),
        read=read_block,
        in_thinking=False,
    ),
    CallFormat(name="granite", openers=("<|tool_call|>",), read=read_block),
    CallFormat(
        name="granite-20b",
        openers=("<function_call>",),
        closers=("</function_call>",),
        read=read_block,
    ),
    CallFormat(name="gigachat", openers=("<|function_call|>",), read=read_block),
    CallFormat(
        name="gigachat-3", openers=("function call<|role_sep|>",), read=read_block, at_line=True
    ),
    CallFormat(name="phi", openers=("functools[",), read=read_block, at_line=True, tentative=True),
    CallFormat(
        # Jamba, Apriel and Hunyuan hold JSON; Hunyuan 3 holds <tool_call> pairs.
        name="jamba",
        openers=("<tool_calls>",),
        closers=("</tool_calls>",),
        read=read_block,
    ),
    CallFormat(name="nemotron", openers=("<TOOLCALL>",), closers=("</TOOLCALL>",), read=read_block),
    CallFormat(
        name="internlm",
        openers=("<|action_start|>",),
        closers=("<|action_end|>",),
        strays=("<|plugin|>", "<|interpreter|>"),
        read=read_block,
    ),
    CallFormat(
        name="cohere", openers=("<|START_ACTION|>",), closers=("<|END_ACTION|>",), read=read_block
    ),
    CallFormat(
        name="apertus",
        openers=("<|tools_prefix|>",),
        closers=("<|tools_suffix|>",),
        read=read_block,
    ),
    CallFormat(
        # Llama 3, and Llama 4's Python lists.
        name="llama",
        openers=("<|python_tag|>", "<|python_start|>"),
        closers=("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
        read=read_block,
    ),
    CallFormat(
        name="lfm",
        openers=("<|tool_call_start|>",),
        closers=("<|tool_call_end|>",),
        read=read_block,
    ),
)
