"""What sessions found out about a model, kept for the next one, which need not find it out again.

A profile holds for the weights, the server with its address and version, the chat template and the
way of thinking that it was found with, and for `KEPT_DAYS`; where it says that the text protocol is
needed, for `TEXT_KEPT_DAYS`. How the model is asked holds for this version of the probe alone. A
finding of `caal-node validate` goes before it. Both decide how a session asks for tools. What
cannot be read or written is logged, and found out anew: a session must begin without it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import PurePath
from typing import Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, Field, ValidationError

from caal_node.config.settings import Settings
from caal_node.core.addresses import CLOUD
from caal_node.core.errors import (
    ConfigError,
    ModelError,
    ModelMissing,
    ModelReplyError,
    ModelTimeout,
)
from caal_node.evaluation.store import EvaluationStore, Identity, Thinking, ValidationRecord
from caal_node.evaluation.suites import VERSION, WAY_NAMES, Asking
from caal_node.models.backends.base import Dialect, SchemaForm
from caal_node.models.backends.http_transport import HttpTransport, TransportDeadlines
from caal_node.models.backends.openai_server import ListedModel, LlamaProps, ModelList
from caal_node.models.embedded_engine import require_engine
from caal_node.models.model_preparation import PROBE_VERSION
from caal_node.weights.gguf import find_gguf

# Which weights a server answers with, and which version it is. A finding holds for both.
#
# It is asked over plain HTTP: Ollama's `/api/version` and `/api/tags` (formats of 0.17.4), which it
# has beside its copy of OpenAI's API too; else OpenAI's list, with llama.cpp's `/props` or vLLM's
# `/version` beside it.

FETCH: Final = TransportDeadlines(connect=3.0, first=5.0, between=5.0)
"""Deadlines of small questions that every server answers at once, also while a model writes."""
IDENTIFY_S: Final = 3.0
"""Seconds for all of them when a room opens, which waits for this."""
TEMPLATE_CHARS: Final = 12
"""Characters of a chat template's digest. Ollama's digest of a model holds its template already."""
NAMES_SHOWN: Final = 5
"""Names of other models in a message."""

M = TypeVar("M", bound=BaseModel)


class _Version(BaseModel):
    version: str


class _Tag(BaseModel):
    name: str
    digest: str = ""


class _Tags(BaseModel):
    models: list[_Tag]


async def identify(settings: Settings) -> Identity:
    """Ask the settings' server which model answers there.

    Raises:
        ModelUnreachable, ModelTimeout: nobody answers.
        ModelMissing: the server does not have the settings' model.
        ModelReplyError: it is no model server, or refuses the key.
        ConfigError: the embedded engine or its model is not here.
    """
    if settings.api == "livekit":  # A plugin's model tells nothing of its weights.
        return Identity("livekit", version("livekit-agents"), settings.model)
    if settings.api in CLOUD:
        return Identity(settings.api, "", settings.model)
    if settings.api == "embedded":
        return await asyncio.to_thread(_embedded, settings.model)
    key = settings.api_key.get_secret_value() if settings.api_key else None
    base = settings.model_address.removesuffix("/v1")
    variable = "CAAL_BASE_URL" if settings.base_url else "OLLAMA_HOST"
    transport = HttpTransport(
        base,
        model=settings.model,
        api_key=key,
        deadlines=FETCH,
        start=f"start the server (Ollama: ollama serve), or set {variable}",
        fix=f"run: ollama pull {settings.model}",
    )
    try:
        listed = (
            None if settings.api == "ollama" else await _read(transport, "/v1/models", ModelList)
        )
        if listed and listed.llama:
            return await _llama(transport, listed.llama)
        if (said := await _read(transport, "/api/version", _Version)) is not None:
            return await _ollama(transport, settings.model, said.version)
        return await _openai(transport, settings.model, listed)
    finally:
        await transport.aclose()


async def identify_in_time(settings: Settings) -> Identity:
    """Do as `identify` within `IDENTIFY_S`.

    Raises:
        ModelError, ConfigError: as `identify`; no answer in time is a ModelTimeout.
    """
    try:
        async with asyncio.timeout(IDENTIFY_S):
            return await identify(settings)
    except TimeoutError as error:
        raise ModelTimeout(f"the server did not answer in {IDENTIFY_S:g} s") from error


def _embedded(model: str) -> Identity:
    require_engine()
    path = find_gguf(model)
    return Identity("embedded", version("xllamacpp"), f"{path.name}:{path.stat().st_size}")


async def _ollama(transport: HttpTransport, model: str, release: str) -> Identity:
    tags = await _read(transport, "/api/tags", _Tags)
    listed = {tag.name: tag.digest for tag in (tags.models if tags else ())}
    name = model if model in listed else f"{model}:latest"
    if tags and name not in listed:
        raise ModelMissing(
            f"{transport.address} has no model {model}; it has: {_some(list(listed))}. "
            f"Run: ollama pull {model}"
        )
    return Identity("ollama", release, listed.get(name) or model)


async def _openai(transport: HttpTransport, model: str, listed: ModelList | None) -> Identity:
    if listed is None:
        raise ModelReplyError(
            f"{transport.address} has no list of models; correct the address, or CAAL_API"
        )
    served = next((m for m in listed.data if m.is_called(model)), None)
    if served is None:
        has = _some([m.id for m in listed.data])
        raise ModelMissing(f"{transport.address} has no model {model}; choose one of: {has}")
    said = await _read(transport, "/version", _Version)
    kind = "vllm" if served.owned_by == "vllm" else "openai-compatible"
    return Identity(kind, said.version if said else "", served.root or served.id)


async def _llama(transport: HttpTransport, served: ListedModel) -> Identity:
    props = await _read(transport, "/props", LlamaProps) or LlamaProps()
    # A digest of gigabytes is too much to ask for. Name and length tell files apart.
    name = PurePath(props.model_path or served.id).name
    size = f":{served.meta.size or 0}" if served.meta else ""
    template = hashlib.sha256(props.chat_template.encode()).hexdigest()[:TEMPLATE_CHARS]
    return Identity("llama.cpp", props.build_info or "", f"{name}{size}:{template}")


async def _read(transport: HttpTransport, path: str, kind: type[M]) -> M | None:
    """Return the answer as `kind`; None if the server has no such page or answers otherwise."""
    try:
        return kind.model_validate_json(await transport.fetch("GET", path))
    except ValidationError:
        return None
    except ModelReplyError as error:
        if error.status in (401, 403):
            raise
        return None


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more if names else "none"


KEPT_DAYS: Final = 30
"""Days for which a profile holds."""
TEXT_KEPT_DAYS: Final = 1
"""Days for which a model is asked by text because its own tool calls failed: one request may have
failed by chance, and the text protocol loses more calls."""
WHY_CHARS: Final = 500
THRESHOLDS_MAX: Final = 20
"""Call thresholds that are kept of one model: its agents' tables of tools, as they change."""


