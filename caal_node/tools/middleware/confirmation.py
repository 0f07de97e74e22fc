"""A call is read back to the person, who has to say yes to exactly that.

    agent.middleware.append(Confirmation(lambda call: "my rule" if risky(call) else ""))

A yes holds for that call alone. Where nobody can be asked, as over the API, the refusal names the
call by a hash, and the same call with that hash as its `confirmation` runs.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from livekit import rtc
from livekit.agents import AgentSession, RunContext

from caal_node.core.errors import CallCorrected, ConfirmationNeeded, NotConfirmed
from caal_node.core.events import ConfirmationAsked, ConfirmationEnded
from caal_node.tools.call_middleware import CallMiddleware, Preview, Proceed, ToolCallRequest
from caal_node.tools.caller_of_call import caller_of
from caal_node.tools.confirmation_question import (
    ConfirmationQuestion,
    ConfirmationReply,
    ConfirmButton,
)
from caal_node.tools.read_back import arguments_hash, read_back

WORDS_CHARS: Final = 120
"""Characters of the person's words that the model reads; an error's text has 300 in all."""


def destroys(call: ToolCallRequest) -> str:
    """Return why a call needs a yes where nothing is configured: it may destroy something."""
    return "built in: what destroys needs a yes" if call.entry.spec.effect == "destructive" else ""


@dataclass(frozen=True, slots=True)
class _Denied:
    """The last call that was denied, and what the person had said last by then."""

    arguments_hash: str
    request_id: str
    words: str


class Confirmation(CallMiddleware):
    """Asks the person before a call runs."""

    name: ClassVar[str] = "confirmation"

    def __init__(self, needs_yes: Callable[[ToolCallRequest], str] = destroys) -> None:
        """`needs_yes` returns the rule by which a call needs a yes; "" where it needs none."""
        self._needs_yes: Final = needs_yes
        self._denied: _Denied | None = None

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        if not (line := self._needs_yes(call)):
            return await proceed()
        named = arguments_hash(call.entry.exposed, call.arguments)
        question = read_back(call.entry.spec, call.arguments, call.redact)
        context = call.context
        if context is None or call.caller.origin == "api":
            agreed = call.confirmation == named
            call.note(self.name, "confirmed" if agreed else "refused", line, began)
            if agreed:
                return await proceed()
            raise ConfirmationNeeded(
                f"{call.entry.exposed} needs a yes to exactly this call.",
                question=question,
                arguments_hash=named,
            )
        if self._was_denied(named, context):
            call.note(self.name, "refused", line, began)
            raise NotConfirmed("The person has already said no to exactly this call.")
        if context.speech_handle.interrupted:
            # LiveKit lets nothing be asked on behalf of a reply that was spoken over.
            call.note(self.name, "refused", f"{line}; spoken over", began)
            raise NotConfirmed(
                "The call was not made, as the person spoke before they could be asked for a yes. "
                "Make it again if they still want it."
            )
        request_id, _ = _last_said(context)
        reply = await _ask(call, context, question, named)
        # What runs is what was read out, even where somebody has changed the arguments meanwhile.
        unchanged = arguments_hash(call.entry.exposed, call.arguments) == named
        if reply.answer == "yes" and unchanged:
            call.note(self.name, "confirmed", line, began)
            return await proceed()
        call.note(self.name, "refused", f"{line}; the answer: {reply.answer}", began)
        self._denied = _Denied(named, request_id, reply.words)
        raise _refusal(reply, call.redact)

    def preview(self, call: ToolCallRequest) -> Preview:
        if not (line := self._needs_yes(call)):
            return Preview("allowed", "no yes is needed")
        return Preview("asks", line, read_back(call.entry.spec, call.arguments, call.redact))

    def _was_denied(self, named: str, context: RunContext[Any]) -> bool:
        """Say whether the model repeats a call although the person has asked for nothing since."""
        denied = self._denied
        if denied is None or denied.arguments_hash != named:
            return False
        last_id, words = _last_said(context)
        return last_id == denied.request_id or words == denied.words


async def _ask(
    call: ToolCallRequest, context: RunContext[Any], question: str, named: str
) -> ConfirmationReply:
    tool, person = call.entry.exposed, call.caller.participant
    was_asked = False

    def on_asked() -> None:
        nonlocal was_asked
        was_asked = True
        button.open()
        call.emit(ConfirmationAsked(call.call_id, tool, question, named))

    def press(yes: bool) -> None:
        task.answer(ConfirmationReply("yes" if yes else "no", "button"))

    task = ConfirmationQuestion(
        question,
        context.session.current_agent,
        still_there=lambda: caller_of(context).participant == person,
        on_asked=on_asked,
    )
    button = ConfirmButton(_room_of(context.session), person, call.call_id, named, press)
    reply = ConfirmationReply("cancelled")
    try:
        reply = await task  # it waits until no other question is open
    finally:
        button.close()
        task.fall_silent()
        if was_asked:
            call.emit(ConfirmationEnded(call.call_id, tool, reply.answer, reply.by))
    return reply


def _refusal(reply: ConfirmationReply, redact: Callable[[str], str]) -> NotConfirmed:
    said = " ".join(redact(reply.words).split())[:WORDS_CHARS]
    match reply.answer:
        case "correction":
            return CallCorrected(
                f"The call was not made. The person says: {said!r}. If that corrects the call, "
                "make the corrected call now; else answer them."
            )
        case "no":
            return NotConfirmed("The call was not made, as the person said no. Do not repeat it.")
        case "silence":
            return NotConfirmed("The call was not made, as the person did not answer.")
        case _:
            return NotConfirmed("The call was not made, as the person's answer was no clear yes.")


def _last_said(context: RunContext[Any]) -> tuple[str, str]:
    """Return the id and the words of what the person said last; empty where nothing was said."""
    for item in reversed(context.session.history.items):
        if item.type == "message" and item.role == "user":
            return item.id, item.text_content or ""
    return "", ""


def _room_of(session: AgentSession[Any]) -> rtc.Room | None:
    try:
        return session.room_io.room
    except RuntimeError:  # LiveKit raises it where the session has no room
        return None
