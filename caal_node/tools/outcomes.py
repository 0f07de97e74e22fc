"""How a call ended: for the model, for events, and for the person."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from caal_node.core.errors import CaalError, ToolFailure, UnknownTool
from caal_node.core.events import Outcome
from caal_node.core.prompt_files import sentence

MESSAGE_MAX: Final = 300
"""Characters of an error's text that the model is shown."""
REMEMBERED: Final = 256
"""Call ids whose outcome is kept until it is asked for; far more than run at once."""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A tier's result with the words that a person is to hear as they stand, because the tool's
    author asked for that. The model is not asked for an answer of its own."""

    value: Any
    words: str


def error_text(error: CaalError) -> str:
    """One line of JSON for the model: kind, message, valid names, and what to tell the person."""
    message = " ".join(str(error).split())
    body: dict[str, object] = {
        "error": error.kind,
        "message": message if len(message) <= MESSAGE_MAX else message[: MESSAGE_MAX - 1] + "…",
    }
    if isinstance(error, UnknownTool) and error.valid:
        body["valid_names"] = list(error.valid)
    elif error.kind != "invalid_arguments":
        # A call that can be put right is tried again; anything else is for the person to hear.
        words = error.words if isinstance(error, ToolFailure) else None
        body["say"] = words or sentence(error.spoken)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def outcome_of(error: BaseException) -> Outcome:
    if isinstance(error, ToolFailure) and error.kind in ("timeout", "refused"):
        return error.kind  # type: ignore[return-value]  # the two kinds are outcomes, too
    return "error"


class Outcomes:
    """Remembers how calls ended, by call id, for whoever tells people about them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Outcome] = OrderedDict()

    def note(self, call_id: str, outcome: Outcome) -> None:
        self._kept[call_id] = outcome
        while len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)

    def of(self, call_id: str) -> Outcome | None:
        """The outcome, and forget it. None: the call never came through the pipeline."""
        return self._kept.pop(call_id, None)
