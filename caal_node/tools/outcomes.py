"""How a call ended: as a line for the model, and as a word for events."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from caal_node.core.errors import CaalError, ToolFailure, UnknownTool
from caal_node.core.events import Outcome
from caal_node.core.prompt_files import sentence

MESSAGE_MAX: Final = 300
"""Characters of an error's text that the model is shown."""
MAX_OUTCOMES: Final = 256
"""Call ids whose outcome is kept until it is asked for; far fewer run at once."""
_OUTCOMES: Final[Mapping[str, Outcome]] = {"timeout": "timeout", "refused": "refused"}
"""The outcome by an error's kind; every other kind is an "error"."""


def error_text(error: CaalError) -> str:
    """Return one line of JSON for the model: kind, message, valid names, and what to say."""
    message = " ".join(str(error).split())
    body: dict[str, object] = {
        "error": error.kind,
        "message": message if len(message) <= MESSAGE_MAX else message[: MESSAGE_MAX - 1] + "…",
    }
    if isinstance(error, UnknownTool) and error.valid:
        body["valid_names"] = list(error.valid)
    elif error.kind != "invalid_arguments":
        # The model corrects and repeats a call with wrong arguments; all else a person must hear.
        words = error.words if isinstance(error, ToolFailure) else None
        body["say"] = words or sentence(error.spoken)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def outcome_of(error: BaseException) -> Outcome:
    """Return the word by which events report a call that ended with `error`."""
    kind = error.kind if isinstance(error, ToolFailure) else ""
    return _OUTCOMES.get(kind, "error")


class CallOutcomes:
    """The outcomes of calls by call id, for those who report them to people."""

    def __init__(self) -> None:
        self._outcomes: OrderedDict[str, Outcome] = OrderedDict()

    def note(self, call_id: str, outcome: Outcome) -> None:
        """Keep the outcome of a call; the oldest one goes when there are too many."""
        self._outcomes[call_id] = outcome
        while len(self._outcomes) > MAX_OUTCOMES:
            self._outcomes.popitem(last=False)

    def take(self, call_id: str) -> Outcome | None:
        """Return and forget the outcome; None for a call that never reached the pipeline."""
        return self._outcomes.pop(call_id, None)