REFUSED_MAX: Final = 50
"""Fields of a request that a server refuses; a request has a dozen."""


class ModelProfile(BaseModel):
    """How a model is asked, why so, and what else was seen of it."""

    asking: Asking | None = None
    why: str = Field(default="", max_length=WHY_CHARS)
    at: datetime
    """When it was found out how the model is asked."""
    probe: int = 0
    """The version of the probe at that time."""
    thinks_aloud: bool = False
    """Whether its replies begin in thinking that the prompt has opened."""
    refused: dict[str, str | None] = Field(default_factory=dict, max_length=REFUSED_MAX)
    """See `caal_node.models.backends.base.Dialect`, as is the next."""
    schema_form: SchemaForm | Literal["none"] | None = None
    call_thresholds: dict[str, float] = Field(
        default_factory=dict[str, float], max_length=THRESHOLDS_MAX
    )
    """The digest of a prompt's prefix -> its call threshold. The newest is last."""


class ModelProfiles:
    """The profile of the model of `settings`. It is a `ModelMemory`, so nothing here raises."""

    def __init__(self, settings: Settings, store: EvaluationStore | None = None) -> None:
        self._settings: Final = settings
        self._store: Final = store

    async def recall(self) -> ModelProfile | None:
        """Return the profile, if it is known how the model is asked and that still holds."""
        found = await self._read()
        if found is None or found.probe != PROBE_VERSION:
            return None
        if found.asking == "text" and _now() - found.at > timedelta(days=TEXT_KEPT_DAYS):
            return None
        return found if found.asking else None

    async def keep_strategy(self, strategy: Asking, why: str) -> None:
        """Keep how the model is asked."""
        if self._settings.tool_calls.by == "auto":  # Else somebody wants it so, whatever it can.
            changed = {
                "asking": strategy,
                "why": why[:WHY_CHARS],
                "at": _now(),
                "probe": PROBE_VERSION,
            }
            await self._change(lambda profile: profile.model_copy(update=changed))

    async def thinks_aloud(self) -> bool:
        """Return whether its replies begin in thinking that the prompt has opened."""
        found = await self._read()
        return found is not None and found.thinks_aloud

    async def keep_thinks_aloud(self, thinks_aloud: bool) -> None:
        await self._change(lambda p: p.model_copy(update={"thinks_aloud": thinks_aloud}))

    async def dialect(self) -> Dialect | None:
        """Return what the server was found to take."""
        found = await self._read()
        return found and Dialect(dict(found.refused), found.schema_form)

    async def keep_dialect(self, dialect: Dialect) -> None:
        if len(dialect.refused) <= REFUSED_MAX:
            found = {"refused": dict(dialect.refused), "schema_form": dialect.schema_form}
            await self._change(lambda profile: profile.model_copy(update=found))

    async def call_threshold(self, prefix: str) -> float | None:
        """Return the call threshold for the prompt prefix of this digest."""
        found = await self._read()
        return found.call_thresholds.get(prefix) if found else None

    async def keep_call_threshold(self, prefix: str, threshold: float) -> None:
        def changed(profile: ModelProfile) -> ModelProfile:
            known = profile.call_thresholds
            others = [(key, value) for key, value in known.items() if key != prefix]
            newest = dict([*others, (prefix, threshold)][-THRESHOLDS_MAX:])
            return profile.model_copy(update={"call_thresholds": newest})

        await self._change(changed)

    async def _read(self) -> ModelProfile | None:
        try:
            store = self._store or EvaluationStore()
            if not await asyncio.to_thread(store.has_profiles):
                return None  # The server need not be asked who it is.
            key = await self._key()
            return _valid(await asyncio.to_thread(store.profile, key)) if key else None
        except ConfigError as error:
            logger.warning("%s", error)
            return None

    async def _change(self, change: Callable[[ModelProfile], ModelProfile]) -> None:
        def changed(known: str | None) -> str:
            return change(_valid(known) or ModelProfile(at=_now())).model_dump_json()

        if (key := await self._key()) is None:
            return
        try:
            store = self._store or EvaluationStore()
            await asyncio.to_thread(store.change_profile, key, changed)
        except ConfigError as error:
            logger.warning("%s", error)

    async def _key(self) -> str | None:
        """Return what the profile holds for, or None if the server does not tell it."""
        settings = self._settings
        try:
            found = await identify_in_time(settings)
        except (ModelError, ConfigError) as error:
            logger.debug("%s: not identified: %s", settings.model, type(error).__name__)
            return None
        # A stand-in, or a copy of the server elsewhere, may say the same of itself.
        asked = (settings.api, settings.model, settings.model_address, settings.think)
        return json.dumps((*asked, found.server, found.version, found.digest))


