"""JSON and Python lists that stand in the text without any marker."""

from __future__ import annotations

import re

from caal_node.reply_parser.arguments import is_cut
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.formats import FORMAT_BY_OPENER
from caal_node.reply_parser.markers import BEHIND_BRACKET
from caal_node.reply_parser.parse_context import ParseContext, ReadOutcome
from caal_node.reply_parser.syntax.call_object import read_bare_object, read_call_object
from caal_node.reply_parser.syntax.values import read_keywords
from caal_node.reply_parser.tool_index import MAX_NAME_CHARS, plausible
from caal_node.reply_parser.unmarked.named_calls import peek_tool_name, read_named

# Code spans and code fences: what they show is no call, but a fence may hold one.

_CALL_LANGUAGES = frozenset(
    ("", "json", "jsonc", "json5", "tool", "tool_call", "tool_calls", "tool_code")
) | {"function_call", "xml", "text", "plaintext"}
"""Languages of fences in which models put calls. Program code is not among them."""
_PYTHON = "tool_code"
"""Gemma's language: a call on each line, printed or given a name, as in Python."""
_PRINT = "print("
_MAX_TARGET_CHARS = 64
_MAX_CODE_CHARS = 2_000
_LANGUAGE = re.compile(r"[\w+.-]*")
_MAX_LANGUAGE_CHARS = 24
_FENCE = "```"
_BACKTICKS = re.compile("`*")
_OPENERS = tuple(FORMAT_BY_OPENER)


def read_at_backticks(context: ParseContext, run: str) -> Steps[None]:
    """Deal with a run of backticks that was taken, or the first three of a longer one."""
    cursor, position = context.cursor, context.position
    if len(run) < len(_FENCE):
        context.say(run)
        position.span = not position.span
        return
    while True:
        more = _BACKTICKS.match(cursor.text, cursor.at)
        run += cursor.advance(more.end() if more is not None else cursor.at)
        if cursor.at < len(cursor.text) or cursor.closed:
            break
        yield
    if position.fence_to_close:
        position.fence_to_close = False
        position.forget()
        position.line_start = True
    elif position.fence:
        position.fence = False
        context.say(run)
    else:
        yield from _open_fence(context, run)


def _open_fence(context: ParseContext, run: str) -> Steps[None]:
    cursor, position = context.cursor, context.position
    cursor.record()
    language = (yield from cursor.take_match(_LANGUAGE, _MAX_LANGUAGE_CHARS + 1)).lower()
    char = ""
    if language in _CALL_LANGUAGES and not position.example:
        char = yield from context.markers.skip_strays(cursor)
    opening = run + cursor.recorded()
    before = position.forget()
    opener = (yield from cursor.peek_any(_OPENERS)) if char in ("<", "[", "]") else None
    if opener is not None and opener not in context.markers.tentative:
        position.fence_to_close = True  # The scanner reads the call inside.
        position.line_start = True
        return
    cursor.record()
    if opener is not None:
        read = yield from _read_tentative(context, opener)
    else:
        read = yield from _read_call(context, char, language)
    shown = cursor.recorded()
    if read is ReadOutcome.BROKEN:
        skipped = yield from context.skip_broken_call(opening + shown)
        if skipped or (char in ("{", "[") and report_end_inside(context, shown)):
            read = ReadOutcome.CALL
    if read is ReadOutcome.CALL:
        position.fence_to_close = True
        position.after_call()
        return
    position.fence = True
    position.remember(before)
    context.say_rejected(opening + shown)


def _read_tentative(context: ParseContext, opener: str) -> Steps[ReadOutcome]:
    """Read what a fence holds that begins with a tentative opener."""
    call_format = FORMAT_BY_OPENER[opener]
    context.cursor.advance_by(len(opener))
    made = yield from call_format.read(context, call_format, opener)
    return ReadOutcome.CALL if made else ReadOutcome.SPEECH


def _read_call(context: ParseContext, char: str, language: str) -> Steps[ReadOutcome]:
    """Read what the fence holds. char: the first character in it."""
    if not char:
        return ReadOutcome.SPEECH
    if char in "{[":
        context.position.line_start = True
        return (yield from read_bracketed(context, char, strict=False))
    if language == _PYTHON:
        return (yield from _read_python(context))
    name = yield from peek_tool_name(context, char)
    if name is None:
        return ReadOutcome.SPEECH
    context.cursor.advance_by(len(name))
    context.events.guard_call_beginning()
    return (yield from read_named(context, name))


