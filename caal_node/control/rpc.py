"""The RPC between the control process and an agent: a signed request, and its answer.

The agent must know that a request comes from whoever runs the LiveKit server. That it came "from
the server" is no proof: a participant's packets carry no participant until the room has told the
agent about them (seconds, in a fresh room), and a hidden participant's never do. So a request is
signed the way LiveKit signs its webhooks: with a short-lived token of the API secret, which holds
the SHA-256 of the body and the room it is for. Both sides have that secret anyway.

What is asked (`messages`) travels inside. LiveKit refuses a payload or an answer above 15 KiB. A
call's arguments may hold a whole file, and an answer a whole catalogue, so every text is compressed
and cut: 500 tools with their schemas, 400 kB, are a handful of chunks. Each chunk is sent or
fetched in an RPC of its own.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import jwt
from livekit import api
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

METHOD: Final = "caal.control"
"""The name of the RPC method that an agent answers."""
REFUSED: Final = 4001
"""RPC error code of a request that is not genuine (LiveKit keeps 1001 to 1999 for itself)."""
TTL: Final = timedelta(seconds=30)
"""How long a signature holds: one exchange takes milliseconds, clocks differ by seconds."""
LEEWAY: Final = timedelta(seconds=5)
"""How far the clocks of the two ends may be apart on top of that; PyJWT's own is a minute."""
MAX_PAYLOAD_CHARS: Final = 15 * 1024
"""This is LiveKit's own bound."""
MAX_ID_CHARS: Final = 64
MAX_DETAIL_CHARS: Final = 500

CHUNK_CHARS: Final = 12 * 1024
"""The size of one chunk. The rest of LiveKit's 15 KiB is for the signature and the envelope."""
MAX_REQUEST_BYTES: Final = 1024 * 1024 + 64 * 1024
"""A request as text holds a name and the arguments that an MCP server may be sent at most."""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""An answer as text may hold some 5,000 tools of usual size. To write it takes 10 ms."""
INLINE_CHARS: Final = 64 * 1024
"""Compressing or parsing this takes 2 ms; more is done in a thread."""
EXPANSION: Final = 16
"""A text may be this many times larger than its chunks; catalogues compress best."""
T = TypeVar("T")


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
    reason: Literal["error", "refused", "timeout", "busy", "unknown"]
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


def verify_request(
    payload: str, *, room: str, verifier: api.TokenVerifier, since: float = 0.0
) -> RpcRequest:
    """Return the request, if it was signed for this room with the verifier's secret.

    One that was signed before the Unix time `since`, when this end began, is refused: whoever was
    here then may have acted on it, and only that one would know it again.

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
        signed_at = jwt.decode(token, options={"verify_signature": False})["nbf"]
        is_older = signed_at < since - LEEWAY.total_seconds()
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
        raise NotGenuine(type(why).__name__) from None
    if is_older:
        raise NotGenuine("it was signed before this agent began")
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


def max_chunks(max_bytes: int) -> int:
    """Count the chunks of a text of `max_bytes` that does not compress; zlib adds a few bytes."""
    compressed = (max_bytes + max_bytes // 1000 + 64) * 4 // 3 + 4
    return -(-compressed // CHUNK_CHARS)


def split(text: str) -> tuple[str, ...]:
    """Return the chunks of `text`, at least one. It takes 20 ms a megabyte."""
    encoded = base64.b64encode(zlib.compress(text.encode())).decode()
    return tuple(encoded[at : at + CHUNK_CHARS] for at in range(0, len(encoded), CHUNK_CHARS))


def join(chunks: Sequence[str], max_bytes: int) -> str:
    """Return the text of all its chunks, which are given in their order.

    Raises:
        ValueError: they are not the chunks of a text, or it is larger than `max_bytes`.
    """
    try:
        compressed = base64.b64decode("".join(chunks), validate=True)
        stream = zlib.decompressobj()
        # The cap is on what comes out: a few bytes can decompress to gigabytes.
        text = stream.decompress(compressed, max_bytes + 1)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"these are not the chunks of a text ({type(error).__name__})") from None
    if len(text) > max_bytes:
        raise ValueError(f"the text is larger than {max_bytes} bytes")
    if not stream.eof or stream.unused_data:
        raise ValueError("chunks are missing, or too many")
    try:
        return text.decode()
    except ValueError:
        raise ValueError("these are not the chunks of a text (no UTF-8)") from None


async def run_beside_loop(work: Callable[[], T], *, chars: int) -> T:
    """Run `work` on a text of `chars` characters; in a thread where it would stall the loop."""
    return work() if chars <= INLINE_CHARS else await asyncio.to_thread(work)


def expanded_chars(chunks: Sequence[str]) -> int:
    """Estimate how many characters the text of these chunks has."""
    return EXPANSION * sum(map(len, chunks))
