"""One call of one webhook: its credentials, the request, and why a run failed.

The request is sent once, until a deadline.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import httpx2
import jwt

from mcp_bridge.core.errors import why_not_permitted
from n8n.calls.results import CallResult, StepCallback, StreamReader, clip, read_reply
from n8n.core.errors import N8nError
from n8n.core.http import ApiClient, exchange
from n8n.core.json_values import SHORT_BYTES, mapping, mappings, parse_json, sequence
from n8n.core.workflow_tool import BODILESS_METHODS, WorkflowTool, placeholders

# Credentials of single webhooks. They go to the webhook they are for, and nowhere else; the API key
# and the MCP token never go to any.
#
# People configure them by a webhook's path, its tool or its workflow's id:
#
# {"lights": {"header": "X-Key", "value": "${LIGHTS_KEY}"},
#  "ledger": {"user": "caal", "password": "..."},
#  "doors": {"token": "a token signed beforehand"},
#  "vault": {"jwt_secret": "...", "algorithm": "HS512"}}

ALGORITHMS: Final = ("HS256", "HS384", "HS512")
"""Those with a passphrase; n8n's key pairs need a token that was signed beforehand."""
TOKEN_S: Final = 60
"""How long a signed token is good: for one call, and clocks that differ."""
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FORMS: Final = (
    "{header, value}, {user, password}, {token}, or {jwt_secret} with an algorithm or without"
)


@dataclass(frozen=True, slots=True)
class HeaderAuth:
    """n8n's `Header Auth`."""

    name: str
    value: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        return {self.name: self.value}


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """n8n's `Basic Auth`."""

    user: str
    password: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}


@dataclass(frozen=True, slots=True)
class JwtAuth:
    """n8n's `JWT Auth` with a token that was signed beforehand."""

    token: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True, slots=True)
class JwtSecretAuth:
    """n8n's `JWT Auth` with a passphrase: each call signs a token of its own."""

    secret: str = field(repr=False)
    algorithm: str = "HS256"

    def headers(self) -> dict[str, str]:
        now = int(time.time())
        claims = {"iss": "caal-node", "iat": now, "exp": now + TOKEN_S}
        return {"Authorization": f"Bearer {jwt.encode(claims, self.secret, self.algorithm)}"}


WebhookAuth: TypeAlias = HeaderAuth | BasicAuth | JwtAuth | JwtSecretAuth


def secrets_of(auth: WebhookAuth) -> tuple[str, ...]:
    """Return what nobody else may read of a credential."""
    match auth:
        case HeaderAuth():
            return (auth.value,)
        case BasicAuth():
            return (auth.password, auth.headers()["Authorization"].removeprefix("Basic "))
        case JwtAuth():
            return (auth.token,)
        case JwtSecretAuth():
            return (auth.secret,)


def auth_headers(tool: WorkflowTool, known: Mapping[str, WebhookAuth]) -> dict[str, str]:
    """Return the headers for the webhook's path, else the tool's name, else the workflow's id."""
    if tool.auth_kind == "none":
        return {}
    for key in (tool.path, tool.name, tool.workflow_id):
        if (auth := known.get(key)) is not None:
            return auth.headers()
    return {}


def read_credentials(
    table: Mapping[str, Mapping[str, str]], env: Mapping[str, str]
) -> dict[str, WebhookAuth]:
    """Read credentials as people configure them.

    `${NAME}` in a value is taken from `env`. Raises N8nError(config), which names the entry.
    """
    return {
        key.strip("/"): _read_one(key, {k: _with_variables(key, v, env) for k, v in entry.items()})
        for key, entry in table.items()
    }


def _read_one(key: str, entry: Mapping[str, str]) -> WebhookAuth:
    if any(not value.isprintable() for value in entry.values()):
        raise _malformed(key, "there is a line break in a value; copy it again.")
    match dict(entry):
        case {"header": name, "value": value, **rest} if not rest:
            if not _HEADER_NAME.fullmatch(name):
                raise _malformed(key, "`header` is no name of an HTTP header.")
            return HeaderAuth(name, value)
        case {"user": user, "password": password, **rest} if not rest:
            return BasicAuth(user, password)
        case {"token": token, **rest} if not rest:
            return JwtAuth(token)
        case {"jwt_secret": secret, **rest} if rest.keys() <= {"algorithm"}:
            algorithm = rest.get("algorithm", "HS256")
            if algorithm not in ALGORITHMS:
                raise _malformed(key, f"write an algorithm of {', '.join(ALGORITHMS)}.")
            return JwtSecretAuth(secret, algorithm)
        case _:
            raise _malformed(key, f"write {_FORMS}.")


def _with_variables(key: str, value: str, env: Mapping[str, str]) -> str:
    for name in _VARIABLE.findall(value):
        if not env.get(name):
            raise _malformed(
                key,
                f"the variable {name} is not set; write it into .env, or set it where this "
                "process starts.",
            )
    return _VARIABLE.sub(lambda found: env[found[1]], value)


