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
import logging
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import jwt
from livekit import api
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from caal_node.core.errors import CaalError, NotAllowed

logger = logging.getLogger(__name__)

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


# The agent's end of requests and answers that travel in chunks.
#
# A request is acted on once, however often it is sent: the control process repeats what brought no
# answer, and a tool must not run twice for that. The answer is kept for a while, to be fetched
# chunk by chunk. The server gives up on an RPC after 3 s and then repeats it, so no RPC waits for
# the work: it starts the work or finds it by its id, waits a moment, and says how far it is.


ANSWER_S: Final = 1.0
"""One RPC waits this long for the work: a third of the time after which the server repeats it."""
MAX_RUNNING: Final = 16
"""This many requests run at a time. A person, a script and a workflow are three."""
MAX_INCOMPLETE: Final = 8
"""This many requests may lack chunks; the oldest is dropped for a new one."""
MAX_KEPT: Final = 32
"""This many finished answers can still be fetched."""
MAX_FORGOTTEN: Final = 4096
"""This many ids are known whose answers are gone; those requests are not acted on again."""
_MAX_CHUNKS: Final = max_chunks(MAX_REQUEST_BYTES)

GONE: Final = "Its answer is no longer kept; ask anew."
TOO_LARGE: Final = f"The request is larger than {MAX_REQUEST_BYTES} bytes, or not whole."
ANSWER_TOO_LARGE: Final = f"The answer is larger than {MAX_ANSWER_BYTES} bytes; ask for less."
BUSY: Final = "Too many requests are under way; try again in a moment."


class CannotAnswer(Exception):
    """The handler gives no answer, for a reason that the caller may read."""

    def __init__(self, reason: Literal["error", "timeout", "busy"], detail: str = "") -> None:
        super().__init__(detail or reason)
        self.failure: Final = RequestFailed(reason=reason, detail=detail)


class RequestDeduplicator:
    """Collects the chunks of requests, has each request handled once, and hands out the answers.

    `handle` takes a request's text and returns the answer's. The caller reads what a CannotAnswer
    or CaalError of `handle` says; of any other exception, only that something went wrong.
    """

    def __init__(self, handle: Callable[[str], Awaitable[str]]) -> None:
        self._handle: Final = handle
        self._incomplete: Final[OrderedDict[str, dict[int, str]]] = OrderedDict()
        self._tasks: Final[OrderedDict[str, asyncio.Task[tuple[str, ...] | RequestFailed]]] = (
            OrderedDict()
        )
        self._forgotten: Final[OrderedDict[str, None]] = OrderedDict()

    async def aclose(self) -> None:
        """Cancel what runs, and wait until it has ended."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def receive(self, chunk: SendChunk) -> RpcAnswer:
        """Take one chunk in. After the last one, return the answer's first chunk if it is ready."""
        if chunk.id in self._tasks or chunk.id in self._forgotten:
            return await self.fetch(FetchChunk(id=chunk.id, number=0))
        if not 0 <= chunk.number < chunk.of <= _MAX_CHUNKS:
            return RequestFailed(reason="error", detail=TOO_LARGE)
        chunks = self._incomplete.setdefault(chunk.id, {})
        chunks[chunk.number] = chunk.data
        while len(self._incomplete) > MAX_INCOMPLETE:
            self._incomplete.popitem(last=False)
        if len(chunks) < chunk.of:
            return StillRunning()
        del self._incomplete[chunk.id]
        if sum(not task.done() for task in self._tasks.values()) >= MAX_RUNNING:
            return RequestFailed(reason="busy", detail=BUSY)
        ordered = [chunks[number] for number in sorted(chunks)]
        self._tasks[chunk.id] = asyncio.create_task(self._run(ordered), name="caal-control")
        self._forget_oldest()
        return await self.fetch(FetchChunk(id=chunk.id, number=0))

    async def fetch(self, request: FetchChunk) -> RpcAnswer:
        """Return one chunk of a finished answer, or how far its request is."""
        if (task := self._tasks.get(request.id)) is None:
            if request.id in self._forgotten:
                return RequestFailed(reason="error", detail=GONE)
            return RequestFailed(reason="unknown")
        done, _ = await asyncio.wait({task}, timeout=ANSWER_S)
        if not done:
            return StillRunning()
        if task.cancelled():
            return RequestFailed(reason="error")
        if isinstance(chunks := task.result(), RequestFailed):
            return chunks
        if not 0 <= request.number < len(chunks):
            return RequestFailed(reason="unknown")
        return AnswerChunk(number=request.number, of=len(chunks), data=chunks[request.number])

    async def _run(self, chunks: list[str]) -> tuple[str, ...] | RequestFailed:
        try:
            text = await run_beside_loop(
                lambda: join(chunks, MAX_REQUEST_BYTES), chars=expanded_chars(chunks)
            )
        except ValueError:
            return RequestFailed(reason="error", detail=TOO_LARGE)
        try:
            answer = await self._handle(text)
        except CannotAnswer as why:
            return why.failure
        except NotAllowed as error:
            return RequestFailed(reason="refused", detail=str(error))
        except CaalError as error:
            logger.error("a control request failed: %s", error)
            return RequestFailed(reason="error", detail=str(error))
        except Exception as error:
            # Its text may quote what a server sent; its type is enough to look further.
            logger.error("a control request failed: %s", type(error).__name__)
            return RequestFailed(reason="error")
        if len(answer) > MAX_ANSWER_BYTES:
            return RequestFailed(reason="error", detail=ANSWER_TOO_LARGE)
        return await run_beside_loop(lambda: split(answer), chars=len(answer))

    def _forget_oldest(self) -> None:
        finished = [id_ for id_, task in self._tasks.items() if task.done()]
        for id_ in finished[:-MAX_KEPT]:
            del self._tasks[id_]
            self._forgotten[id_] = None
        while len(self._forgotten) > MAX_FORGOTTEN:
            self._forgotten.popitem(last=False)
