"""These checks look at the model, its server, and how it and its fallbacks are asked."""

from __future__ import annotations

import asyncio
import difflib
import json
import os
from collections.abc import Sequence
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx2

from caal_node.cli.checks import Finding, fail, fail_from, in_thread, ok, warn
from caal_node.config.settings import Settings
from caal_node.core.addresses import CLOUD, is_loopback, parse_reference
from caal_node.core.errors import CaalError, ConfigError
from caal_node.evaluation.model_profiles import StrategyChoice, Validity, choose
from caal_node.evaluation.suites import WAY_NAMES
from caal_node.factories import make_llm
from caal_node.http_client import UnfitAnswer, open_client
from caal_node.models.backends.cloud import load_plugin
from caal_node.models.embedded_engine import require_engine
from caal_node.models.model_preparation import FOUND_DUMPS, probe
from caal_node.network.guard import refusal_in
from caal_node.weights.gguf import find_gguf

REQUEST_S: Final = 5.0
MAX_NAMES: Final = 8
SERVER: Final = "model server"
MODEL: Final = "model"
SHARED_HINT: Final = (
    "Where several rooms share this server, start it with OLLAMA_MULTIUSER_CACHE=1, "
    "OLLAMA_NEW_ENGINE=1 and OLLAMA_NUM_PARALLEL of two a room or more, or each turn reads its "
    "whole conversation again."
)
CRASH_HINT: Final = (
    "Set OLLAMA_NEW_ENGINE=1 as well, or OLLAMA_NUM_PARALLEL=1: Ollama 0.17 ends a model of its "
    "older engine when a second conversation begins."
)
SLOTS_HINT: Final = (
    "Where several rooms share this server, start it with --parallel of one a room, and with "
    "--no-kv-unified and --cache-ram, or each turn reads its whole conversation again."
)

DUMPS_HINT: Final = (
    "For its own tool calls, write {{ json .Function }} for {{ .Function }} in its template "
    "(ollama show --template), and make a model of it (ollama create)."
)

CALL_STRATEGY: Final = "way of asking"
SECOND_LOOK: Final = "second look"
_KEY: Final = "second_look_model in [tools]"
SAMPLE_S: Final = 30.0
"""A small question to a model that is loaded takes a second or two."""