def _malformed(key: str, message: str) -> N8nError:
    return N8nError("config", f"n8n_auth, {key}: {message}")


# The request.

MAX_REPLY_BYTES = 1024 * 1024
"""A voice says a few sentences. Reading a mebibyte takes half a second, in a thread."""
MAX_REQUEST_BYTES = 1024 * 1024
MAX_QUERY_CHARS = 6_000
"""Proxies refuse URLs beyond 8 KiB."""


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A request with each argument where it travels."""

    path: str
    query: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """What is known of a call that was answered, as far as it helps to find its run."""

    body: bytes | None
    """The request's body."""
    answered_at: str | None
    """The reply's Date header, which is n8n's own clock."""
    took_s: float


def build_request(tool: WorkflowTool, arguments: Mapping[str, Any]) -> WebhookRequest:
    """Put each argument where it travels. Raises N8nError(invalid_arguments)."""
    rest = {name: value for name, value in arguments.items() if value is not None}
    in_path: dict[str, str] = {}
    for name in placeholders(tool.path):
        value = _as_text(rest.pop(name, ""))
        # A dot would lead out of its place in the path.
        if value in ("", ".", ".."):
            raise N8nError("invalid_arguments", f"{tool.name} needs the argument {name!r}.")
        in_path[f":{name}"] = value
    path = "/".join(quote(in_path.get(part, part), safe="") for part in tool.path.split("/"))
    is_bodiless = tool.method in BODILESS_METHODS
    query = {
        name: _as_text(rest.pop(name))
        for name in list(rest)
        if is_bodiless or tool.locations.get(name) == "query"
    }
    try:
        body = None if is_bodiless else json.dumps(rest, ensure_ascii=False, allow_nan=False)
        encoded = None if body is None else body.encode()
    except (TypeError, ValueError, RecursionError):
        raise N8nError("invalid_arguments", f"The arguments of {tool.name} are no JSON.") from None
    query_chars = sum(map(len, query.values()))
    if len(encoded or b"") > MAX_REQUEST_BYTES or query_chars > MAX_QUERY_CHARS:
        raise N8nError("invalid_arguments", f"The arguments of {tool.name} are too long.")
    return WebhookRequest(path, query, encoded)


async def call_webhook(
    client: httpx2.AsyncClient,
    base_url: str,
    tool: WorkflowTool,
    arguments: Mapping[str, Any],
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    on_answer: Callable[[AnsweredCall], None] = lambda _: None,
    on_step: StepCallback | None = None,
) -> CallResult:
    """Call a webhook and read its reply. Raises N8nError.

    Nothing is ever sent twice: a workflow that did not answer may have run. `on_answer` is called
    once there is a reply, whatever it is; `on_step` with the words of each step of a streamed
    answer.
    """
    request = build_request(tool, arguments)
    began = time.monotonic()
    if request.body is not None:
        headers = {**headers, "content-type": "application/json"}
    streams = tool.response_mode == "streaming"
    try:
        async with asyncio.timeout(timeout_s):
            response = await exchange(
                client,
                tool.method,
                f"{base_url}/webhook/{request.path}",
                max_bytes=MAX_REPLY_BYTES,
                on_chunk=StreamReader(on_step).feed if on_step and streams else None,
                params=request.query or None,
                content=request.body,
                headers=headers,
            )
            took_s, answered_at = time.monotonic() - began, response.headers.get("date")
            on_answer(AnsweredCall(request.body, answered_at, took_s))
            if len(response.body) > SHORT_BYTES:
                return await asyncio.to_thread(read_reply, tool, response)
            return read_reply(tool, response)
    except TimeoutError:
        raise N8nError(
            "timeout",
            f"{tool.name} did not answer within {timeout_s:g} s. It may still be running: "
            "do not call it again for the same thing.",
        ) from None
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        if said := why_not_permitted(error):
            raise N8nError("unreachable", f"{tool.name} may not be called: {said}.") from None
        raise N8nError(
            "unreachable", f"{tool.name} cannot be reached: n8n does not answer."
        ) from None
    except (httpx2.TransportError, httpx2.InvalidURL):
        raise N8nError(
            "unreachable",
            f"The connection broke while {tool.name} was running. It may have done its work: "
            "do not call it again for the same thing.",
        ) from None


