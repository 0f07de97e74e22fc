"""A second look at a call before it runs: another model says whether the person wants it.

    agent.middleware[:] = [SecondLook(lambda call: "my rule", look), Confirmation(doubted)]

It refuses nothing itself, and lets nothing run that another rule refuses: it only notes a doubt,
for which a `Confirmation` behind it asks the person. A look that fails or takes too long is no
doubt.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Final, TypeAlias

from livekit.agents import llm

from caal_node.config.settings import Settings
from caal_node.core.addresses import parse_reference
from caal_node.core.errors import CaalError, ModelReplyError
from caal_node.core.items import AssistantItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.backends.base import BackendRequest, TextChunk
from caal_node.models.chat_context import to_items
from caal_node.models.model_settings import backend_of
from caal_node.models.question import Question
from caal_node.reply_parser.escaping import escape_markers
from caal_node.tools.call_middleware import CallMiddleware, Preview, Proceed, ToolCallRequest
from caal_node.tools.middleware.policy_check import PolicyCheck
from caal_node.tools.read_back import asked_for, read_back

logger = logging.getLogger("caal_node.tools")

LOOK_S: Final = 6.0
"""Seconds that a look may take. A person who waits longer for a lamp has given up on it."""
ITEMS_MAX: Final = 40
"""Items at the end of the history that are looked through for the last things said."""
TALK_ITEMS: Final = 6
"""Pieces of the conversation that are shown: what "the second one" means stands in the last few."""
TALK_CHARS: Final = 400
"""Characters of one of them. Six are some 600 tokens at most, two seconds on a small machine."""
DOES_CHARS: Final = 200
"""Characters of what the tool says that it does."""
ARGUMENTS_MAX: Final = 8
"""Arguments that are asked about; a call that a person has spoken has two or three."""
NAME_CHARS: Final = 64
"""Characters of an argument's name; what has a longer one is not asked about."""
VALUE_CHARS: Final = 200
"""Characters of one argument's value, as JSON."""
_WANTED: Final = "wanted"

Look: TypeAlias = Callable[[ToolCallRequest], Awaitable[bool | None]]
"""It returns whether a call is what the person asked for; None where nothing came of it."""


class SecondLook(CallMiddleware):
    """Has a call judged once more, and notes a doubt.

    Args:
        covers: It returns the rule by which a call is looked at; "" where it is not.
        look: Whom it asks.
        look_s: Seconds that it may take.
    """

    name: ClassVar[str] = "second_look"

    def __init__(
        self, covers: Callable[[ToolCallRequest], str], look: Look, *, look_s: float = LOOK_S
    ) -> None:
        self._covers: Final = covers
        self._look: Final = look
        self._look_s: Final = look_s

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        if call.context is None or call.caller.origin == "api" or not (line := self._covers(call)):
            return await proceed()
        agrees = await self._judged(call)
        found = "it could not be looked at" if agrees is None else "a second look"
        verdict = "doubted" if agrees is False else "allowed"
        call.note(self.name, verdict, f"{line}; {found}", began)
        return await proceed()

    def preview(self, call: ToolCallRequest) -> Preview:
        if not (line := self._covers(call)):
            return Preview("allowed", "no second look")
        asked = read_back(call.entry.spec, call.arguments, call.redact)
        return Preview("allowed", f"{line}; a second look, and where in doubt a yes", asked)

    async def _judged(self, call: ToolCallRequest) -> bool | None:
        """Return what the look says; None where it fails or takes too long."""
        try:
            async with asyncio.timeout(self._look_s):
                return await self._look(call)
        except TimeoutError:
            why = f"nothing within {self._look_s:g} s"
        except CaalError as error:
            why = str(error)
        except Exception as error:  # a look is an extra, and no call may end with it
            why = type(error).__name__
        logger.warning("%s was not looked at a second time: %s", call.entry.exposed, why)
        return None


