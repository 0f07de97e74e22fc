"""Formats that are nothing but markers around calls in one of the shared syntaxes.

Hermes' `<tool_call>` holds JSON, `<function=...>` elements, or a name with `<arg_key>` pairs: Qwen
2.5, 3, 3-Coder and 3.5, GLM 4.5, Nemotron Nano, Step 3.5 and Laguna write it. DeepSeek V3, R1 and
V3.1, Cogito, Step 3 and Kimi K2 put a begin and an end around every part. Mistral, Granite, Phi,
Jamba, Nemotron, Cohere and others put a list of calls between their markers.
"""

from caal_node.reply_parser.parse_context import CallFormat
from caal_node.reply_parser.syntax.block import read_block


def spellings(*words: str) -> tuple[str, ...]:
    """Return the ways of writing a marker: with full-width or plain bars, and with blocks,
    underscores, spaces or what stands for one in a vocabulary."""
    spaces = ("▁", "_", " ", "\\_", "Ġ")
    return tuple(f"<{bar}{space.join(words)}{bar}>" for bar in ("｜", "|") for space in spaces)


def pair_tags(space: str) -> tuple[str, ...]:
    """Return the tags around keys, types and values, in the namespace `space`."""
    kinds = ("arg_key", "arg_type", "arg_value")
    return tuple(f"<{close}{space}{kind}>" for kind in kinds for close in ("", "/"))


FORMATS = (
    CallFormat(
        name="hermes",
        openers=("<tool_call>",),
        closers=("</tool_call>",),
        strays=(*pair_tags(""), "<tool_sep>"),
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
        strays=pair_tags("longcat_"),
        read=read_block,
        unquote=True,
    ),
    CallFormat(
        name="horizon",
        openers=("<ifm|tool_calls>", "<ifm|tool_call>"),
        closers=("</ifm|tool_calls>", "</ifm|tool_call>"),
        strays=pair_tags("ifm|"),
        read=read_block,
        unquote=True,
    ),
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
    CallFormat(
        # Old: a JSON list. From v11 on: name, optional id, [ARGS], JSON. Or without [ARGS].
        name="mistral",
        name_and_json=True,
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
        # Jamba, Apriel, Hunyuan and Sarashina hold JSON; Hunyuan 3 holds <tool_call> pairs.
        name="jamba",
        openers=("<tool_calls>", "<|tool_calls|>"),
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
