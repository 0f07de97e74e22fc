"""The RPC between the control process and an agent: a signed request, and its answer.

The agent must know that a request comes from whoever runs the LiveKit server. That it came "from
the server" is no proof: a participant's packets carry no participant until the room has told the
agent about them (seconds, in a fresh room), and a hidden participant's never do. So a request is
signed the way LiveKit signs its webhooks: with a short-lived token of the API secret, which holds
the SHA-256 of the body and the room it is for. Both sides have that secret anyway.

What is asked (`messages`) travels inside: cut into chunks, sent and fetched one RPC at a time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Annotated, Final, Literal, TypeAlias

import jwt
from livekit import api
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

METHOD: Final = "caal.control"
"""The name of the RPC method that an agent answers."""
REFUSED: Final = 4001
"""RPC error code of a request that is not genuine (LiveKit keeps 1001 to 1999 for itself)."""
TTL: Final = timedelta(seconds=30)
"""How long a signature holds: one exchange takes milliseconds, clocks differ by seconds."""
MAX_PAYLOAD_CHARS: Final = 15 * 1024
"""This is LiveKit's own bound."""
MAX_ID_CHARS: Final = 64
MAX_DETAIL_CHARS: Final = 500


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SendChunk(_Message):
    """The request brings one chunk of the message `id`; the agent acts once it has all of them."""

    id: str = Field(max_length=MAX_ID_CHARS)
    number: int
    """It is counted from 0."""
    of: int
    data: str


class FetchChunk(_Message):
    """The request fetches one chunk of the answer to the message `id`; it never starts anything."""

    id: str = Field(max_length=MAX_ID_CHARS)
    number: int


class StillRunning(_Message):
    """The agent has not finished; it has to be asked again."""

    state: Literal["running"] = "running"


class AnswerChunk(_Message):
    """The agent has finished, and this is one chunk of its answer."""

    state: Literal["page"] = "page"
    number: int
    of: int
    data: str


class RequestFailed(_Message):
    """The agent could not do it, or does not know the request."""

    state: Literal["failed"] = "failed"
    reason: Literal["error", "timeout", "busy", "unknown"]
    detail: Annotated[str, AfterValidator(lambda text: text[:MAX_DETAIL_CHARS])] = ""
    """This is one sentence for the caller, where there is one that the caller may read."""


RpcRequest: TypeAlias = SendChunk | FetchChunk
RpcAnswer: TypeAlias = StillRunning | AnswerChunk | RequestFailed

_RPC_REQUEST: Final[TypeAdapter[RpcRequest]] = TypeAdapter(RpcRequest)
RPC_ANSWER: Final[TypeAdapter[RpcAnswer]] = TypeAdapter(
    Annotated[RpcAnswer, Field(discriminator="state")]
)
"""`validate_json` reads what an agent answers; `model_dump_json` of an answer writes it."""


class NotGenuine(Exception):
    """A request has no valid signature for this room. The text never quotes the request."""


def sign_request(request: RpcRequest, *, room: str, api_key: str, api_secret: str) -> str:
    """Return the request as the text of one RPC payload, signed for `room`."""
    body = request.model_dump_json()
    token = (
        api.AccessToken(api_key, api_secret)
        .with_identity(METHOD)
        .with_ttl(TTL)
        .with_grants(api.VideoGrants(room_admin=True, room=room))
        .with_sha256(_digest(body))
    )
    return json.dumps({"token": token.to_jwt(), "body": body})


def verify_request(payload: str, *, room: str, verifier: api.TokenVerifier) -> RpcRequest:
    """Return the request, if it was signed for this room with the verifier's secret.

    Raises:
        NotGenuine: it was not, or this is no request.
    """
    if len(payload) > MAX_PAYLOAD_CHARS:
        raise NotGenuine("too long")
    try:
        envelope = json.loads(payload)
        token, body = envelope["token"], envelope["body"]
        claims = verifier.verify(token)
        grants, digest = claims.video, claims.sha256
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
        raise NotGenuine(type(why).__name__) from None
    if not isinstance(body, str) or not hmac.compare_digest(digest or "", _digest(body)):
        raise NotGenuine("the signature is for another body")
    if grants is None or not grants.room_admin or grants.room != room:
        raise NotGenuine("the signature is for another room")
    try:
        return _RPC_REQUEST.validate_json(body)
    except ValidationError:
        # Whoever signed it wrote it, so a wrong shape means another version, not an attack.
        raise NotGenuine("the control process is of another version") from None


def _digest(body: str) -> str:
    return base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