def doubted(call: ToolCallRequest) -> str:
    """Return the line of the doubt for which a call needs a yes; "" where there is none."""
    return next((each.line for each in call.decisions if each.verdict == "doubted"), "")


class OtherModel:
    """Asks the model of `second_look_model` about a call.

    Its connection is made for one look and closed behind it, so that nothing is left open; its
    server keeps the model loaded.
    """

    def __init__(self, settings: Settings, policy: PolicyCheck) -> None:
        self._settings: Final = settings
        self._policy: Final = policy

    async def __call__(self, call: ToolCallRequest) -> bool | None:
        """Return whether the model agrees with the call.

        Raises:
            CaalError: its server failed, or its reply is none.
        """
        reference = self._policy.policy.second_look_model
        if call.context is None or not reference:
            return None
        session = call.context.session
        talk = to_items(llm.ChatContext(session.history.items[-ITEMS_MAX:]))
        given = asked_for(call.entry.spec, call.arguments)  # Nobody has asked for a default.
        request = second_look_request(talk, call.entry.exposed, call.entry.spec, given)
        model = self._settings.with_model(parse_reference(reference))
        backend = backend_of(model, "second_look_model", {})
        text = ""
        try:
            async with aclosing(backend.ask(request)) as reply:
                async for chunk in reply:
                    text += chunk.text if isinstance(chunk, TextChunk) else ""
        finally:
            await backend.aclose()
        return _agrees(text, request)


def second_look_request(
    talk: Sequence[Item], tool: str, spec: ToolSpec, arguments: Mapping[str, Any]
) -> BackendRequest:
    """Write the request about a call that was made at the end of `talk`.

    All that others have written stands in it as quoted data, of a bounded size. The reply says yes
    or no to whether the person wants it, and to each argument.
    """
    named = [pair for pair in arguments.items() if len(pair[0]) <= NAME_CHARS][:ARGUMENTS_MAX]
    # The schema has the names as the question shows them.
    given = {escape_markers(name): _shortened(value) for name, value in named}
    shown = {
        "talk": [line for item in talk if (line := _talk_line(item))][-TALK_ITEMS:],
        "tool": tool,
        "does": " ".join(spec.description.split())[:DOES_CHARS],
        "arguments": given,
    }
    data = json.dumps(shown, ensure_ascii=False, default=str)
    question = Question((SystemItem(read("second_look.md")), UserItem(data)))
    asked = list(dict.fromkeys((_WANTED, *given)))
    schema = {
        "type": "object",
        "properties": {key: {"type": "string", "enum": ["yes", "no"]} for key in asked},
        "required": asked,
        "additionalProperties": False,
    }
    # A name has up to some ten tokens, and what is around it five.
    return BackendRequest(question.conversation, schema=schema, max_tokens=16 * (1 + len(asked)))


def _agrees(reply: str, request: BackendRequest) -> bool:
    """Return whether all that was asked was answered with yes.

    Raises:
        ModelReplyError: something was not answered.
    """
    asked: Sequence[str] = (request.schema or {})["required"]
    try:
        answers: Any = json.loads(reply)
        said = [answers[name] for name in asked]
    except (ValueError, TypeError, KeyError, RecursionError):
        said = []
    if not said or not all(answer in ("yes", "no") for answer in said):
        raise ModelReplyError("it did not answer yes or no to each question")
    return all(answer == "yes" for answer in said)


def _talk_line(item: Item) -> str:
    match item:
        case UserItem():
            said = f"Person: {item.text}"
        case AssistantItem():
            said = f"Assistant: {item.text}"
        case ResultItem():
            said = f"Tool {item.name}: {item.output}"
        case _:
            return ""
    said = " ".join(said[: 4 * TALK_CHARS].split())
    return said if len(said) <= TALK_CHARS else said[: TALK_CHARS - 1] + "…"


def _shortened(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= VALUE_CHARS else text[: VALUE_CHARS - 1] + "…"
