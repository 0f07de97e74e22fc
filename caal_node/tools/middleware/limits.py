"""Refuses calls that were made too often, and ends early what fails again and again.

What the owner's rules count are calls that began to run, whatever came of them, an interruption
included. A call that is refused, here or further in, and one that a dry run answers do not count.
One rule holds with nothing configured: a call that has failed twice in a turn is not made a third
time with the same arguments. Arguments that do not fit the tool's schema are such a failure.

A turn is what answers a person's words once: all rounds of calls of one of LiveKit's speech
handles. Each call of the control API is a turn of its own.

Counts belong to one agent, so to one room, and end with it.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from livekit.agents import StopResponse

from caal_node.core.errors import CallLimitReached, ToolRefused
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Effect
from caal_node.policy.limit_rules import LimitRule
from caal_node.tools.call_middleware import CallMiddleware, Preview, Proceed, ToolCallRequest
from caal_node.tools.table import ToolEntry

# Counts calls in sliding windows of time, with a bounded memory.
#
# A call is in its window from when it begins until the window's length has passed since its end. So
# however long a call waits for a person's yes or for its server, no stretch of time of that length
# ever holds more calls than are allowed.

COUNTS_MAX: Final = 1_024
"""Counts that are kept, such as one for each of some tools and participants. Past that the count
that was asked for least lately is forgotten, and begins at none again."""


@dataclass(slots=True)
class _Window:
    running: int = 0
    ended: deque[float] = field(default_factory=deque[float])
    """When calls ended, the oldest first; never more than are allowed in the window."""


class CallCounts:
    """Counts by a key. `clock` returns seconds and never goes back."""

    def __init__(self, clock: Callable[[], float], *, counts_max: int = COUNTS_MAX) -> None:
        self._clock: Final = clock
        self._counts_max: Final = counts_max
        self._windows: Final[OrderedDict[Hashable, _Window]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._windows)

    def wait_s(self, key: Hashable, most: int, length_s: float) -> float:
        """Return the seconds until one more call fits into the window of `length_s`; 0 for none.

        Where only calls that still run fill the window, it is the least that it can be.
        """
        if (window := self._windows.get(key)) is None:
            return 0.0
        self._windows.move_to_end(key)
        now = self._clock()
        while window.ended and now - window.ended[0] >= length_s:
            window.ended.popleft()
        if window.running + len(window.ended) < most:
            return 0.0
        return max(math.ulp(0), window.ended[0] + length_s - now) if window.ended else length_s

    def begin(self, key: Hashable) -> None:
        """Count a call that begins. `wait_s` has to be asked first."""
        window = self._windows.setdefault(key, _Window())
        self._windows.move_to_end(key)
        window.running += 1
        if len(self._windows) > self._counts_max:
            # Calls that run are counted whatever happens: each is a task, which costs more.
            oldest = next((k for k, each in self._windows.items() if not each.running), None)
            if oldest is not None:
                del self._windows[oldest]

    def end(self, key: Hashable, *, counts: bool) -> None:
        """End a call that was begun; without `counts` it is as if it had never been."""
        window = self._windows[key]
        window.running -= 1
        if counts:
            window.ended.append(self._clock())
        elif not (window.running or window.ended):
            del self._windows[key]


FAILURES_MAX: Final = 2
"""Failures of one call in a turn: one retry is worth its time, as servers stumble. A small model
that has seen the same error twice goes on until its rounds are used up."""
FAILING_LINE: Final = "built in: a call that failed twice in this turn"
TURNS_MAX: Final = 64
"""Turns whose calls are counted. In a room one or two are under way; of the control API's calls,
each a turn of its own, some more. Past that the oldest turn is forgotten."""
TOOLS_MAX: Final = 4_096
"""Tools of which the fitting rules are remembered; a large catalogue has a thousand."""
_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600
_TIMES: Final = {1: "once", 2: "twice"}

Key: TypeAlias = tuple[LimitRule, str, tuple[str, ...]]
"""A count: the rule, the period and what the rule counts apart."""


@dataclass(slots=True)
class _Turn:
    """The calls of one turn."""

    calls: Counter[Key] = field(default_factory=Counter[Key])
    failures: Counter[bytes] = field(default_factory=Counter[bytes])
    told: dict[str, int] = field(default_factory=dict[str, int])
    """The lines of which the person has heard, so that ten refusals are one sentence, each with
    the number of the reply."""


class CallLimits(CallMiddleware):
    """Holds calls to the owner's rules.

    Args:
        rules: What `read_limit_rules` gives, or rules made in code; or what returns the rules that
            hold now. A rule that stays keeps its counts when others change.
        effect_of: What a tool may do at worst, where the owner knows better than its source.
        clock: Seconds that never go back.
    """

    name = "limits"

    def __init__(
        self,
        rules: Sequence[LimitRule] | Callable[[], Sequence[LimitRule]] = (),
        *,
        effect_of: Callable[[ToolEntry], Effect] = lambda entry: entry.spec.effect,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        fixed = () if callable(rules) else tuple(rules)
        self._rules: Final = rules if callable(rules) else lambda: fixed
        self._known_rules: Sequence[LimitRule] = ()
        self._effect_of: Final = effect_of
        self._counts: Final = CallCounts(clock)
        self._turns: Final[OrderedDict[str, _Turn]] = OrderedDict()
        self._fitting: Final[dict[tuple[tuple[str, ...], Effect], list[LimitRule]]] = {}

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        turn = self._turn(call)
        digest = _digest(call) if turn.failures else b""
        if digest and turn.failures[digest] >= FAILURES_MAX:
            self._refuse(call, turn, began, FAILING_LINE, _failing(call))
        keys = self._admit(call, turn, began)
        counts = True
        try:
            value = await proceed()
            counts = not call.is_dry
            return value
        except ToolRefused:
            counts = False
            raise
        except StopResponse:
            raise
        except Exception:
            turn.failures[digest or _digest(call)] += 1
            raise
        finally:
            self._end(turn, keys, counts=counts)

    def preview(self, call: ToolCallRequest) -> Preview:
        """See `CallMiddleware`. Of a call that may run, `line` has the limits that count it."""
        known = call.context and self._turns.get(call.context.speech_handle.id)
        turn = known or _Turn()
        if turn.failures[_digest(call)] >= FAILURES_MAX:
            return Preview("refused", FAILING_LINE, _failing(call).words or "")
        lines: list[str] = []
        for line, period, most, key, length_s in self._quotas_of(call):
            lines.append(f"{line}, {period} = {most}")
            if wait_s := self._wait_s(turn, key, most, length_s):
                words = _limited(call, period, most, wait_s).words
                return Preview("refused", lines[-1], words or "")
        return Preview("allowed", "; ".join(lines) or "no limit")

    def on_invalid(self, call: ToolCallRequest) -> None:
        began = time.perf_counter()
        turn, digest = self._turn(call), _digest(call)
        if turn.failures[digest] >= FAILURES_MAX:
            self._refuse(call, turn, began, FAILING_LINE, _failing(call))
        turn.failures[digest] += 1

    def _admit(self, call: ToolCallRequest, turn: _Turn, began: float) -> list[Key]:
        """Count a call that every rule admits, and return where it is counted."""
        keys: list[Key] = []
        first_line = ""
        for line, period, most, key, length_s in self._quotas_of(call):
            first_line = first_line or line
            if wait_s := self._wait_s(turn, key, most, length_s):
                refused = _limited(call, period, most, wait_s)
                self._refuse(call, turn, began, f"{line}, {period} = {most}", refused)
            keys.append(key)
        for key in keys:
            if key[1] == "per_turn":
                turn.calls[key] += 1
            else:
                self._counts.begin(key)
        if first_line:
            call.note(self.name, "allowed", first_line, began)
        return keys

    def _quotas_of(self, call: ToolCallRequest) -> Iterator[tuple[str, str, int, Key, float]]:
        """Yield each number that a call counts for: line, period, calls, count, seconds."""
        rules, tool = self._rules(), call.entry.exposed
        for rule in self._fitting_rules(call.entry, rules) if rules else ():
            if rule.fits_caller(call.caller):
                count = rule.count_of(tool, call.caller)
                for period, most, length_s in _quotas(rule):
                    yield rule.line, period, most, (rule, period, count), length_s

    def _fitting_rules(self, entry: ToolEntry, rules: Sequence[LimitRule]) -> list[LimitRule]:
        """Return those of `rules` that fit the tool, two that are the same once."""
        if rules is not self._known_rules or len(self._fitting) >= TOOLS_MAX:
            self._known_rules = rules
            self._fitting.clear()
        names, effect = entry.spec.known_as(entry.exposed), self._effect_of(entry)
        if (fitting := self._fitting.get((names, effect))) is None:
            fitting = [rule for rule in dict.fromkeys(rules) if rule.fits_tool(names, effect)]
            self._fitting[names, effect] = fitting
        return fitting

    def _wait_s(self, turn: _Turn, key: Key, most: int, length_s: float) -> float:
        if key[1] == "per_turn":
            return length_s if turn.calls[key] >= most else 0.0
        return self._counts.wait_s(key, most, length_s)

    def _end(self, turn: _Turn, keys: Sequence[Key], *, counts: bool) -> None:
        for key in keys:
            if key[1] != "per_turn":
                self._counts.end(key, counts=counts)
            elif not counts:
                turn.calls[key] -= 1

    def _refuse(
        self,
        call: ToolCallRequest,
        turn: _Turn,
        began: float,
        line: str,
        refused: CallLimitReached,
    ) -> None:
        call.note(self.name, "refused", line, began)
        reply = 0 if call.context is None else call.context.speech_handle.num_steps
        if line in turn.told:
            # Of one reply's calls the person has heard all; a model that goes on calling is to
            # answer by itself, as much else may have been done meanwhile.
            refused.words = "" if turn.told[line] == reply else None
        else:
            turn.told[line] = reply
        raise refused

    def _turn(self, call: ToolCallRequest) -> _Turn:
        if call.context is None:
            return _Turn()
        turn = self._turns.setdefault(call.context.speech_handle.id, _Turn())
        if len(self._turns) > TURNS_MAX:
            self._turns.popitem(last=False)
        return turn


def _quotas(rule: LimitRule) -> list[tuple[str, int, float]]:
    """Return the periods that a rule has a number for, each with the number and its seconds."""
    given = (
        ("per_turn", rule.per_turn, math.inf),
        ("per_minute", rule.per_minute, _MINUTE_S),
        ("per_hour", rule.per_hour, _HOUR_S),
    )
    return [(period, most, length_s) for period, most, length_s in given if most is not None]


def _digest(call: ToolCallRequest) -> bytes:
    """Return what is the same for the same tool with the same arguments, and short."""
    try:
        arguments = json.dumps(dict(call.arguments), sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys of several types, or a ring
        arguments = repr(call.arguments)
    text = f"{call.entry.exposed}\0{arguments}".encode(errors="replace")
    return hashlib.blake2b(text, digest_size=16).digest()


def _failing(call: ToolCallRequest) -> CallLimitReached:
    refused = CallLimitReached(
        f"{call.entry.exposed} failed {_times(FAILURES_MAX)} with these same arguments, so it was "
        "not run again. Do not call it again now; say what did not work."
    )
    refused.words = _filled("limit_failing", times=_times(FAILURES_MAX))
    return refused


def _limited(call: ToolCallRequest, period: str, most: int, wait_s: float) -> CallLimitReached:
    span = {"per_turn": "in one turn", "per_minute": "a minute", "per_hour": "an hour"}[period]
    when = "" if math.isinf(wait_s) else f" It can run again {in_words(wait_s)}."
    refused = CallLimitReached(
        f"{call.entry.exposed} was not run: it may run {_times(most)} {span}, and has.{when} "
        "Do not call it again now; say so."
    )
    when = "" if math.isinf(wait_s) else in_words(wait_s)
    refused.words = _filled(f"limit_{period}", times=_times(most), when=when)
    return refused


def in_words(wait_s: float) -> str:
    """Return a wait as a person says it, never shorter than it is: `in 12 minutes`."""
    if wait_s <= _MINUTE_S:
        # In steps of ten, as nobody counts seconds by heart.
        return f"in {max(10, math.ceil(wait_s / 10) * 10)} seconds"
    return f"in {math.ceil(wait_s / _MINUTE_S)} minutes"


def _times(number: int) -> str:
    return _TIMES.get(number, f"{number} times")


def _filled(key: str, **values: str) -> str:
    text = sentence(key)
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
