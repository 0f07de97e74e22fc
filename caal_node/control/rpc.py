"""What travels between the control process and an agent: a signed request, and its answer.

The agent must know that a request comes from whoever runs the LiveKit server. That it came "from
the server" is no proof: a participant's packets carry no participant until the room has told the
agent about them (seconds, in a fresh room), and a hidden participant's never do. So a request is
signed the way LiveKit signs its webhooks: with a short-lived token of the API secret, which holds
the SHA-256 of the body and the room it is for. Both sides have that secret anyway.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, cast

import jwt
from livekit import api

from caal_node.control.chunking import Page, PageRequest, PartRequest
from caal_node.control.reports import (
    ControlRequest,
    ModelReport,
    ModelRequest,
    ReloadRequest,
    Report,
    bounded,
    from_dict,
    to_dict,
)

METHOD: Final = "caal.control"
"""The name of the RPC method that an agent answers."""
TTL: Final = timedelta(seconds=30)
"""Of a signature: one exchange takes milliseconds, clocks differ by seconds."""
MAX_PAYLOAD_CHARS: Final = 15 * 1024
"""LiveKit's own bound."""
MAX_ID_CHARS: Final = 64
MAX_NAME_CHARS: Final = 128
MAX_MESSAGE_CHARS: Final = 500
"""About 40 seconds of speech."""


@dataclass(frozen=True, slots=True)
class CallRunning:
    """Not done yet; ask again."""


@dataclass(frozen=True, slots=True)
class CallDone:
    report: Report


@dataclass(frozen=True, slots=True)
class CallFailed:
    reason: Literal["error", "timeout", "busy", "unknown"]
    detail: str = ""
    """One sentence for the caller, where there is one that may be told."""


Request: TypeAlias = ControlRequest | PartRequest | PageRequest
Answer: TypeAlias = CallRunning | CallDone | Page | CallFailed


class NotGenuine(Exception):
    """A request without a valid signature for this room. The text never quotes the request."""


def seal(request: Request, *, room: str, api_key: str, api_secret: str) -> str:
    """The request as the text of one RPC payload, signed for `room`."""
    body = json.dumps(asdict(request))
    token = (
        api.AccessToken(api_key, api_secret)
        .with_identity(METHOD)
        .with_ttl(TTL)
        .with_grants(api.VideoGrants(room_admin=True, room=room))
        .with_sha256(_digest(body))
    )
    return json.dumps({"token": token.to_jwt(), "body": body})


def unseal(payload: str, *, room: str, verifier: api.TokenVerifier) -> Request:
    """The request, if it was signed for this room with the verifier's secret.

    Raises:
        NotGenuine: for anything else.
    """
    if len(payload) > MAX_PAYLOAD_CHARS:
        raise NotGenuine("too long")
    try:
        sealed = json.loads(payload)
        token, body = sealed["token"], sealed["body"]
        claims = verifier.verify(token)
        signed = (claims.video, claims.sha256)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
        raise NotGenuine(type(why).__name__) from None
    video, digest = signed
    if not isinstance(body, str) or not hmac.compare_digest(digest or "", _digest(body)):
        raise NotGenuine("the signature is for another body")
    if video is None or not video.room_admin or video.room != room:
        raise NotGenuine("the signature is for another room")
    return _request(cast("dict[str, Any]", json.loads(body)))


def write_answer(answer: Answer) -> str:
    match answer:
        case CallRunning():
            return '{"state":"running"}'
        case CallDone(report):
            if isinstance(report, ModelReport):
                return json.dumps({"state": "done", "model": report.model, "api": report.api})
            return json.dumps({"state": "done", "report": to_dict(bounded(report))})
        case Page(number, of, data):
            return json.dumps({"state": "page", "number": number, "of": of, "data": data})
        case CallFailed(reason, detail):
            detail = detail[:MAX_MESSAGE_CHARS]
            return json.dumps({"state": "failed", "reason": reason, "detail": detail})


def read_answer(text: str) -> Answer:
    """
    Raises:
        ValueError: this is no answer.
    """
    match cast("dict[str, Any]", json.loads(text)):
        case {"state": "running"}:
            return CallRunning()
        case {"state": "done", "report": report} if isinstance(report, dict):
            return CallDone(from_dict(cast("dict[str, Any]", report)))
        case {"state": "done", "model": str(model), "api": str(api_name)}:
            return CallDone(ModelReport(model, api_name))
        case {"state": "page", "number": int(number), "of": int(of), "data": str(data)}:
            return Page(number, of, data)
        case {
            "state": "failed",
            "reason": ("error" | "timeout" | "busy" | "unknown") as reason,
            **more,
        }:
            detail = more.get("detail")
            return CallFailed(reason, detail[:MAX_MESSAGE_CHARS] if isinstance(detail, str) else "")
        case _:
            raise ValueError("this is no answer to a control request")


def _request(fields: dict[str, Any]) -> Request:
    # Whoever signed it wrote it, so a wrong shape means another version, not an attack.
    match fields:
        case {"id": str(id_), "tool_name": str() | None as tool, "message": str() | None as said}:
            return ReloadRequest(id_, tool, said)
        case {
            "id": str(id_),
            "model": str(model),
            "api": str() | None as api_name,
            "base_url": str() | None as url,
        }:
            return ModelRequest(id_, model, api_name, url)
        case {"id": str(id_), "number": int(number), "of": int(of), "data": str(data)}:
            return PartRequest(id_[:MAX_ID_CHARS], number, of, data)
        case {"id": str(id_), "number": int(number)}:
            return PageRequest(id_[:MAX_ID_CHARS], number)
        case _:
            raise NotGenuine("the control process is of another version")


def _digest(body: str) -> str:
    return base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
