"""Whose memory a call is about: the person whom LiveKit knows by their token, and nobody else."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase

from caal_node.core.caller import Caller
from caal_node.core.errors import ToolRefused

UNKNOWN = "I don't know who is speaking, so I can't use anybody's memory."
GUEST = "I keep no memory for guests."
TERMINAL = "terminal"
"""The person who types where there is no room: whoever uses this machine."""
HOUSEHOLD = "household"


def person_of(caller: Caller, *, attribute: str, guests: Sequence[str], shared: bool) -> str:
    """Return the name of the person's page.

    Args:
        attribute: The participant's attribute that names the person; "" takes their identity.
        guests: Patterns of names, such as `guest*`, for which nothing is remembered.
        shared: Whether all who are no guests have one page.

    Raises:
        ToolRefused: Nobody is known to speak, or a guest does.
    """
    match caller.origin:
        case "api":
            raise ToolRefused("Memory belongs to people in a conversation; the API has none.")
        case "terminal":
            return HOUSEHOLD if shared else TERMINAL
        case "room":
            name = caller.attributes.get(attribute, "") if attribute else caller.participant
    if not name.strip():
        raise _refused("Nobody knows who is speaking.", UNKNOWN)
    # "ｇuest1" and " guest1" are guests too.
    plain = unicodedata.normalize("NFKC", name).strip().casefold()
    if any(fnmatchcase(plain, pattern.casefold()) for pattern in guests):
        raise _refused("A guest is speaking, for whom nothing is remembered.", GUEST)
    if shared:
        return HOUSEHOLD
    # Else somebody of this name in a room would read what was typed, or the household's page. One
    # more "@" for those who have some already, so that two names stay two.
    return f"@{name}" if name.lstrip("@") in (TERMINAL, HOUSEHOLD) else name


def _refused(message: str, words: str) -> ToolRefused:
    refused = ToolRefused(message)
    refused.words = words
    return refused
