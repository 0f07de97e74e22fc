"""Reading a reply that is heard: a line that is an object, a list or a tag is never spoken.

What `ReplyParser` takes for speech is held here from a character on with which such a line may
begin, until it is whole; everything else passes at once. A whole one is a call, words, or data
(`line_meaning`). A reply with data and without a call ends in an `UnspokenData`, so that the model
is asked to say it in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from caal_node.reply_parser.events import (
    BrokenCall,
    CallBuilder,
    Event,
    ReasoningDelta,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
    UnspokenData,
    joined,
)
from caal_node.reply_parser.formats import MARKERS
from caal_node.reply_parser.literal_parser import quote_ends_string
from caal_node.reply_parser.markers import prefix_pattern
from caal_node.reply_parser.parse_context import TextPosition
from caal_node.reply_parser.parser import ReplyParser
from caal_node.reply_parser.tool_index import ToolIndex
from caal_node.reply_parser.unmarked.line_meaning import (
    MAX_CHARS,
    NAMED_OBJECT,
    NUMBERED,
    QUOTES,
    TAG,
    WRAPPER,
    WRAPPERS,
    MeantData,
    MeantSpeech,
    meaning_of,
)

_UNREADABLE: Final = "The call cannot be read; write it as one JSON object with double quotes."
_MAX_BEGINNING_CHARS: Final = 96
"""By then it is clear whether a line begins as one of these."""
_OBJECT: Final = re.compile(rf"\{{\s*+(?:\{{?\s*+[{QUOTES}]|\}}|//|/\*|[^\W\d][\w-]*+\s*+[:=])")
_OBJECT_IN_LINE: Final = re.compile(rf"\{{\s*+[{QUOTES}]|\{{\{{(?:\n\s*+)?[{QUOTES}]")
"""Two brackets and a blank begin a template, as in `{{ "on" | upper }}`."""
_LIST_IN_LINE: Final = re.compile(rf"\[\s*+[{QUOTES}{{]")
_LIST: Final = re.compile(rf"\[\s*+(?:[{QUOTES}{{\[\]]|-?\d|(?:[Tt]rue|[Ff]alse|null|None)\b)")
_TAG: Final = re.compile(r"</?[^\W\d][\w.:-]*+(?:\s|/?>)")
_FENCE: Final = re.compile(r"```[\w+.-]*+\s*+(?=[{\[<])")
_OTHER_FENCE: Final = re.compile(r"```[\w+.-]*+\s*+[^\s{\[<\w+.-]|```[\w+.-]*+\s*+(?=\w)")
_SPAN: Final = re.compile(r"`[^`\n]")
_KEY: Final = re.compile(r"(?:,\s*+)?\"[^\"\n]{1,48}\"\s*+:\s*+(?:[\"{\[]|-?\d|true|false|null)")
_CLOSERS: Final = re.compile(r"[}\]][}\]),;\s]*+")
_MAY_BECOME: Final = re.compile(
    r"\{\s*+(?:\{\s*+|[^\W\d][\w-]*+\s*+|/)?|\[\s*+(?:-|[\w.]*+\s*+)?|</?(?:[^\W\d][\w.:-]*+)?/?"
    r"|`{1,2}|```[\w+.-]*+\s*+|(?:,\s*+)?(?:\"[^\"\n]{0,48}(?:\"\s*+(?::\s*+-?[a-z]{0,5})?)?)?"
    r"|[}\]][}\]),;\s]*+"
)
"""The beginning of a line that none of the patterns above has found yet, but still may."""
_BRACKETS: Final = re.compile(r"\\.|[\"'{}\[\]()]", re.DOTALL)
_QUOTE_SIGNS: Final = ('"', "'")
_WORD: Final = re.compile(r"[^\W\d][\w.-]*+")
_NAME_ENDS: Final = re.compile(r"[ \t\]]*+[:=]?\s*+(?:\w++\s*+[:=]?\s*+)?([({]?)")
_MAY_BECOME_NUMBERED: Final = re.compile(r"functions\.(?:[^\W\d][\w.-]{0,63}(?::\d{0,4}\s*+)?)?")
_NUMBERED_BEGINS: Final = prefix_pattern(("functions.",))
_STOPS: Final = re.compile(rf"[\n{{\[<]|{_NUMBERED_BEGINS}")
_BLANK: Final = re.compile(r"[^\S\n]*")
_BEHIND: Final = re.compile(r"[\s,;}\])]+")
_WORDS_LINE: Final = re.compile(r"\n[^\S\n]*+[^\W\d]")
"""A line of words: what was never closed ends in front of it."""
_MAX_TAG_CHARS: Final = 512

_Kind: TypeAlias = Literal["brackets", "list", "tag", "fence", "span", "rest"]
"""How it is known where the line ends: with its brackets, with what follows them, with its closer,
or with the line."""
_SHOWN: Final[tuple[tuple[_Kind, re.Pattern[str]], ...]] = (
    ("fence", _FENCE),
    ("span", _SPAN),
    ("rest", _KEY),
)
_DATA: Final[tuple[tuple[_Kind, re.Pattern[str]], ...]] = (
    ("brackets", _OBJECT),
    ("list", _LIST),
    ("tag", _TAG),
)


class SpokenReplyParser:
    """Reads one reply that is heard. The arguments are those of `ReplyParser`.

    Without tools nothing is kept out: then nobody is sure to hear it, and who asked may want JSON.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        *,
        in_thinking: bool = False,
        id_prefix: str = "call_",
    ) -> None:
        self._parser = ReplyParser(tools, in_thinking=in_thinking, id_prefix=id_prefix)
        index = ToolIndex.from_schemas(tools)
        self._filter = None if index.accepts_any_name else _SpeechFilter(index, f"{id_prefix}line_")
        self._finished = False
        self.invented_result = False
        """Whether the model has begun to make up, behind a call, what that call gave."""

    def feed(self, chunk: str) -> list[Event]:
        """Take the next piece of the reply, and return the events that it made certain."""
        events = self._parser.feed(chunk)
        self.invented_result = self._parser.invented_result
        return events if self._filter is None else self._filter.feed(events)

    def finish(self) -> list[Event]:
        """End the reply, and return the events that are left. Later chunks are not read."""
        events = self._parser.finish()
        self.invented_result = self._parser.invented_result
        if self._filter is None or self._finished:
            return events
        self._finished = True
        return self._filter.finish(events)


