"""All exceptions of caal-node, in one tree.

    CaalError
    ├── ConfigError             a setting or a file is wrong; the message names file, key and remedy
    ├── NotAllowed              the owner's settings do not allow what a caller asks for
    ├── NetworkRefused          CAAL_NETWORK does not allow a connection; it is an OSError as well
    ├── ModelError              the model's server
    │   ├── ModelUnreachable    no connection (retryable)
    │   ├── ModelTimeout        no answer in time (retryable)
    │   ├── ModelOutside        CAAL_NETWORK does not allow its address
    │   ├── ModelMissing        the server does not have the model
    │   ├── ModelLacksTools     the server refuses tools for this model
    │   └── ModelReplyError     the server sent an error in place of a reply, or during one
    │       ├── ModelContextFull    the prompt is longer than what the model can read
    │       └── ModelSilent         no strategy gave a reply
    │           ├── ModelReplyCut   its tokens ended before a call did
    │           └── ModelReplyData  it was an object or a list, which nobody can listen to
    └── ToolFailure             one call of one tool; `str()` is written for the model
        ├── UnknownTool         the name is in no table
        ├── InvalidArguments    the arguments do not fit the schema
        ├── ToolRefused         policy or plan said no
        │   ├── RefusedWithoutYes   it needs a person's yes, and nobody can be asked
        │   ├── RefusedForPerson    another person might be allowed
        │   └── PolicyFaulty    the policy cannot be read, so nothing is written
        │   ├── ToolOutside     CAAL_NETWORK does not allow the address that it needs
        │   ├── CallLimitReached  it ran as often as the owner allows, or failed too often
        │   ├── NotConfirmed        the person who was asked has not said yes
        │   │   ├── CallCorrected       the person has said what they want in its place
        │   │   └── PinLocked           the PIN was wrong too often, and is not asked for now
        │   └── ConfirmationNeeded  nobody is there who could be asked for a yes
        ├── ToolTimeout         the deadline passed
        │   └── WriteTimeout    it may have changed something, or still do
        ├── ToolUnavailable     the tool's server cannot be reached
        │   └── ToolStarting    it is being set up, and comes by itself
        └── ToolBroke           the tool answered with an error, or raised

`spoken` is the key, in prompts/sentences.toml, of the sentence that a person hears. An exception's
own text is for logs and for the model, and is never spoken. `kind` is the stable word that events
and the model get.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final


class CaalError(Exception):
    """The root of the tree."""

    kind: ClassVar[str] = "internal"
    spoken: ClassVar[str] = "went_wrong"
    retryable: ClassVar[bool] = False


class ConfigError(CaalError):
    """A setting or a file is wrong. The message says which one, why, and how to correct it."""

    kind = "config"


class NotAllowed(CaalError):
    """A caller of the control API asks for what only the owner may choose."""

    kind = "refused"


class NetworkRefused(CaalError, PermissionError):
    """A connection or a lookup that `CAAL_NETWORK` does not allow.

    Clients take it for a connection that failed. The text is the same for every address of one
    host, since asyncio keeps the type only of errors that are alike.
    """

    kind = "refused"
    spoken = "tool_outside"


class ModelError(CaalError):
    kind = "model"
    spoken = "model_failed"


class ModelUnreachable(ModelError):
    kind = "model_unreachable"
    spoken = "model_unreachable"
    retryable = True


class ModelTimeout(ModelError):
    kind = "model_timeout"
    spoken = "model_slow"
    retryable = True


class ModelOutside(ModelError):
    kind = "model_refused"
    spoken = "model_outside"


class ModelMissing(ModelError):
    kind = "model_missing"
    spoken = "model_missing"


class ModelLacksTools(ModelError):
    kind = "model_lacks_tools"


class ModelReplyError(ModelError):
    kind = "model_reply"

    def __init__(self, message: str, *, status: int | None = None, said: str = "") -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status, or None where the error came inside a stream with status 200."""
        self.said = said
        """More of the server's own words than the message has. They are for reading, not for
        logs."""


class ModelContextFull(ModelReplyError):
    kind = "model_context_full"
    spoken = "model_context_full"


class ModelSilent(ModelReplyError):
    kind = "model_silent"
    spoken = "empty_reply"


class ModelReplyCut(ModelSilent):
    kind = "model_reply_cut"
    spoken = "model_cut_off"


class ModelReplyData(ModelSilent):
    """Its reply was an object, a list or a tag, and so was the next one: nothing to listen to."""

    kind = "model_reply_data"
    spoken = "model_not_words"


class ToolFailure(CaalError):
    """One call failed. `str()` is a short text the model can act on, without secrets."""

    kind = "error"
    spoken = "tool_failed"
    words: str | None = None
    """The text that a person hears word for word, where the tool's author gave one; "" where they
    have heard already what there is to say."""


class UnknownTool(ToolFailure):
    kind = "unknown_tool"

    def __init__(self, name: str, valid: Sequence[str]) -> None:
        super().__init__(f"There is no tool named {name!r}.")
        self.name = name
        self.valid = tuple(valid)
        """The names of the table that are most like it, best first."""


class InvalidArguments(ToolFailure):
    kind = "invalid_arguments"


class ToolRefused(ToolFailure):
    kind = "refused"
    spoken = "tool_refused"


class RefusedForPerson(ToolRefused):
    spoken = "refused_for_person"


class RefusedWithoutYes(ToolRefused):
    spoken = "refused_without_yes"


class PolicyFaulty(ToolRefused):
    spoken = "policy_faulty"


class ToolOutside(ToolRefused):
    spoken = "tool_outside"


class CallLimitReached(ToolRefused):
    spoken = "limit_reached"


class NotConfirmed(ToolRefused):
    spoken = "not_confirmed"


class CallCorrected(NotConfirmed):
    spoken = ""  # nothing is to be said, as the model is to make the call that is wanted


class SpokenOver(NotConfirmed):
    spoken = ""  # what the person says meanwhile is answered


class PinLocked(NotConfirmed):
    spoken = "pin_locked"


class ConfirmationNeeded(ToolRefused):
    kind = "needs_confirmation"

    def __init__(self, message: str, *, question: str, arguments_hash: str) -> None:
        super().__init__(message)
        self.question = question
        """What a person would be asked."""
        self.arguments_hash = arguments_hash
        """The same call with this as its `confirmation` runs."""


class ToolTimeout(ToolFailure):
    kind = "timeout"
    spoken = "tool_timeout"
    retryable = True


class WriteTimeout(ToolTimeout):
    """A call that may change something was given up, and may still go through."""

    spoken = "write_timeout"


class ToolUnavailable(ToolFailure):
    kind = "unavailable"
    spoken = "tool_unavailable"
    retryable = True


class ToolStarting(ToolUnavailable):
    spoken = "tool_starting"


class ToolBroke(ToolFailure):
    kind = "tool_error"


# The line of somebody's own code that an exception came from, for a message of one line.

_PACKAGE: Final = Path(__file__).parents[1]
_OTHERS: Final = (
    *(_PACKAGE.parent / name for name in ("caal_node", "mcp_bridge", "n8n")),
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
)
"""Where no owner writes: our packages, Python's library and what is installed."""


def failing_line(error: BaseException) -> str:
    """Return `agent.py, line 41`, the innermost line outside of libraries; "" where there is none.

    A file below the working directory is named from there, another one by its whole path.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_file() and not any(map(file.is_relative_to, _OTHERS)):
            here = Path.cwd()
            shown = file.relative_to(here) if file.is_relative_to(here) else file
            return f"{shown}, line {frame.lineno}"
    return ""
