"""A list of calls between markers: Mistral, Granite, Phi, Jamba, Nemotron, Cohere and others."""

from caal_node.reply_parser.format import Format
from caal_node.reply_parser.syntax.block import read_block

FORMATS = (
    Format(
        # Old: a JSON list. From v11 on: name, optional id, [ARGS], JSON.
        name="mistral",
        openers=("[TOOL_CALLS]",),
        closers=("[/TOOL_CALLS]",),
        strays=("[ARGS]", "[CALL_ID]"),
        read=read_block,
        in_thinking=False,
    ),
    Format(name="granite", openers=("<|tool_call|>",), read=read_block),
    Format(
        name="granite-20b",
        openers=("<function_call>",),
        closers=("</function_call>",),
        read=read_block,
    ),
    Format(name="gigachat", openers=("<|function_call|>",), read=read_block),
    Format(
        name="gigachat-3",
        openers=("function call<|role_sep|>",),
        read=read_block,
        at_line=True,
    ),
    Format(name="phi", openers=("functools[",), read=read_block, at_line=True, tentative=True),
    Format(
        # Jamba, Apriel and Hunyuan hold JSON; Hunyuan 3 holds <tool_call> pairs.
        name="jamba",
        openers=("<tool_calls>",),
        closers=("</tool_calls>",),
        read=read_block,
    ),
    Format(
        name="nemotron",
        openers=("<TOOLCALL>",),
        closers=("</TOOLCALL>",),
        read=read_block,
    ),
    Format(
        name="internlm",
        openers=("<|action_start|>",),
        closers=("<|action_end|>",),
        strays=("<|plugin|>", "<|interpreter|>"),
        read=read_block,
    ),
    Format(
        name="cohere",
        openers=("<|START_ACTION|>",),
        closers=("<|END_ACTION|>",),
        read=read_block,
    ),
    Format(
        name="apertus",
        openers=("<|tools_prefix|>",),
        closers=("<|tools_suffix|>",),
        read=read_block,
    ),
    Format(
        # Llama 3, and Llama 4's Python lists.
        name="llama",
        openers=("<|python_tag|>", "<|python_start|>"),
        closers=("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
        read=read_block,
    ),
    Format(
        name="lfm",
        openers=("<|tool_call_start|>",),
        closers=("<|tool_call_end|>",),
        read=read_block,
    ),
)
