"""Results whose sentence a person is to hear as it stands, as LiveKit is to have them."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from livekit.agents import RunContext, ToolError
from livekit.agents.llm import ToolResult

from caal_node.core.errors import ToolFailure
from caal_node.tools.pipeline import error_text
from caal_node.tools.source import VerbatimResult


def said(result: VerbatimResult, context: RunContext[Any]) -> Any:
    """Say the sentence, and return what LiveKit gives to the model, which need not answer.

    Where the person has interrupted the call's speech, or the sentence is empty, nothing is said.
    """
    if context.speech_handle.interrupted:
        return result.value
    if result.words:
        context.session.say(result.words)
    return ToolResult(result.value, reply_required=False)


def result_of(failure: ToolFailure, redact: Callable[[str], str]) -> VerbatimResult:
    """Return a failure's error for the model with its sentence for the person.

    Raises:
        ToolError: there is no such sentence, so the model is to speak of the error.
    """
    if failure.words is None:
        raise ToolError(error_text(failure)) from failure
    return VerbatimResult(error_text(failure), redact(failure.words))