def _now() -> datetime:
    return datetime.now(UTC)


def _valid(written: str | None) -> ModelProfile | None:
    """Return the profile that was written, if it is one and is not too old."""
    if written is None:
        return None
    try:
        profile = ModelProfile.model_validate_json(written)
    except ValidationError:
        logger.warning("a model's profile cannot be read; it is found out again")
        return None
    return profile if _now() - profile.at <= timedelta(days=KEPT_DAYS) else None


# In which way a session will ask its model for tools, and what is known of the model before that.
#
# A model was never tried, has passed or failed validation, or its finding is out of date.

logger = logging.getLogger("caal_node.evaluation")

ValidityState: TypeAlias = Literal["untried", "passed", "failed", "stale", "unreachable"]


@dataclass(frozen=True, slots=True)
class Validity:
    """What validation says of a model, with half a sentence for people on why.

    `unreachable` means that there is a finding, and nobody to ask whether it still holds.
    """

    state: ValidityState
    why: str
    asking: Asking | None = None
    """The way that was found to work best. None if no finding holds."""

    def unfit(self, *, only_validated: bool) -> str:
        """Return why a fallback of this validity is left out; "" if it is not."""
        if self.state == "failed" or (only_validated and self.state != "passed"):
            return f"{self.state}, {self.why}"
        return ""


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """The way in which a model is asked. None: a sample request settles it in the session."""

    asking: Asking | None
    why: str
    validity: Validity

    @property
    def words(self) -> str:
        """The way in words, for people."""
        if self.asking is None:
            return "a sample request settles it when a session begins"
        return WAY_NAMES[self.asking]

    @property
    def native_tools(self) -> bool | None:
        """The way as `LLM` takes it."""
        return None if self.asking is None else self.asking == "native"


