"""Breaks up the markers of models in text from outside, so that no prompt holds them as markers.

A server's tokenizer makes one control token of `<|im_start|>` wherever it stands, so a web page, a
description or a person's words could end their turn and begin another. Behind a marker's first
character a blank is put, `< |im_start|>`: a model still reads what it says, and it is a marker no
more. Calls repeat what prompts show, so their arguments are put together again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from caal_node.reply_parser.formats import MARKERS
from caal_node.reply_parser.markers import prefix_pattern

_BY_FORM: Final = r"[|｜][^<>|｜\n]{1,64}[|｜]>"
"""What follows `<` in any special token of this form, whether it is known or not."""
_OTHERS: Final = (
    *("<bos>", "<eos>", "<pad>", "<unk>", "<mask>", "<sop>", "<eop>", "[gMASK]", "<EOT>"),
    *("<start_of_image>", "<end_of_image>", "<image_soft_token>", "<fim_", "<extra_id_"),
    *("<unused", "<reserved_", "<SPECIAL_", "[UNUSED_TOKEN_", "<end_of_utterance>"),
    *("<<SYS>>", "<</SYS>>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[MODEL_SETTINGS]", "[IMG]"),
    *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CONTENT]", "<tool_declare>"),
    # Those of this project's own text protocol.
    *("<tool_observation", "</tool_observation>"),
)
"""Control tokens that no reply holds, so that the reply parser need not know them."""
_WORDS: Final = frozenset({*MARKERS.all, *MARKERS.openers, *_OTHERS} - {">>>"})
_MAX_DEPTH: Final = 100


def _rests() -> dict[str, str]:
    """Return, by the first character of markers, the pattern of what may follow it."""
    firsts = sorted({word[0] for word in _WORDS})
    rests = {
        first: prefix_pattern((w[1:] for w in _WORDS if w[0] == first), or_cut=False)
        for first in firsts
    }
    rests["<"] = f"(?:{rests['<']}|{_BY_FORM})"
    return rests


_MARKER: Final = re.compile(
    "|".join(f"{re.escape(first)}(?={rest})" for first, rest in _rests().items())
)
"""Matches the first character of each marker, so that those in one another are all found."""
_BROKEN_UP: Final = re.compile(
    "|".join(f"(?<={re.escape(first)}) (?={rest})" for first, rest in _rests().items())
)


def escape_markers(text: str) -> str:
    """Return `text` with every marker in it broken up. It changes nothing a second time."""
    return _MARKER.sub(_broken_up, text)


def _broken_up(first: re.Match[str]) -> str:
    # A template would be looked up by the whole pattern, which takes 20 us for each text.
    return f"{first[0]} "


def unescape_markers(text: str) -> str:
    """Return `text` with the markers that `escape_markers` has broken up."""
    return _BROKEN_UP.sub("", text)


def escaped_value(value: Any, depth: int = 0) -> Any:
    """Return a JSON value with the markers in all its texts broken up, its keys included."""
    if isinstance(value, str):
        return escape_markers(value)
    if depth > _MAX_DEPTH:
        return value  # parsed JSON is never so deep
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value).items()
        return {escape_markers(key): escaped_value(each, depth + 1) for key, each in members}
    if isinstance(value, list | tuple):
        return [escaped_value(each, depth + 1) for each in cast("Iterable[Any]", value)]
    return value
