"""By text, call by call: tools are listed in the prompt, and each reply is calls or speech.

For servers without tools, whatever they speak, and for those that cannot hold a reply to a schema.
Where they can, `OneReply` does better. Examples as chat turns are what helped small models most: a
1.5B rose from 17 to 37 of 40 requests right.
"""

from __future__ import annotations

from caal_node.models.backends.base import BackendRequest
from caal_node.models.question import Question
from caal_node.models.strategies.base import CallStrategy, Doubt, ReplyReader, StrategyName
from caal_node.models.strategies.limits import DEFAULT, ProtocolLimits
from caal_node.models.strategies.prompt import may_call, prompt
from caal_node.models.strategies.protocol_reader import TextReader
from caal_node.models.strategies.reply_schema import line_schema
from caal_node.models.strategies.styles import STYLES, StyleName


class TextProtocolStrategy:
    """`constrain` holds the reply to a schema, which is one line of the JSONL style."""

    name: StrategyName = "protocol"

    def __init__(
        self,
        style: StyleName = "jsonl",
        *,
        constrain: bool = False,
        limits: ProtocolLimits = DEFAULT,
    ) -> None:
        self.style: StyleName = style
        self.constrain = constrain and style == "jsonl"
        self.limits = limits

    def request(self, question: Question) -> BackendRequest:
        allowed = may_call(question, self.limits)
        items = prompt(
            question,
            STYLES[self.style],
            may_call=allowed,
            dialogues=self.constrain,
            limits=self.limits,
        )
        schemas = question.tools.schemas if allowed else ()
        return BackendRequest(
            items,
            stream=question.stream,
            schema=line_schema(schemas) if self.constrain else None,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> ReplyReader:
        allowed = may_call(question, self.limits)
        # What is held to a schema has no place for thinking.
        inside = question.in_thinking and not self.constrain
        return TextReader(question, may_call=allowed, limits=self.limits, in_thinking=inside)

    def doubted(self, doubt: Doubt) -> CallStrategy:
        return self
