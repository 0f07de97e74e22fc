"""Markers between turns, and tools' results: what a model writes on into after its own turn.

`<tool_response>{...}</tool_response>`, `<|observation|>`, `<|im_start|>assistant`. Results that a
model makes up and words in the person's name are dropped; of its own next turn only the header.
"""

from __future__ import annotations

import re
from typing import Final

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.formats.deepseek import written
from caal_node.reply_parser.syntax.others_turn import drop_result, drop_words

_RESULTS: Final = {
    "<tool_response>": "</tool_response>",
    "<tool_result>": "</tool_result>",
    "<tool_results>": "</tool_results>",
    "<tool_output>": "</tool_output>",
    "<function_response>": "</function_response>",
    "<function_results>": "</function_results>",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "<|tool_response>": "<tool_response|>",
    "<|tool_response_start|>": "<|tool_response_end|>",
    "<start_function_response>": "<end_function_response>",
    "<|START_TOOL_RESULT|>": "<|END_TOOL_RESULT|>",
    **dict(
        zip(written("tool", "outputs", "begin"), written("tool", "outputs", "end"), strict=True)
    ),
    "<|observation|>": "",
}
"""Each opener of a result, and its closer."""
_HEADERS: Final = {
    "<|im_start|>": "<|im_sep|>",
    "<|im_assistant|>": "<|im_middle|>",
    "<|start_header_id|>": "<|end_header_id|>",
    "<|header_start|>": "<|header_end|>",
    "<|start_of_role|>": "<|end_of_role|>",
    "<start_of_turn>": "",
    "<|turn>": "",
}
"""Each beginning of a header, and what may stand behind the role's name in it."""
_ENDS: Final = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>"),
    *("<|eot|>", "<end_of_turn>", "<turn|>", "<|assistant|>", "<|user|>", "<|system|>", "</s>"),
)
_STOPS: Final = (*_RESULTS, *_HEADERS, *_ENDS)
_TOOLS: Final = frozenset(
    ("tool", "ipython", "function", "observation", "environment", "tool_response", "tool_result")
)
_PEOPLE: Final = frozenset(("user", "system", "developer", "human"))
_OWN: Final = frozenset(("assistant", "model"))
_MAX_ROLE_CHARS: Final = 16
_ROLE: Final = re.compile(r"[a-z_]*")


def _read_result(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    closer = _RESULTS[opener]
    stops = tuple(stop for stop in _STOPS if stop != closer)
    return (yield from drop_result(reading.source, (closer,) if closer else (), stops))


def _read_header(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    source = reading.source
    role = yield from _role(source)
    behind = yield from source.peek()
    closer = _HEADERS[opener]
    ended = bool(closer) and (yield from source.take(closer))
    if not ended and role and behind not in ("", "\n", "\r", ":", "<"):
        source.unread(role)
        return False  # The marker alone leaked; what follows is speech.
    if role in _TOOLS:
        # What its header has in front of it is a result, whatever it looks like.
        if not (yield from drop_result(source, (), _STOPS)):
            yield from drop_words(source, ("\n", *_STOPS))
    elif role in _PEOPLE:
        yield from drop_words(source, _STOPS)
    elif role and role not in _OWN:
        source.unread(role)
    return True


def _role(source: Cursor) -> Steps[str]:
    """The word behind a header's beginning."""
    while True:
        found = _ROLE.match(source.text, source.at, source.at + _MAX_ROLE_CHARS)
        end = found.end() if found is not None else source.at
        if end < len(source.text) or source.closed:
            return source.advance(end)
        yield


FORMATS = (
    Format(
        name="results",
        openers=tuple(_RESULTS),
        closers=tuple(closer for closer in _RESULTS.values() if closer),
        read=_read_result,
        in_thinking=False,
        turn=True,
    ),
    Format(
        name="roles",
        openers=tuple(_HEADERS),
        closers=tuple(closer for closer in _HEADERS.values() if closer),
        read=_read_header,
        in_thinking=False,
        turn=True,
    ),
)
