"""Whether a question asks for a secret, which no server may ask for in a form.

MCP forbids it ("servers MUST NOT use form mode elicitation to request sensitive information"), and
spoken words go through a recogniser, a transcript and a history. It goes by words, in some of the
languages that people speak; a server that describes a password without the word is not seen.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from mcp_bridge.core.elicitation import Question

_LOOKALIKES: Final = str.maketrans("аеорсухіѕԁһ013457@$", "aeopcyxisdholeastas")
"""Cyrillic letters, digits and signs that are written in place of Latin letters."""
_SECRET: Final = re.compile(
    r"pass ?(?:word|wort|code|phrase|key|wd)|\bpwd\b|\bpin\b(?! (?:on|to|onto|it|this|a|the)\b)"
    r"|\bsecrets?\b|\bcredentials?\b|\b(?:api|access|private|recovery|licen[cs]e) ?keys?\b"
    r"|\b(?:access|auth\w*|api|bearer|login|session|refresh|security|secret|your) ?tokens?\b"
    r"|\btokens?\b(?= ?(?:$|[?.:!]))|\b(?:seed|recovery) ?phrase|\botps?\b|\b2fa\b|\bmfa\b|\btotp\b"
    r"|\b(?:one ?time|verification|security|authenti\w+|confirmation|backup|sms|login) ?codes?\b"
    r"|\bcv[vc]2?\b|\bcredit ?card\b|\bcard ?number|\biban\b|\bsocial ?security\b|\bssn\b"
    r"|kennwort|geheimzahl|\bcontrasena\b|\bmot de passe\b|\bwachtwoord\b|\bsenha\b|\bparola\b"
    r"|\blosenord\b|\bhaslo\b|\bparool\b"
)
_REQUEST: Final = re.compile(
    r"\b(?:what|which|enter|type|say|tell|give|spell|provide|read|send|speak|need|confirm your)\b"
)


def asks_for_a_secret(question: Question) -> bool:
    """Tells whether somebody would answer `question` with a password, a code or a key.

    A question that yes, no or a choice answers may speak of one: "Delete the password file?".
    """
    words = [question.message]
    typed = [field for field in question.fields if field.kind in ("text", "number", "integer")]
    for field in typed:
        words += [field.name, field.title, field.description]
    if not (typed or (not question.fields and _REQUEST.search(_plain(question.message)))):
        return False
    return any(_SECRET.search(form) for word in words for form in (_plain(word), _read_as(word)))


def _plain(text: str) -> str:
    """Gives `text` in small Latin letters, with blanks for all that stands between words."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    marks = unicodedata.normalize("NFKD", text).casefold()
    bare = "".join(char for char in marks if not unicodedata.combining(char))
    return " ".join(re.sub(r"[\W_]+", " ", bare).split())


def _read_as(text: str) -> str:
    """Gives `text` as it looks, and its single letters as the word that they spell."""
    looks = _plain(text.casefold().translate(_LOOKALIKES))
    return re.sub(r"\b(?:\w ){2,}\w\b", lambda found: found[0].replace(" ", ""), looks)