class _Unusable(Exception):
    """There is nothing further to check after this finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.found)
        self.finding = finding


async def check_model(
    settings: Settings, transport: httpx2.AsyncBaseTransport | None = None
) -> Sequence[Finding]:
    """Check the server and the model. `transport` is for tests."""
    if settings.api == "embedded":
        return [await in_thread(lambda: _embedded(settings.model))]
    if settings.api == "livekit":  # Which server a plugin asks, and how, is its own.
        return [ok(MODEL, f"{settings.model}, a LiveKit plugin's")]
    if settings.api in CLOUD:
        return [await _cloud(settings)]
    key = settings.api_key
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    found: list[Finding] = []
    client = await asyncio.to_thread(  # It reads certificates.
        open_client,
        base_url=settings.model_address,
        headers=headers,
        timeout=REQUEST_S,
        transport=transport,
        # A proxy between this machine and itself would only be in the way.
        trust_env=not is_loopback(urlsplit(settings.model_address).hostname or ""),
    )
    async with client as http:
        try:
            if settings.api == "ollama":
                found.append(await _ollama_server(http, settings))
                found += await _ollama_model(http, settings)
            else:
                found += await _openai_server(http, settings)
        except _Unusable as unusable:
            found.append(unusable.finding)
    return found


async def _cloud(settings: Settings) -> Finding:
    """Make the model; whether it answers is seen by a sample request."""
    try:
        await load_plugin(settings.api)
        await make_llm(settings).aclose()
    except CaalError as error:
        return fail_from(MODEL, str(error))
    return ok(MODEL, f"{settings.model} of {settings.api}, by LiveKit's plugin")


def _embedded(model: str) -> Finding:
    try:
        require_engine()
        path = find_gguf(model)
    except ConfigError as error:
        return fail_from(MODEL, str(error))
    return ok(MODEL, f"{path.name}, {path.stat().st_size / 1e6:,.0f} MB, in the embedded engine")


async def _ollama_server(http: httpx2.AsyncClient, settings: Settings) -> Finding:
    version = (await _fetch(http, settings, "GET", "/api/version")).get("version")
    if not isinstance(version, str):
        raise _Unusable(_unknown_server(settings))
    found = f"Ollama {version} at {settings.model_address}"
    # Those of this process: the server does not tell its own.
    if not _is_set("OLLAMA_MULTIUSER_CACHE"):
        return ok(SERVER, found, SHARED_HINT)
    several = os.environ.get("OLLAMA_NUM_PARALLEL", "1") not in ("", "0", "1")
    if several and not _is_set("OLLAMA_NEW_ENGINE"):
        return warn(SERVER, f"{found}; OLLAMA_MULTIUSER_CACHE is set", CRASH_HINT)
    return ok(SERVER, found)


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "") in ("1", "true")


async def _ollama_model(http: httpx2.AsyncClient, settings: Settings) -> list[Finding]:
    wanted = settings.model
    listed = _objects((await _fetch(http, settings, "GET", "/api/tags")).get("models"))
    names = [str(model.get("name")) for model in listed]
    if wanted not in names and f"{wanted}:latest" not in names:
        near = difflib.get_close_matches(wanted, names, 1, 0.6)
        other = f"set CAAL_MODEL to {near[0]}" if near else "set CAAL_MODEL to one of these"
        fix = f"Run: ollama pull {wanted}" + (f", or {other}." if names else ".")
        raise _Unusable(
            fail(MODEL, f"{wanted} is not on the server, which has {_first_names(names)}", fix)
        )
    shown = await _fetch(http, settings, "POST", "/api/show", {"model": wanted})
    can = shown.get("capabilities")
    if not isinstance(can, list):
        return [ok(MODEL, f"{wanted}; this Ollama does not say what it can do")]
    abilities = [str(ability) for ability in cast("list[object]", can)]
    return [
        *_ability_findings(settings, abilities),
        *_context_findings(settings, cast("dict[str, Any]", shown.get("model_info") or {})),
    ]


def _ability_findings(settings: Settings, can: Sequence[str]) -> list[Finding]:
    found = f"{settings.model}: {', '.join(can) or 'nothing'}"
    if "completion" not in can:
        return [fail(MODEL, f"{found}; it cannot chat", "Set CAAL_MODEL to a chat model.")]
    if "tools" not in can:
        fix = "Tools are asked for in plain text; a model such as qwen3:8b is more reliable."
        return [warn(MODEL, f"{found}; it has no tool calling of its own", fix)]
    if settings.think and "thinking" not in can:
        fix = "Set CAAL_THINK=off, or choose a model that thinks."
        return [warn(MODEL, f"{found}; CAAL_THINK is on, and it cannot think", fix)]
    return [ok(MODEL, found)]


def _context_findings(settings: Settings, info: dict[str, Any]) -> list[Finding]:
    made_for = info.get(f"{info.get('general.architecture')}.context_length")
    if not isinstance(made_for, int) or settings.num_ctx <= made_for:
        return []
    found = f"CAAL_NUM_CTX is {settings.num_ctx}, and the model was made for {made_for} tokens"
    return [warn("context", found, f"Set CAAL_NUM_CTX={made_for} or less.")]


async def _openai_server(http: httpx2.AsyncClient, settings: Settings) -> list[Finding]:
    listed = _objects((await _fetch(http, settings, "GET", "/models")).get("data"))
    names = [str(model.get("id")) for model in listed]
    server = ok(SERVER, f"{settings.api} API at {settings.model_address}")
    if [model.get("owned_by") for model in listed] == ["llamacpp"]:
        server = await _llama_slots(http, server)
    if settings.model in names:
        return [server, ok(MODEL, settings.model)]
    found = f"{settings.model} is not on the server, which has {_first_names(names)}"
    if len(names) == 1:
        fix = f"Servers of one model take any name; to be exact, set CAAL_MODEL={names[0]}."
        return [server, warn(MODEL, found, fix)]
    return [server, fail(MODEL, found, "Set CAAL_MODEL to one of these.")]


async def _llama_slots(http: httpx2.AsyncClient, server: Finding) -> Finding:
    """Add how many conversations llama.cpp keeps. Whether it empties them shows in a session."""
    try:
        props = (await http.get("/../props")).json()
        count = int(props["total_slots"])
    except (httpx2.HTTPError, ValueError, KeyError, TypeError):
        return server  # It was started without the endpoint, or is an older one.
    found = f"{server.found}; slots: {count}"
    return ok(SERVER, found, SLOTS_HINT if count == 1 else "")


async def _fetch(
    http: httpx2.AsyncClient, settings: Settings, method: str, path: str, body: Any = None
) -> dict[str, Any]:
    """Return the JSON object that the server answers with; `_Unusable` says why there is none."""
    address = settings.model_address
    variable = "CAAL_BASE_URL" if settings.base_url else "OLLAMA_HOST"
    try:
        async with asyncio.timeout(REQUEST_S):
            response = await http.request(method, path, json=body)
    except (TimeoutError, httpx2.TimeoutException):
        found = f"{address} did not answer within {REQUEST_S:g} s"
        fix = f"Check {variable}, and whether the server is overloaded."
        raise _Unusable(fail(SERVER, found, fix)) from None
    except UnfitAnswer as error:
        raise _Unusable(fail(SERVER, f"{address} {error}", f"Check {variable}.")) from None
    except httpx2.HTTPError as error:
        if (why := refusal_in(error)) is not None:
            fix = f"Add it to CAAL_NETWORK, or set {variable} to a server within."
            raise _Unusable(fail(SERVER, f"{address} is outside: {why}", fix)) from None
        found = f"nothing answers at {address}"
        fix = f"Start the server (Ollama: ollama serve), or set {variable} to where it runs."
        raise _Unusable(fail(SERVER, found, fix)) from None
    if response.status_code in (401, 403):
        fix = "Set CAAL_API_KEY to the server's key."
        raise _Unusable(fail(SERVER, f"{address} refuses the key", fix))
    try:
        answer = json.loads(response.content) if response.is_success else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise _Unusable(_unknown_server(settings))
    return cast("dict[str, Any]", answer)


def _unknown_server(settings: Settings) -> Finding:
    address = settings.model_address
    if settings.api == "ollama":
        found = f"what answers at {address} is not Ollama"
        return fail(SERVER, found, "Correct OLLAMA_HOST, or set CAAL_API=openai and CAAL_BASE_URL.")
    found = f"{address} has no list of models"
    return fail(SERVER, found, "Correct CAAL_BASE_URL: it usually ends with /v1.")


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _first_names(names: Sequence[str]) -> str:
    if not names:
        return "none at all"
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


async def check_call_strategy(settings: Settings) -> Sequence[Finding]:
    choice = await choose(settings)
    found = [await _configured_model(settings, choice)]
    for reference in settings.fallbacks.models:
        other = settings.with_model(reference)
        found.append(_fallback_model(str(reference), settings, (await choose(other)).validity))
    return found


async def _configured_model(settings: Settings, choice: StrategyChoice) -> Finding:
    command = f"caal-node validate {settings.model}"
    found, state = f"{choice.words}: {choice.why}", choice.validity.state
    if state == "failed":
        return warn(
            CALL_STRATEGY, found, f"It did not pass; choose another model, or see: {command}"
        )
    if choice.asking is None:
        try:
            found = f"{await _sample_request(settings)} ({choice.why})"
        except (CaalError, TimeoutError) as error:
            why = str(error) or f"no answer to a sample request in {SAMPLE_S:g} s"
            return warn(
                CALL_STRATEGY, f"not found out: {why}", "Fix the model first; its line says how."
            )
    if FOUND_DUMPS in found:
        return ok(CALL_STRATEGY, found, DUMPS_HINT)
    if state == "stale":
        return warn(CALL_STRATEGY, found, f"Run: {command}")
    return ok(CALL_STRATEGY, found, f"Run: {command}" if state == "untried" else "")


async def _sample_request(settings: Settings) -> str:
    """Ask the model as a session does when it begins, and return what that shows.

    Raises:
        CaalError, TimeoutError: the model could not be asked.
    """
    model = make_llm(settings)
    try:
        async with asyncio.timeout(SAMPLE_S):
            found = await probe(model.backend)
    finally:
        await model.aclose()
    return f"{WAY_NAMES['native' if found.native else 'text']}: {found.why}"


async def check_second_look(
    settings: Settings, transport: httpx2.AsyncBaseTransport | None = None
) -> Sequence[Finding]:
    """Check the model that looks at calls once more, where one is set. `transport` is for tests."""
    if not (reference := settings.tools.second_look_model):
        return []
    found = await check_model(settings.with_model(parse_reference(reference)), transport)
    without = "calls run without a second look"
    failed = [
        fail(SECOND_LOOK, f"{each.found}; {without}", each.fix.replace("CAAL_MODEL", _KEY))
        for each in found
        if each.status == "fail"
    ]
    return failed or [ok(SECOND_LOOK, f"calls that change something, by {reference}")]


def _fallback_model(name: str, settings: Settings, validity: Validity) -> Finding:
    part = f"fallback {name}"
    if why := validity.unfit(only_validated=settings.fallbacks.only_validated):
        return warn(part, f"left out: {why}", f"Run: caal-node validate {name}")
    return ok(part, validity.why)
