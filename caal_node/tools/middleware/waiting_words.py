"""While a tool takes long, the agent says so: one line soon, one more later, then nothing.

    agent.middleware.append(WaitingWords())

The lines come from `prompts/sentences.toml`; no model is asked for them. They are spoken with
LiveKit's `RunContext.with_filler`, which keeps out of everybody's speech. What is added to it: how
long each tool takes is learnt, so that nobody hears "one moment" before a tool that is done by
then; a question to the person is not talked into, nor is what they have just said, before it is
answered; the lines are not in the history, where they
would stand between a call and its result. What an MCP server reports meanwhile is said in place of
a line, if it says something new, by whom it is from.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from functools import partial
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

from livekit.agents import RunContext
from livekit.agents.voice import SpeechHandle

from caal_node.config.switches import Switches
from caal_node.core.prompt_files import sentence
from caal_node.tools.call_middleware import CallMiddleware, Proceed, ToolCallRequest

LONG_S: Final = 1.5
"""Seconds that a tool is expected to take from which the person is told at once."""
AT_ONCE_S: Final = 0.7
"""Seconds of silence until then: the cue has been heard by that time."""
UNKNOWN_S: Final = 4.0
"""Seconds of silence until they are told where the tool was expected to take less, as after this
people think that the line is broken."""
AGAIN_S: Final = 8.0
"""Seconds from the first line to the second."""
LINES: Final = ("waiting", "still_waiting")
PROGRESS_CHARS: Final = 100
"""Characters of a server's message that are said: six seconds."""
_PLAIN: Final = re.compile(r"(?:[^\W_]|[\s.,:;!'’\"“”()%&+°–—-])+")
_SENTENCE_END: Final = re.compile(r"[.!;] ")
_LETTERS: Final = re.compile(r"[^\W\d_]{3,}")
_COUNTING: Final = frozenset({"step", "percent", "progress", "done", "total", "item", "items"})
"""Words that with numbers say no more than how far it has come."""
_NEWEST_SHARE: Final = 0.5
"""What the newest time counts in what is expected next."""
_TOOLS: Final = 1_000
"""Tools whose times are kept."""


class WaitingWords(CallMiddleware):
    """Speaks while a call takes long. It belongs behind whatever asks the person something."""

    name: ClassVar[str] = "waiting"
    judges: ClassVar[bool] = False

    def __init__(self, switches: Switches | None = None) -> None:
        self._switches: Final = switches
        self._said: Final[WeakKeyDictionary[SpeechHandle, list[str]]] = WeakKeyDictionary()
        """What the lines of a turn were about, "" for the usual ones. Its calls share them."""
        self._expected_s: Final[OrderedDict[str, float]] = OrderedDict()

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        context, tool = call.context, call.entry.exposed
        silent = self._switches is not None and self._switches.is_silent(tool)
        if context is None or silent or not _is_heard(context):
            return await proceed()
        clock = asyncio.get_running_loop()
        began = clock.time()
        delay = AT_ONCE_S if self.expected_s(tool) >= LONG_S else UNKNOWN_S
        line = partial(self._say, call, context, context.session.current_agent)
        # LiveKit waits for `delay` of silence once more, behind the interval.
        again = max(0.0, AGAIN_S - delay)
        try:
            async with context.with_filler(line, delay=delay, interval=again, max_steps=len(LINES)):
                value = await proceed()
        except Exception:  # one that fails late is a long one, too
            self._learn(tool, clock.time() - began)
            raise
        self._learn(tool, clock.time() - began)
        return value

    def expected_s(self, tool: str) -> float:
        """Return the seconds that a tool is expected to take; 0 where nothing is known."""
        return self._expected_s.get(tool, 0.0)

    def _learn(self, tool: str, took_s: float) -> None:
        before = self._expected_s.pop(tool, took_s)
        self._expected_s[tool] = before + _NEWEST_SHARE * (took_s - before)
        if len(self._expected_s) > _TOOLS:
            self._expected_s.popitem(last=False)

    def _say(
        self, call: ToolCallRequest, context: RunContext[Any], agent: object, _: int
    ) -> SpeechHandle | None:
        if self._switches is not None and not self._switches.cues:
            return None
        if context.session.current_agent is not agent:
            return None  # a task asks the person something
        if call.hearing is not None and call.hearing.is_hearing:
            return None  # what they have just said is answered first
        said = self._said.setdefault(context.speech_handle, [])
        if len(said) == len(LINES):
            return None
        line = sentence(LINES[len(said)])
        news = speakable_progress(call.progress[-1]) if call.progress else ""
        subject = " ".join(_LETTERS.findall(news.casefold()))
        if is_new := bool(news) and subject not in said:
            line = sentence("progress").replace("{message}", news)
            line = line.replace("{server}", call.entry.spec.source.replace("_", " "))
        said.append(subject if is_new else "")
        return context.session.say(line, add_to_chat_ctx=False)


def speakable_progress(message: str) -> str:
    """Return a server's message as it can be said; "" where it has nothing to listen to.

    Numbers alone are not said, nor what is no plain words, such as paths, addresses and data. Nor
    is a question, as the answer would be taken for a request.
    """
    plain = " ".join(message[: 2 * PROGRESS_CHARS].split()).rstrip(".!…: ")
    if len(plain) > PROGRESS_CHARS:  # its first sentence, if that is short enough
        plain = _SENTENCE_END.split(plain, maxsplit=1)[0]
    says_something = set(_LETTERS.findall(plain.casefold())) - _COUNTING
    if len(plain) > PROGRESS_CHARS or not says_something or not _PLAIN.fullmatch(plain):
        return ""
    return plain


def _is_heard(context: RunContext[Any]) -> bool:
    output = context.session.output
    return output.audio is not None and output.audio_enabled