def _as_text(value: object) -> str:
    """Write a value as a query or a path does: true, 3, plain text; JSON for what is nested."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.encode("utf-8", errors="replace").decode()


# Why a run failed: n8n's webhook says `Error in workflow`, its record of the run says the rest.

LOOKED_AT: Final = 3
"""Latest failed runs of the workflow: another person's may have come in between."""
MAX_RECORDS_BYTES: Final = 1024 * 1024
"""The most that is read of records, which hold all data of the runs. Of larger ones nothing is
told."""
LATEST_RUNS: Final = 100
"""Latest runs of the instance that are looked at for slow ones."""
TRIES: Final = 6
BETWEEN_TRIES_S: Final = 0.25
"""n8n may answer the webhook before it has written the record, above all if it streams."""
LOOKUP_S: Final = 2.0
"""The time for all tries. A person waits; the cause is worth no more."""
CLOCK_SLACK: Final = timedelta(seconds=3)
"""The Date header has whole seconds, and counts when the reply was made."""
MAX_CAUSE_CHARS: Final = 200
MAX_TEXT_CHARS: Final = 2_000
"""How much of an error's own texts is looked at."""
_URL: Final = re.compile(r"(https?://)(?:[^\s/@]{1,200}@)?([^\s/?#]{1,200})[^\s\"']{0,500}")


@dataclass(frozen=True, slots=True)
class FailureCause:
    """Why a run failed."""

    message: str
    """One line without a stack trace, and of addresses only the host."""
    node: str | None
    """The name of the node that failed."""


async def cause_of(
    api: ApiClient, tool: WorkflowTool, call: AnsweredCall, *, tries: int = TRIES
) -> FailureCause | None:
    """Return the cause of the failed run that a call began; None if n8n does not tell it."""
    for attempt in range(tries):
        if attempt:
            await asyncio.sleep(BETWEEN_TRIES_S)
        records = await _records(
            api, workflowId=tool.workflow_id, status="error", limit=LOOKED_AT, includeData="true"
        )
        if records is None:
            return None
        for record in records[:LOOKED_AT]:
            # A record may hold a mebibyte of other runs' data.
            if await asyncio.to_thread(_belongs_to, record, tool, call):
                return _read_cause(record)
    return None


async def slowest_runs(api: ApiClient) -> dict[str, float]:
    """Return the seconds of each workflow's slowest run among the latest, by its id."""
    records = await _records(api, status="success", limit=LATEST_RUNS, includeData="false")
    took: dict[str, float] = {}
    for record in (records or ())[:LATEST_RUNS]:
        began, ended = _iso_time(record.get("startedAt")), _iso_time(record.get("stoppedAt"))
        if began is not None and ended is not None and record.get("mode") == "webhook":
            key = str(record.get("workflowId"))
            took[key] = max(took.get(key, 0.0), (ended - began).total_seconds())
    return took


async def _records(api: ApiClient, **query: str | int) -> list[Mapping[str, Any]] | None:
    """Return records of runs; None for a key that may not read them, or an n8n that is down."""
    params = {name: str(value) for name, value in query.items()}
    try:
        answer = await api.ask_json(
            "GET", "/api/v1/executions", params=params, max_bytes=MAX_RECORDS_BYTES
        )
    except N8nError:
        return None
    return mappings(mapping(answer).get("data"))


def _belongs_to(record: Mapping[str, Any], tool: WorkflowTool, call: AnsweredCall) -> bool:
    if str(record.get("workflowId")) != tool.workflow_id:
        return False
    stopped, answered = _iso_time(record.get("stoppedAt")), _http_time(call.answered_at)
    if stopped is not None and answered is not None:
        began = answered - timedelta(seconds=call.took_s) - CLOCK_SLACK
        if not began <= stopped <= answered + CLOCK_SLACK:
            return False
    bodies = _request_bodies(record)
    # Without saved data, time alone has to tell.
    return not bodies or any(body == _body(call) for body in bodies)


def _request_bodies(record: Mapping[str, Any]) -> list[Any]:
    """Return the bodies of the requests that webhook nodes took in."""
    bodies: list[Any] = []
    for node_runs in mapping(_result_data(record).get("runData")).values():
        for run in mappings(node_runs)[:1]:
            outputs = sequence(mapping(run.get("data")).get("main"))
            for item in mappings(next(iter(outputs), None))[:1]:
                request = mapping(item.get("json"))
                if "body" in request and "headers" in request:
                    bodies.append(mapping(request).get("body"))
    return bodies


def _body(call: AnsweredCall) -> Any:
    try:
        return parse_json(call.body) if call.body else {}
    except (ValueError, RecursionError):
        return None


def _read_cause(record: Mapping[str, Any]) -> FailureCause | None:
    result = _result_data(record)
    error = mapping(result.get("error"))
    message = str(error.get("message") or "")[:MAX_TEXT_CHARS].strip()
    if not message:
        return None
    description = str(error.get("description") or "")[:MAX_TEXT_CHARS].strip()
    if description and description != message and len(message) < MAX_CAUSE_CHARS // 2:
        message = f"{message.rstrip('.')}: {description}"
    line = _URL.sub(r"\1\2", message.splitlines()[0]).strip()
    node = mapping(error.get("node")).get("name") or result.get("lastNodeExecuted")
    return FailureCause(clip(line, MAX_CAUSE_CHARS), str(node) if node else None)


def _result_data(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(record.get("data")).get("resultData"))


def _iso_time(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _http_time(value: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(value or "")
    except (ValueError, TypeError):
        return None