def _begins(word: str, words: Iterable[str]) -> bool:
    return any(one.startswith(word) for one in words)


class _SpeechFilter:
    """Filters the events of one reply, so that no data is among its speech.

    id_prefix: what the ids of the calls begin with that are found here.
    """

    def __init__(self, tools: ToolIndex, id_prefix: str) -> None:
        self._tools = tools
        self._out: list[Event] = []
        self._calls = CallBuilder(tools, self._emit, id_prefix)
        self._position = TextPosition()
        self._text = ""
        """What has not been decided yet."""
        self._kind: _Kind | None = None
        """How the end is found of what is held; None while nothing is."""
        self._scanned, self._depth, self._in_string = 0, 0, ""
        self._in_fence = False
        """Whether this is program code, which is nobody's data."""
        self._too_long = False
        """Whether so much was held that it is data, however it ends."""
        self._dropped = self._data = self._called = self._spoke = False

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return what of `events` is certain by now."""
        for event in events:
            if isinstance(event, TextDelta):
                self._text += event.text
                self._decide(closed=False)
                continue
            if isinstance(event, TextWasThinking):
                # Whatever it was, it is no speech, and nobody needs to be told of it.
                self._release(len(self._text))
                self._kind, self._too_long = None, False
                self._dropped = self._data = self._spoke = False
                self._position.after_unopened_thinking()
            elif not isinstance(event, ReasoningDelta):
                named = isinstance(event, ToolCallStart | BrokenCall) and event.name
                if named and WRAPPER.fullmatch(self._text):
                    self._text = ""  # It announced the call.
                self._decide(closed=True)
                self._position.after_call()
            self._emit(event)
        return self._take()

    def finish(self, events: Iterable[Event]) -> list[Event]:
        """Return what is left, `events` included, as no more come."""
        kept = self.feed(events)
        self._decide(closed=True)
        if not self._called and (self._data or (self._dropped and not self._spoke)):
            self._emit(UnspokenData())
        return kept + self._take()

    def _take(self) -> list[Event]:
        taken, self._out = self._out, []
        return joined(taken) if len(taken) > 1 else taken

    def _emit(self, event: Event) -> None:
        self._called = self._called or isinstance(event, ToolCallEnd | BrokenCall | UnknownCall)
        if isinstance(event, TextDelta):
            self._spoke = self._spoke or not event.text.isspace()
        self._out.append(event)

    # -- where such a line begins ---------------------------------------------------------------

    def _decide(self, *, closed: bool) -> None:
        """Pass on, or take out, all that is certain. closed: the line ends with the text."""
        while self._text:
            if self._kind is None and not self._find_beginning(closed=closed):
                break
            found = self._end_of_held(closed=closed)
            if found is not None:
                self._settle(*found)
            elif len(self._text) > MAX_CHARS:
                self._too_long = self._dropped = self._data = True
                self._text = ""
                self._scanned = 0
            else:
                break

    def _find_beginning(self, *, closed: bool) -> bool:
        """Pass on what surely is speech. True: what may be none stands at the beginning now.
        False: the text is used up, or more is needed."""
        while self._text:
            position = self._position
            self._scanned = 0
            if self._in_fence:
                end = self._text.find("```")
                if end < 0:
                    keep = 0 if closed else len(self._text) - len(self._text.rstrip("`"))
                    self._release(len(self._text) - keep)
                    return False
                self._in_fence = False
                self._release(end + 3)
                continue
            if position.behind_call and (found := _BEHIND.match(self._text)) is not None:
                # White space stays, as it may keep words apart.
                self._text = self._text[found.end() :]
                self._say("".join(char for char in found.group() if char.isspace()))
                position.after_call()
                continue
            if position.line_start:
                blank = _BLANK.match(self._text)
                if blank is not None and blank.end():
                    self._release(blank.end())
                    continue
                if position.indented:
                    self._release_line()
                    continue
                kind = self._kind_of_numbered(closed=closed)
                kind = self._kind_of_line(closed=closed) if kind is False else kind
            elif self._text[0] == "f":
                kind = self._kind_of_numbered(closed=closed)
            elif self._text[0] in "{[<" and position.sentence_over:
                kind = self._kind_in_line(closed=closed)
            else:
                kind = False
            if kind is None:
                return False
            if kind:
                self._kind, self._depth, self._in_string = kind, 0, ""
                return True
            if not self._in_fence:
                self._release(self._plain_end())
        return False

    def _plain_end(self) -> int:
        """Return how far the text is speech that holds no other beginning."""
        stop = _STOPS.search(self._text, self._text[0] != "\n")
        if stop is None:
            return len(self._text)
        return stop.end() if stop.group() == "\n" else stop.start()

    def _kind_of_line(self, *, closed: bool) -> _Kind | Literal[False] | None:
        """Return what the line that begins here may be; False: nothing but speech; None: more is
        needed."""
        text = self._text
        if text[0].isalpha():
            return self._kind_of_named(0, closed=closed)
        if text.startswith("```") and _OTHER_FENCE.match(text):
            self._in_fence = True
            self._release(3)
            return False
        for kind, pattern in _SHOWN:
            if pattern.match(text):
                return kind
        if (found := _CLOSERS.match(text)) is not None and found.end() < len(text):
            return "rest" if "\n" in found.group() else False
        return self._kind_of_data(closed=closed)

    def _kind_of_numbered(self, *, closed: bool) -> _Kind | Literal[False] | None:
        if (found := NUMBERED.match(self._text)) is not None:
            self._scanned = found.end()
            return "brackets"
        if closed or self._text[0] != "f":
            return False
        begins = "functions.".startswith(self._text)
        return None if begins or _MAY_BECOME_NUMBERED.fullmatch(self._text) else False

    def _kind_of_data(self, *, closed: bool) -> _Kind | Literal[False] | None:
        text = self._text
        for kind, pattern in _DATA:
            if pattern.match(text):
                return kind
        if text[0] == "[" and _WORD.match(text, 1) is not None:
            return self._kind_of_named(1, closed=closed)
        waits = not closed and len(text) <= _MAX_BEGINNING_CHARS
        if len(text) <= _MAX_BEGINNING_CHARS and _MAY_BECOME.fullmatch(text) is None:
            return False
        if closed and _CLOSERS.fullmatch(text):
            return "rest"
        return None if waits else False

    def _kind_in_line(self, *, closed: bool) -> _Kind | Literal[False] | None:
        """Return the same for what stands behind a sentence: an object, or a list of some."""
        if _OBJECT_IN_LINE.match(self._text):
            return "brackets"
        if _LIST_IN_LINE.match(self._text):
            return "list"
        if self._text[0] == "<" and (tag := _TAG.match(self._text)) is not None:
            return "tag" if tag.group().strip("</> \n") in self._tools.by_name else False
        waits = not closed and len(self._text) <= _MAX_BEGINNING_CHARS
        return None if waits and _MAY_BECOME.fullmatch(self._text) else False

    def _kind_of_named(self, at: int, *, closed: bool) -> _Kind | Literal[False] | None:
        """Look for a tool's name and a bracket, perhaps behind words as in `call set_timer(`."""
        text, tools = self._text, self._tools
        waits = None if not closed and len(text) <= _MAX_BEGINNING_CHARS else False
        wrapped = False
        while (found := WRAPPER.match(text, at)) is not None and found.end() > found.end(1):
            at, wrapped = found.end(), True
        if at >= len(text):
            return waits
        if wrapped and text[at] == "{":
            return "brackets"
        word = _WORD.match(text, at)
        if word is None:
            return False
        unknown = NAMED_OBJECT.match(text, at)
        if (
            unknown is not None
            and unknown[1] not in tools.by_name
            and "functions." not in unknown[1][1:]
        ):
            self._scanned = unknown.end(1)
            return "list"
        name = word.group()
        if word.end() == len(text) and not closed:
            known = _begins(name, tools.names_from(name[0])) or _begins(name.lower(), WRAPPERS)
            return waits if known else False
        if name not in tools.by_name:
            name = name.rstrip(".-")
            if name not in tools.by_name:
                return False
        behind = _NAME_ENDS.match(text, at + len(name))
        if behind is None or (behind.end() == len(text) and not behind[1]):
            return waits
        if not behind[1]:
            return False
        before = text[: behind.start(1)]
        whole = (wrapped and "(" in text[:at]) or (text[0] == "[" and "]" not in before)
        self._scanned = 0 if whole else len(before)
        return "list"

    # -- where it ends --------------------------------------------------------------------------

    def _end_of_held(self, *, closed: bool) -> tuple[int, bool] | None:
        """Return where what is held ends, and whether it may be none of speech; None: more is
        needed."""
        text = self._text
        match "rest" if self._too_long and self._kind == "tag" else self._kind:
            case "brackets" | "list":
                return self._end_of_brackets(closed=closed)
            case "tag":
                return self._end_of_tag(closed=closed)
            case "fence":
                end = text.find("```", 0 if self._too_long else 3)
                return (end + 3, True) if end >= 0 else (len(text), True) if closed else None
            case "span":
                end = text.find("`", 1)
                line = text.find("\n")
                if end < 0 or 0 <= line < end:
                    return (len(text) if line < 0 else line, False) if closed or line >= 0 else None
                return self._if_line_ends(end + 1, closed=closed)
            case _:
                line = text.find("\n")
                return (line, True) if line >= 0 else (len(text), True) if closed else None

    def _end_of_brackets(self, *, closed: bool) -> tuple[int, bool] | None:
        text = self._text
        for found in _BRACKETS.finditer(text, self._scanned):
            sign = found.group()
            if sign[0] == "\\":
                if len(sign) < 2 and not closed:
                    break
            elif sign in _QUOTE_SIGNS:
                if not self._in_string:
                    begins = sign == '"' or text[: found.start()].rstrip()[-1:] in "[{(,:="
                    self._in_string = sign if begins else ""
                elif self._in_string == sign:
                    ends = sign == '"' or quote_ends_string(text, found.start(), closed=closed)
                    if ends is None:
                        break
                    self._in_string = "" if ends else sign
            elif not self._in_string:
                self._depth += 1 if sign in "{[(" else -1
            self._scanned = found.end()
            if self._depth <= 0 and sign in "}])" and not self._in_string:
                if self._kind == "brackets" or self._too_long:
                    return found.end(), True
                self._scanned = found.start()  # It is looked at again, once more has come.
                self._depth += 1
                return self._if_line_ends(found.end(), closed=closed)
        if not closed:
            return None
        words = _WORDS_LINE.search(text)
        return (len(text) if words is None else words.start(), True)

    def _end_of_tag(self, *, closed: bool) -> tuple[int, bool] | None:
        text = self._text
        line = text.find("\n")
        first = TAG.match(text)
        if first is None:
            if closed or line >= 0 or len(text) > _MAX_TAG_CHARS:
                return (line if line >= 0 else len(text), False)
            return None
        name = first[1]
        if text.startswith("</") and self._position.behind_call and name in self._tools.by_name:
            return first.end(), True
        if text.startswith("</") or first.group().endswith("/>"):
            return self._if_line_ends(first.end(), closed=closed)
        if name in self._tools.by_name and text[first.end() :].lstrip().startswith("{"):
            self._kind, self._scanned = "brackets", max(first.end(), self._scanned)
            return self._end_of_brackets(closed=closed)
        closer = text.find(f"</{name}>", first.end())
        if closer >= 0:
            return self._if_line_ends(closer + len(name) + 3, closed=closed)
        if not closed and (line < 0 or name in self._tools.by_name or WRAPPER.match(name)):
            return None
        line = line if line >= 0 else len(text)
        return line, not text[first.end() : line].strip()

    def _if_line_ends(self, at: int, *, closed: bool) -> tuple[int, bool] | None:
        """Return `at`, and whether nothing is said behind it in its line."""
        blank = _BLANK.match(self._text, at)
        behind = self._text[blank.end() if blank is not None else at :][:1]
        if not behind and not closed:
            return None
        return at, not behind or behind in "\n<"

    # -- what becomes of it ---------------------------------------------------------------------

    def _settle(self, end: int, unsaid: bool) -> None:
        """Deal with what is held, up to `end`. unsaid: it may be none of speech."""
        self._kind = None
        block = self._text[:end]
        too_long, self._too_long = self._too_long, False
        if not too_long and (not unsaid or self._position.example):
            self._release(end)
            return
        content = _FENCE.sub("", block.strip()).strip("`") if block.startswith("```") else block
        meaning = MeantData() if too_long else meaning_of(content, self._tools)
        if meaning is None:
            self._release(end)
            return
        self._text = self._text[end:]
        self._dropped = True
        if isinstance(meaning, MeantSpeech):
            self._say(MARKERS.removed_from(meaning.text))
            self._position.passed(meaning.text)
            return
        if isinstance(meaning, MeantData):
            for tool in meaning.tools:
                self._calls.broken(tool, _UNREADABLE)
            self._data = self._data or (not meaning.tools and not meaning.markup)
        else:
            for call in meaning:
                self._calls.open(call.name).end(call.arguments)
        self._position.after_call()

    def _release(self, end: int) -> None:
        """Pass on text up to `end` as speech."""
        text, self._text = self._text[:end], self._text[end:]
        self._position.passed(text)
        self._say(text)

    def _release_line(self) -> None:
        line = self._text.find("\n")
        self._release(len(self._text) if line < 0 else line + 1)

    def _say(self, text: str) -> None:
        if text:
            self._emit(TextDelta(text))
