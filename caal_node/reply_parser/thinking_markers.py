"""Markers around thinking."""

from __future__ import annotations

BLOCKS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<Think>", "</Think>"),
    ("<THINK>", "</THINK>"),
    ("<Thinking>", "</Thinking>"),
    ("<THINKING>", "</THINKING>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<ifm|think>", "</ifm|think>"),
    ("<mm:think>", "</mm:think>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|content_thinking|>", "<|end_message|>"),
)
"""(opener, closer) of each family. Dialects that say by a header what is thinking do so there."""

CLOSERS: dict[str, str] = dict(BLOCKS)
ANY_CLOSER: tuple[str, ...] = (
    *(closer for _, closer in BLOCKS if closer != "<|end_message|>"),  # Ends speech, too.
    "<channel|>",
    "<unused95>",
    "[BEGIN FINAL RESPONSE]",  # Apriel's, behind thinking that nothing opens.
)
"""What may end thinking that began in the prompt, or whose beginning was never written."""