async def choose(settings: Settings, store: EvaluationStore | None = None) -> StrategyChoice:
    """Return what is configured, else what a finding that still holds says, else how an earlier
    session came to ask, else None."""
    validity = await find_validity(settings, store)
    if settings.tool_calls.by != "auto":
        asking = "native" if settings.asks_natively else "text"
        return StrategyChoice(asking, "configured (CAAL_TOOL_CALLS)", validity)
    if settings.api == "completions":
        return StrategyChoice("text", "the completions API takes no tools", validity)
    if validity.asking is not None:
        return StrategyChoice(validity.asking, validity.why, validity)
    profile = await ModelProfiles(settings, store).recall()
    if profile is None:
        return StrategyChoice(None, validity.why, validity)
    why = f"in an earlier session {profile.why} (since {profile.at:%Y-%m-%d})"
    return StrategyChoice(profile.asking, why, validity)


async def find_validity(settings: Settings, store: EvaluationStore | None = None) -> Validity:
    """Return what the store says of the settings' model, held against its server as it is now.

    The server is asked only if there is a finding. Nothing is raised for a store that cannot be
    read: a session must begin without it.
    """
    try:
        store = store or EvaluationStore()
        records = await asyncio.to_thread(store.of, settings.api, settings.model)
    except ConfigError as error:
        logger.warning("%s", error)
        return Validity("untried", str(error))
    if not records:
        return Validity("untried", "never validated")
    try:
        identity = await identify_in_time(settings)
    except (ModelError, ConfigError) as error:
        return Validity("unreachable", str(error))
    return validity_of(records, identity, settings.model_address, settings.think)


def validity_of(
    records: list[ValidationRecord], identity: Identity, address: str, think: Thinking = False
) -> Validity:
    """Return the newest finding that holds for `identity` and its way of thinking, wherever it was
    made; else why none does.

    `records` are of one model, the newest first.
    """
    current = [
        record
        for record in records
        if record.identity == identity
        and record.suites_version == VERSION
        and record.think == think
    ]
    if current:
        found = current[0]
        said = f"{found.right} of {found.counted} right on {found.at[:10]}"
        state = "passed" if found.passed else "failed"
        return Validity(state, f"validated, {said}", found.asking)
    last = next((r for r in records if r.address == address), records[0])
    return Validity("stale", f"validated on {last.at[:10]}, but {_change(last, identity, think)}")


def _change(last: ValidationRecord, now: Identity, think: Thinking) -> str:
    if last.identity.server != now.server:
        return f"on {last.identity.server}, and this is {now.server}"
    if last.identity.digest != now.digest:
        return "the model has changed since"
    if last.identity.version != now.version:
        return f"with {now.server} {last.identity.version}, and this is {now.version}"
    if last.think != think and last.suites_version == VERSION:
        return "with another CAAL_THINK"
    return "by other checks than this version's"
