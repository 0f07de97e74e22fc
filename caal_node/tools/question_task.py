"""A question that a tool's source asks, as a part of the conversation of its own.

LiveKit's AgentTask holds the conversation while the tool waits: what the person says next is the
answer, and neither interrupts the call nor goes to the model.
"""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its sessions open, so they are half unknown.

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any, Final

from livekit.agents import Agent, AgentTask, ModelSettings, TurnHandlingOptions, llm
from livekit.agents.voice.turn import PreemptiveGenerationOptions

from caal_node.core.prompt_files import sentence
from caal_node.tools.spoken_answer import Value, agrees, stops, value_of
from mcp_bridge import Accepted, Answer, Declined, Dismissed, Field, Question

_TRIES: Final = 2
"""For each field; whoever was not understood twice is not asked a third time."""


class QuestionTask(AgentTask[Answer]):
    """Await it in the tool's task. It speaks with the voice of `agent`, and fills fields in turn.

    Optional fields are left to the server's defaults, unless nothing else is asked.
    """

    def __init__(self, question: Question, agent: Agent) -> None:
        # Begun early, an answer would be taken from half of what the person says.
        early = PreemptiveGenerationOptions(enabled=False)
        handling = TurnHandlingOptions(preemptive_generation=early)
        super().__init__(instructions="", tools=[], turn_handling=handling)
        self._question: Final = question
        self._agent: Final = agent
        required = [field for field in question.fields if field.required]
        self._left: Final[list[Field]] = required or list(question.fields[:1])
        self._content: Final[dict[str, Value]] = {}
        self._tries = 0

    async def on_enter(self) -> None:
        self._say(self._question.message)
        if len(self._left) > 1:
            self._say(_words(self._left[0]))

    async def llm_node(
        self,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        model_settings: ModelSettings,
    ) -> AsyncGenerator[str]:
        """What stands where a model would: it takes the words, typed or spoken, as the answer."""
        said = [m for m in chat_ctx.messages() if m.role == "user"]
        if said and not self.done() and (reply := self._take(said[-1].text_content or "")):
            self._say(reply)
        return
        yield  # it says nothing itself; a node is a generator

    def _say(self, words: str) -> None:
        # Not into the history: the model would read it behind the call's result, as still open.
        self.session.say(words, add_to_chat_ctx=False)

    def _take(self, said: str) -> str | None:
        """The next question, if there is one."""
        if stops(said):
            return self.complete(Dismissed())
        if not self._left:
            agreed = agrees(said)
            if agreed is None:
                return self._again("")
            return self.complete(Accepted({}) if agreed else Declined())
        if (value := value_of(self._left[0], said)) is None:
            return self._again(_words(self._left[0]))
        self._content[self._left.pop(0).name] = value
        self._tries = 0
        return _words(self._left[0]) if self._left else self.complete(Accepted(self._content))

    def _again(self, question: str) -> str | None:
        self._tries += 1
        if self._tries == _TRIES:
            return self.complete(Dismissed())
        return f"{sentence('say_again')} {question}".strip()

    # The agent's own nodes, so that these words are heard and told of as all others.
    def tts_node(self, text: AsyncIterable[str], model_settings: ModelSettings) -> Any:
        return self._agent.tts_node(text, model_settings)

    def transcription_node(self, text: AsyncIterable[Any], model_settings: ModelSettings) -> Any:
        return self._agent.transcription_node(text, model_settings)


def _words(field: Field) -> str:
    said = f"{field.description or field.title}?".replace(".?", "?").replace("??", "?")
    options = ", ".join(words for _, words in field.choices[:5])
    return f"{said} {options}." if options else said