def _read_python(context: ParseContext) -> Steps[ReadOutcome]:
    """Read `print(set_timer(minutes=5))` or `x = set_timer(minutes=5)`, one or several. Other
    code behind them is dropped."""
    cursor = context.cursor
    made = ReadOutcome.SPEECH
    while (char := (yield from cursor.skip_space())) and char != "`":
        wrapped = yield from cursor.take(_PRINT)
        if not wrapped:
            yield from _skip_target(context)
        name = yield from peek_tool_name(context, (yield from cursor.peek()))
        if name is None:
            if made is not ReadOutcome.CALL:
                context.events.guard_call_beginning()
            break
        cursor.advance_by(len(name))
        read = yield from read_named(context, name, wrapped=wrapped)
        if read is not ReadOutcome.CALL:
            context.events.guard_call_beginning()
            made = made if made is ReadOutcome.CALL else read
            break
        made = read
        yield from cursor.take(")" if wrapped else ";")
    if made is ReadOutcome.CALL:
        yield from cursor.take_until((_FENCE,), _MAX_CODE_CHARS)
    return made


def _skip_target(context: ParseContext) -> Steps[None]:
    """Skip `x = ` in front of a call."""
    cursor = context.cursor
    target, stop = yield from cursor.take_until(("=", "(", "\n", "`"), _MAX_TARGET_CHARS)
    if stop == "=" and target.strip().isidentifier():
        cursor.advance_by(1)
        yield from cursor.skip_space()
    else:
        cursor.unread(target)


ENDS_INSIDE = "The reply ends in the middle of the call."
_IDENTIFIER = re.compile(r"(?:[^\W\d][\w.\-]*)?")
_KEYWORD = re.compile(r"\s*(?:\)|[^\W\d]\w*\s*=(?!=))")
_OBJECT = re.compile(r"\s*\{")
_MAY_BECOME_KEYWORD = re.compile(r"\s*+(?:\w++\s*+)?=?")
_MAX_KEYWORD_CHARS = 80
_SECOND_BEGINNING = re.compile(r"(?<=\n)[^\S\n]*[{\[][^\n]*\Z|\{\s*\"\Z")
"""The beginning of another object at the end of what was read: on a line of its own, or where a
string of the one before seemed to end."""
_SPEECH_BEHIND = re.compile(r"(?<!\s)[^\S\n]*+(?P<line>\n)(?=\s*\w)|```")
"""What neither a name nor a key continues with."""
_MAX_OPEN_STRING_CHARS = 128
"""The most of a name or a key in which the reply may end."""
_BEHIND = {bracket: re.compile(inside) for bracket, inside in BEHIND_BRACKET.items()}


def read_at_bracket(context: ParseContext, bracket: str) -> Steps[bool]:
    """Deal with `{` or `[` in running text. False: more text is needed first."""
    cursor, position = context.cursor, context.position
    if not position.quoting:
        inside = _BEHIND[bracket].match(cursor.text, cursor.at + 1)
        end = inside.end() if inside is not None else cursor.at + 1
        char = cursor.text[end : end + 1]
        if not char and not cursor.closed:
            return False
        if _may_be_call(context, bracket, char):
            cursor.record()
            read = yield from read_bracketed(context, bracket, strict=position.strict)
            yield from _settle(context, read)
            return True
    context.say(cursor.advance_by(1))
    return True


def read_bracketed(context: ParseContext, bracket: str, *, strict: bool) -> Steps[ReadOutcome]:
    """Read an object, or a list of objects or of Python's calls. Nothing is spoken of it.

    strict: it stands in the middle of a line, where only a tool's own name counts.
    """
    cursor = context.cursor
    if bracket == "{":
        return (yield from read_bare_object(context, strict=strict))
    cursor.advance_by(1)
    char = yield from cursor.skip_space()
    if char == "{" and not context.position.example:
        return (yield from _read_objects(context, strict=strict))
    if char.isalpha() or char == "_":
        return (yield from _read_python_list(context))
    return ReadOutcome.SPEECH


