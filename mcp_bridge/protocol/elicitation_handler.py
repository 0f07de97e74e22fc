"""Brings a server's question from the SDK to the host's elicitor, and the answer back."""

from __future__ import annotations

import asyncio
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from mcp_bridge.core.elicitation import (
    Accepted,
    Answer,
    Dismissed,
    Elicitor,
    Field,
    Kind,
    Question,
    answer_fits,
)
from mcp_bridge.core.sanitize import clean_text

# Whether a question asks for a secret, which no server may ask for in a form.
#
# MCP forbids it ("servers MUST NOT use form mode elicitation to request sensitive information"),
# and spoken words go through a recogniser, a transcript and a history. It goes by words, in some of
# the languages that people speak; a server that describes a password without the word is not seen.

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


logger = logging.getLogger(__name__)

MAX_QUESTION_CHARS: Final = 500
"""The length of the message, and of each field's words: half a minute, spoken."""
MAX_TITLE_CHARS: Final = 80
"""The length of a title or a choice: some ten words, which are read out among others."""
MAX_FIELDS: Final = 8
"""More fields are a form for a screen, and no question by voice."""
MAX_CHOICES: Final = 50
MAX_URL_CHARS: Final = 2_048
_KINDS: Final[Mapping[str, Kind]] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}


async def answer_question(
    elicitor: Elicitor | None,
    server: str,
    tool: str,
    params: ElicitRequestParams,
    timeout_s: float,
    redact: Callable[[str], str] = str,
) -> ElicitResult:
    """Gives the answer for the server: a refusal where nobody can, does or may answer.

    `redact` takes the server's own secrets out of the question, which is spoken.
    """
    if elicitor is None:
        logger.info("%s: asked a question, and there is nobody to ask", server)
        return ElicitResult(action="decline")
    try:
        question = question_of(server, tool, _cleared(params, redact))
        if asks_for_a_secret(question):
            raise UnaskableError("it asks for a secret, which a server may not")
        async with asyncio.timeout(timeout_s):
            answer = await elicitor(question)
    except UnaskableError as error:
        logger.warning("%s: its question cannot be asked: %s", server, error)
        return ElicitResult(action="decline")
    except TimeoutError:
        logger.info("%s: its question had no answer within %g s", server, timeout_s)
        return ElicitResult(action="decline")
    except Exception:
        # The host's own code; the server gets a refusal, and the call goes on.
        logger.exception("%s: asking its question failed", server)
        return ElicitResult(action="decline")
    return _result(question, answer)


class UnaskableError(ValueError):
    """No person could be asked this question; the text says why, without the question's words."""


def _cleared(params: ElicitRequestParams, redact: Callable[[str], str]) -> ElicitRequestParams:
    """Takes the secrets out of a question. Raises: UnaskableError."""
    written = params.model_dump_json(by_alias=True)
    if (found := redact(written)) == written:
        return params
    try:
        return type(params).model_validate_json(found)
    except ValueError:
        raise UnaskableError("it holds a secret that the server was given") from None


def question_of(server: str, tool: str, params: ElicitRequestParams) -> Question:
    """Turns the SDK's parameters into a question. Raises: UnaskableError."""
    message = clean_text(params.message, MAX_QUESTION_CHARS)
    if not isinstance(params, ElicitRequestFormParams):
        if len(params.url) > MAX_URL_CHARS or not params.url.startswith("https://"):
            raise UnaskableError("its address is no https:// address of usual length")
        return Question(server, tool, message, url=clean_text(params.url, MAX_URL_CHARS))
    return Question(server, tool, message, tuple(_fields(params.requested_schema)))


def _fields(schema: Mapping[str, Any]) -> Iterator[Field]:
    properties: object = schema.get("properties") or {}
    if not isinstance(properties, dict):
        raise UnaskableError("its fields are no object")
    fields = cast("dict[str, Any]", properties)
    if len(fields) > MAX_FIELDS:
        raise UnaskableError(f"it has {len(fields)} fields; {MAX_FIELDS} at most can be asked for")
    required = schema.get("required")
    for name, inner in fields.items():
        if not isinstance(inner, dict):
            raise UnaskableError("one of its fields is no schema")
        asked = isinstance(required, list) and name in required
        if len(name) > MAX_QUESTION_CHARS:
            raise UnaskableError("the name of one of its fields is too long")
        yield _field(name, cast("dict[str, Any]", inner), required=asked)


def _field(name: str, schema: Mapping[str, Any], *, required: bool) -> Field:
    choices = tuple(_choices(schema))
    kind = _KINDS.get(str(schema.get("type")))
    if schema.get("type") == "array":
        choices = tuple(_choices(schema.get("items") or {}))
        kind = "choices" if choices else None
    elif choices:
        kind = "choice"
    if kind is None or len(choices) > MAX_CHOICES:
        raise UnaskableError("one of its fields is of no kind that can be asked for")
    return Field(
        name=name,
        kind=kind,
        title=_label(schema.get("title")) or _label(name),
        description=_words(schema.get("description")),
        required=required,
        default=schema.get("default"),
        choices=choices,
    )


def _choices(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields values and their words, in any of the ways that the protocol's versions have had."""
    titled = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(titled, list):
        for option in cast("list[Any]", titled):
            found = cast("dict[str, Any]", option) if isinstance(option, dict) else {}
            if isinstance(value := found.get("const"), str):
                yield value, _label(found.get("title")) or _label(value)
    elif isinstance(values := schema.get("enum"), list):
        names = schema.get("enumNames")
        words = cast("list[Any]", names) if isinstance(names, list) else []
        for number, value in enumerate(cast("list[Any]", values)):
            if isinstance(value, str):
                said = _label(words[number]) if number < len(words) else ""
                yield value, said or _label(value)


def _words(value: object) -> str:
    return clean_text(value, MAX_QUESTION_CHARS) if isinstance(value, str) else ""


def _label(value: object) -> str:
    return clean_text(value, MAX_TITLE_CHARS) if isinstance(value, str) else ""


def _result(question: Question, answer: Answer) -> ElicitResult:
    match answer:
        case Accepted() if question.url:
            return ElicitResult(action="accept")
        case Accepted(content):
            if not answer_fits(question, content):
                logger.warning("%s: the answer to its question does not fit it", question.server)
                return ElicitResult(action="decline")
            return ElicitResult(action="accept", content=dict(content))
        case Dismissed():
            return ElicitResult(action="cancel")
        case _:
            return ElicitResult(action="decline")
