"""By text, held to a schema: one object with all calls, `{"calls": [...]}`, or `{"say": "..."}`.

For models whose own calls come out broken; tests/bench/small_models.py has the figures. The head is
fixed. What changes from turn to turn is only the grammar, which costs no prompt: it reaches the few
tools that fit the request, and asks for a call each where the request holds several wishes. The
reply's first key decides between tool and speech, so speech is known from the first tokens on, and
streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.backends.base import BackendRequest, Chunk, TextChunk
from caal_node.models.question import Question
from caal_node.models.strategies.base import CallStrategy, Doubt, ReplyReader, StrategyName
from caal_node.models.strategies.evidence import Evidence
from caal_node.models.strategies.limits import DEFAULT, ProtocolLimits, calls_left
from caal_node.models.strategies.logprob_gate import TOP, LogprobGate
from caal_node.models.strategies.prompt import may_call, prompt
from caal_node.models.strategies.protocol_reader import TextReader
from caal_node.models.strategies.reply_schema import reply_schema, wishes_schema
from caal_node.models.strategies.styles import OneObjectStyle
from caal_node.models.strategies.tool_shortlist import is_far, reach
from caal_node.reply_parser import Event, TextDelta, ToolCallEnd, ToolCallStart

Must: TypeAlias = Literal["either", "say", "call"]

SPOKEN_CHARS: Final = 40
"""Of a parameter's description that is said to a person; longer, its name is."""


@dataclass(frozen=True, slots=True)
class CallThresholds:
    """Bounds of log P("calls") - log P("say").

    At zero the model's own choice stands. Higher bounds keep small models from calling for nothing,
    but are one model's on one set of tools: with 7, which suits a 0.5B on fourteen tools, it says
    of half the requests to four other tools that they are done, and has called nothing. So they are
    found out anew for each table: `caal_node.models.call_threshold`.
    """

    sure: float = 0.0
    """Below, a call is not made."""
    far: float = 0.0
    """The same, where the request shares no word with any tool."""
    shy: float | None = None
    """Above, speech is not believed where a tool fits the request; None: speech always is."""


class JsonReplyStrategy:
    name: StrategyName = "one_reply"

    def __init__(
        self,
        *,
        must: Must = "either",
        thresholds: CallThresholds | None = None,
        limits: ProtocolLimits = DEFAULT,
    ) -> None:
        self.must: Must = must
        self.thresholds = thresholds or CallThresholds()
        self.limits = limits

    def request(self, question: Question) -> BackendRequest:
        allowed = may_call(question, self.limits)
        items = prompt(question, _STYLE, may_call=allowed, dialogues=True, limits=self.limits)
        either = allowed and self.must == "either"
        if not allowed or self.must == "say":
            schema = reply_schema(())
        else:
            most = max(1, calls_left(question.items, self.limits))
            first, *others = reach(question)
            if others:
                schema = wishes_schema((first, *others)[:most], speech=either)
            else:
                schema = reply_schema(first, most=most, speech=either)
        return BackendRequest(
            items,
            # By the first tokens one knows whether it is speech, and whether it is to be believed.
            stream=True,
            schema=schema,
            max_tokens=question.max_tokens,
            top_logprobs=TOP if either else 0,
        )

    def reader(self, question: Question) -> ReplyReader:
        return _Reader(question, self)

    def doubted(self, doubt: Doubt) -> CallStrategy:
        must: Must = "call" if doubt == "too_shy" else "say"
        return JsonReplyStrategy(must=must, thresholds=self.thresholds, limits=self.limits)


_STYLE: Final = OneObjectStyle()


class _Reader(TextReader):
    def __init__(self, question: Question, way: JsonReplyStrategy) -> None:
        allowed = may_call(question, way.limits) and way.must != "say"
        super().__init__(question, may_call=allowed, limits=way.limits)
        self._way = way
        self._gate = LogprobGate() if allowed and way.must == "either" else None
        self._question = question
        self._evidence: Evidence | None = None
        self._tools = {tool["function"]["name"]: tool for tool in question.tools.schemas}
        self.doubt: Doubt | None = None
        self._unsaid: list[str] = []
        self._called = False

    def feed(self, chunk: Chunk) -> list[Event]:
        if self._gate is not None and isinstance(chunk, TextChunk):
            self._gate.see(chunk.tokens)
            if self.doubt is None:
                self.doubt = self._doubt(self._gate)
        return super().feed(chunk)

    def _doubt(self, gate: LogprobGate) -> Doubt | None:
        if gate.margin is None or not gate.decided:
            return None
        bounds = self._way.thresholds
        if gate.decided == "calls":
            least = bounds.far if is_far(self._question) else bounds.sure
            return "unsure" if gate.margin < least else None
        return "too_shy" if bounds.shy is not None and gate.margin > bounds.shy else None

    def _allowed(self, events: list[Event]) -> list[Event]:
        kept: list[Event] = []
        for event in super()._allowed(events):
            if isinstance(event, ToolCallEnd):
                kept += self._judged(event)
            elif not isinstance(event, ToolCallStart):
                # A call begins for others once it is known to be made.
                kept.append(event)
        return kept

    def _judged(self, call: ToolCallEnd) -> list[Event]:
        if self._evidence is None:
            self._evidence = Evidence(self._question.items)
        tool = self._tools[call.name]
        examples = self._question.tools.examples.get(call.name, ())
        judged = self._evidence.judge(tool, call.arguments, examples)
        if judged.unsaid:
            self.doubt = "unsaid"
            self._unsaid += [_spoken_name(tool, name) for name in judged.unsaid]
            return []
        self._called = True
        return [
            ToolCallStart(call.id, call.name),
            ToolCallEnd(call.id, call.name, judged.arguments),
        ]

    def finish(self) -> list[Event]:
        events = super().finish()
        if self._unsaid and not self._called:
            # The person is asked for it: smaller models would say that it is done.
            what = ", ".join(dict.fromkeys(self._unsaid))
            events.append(TextDelta(sentence("still_needed").replace("{what}", what)))
        return events


def _spoken_name(tool: ToolSchema, name: str) -> str:
    schema = tool["function"]["parameters"]["properties"][name]
    about = str(schema.get("description") or "")
    return about if 0 < len(about) <= SPOKEN_CHARS else name.replace("_", " ")
