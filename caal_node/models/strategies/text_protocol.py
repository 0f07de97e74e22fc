"""The text protocol: the prompt lists the tools, and each reply is either calls or speech.

It is for servers without tool calls, whatever they speak, and for servers that cannot hold a reply
to a schema; where they can, `JsonReplyStrategy` does better. Examples written as chat turns are
what helped small models most: a 1.5B rose from 17 to 37 of 40 requests right.
"""

from __future__ import annotations

from caal_node.models.backends.base import BackendRequest
from caal_node.models.question import Question
from caal_node.models.strategies.base import ReplyReader, StrategyName, asked_for_speech
from caal_node.models.strategies.prompt import protocol_prompt
from caal_node.models.strategies.reply_schema import line_schema
from caal_node.models.strategies.styles import STYLES, StyleName
from caal_node.models.strategies.turn_limits import LimitedReader, may_call


class TextProtocolStrategy:
    """Asks for calls in one of the written styles.

    `constrain` holds the reply to a schema, which fits one line of the JSONL style only.
    """

    name: StrategyName = "text_protocol"

    def __init__(self, style: StyleName = "jsonl", *, constrain: bool = False) -> None:
        self.style: StyleName = style
        self.constrain = constrain and style == "jsonl"

    def request(self, question: Question) -> BackendRequest:
        allowed = may_call(question)
        style = STYLES[self.style]
        items = protocol_prompt(question, style, may_call=allowed, with_dialogues=self.constrain)
        if question.speech_only:
            items = asked_for_speech(items, question.references)
        tools = question.tools.schemas if allowed and not question.speech_only else ()
        return BackendRequest(
            items,
            # So that it ends at its call, whatever the model would write behind it.
            stream=True,
            schema=line_schema(tools, must_call=question.must_call) if self.constrain else None,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> ReplyReader:
        # A reply that is held to a schema has no place for thinking.
        in_thinking = question.in_thinking and not self.constrain
        return LimitedReader(question, speech_only=question.speech_only, in_thinking=in_thinking)