def report_end_inside(context: ParseContext, text: str) -> bool:
    """If the reply is over, report that it ends in the call whose beginning is `text`.

    Returns:
        Whether it was reported.
    """
    cursor = context.cursor
    if not cursor.closed or cursor.at < len(cursor.text):
        return False
    # Perhaps only a quote is missing, and then there is speech behind the call's last line.
    open_string = text.rpartition('"')[2]
    speech = _SPEECH_BEHIND.search(open_string)
    held = open_string[: speech.start(speech.lastgroup or 0)] if speech is not None else open_string
    if len(held) > _MAX_OPEN_STRING_CHARS:
        return False
    context.calls.broken("", ENDS_INSIDE)
    cursor.unread(open_string[len(held) :])
    return True


def _may_be_call(context: ParseContext, bracket: str, char: str) -> bool:
    """Return whether the bracket, with `char` behind it, is worth reading for a call."""
    position = context.position
    if bracket == "[" and (char.isalpha() or char == "_"):
        return True
    if char != ('"' if bracket == "{" else "{"):
        return False
    if position.strict:
        any_name = context.calls.tools.accepts_any_name
        if not position.sentence_over or (bracket == "{" and any_name):
            return False
    return bracket == "[" or not position.example


def _settle(context: ParseContext, read: ReadOutcome) -> Steps[None]:
    """Give what was recorded back to the text, unless it is a call."""
    cursor = context.cursor
    text = cursor.recorded()
    if read is ReadOutcome.CALL:
        context.position.after_call()
        return
    cut = cursor.closed and cursor.at >= len(cursor.text) and is_cut(text)
    again = None if cut else _SECOND_BEGINNING.search(text, 1)
    restarted = again is not None and "{" in text[: again.start()]
    if again is not None:
        cursor.unread(text[again.start() :])
        text = text[: again.start()]
    if read is ReadOutcome.BROKEN:
        skipped = yield from context.skip_broken_call(text, restarted=restarted)
        if skipped or report_end_inside(context, text):
            return
    context.say_rejected(text)


def _read_objects(context: ParseContext, *, strict: bool) -> Steps[ReadOutcome]:
    """Read a list of objects, from its first on."""
    cursor = context.cursor
    read = yield from read_bare_object(context, strict=strict)
    if read is not ReadOutcome.CALL:
        return read
    while True:
        char = yield from cursor.skip_space()
        if char == ",":
            cursor.advance_by(1)
        elif char == "{":
            yield from read_call_object(context, marked=True)
        else:
            yield from cursor.take("]")
            return ReadOutcome.CALL


def _read_python_list(context: ParseContext) -> Steps[ReadOutcome]:
    """Read `[set_timer(minutes=5), get_time()]`, from behind the first bracket."""
    cursor, calls = context.cursor, context.calls
    made = False
    while True:
        name = yield from cursor.take_match(_IDENTIFIER, MAX_NAME_CHARS + 1)
        refused = ReadOutcome.CALL if made else ReadOutcome.SPEECH
        if not plausible(name) or (yield from cursor.peek()) != "(":
            return refused
        known = calls.tools.named(name) is not None
        if not made and ((context.events.spoken and not known) or context.position.example):
            return refused
        read = ReadOutcome.CALL if made else (yield from _check_keyword(context, known))
        if read is not ReadOutcome.CALL:
            return read
        made = True
        yield from read_keywords(cursor, calls.open(name), context.markers)
        char = yield from cursor.skip_space()
        if char == ",":
            cursor.advance_by(1)
            char = yield from cursor.skip_space()
            if char.isalpha() or char == "_":
                continue
        yield from cursor.take("]")
        return ReadOutcome.CALL


def _check_keyword(context: ParseContext, known: bool) -> Steps[ReadOutcome]:
    """Find out whether the bracket that begins here holds `name=` or nothing, as a call's
    does, or an object, as that of a known tool may. Where a marker stands instead, it is taken."""
    cursor, markers = context.cursor, context.markers
    length = 2
    while (yield from cursor.has(length)):
        inside = markers.removed_from(cursor.text[cursor.at + 1 : cursor.at + length])
        if markers.partial_start(inside) == len(inside):
            if _KEYWORD.match(inside + " ") and not inside.endswith("="):
                return ReadOutcome.CALL
            if known and _OBJECT.match(cursor.text, cursor.at + 1):
                return ReadOutcome.CALL
            if not _MAY_BECOME_KEYWORD.fullmatch(inside) or length > _MAX_KEYWORD_CHARS:
                break
        length += 1
    found = markers.strip.search(cursor.text, cursor.at, cursor.at + length)
    if found is None:
        return ReadOutcome.SPEECH
    cursor.advance(found.end())
    return ReadOutcome.BROKEN
