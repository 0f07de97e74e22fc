"""Markers between turns, and tools' results: what a model writes on into after its own turn.

`<tool_response>{...}</tool_response>`, `<|observation|>`, `<|im_start|>assistant`. Results that a
model makes up, and words in the person's name, are dropped; of its own next turn, only the header
is. Nothing of a result is for people, so it goes up to the marker that ends it. A model that never
writes that marker goes on speaking behind it all the same, so then the loss is bounded: by the JSON
value that the result is, or by its first line.
"""

from __future__ import annotations

import re
from typing import Final

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.formats.blocks import spellings
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.elements import read_tag
from caal_node.reply_parser.syntax.values import read_json

_OWN_RESULT: Final = "<tool_observation"
"""Begins a result of the text protocol's XML style. Attributes stand behind it."""
_RESULTS: Final = {
    _OWN_RESULT: "</tool_observation>",
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
        zip(
            spellings("tool", "outputs", "begin"),
            spellings("tool", "outputs", "end"),
            strict=True,
        )
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
_TOOL_ROLES: Final = frozenset(
    ("tool", "ipython", "function", "observation", "environment", "tool_response", "tool_result")
)
_PEOPLES_ROLES: Final = frozenset(("user", "system", "developer", "human"))
_OWN_ROLES: Final = frozenset(("assistant", "model"))
_MAX_ROLE_CHARS: Final = 16
_ROLE: Final = re.compile(r"[a-z_]*")
_MAX_TURN_CHARS: Final = 2_000
"""How far the end of a turn is looked for; no voice assistant's turn is longer."""
_MAX_REST_CHARS: Final = 200
"""The same behind a JSON value: speech may be what stands there."""


def _read_result(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    context.note_result()
    if opener == _OWN_RESULT:
        context.cursor.unread(opener)
        if (yield from read_tag(context.cursor)) is None:
            context.cursor.advance_by(len(opener))
            return False
    closer = _RESULTS[opener]
    stops = tuple(stop for stop in _STOPS if stop != closer)
    return (yield from _drop_result(context.cursor, (closer,) if closer else (), stops))


def _read_header(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    cursor = context.cursor
    role = yield from cursor.take_match(_ROLE, _MAX_ROLE_CHARS)
    behind = yield from cursor.peek()
    closer = _HEADERS[opener]
    ended = bool(closer) and (yield from cursor.take(closer))
    if not ended and role and behind not in ("", "\n", "\r", ":", "<"):
        cursor.unread(role)
        return False  # The marker alone leaked; what follows is speech.
    if role in _TOOL_ROLES or role in _PEOPLES_ROLES:
        context.note_result()
    if role in _TOOL_ROLES:
        # What has such a header in front of it is a result, whatever it looks like.
        if not (yield from _drop_result(cursor, (), _STOPS)):
            yield from cursor.take_until(("\n", *_STOPS), _MAX_TURN_CHARS)
    elif role in _PEOPLES_ROLES:
        yield from cursor.take_until(_STOPS, _MAX_TURN_CHARS)
    elif role and role not in _OWN_ROLES:
        cursor.unread(role)
    return True


def _drop_result(cursor: Cursor, closers: tuple[str, ...], stops: tuple[str, ...]) -> Steps[bool]:
    """Drop the tool's result that begins here. False: it is none, and it was put back.

    closers: belong to the result.
    stops: begin something else.
    """
    char = yield from cursor.skip_space()
    space = cursor.skipped
    framed = "\n" in space
    if char and char in "{[" and (yield from cursor.peek_any(stops)) is None:
        yield from read_json(cursor)
        yield from _drop_to_closer(cursor, closers, stops, _MAX_REST_CHARS)
        return True
    limit = _MAX_TURN_CHARS if framed else _MAX_REST_CHARS
    if (yield from _drop_to_closer(cursor, closers, stops, limit)):
        return True
    if not framed:
        cursor.unread(space)
        return False  # The marker alone leaked into a sentence.
    yield from cursor.take_until(("\n", *closers, *stops), _MAX_TURN_CHARS)
    return True


def _drop_to_closer(
    cursor: Cursor, closers: tuple[str, ...], stops: tuple[str, ...], limit: int
) -> Steps[bool]:
    """Drop everything up to a closer. False: none comes, and nothing was dropped."""
    text, stop = yield from cursor.take_until((*closers, *stops), limit)
    if stop in closers and (yield from cursor.take(stop)):
        return True
    cursor.unread(text)
    return False


FORMATS = (
    CallFormat(
        name="results",
        openers=tuple(_RESULTS),
        closers=tuple(closer for closer in _RESULTS.values() if closer),
        read=_read_result,
        in_thinking=False,
        turn=True,
    ),
    CallFormat(
        name="roles",
        openers=tuple(_HEADERS),
        closers=tuple(closer for closer in _HEADERS.values() if closer),
        read=_read_header,
        in_thinking=False,
        turn=True,
    ),
)
