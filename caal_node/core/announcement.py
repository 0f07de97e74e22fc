"""What somebody outside a room may want of an announcement, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Priority: TypeAlias = Literal["low", "normal", "urgent"]
"""How an announcement waits: "low" for a long pause, which may never come, "normal" for a short
one, "urgent" only until the person has finished speaking."""
AnswerTo: TypeAlias = Literal["model", "caller"]
"""Who gets what the person says next: the conversation, as ever, or who asked for the words."""
AnnouncementStatus: TypeAlias = Literal["said", "answered", "silence", "not_said"]
"""What became of an announcement. "answered" and "silence" are of one that was a question."""
NotSaid: TypeAlias = Literal[
    "nobody_there", "no_pause", "interrupted", "speech_failed", "session_ended"
]
"""Why an announcement was not said. "interrupted" is by the person before its first word, or by a
more urgent one; "speech_failed" is a text to speech that gave an error."""


@dataclass(frozen=True, slots=True)
class Announced:
    """What became of an announcement."""

    status: AnnouncementStatus
    reason: NotSaid | None = None
    answer: str | None = None
