"""What every server of OpenAI's API shares, whichever of its endpoints is asked, and what Ollama
and LM Studio tell of their models beside it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, TypeVar

from filelock import FileLock, Timeout
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError

from caal_node.core.addresses import server_url
from caal_node.core.errors import (
    ConfigError,
    ModelContextFull,
    ModelError,
    ModelMissing,
    ModelReplyError,
    ModelTimeout,
    ModelUnreachable,
)
from caal_node.core.paths import state_folder
from caal_node.models.backends.base import BackendRequest, Capabilities, Dialect, ReplyDone, Usage
from caal_node.models.backends.http_transport import (
    HttpTransport,
    Patience,
    TransportDeadlines,
    server_words,
    sse_data,
    whole_body,
)
from caal_node.models.backends.tool_calls import OR_NONE, Count, first_of

# What Ollama and LM Studio tell of their models, beside OpenAI's API.


class _RunningModel(BaseModel):
    name: str
    context_length: Count = None


class RunningModels(BaseModel):
    """Ollama's `GET /api/ps`: what is loaded. Behind `/v1` it is loaded with the server's own
    context, and a prompt that is longer is cut without a word."""

    models: list[_RunningModel]

    def context_of(self, model: str) -> int | None:
        names = (model, f"{model}:latest")
        return next((m.context_length for m in self.models if m.name in names), None)


class ShownModel(BaseModel):
    """Ollama's `POST /api/show`: what a model is, whatever its name says."""

    model_info: dict[str, Any] = Field(default_factory=dict)

    @property
    def parameters(self) -> int | None:
        """How many weights the model has."""
        value = self.model_info.get("general.parameter_count")
        return value if isinstance(value, int) and value > 0 else None


class _InstanceConfig(BaseModel):
    context_length: Count = None


class _Instance(BaseModel):
    id: str
    config: _InstanceConfig = Field(default_factory=_InstanceConfig)


class _LMStudioModel(BaseModel):
    key: str
    loaded_instances: list[_Instance] = Field(default_factory=list[_Instance])


class LoadedModels(BaseModel):
    """LM Studio's `GET /api/v1/models` (since 0.4, lmstudio.ai/docs/developer/rest/list).

    A model's `max_context_length` is what it was made for, mostly far more than is loaded.
    """

    models: list[_LMStudioModel]

    def context_of(self, model: str) -> int | None:
        loaded = [(m.key, instance) for m in self.models for instance in m.loaded_instances]
        fits = [each.config.context_length for key, each in loaded if model in (key, each.id)]
        return min((size for size in fits if size), default=None)


# What llama.cpp's server has beside OpenAI's API: its properties, and a slot for each room.
#
# A slot keeps one prompt. A request that names none (`id_slot`) gets the slot whose prompt begins
# most like its own. Rooms of one agent begin alike, so all of them get the same one, and each turn
# reads its whole conversation again; with a slot of its own a room reads what is new. Whether that
# is so depends on how the server was started: one with a unified KV cache empties every idle slot
# as soon as another is asked, and a request that names an emptied slot reads its whole prompt
# (measured on four rooms: 12 times the tokens of naming none). So it is tried first, with prompts
# of a token.
#
# A state that a slot loses goes to the server's own memory (`--cache-ram`), where requests for
# other slots find it, but not requests for an empty one: `RoomSlot` fills its slot with that one
# token, and then the first prompt there finds the beginning that another room has had read.

logger = logging.getLogger("caal_node.models")

SLOTS_READ: Final = 256
"""Slots of a server that are looked at; each takes memory for a context of its own."""
_DIGEST_CHARS: Final = 16
_FILLING: Final = {"prompt": ".", "n_predict": 1, "cache_prompt": True}
"""A prompt of one token, which begins like no conversation's."""


class _GenerationSettings(BaseModel):
    n_ctx: int | None = None


class _TemplateCapabilities(BaseModel):
    supports_tools: bool | None = None


class LlamaProps(BaseModel):
    """llama.cpp's `GET /props`."""

    build_info: Annotated[str | None, OR_NONE] = None
    model_path: Annotated[str | None, OR_NONE] = None
    default_generation_settings: _GenerationSettings = _GenerationSettings()
    chat_template: str = ""
    chat_template_caps: _TemplateCapabilities = _TemplateCapabilities()


class SlotState(BaseModel):
    """One entry of llama.cpp's `GET /slots`."""

    id: int
    is_processing: bool = False
    n_prompt_tokens: Count = None
    """Tokens that it keeps. A slot that was never asked tells none, nor do older builds."""

    @property
    def keeps_some(self) -> bool:
        return bool(self.n_prompt_tokens)


_SLOTS: Final = TypeAdapter(Annotated[list[SlotState], first_of(SLOTS_READ)])


class Fetcher(Protocol):
    """Asks one server small questions, as `HttpTransport` does."""

    address: str

    async def fetch(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes: ...


@dataclass(slots=True)
class SlotLease:
    """A slot that is this room's for as long as its lock is held, by whichever process."""

    number: int
    lock: FileLock
    """It is not held where every slot was taken: then the slot is shared with another room."""

    def note_use(self) -> None:
        """Note that the slot is used now, for rooms that find every slot taken."""
        try:
            os.utime(self.lock.lock_file)
        except OSError:
            logger.debug("slot %d: its use is not noted", self.number)

    def release(self) -> None:
        self.lock.release()


def lease_slot(folder: Path, numbers: Sequence[int]) -> SlotLease:
    """Take the first of `numbers` that no room has; where rooms have all, the one that was used
    least recently. `folder` has a lock for each, and is made. It blocks, so it belongs in a thread.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    locks = {
        # It may be released in another thread than the one that has acquired it.
        number: FileLock(folder / f"{number}.lock", timeout=0, thread_local=False)
        for number in numbers
    }
    for number, lock in locks.items():
        try:
            lock.acquire()
        except Timeout:
            continue
        lease = SlotLease(number, lock)
        lease.note_use()
        return lease
    oldest = min(numbers, key=lambda number: Path(locks[number].lock_file).stat().st_mtime_ns)
    return SlotLease(oldest, locks[oldest])


class RoomSlot:
    """The slot of one room on one server; none until `take` has found one."""

    def __init__(self, server: Fetcher) -> None:
        self._server: Final = server
        self._lease: SlotLease | None = None

    def use(self) -> dict[str, int]:
        """Return the fields by which a request of the room goes to its slot, if it has one."""
        if self._lease is None:
            return {}
        self._lease.note_use()
        return {"id_slot": self._lease.number}

    async def take(self) -> None:
        """Have the room's requests go to one slot, if the server has several and keeps them.

        Nothing is raised: without a slot of its own a room reads more, and that is all.
        """
        if self._lease is not None:
            return
        try:
            lease = await self._kept_lease()
        except (ModelError, ValidationError, ConfigError, OSError) as error:
            logger.debug("%s: no slot is asked for: %s", self._server.address, type(error).__name__)
            return
        if self._lease is None:
            self._lease = lease
        elif lease is not None:
            lease.release()

    def release(self) -> None:
        """Leave the slot to other rooms."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    async def _kept_lease(self) -> SlotLease | None:
        slots = await self._slots()
        if len(slots) < 2:
            return None
        digest = hashlib.sha256(self._server.address.encode()).hexdigest()[:_DIGEST_CHARS]
        # An empty slot is nobody's, also of rooms on other machines.
        numbers = [slot.id for slot in sorted(slots, key=lambda slot: slot.keeps_some)]
        lease = await asyncio.to_thread(lease_slot, state_folder() / "slots" / digest, numbers)
        kept = False
        try:
            kept = await self._keeps_slots(lease.number, slots)
        finally:
            if not kept:
                lease.release()
        if kept:
            logger.info("slot %d of %s is this room's", lease.number, self._server.address)
            return lease
        logger.info("%s empties its slots; start it with --no-kv-unified", self._server.address)
        return None

    async def _keeps_slots(self, own: int, slots: Sequence[SlotState]) -> bool:
        """Fill the slot `own`, and return whether the others still keep what they kept."""
        others = [slot for slot in slots if slot.id != own and not slot.is_processing]
        full = {slot.id for slot in others if slot.keeps_some}
        if not full:
            if not others:
                return False  # All are busy, so nothing can be seen.
            # The last one, as rooms that come take the first.
            full = {others[-1].id}
            await self._fill(others[-1].id)
        await self._fill(own)
        after = {slot.id: slot for slot in await self._slots()}
        return all(each in after and _is_kept(after[each]) for each in full)

    async def _slots(self) -> list[SlotState]:
        return _SLOTS.validate_json(await self._server.fetch("GET", "/../slots"))

    async def _fill(self, number: int) -> None:
        await self._server.fetch("POST", "/../completion", {**_FILLING, "id_slot": number})


def _is_kept(slot: SlotState) -> bool:
    return slot.keeps_some or slot.is_processing


REFUSED: Final = frozenset({400, 422})
"""HTTP statuses about what was asked."""
DEFAULT_URL: Final = "http://127.0.0.1:8080/v1"
"""Where llama.cpp's server listens unless told otherwise."""
MODELS_READ: Final = 4_096
"""Models of a server's list, ten times those of the longest known."""
OLLAMA_OWNER: Final = "library"
LM_STUDIO_OWNER: Final = "organization_owner"
"""What the two write as `owned_by` of every model in their lists."""
_NAMES_SHOWN: Final = 5
"""Names of other models in a message."""


class _PromptDetails(BaseModel):
    cached_tokens: Count = None


class _TokenCounts(BaseModel):
    """`usage`. llama.cpp and vLLM count what came from the cache, Ollama does not."""

    prompt_tokens: Count = None
    completion_tokens: Count = None
    prompt_tokens_details: Annotated[_PromptDetails | None, OR_NONE] = None


class _LlamaTimings(BaseModel):
    """llama.cpp's own figures. Older builds count cached tokens only here."""

    cache_n: Count = None


class ServerEvent(BaseModel):
    """What one event of a reply may hold at any endpoint."""

    error: Any = None
    usage: Annotated[_TokenCounts | None, OR_NONE] = None
    timings: Annotated[_LlamaTimings | None, OR_NONE] = None

    @property
    def says_something(self) -> bool:
        """Whether the reply goes on with this event."""
        return False

    def token_usage(self) -> Usage | None:
        """Return the counts of tokens, if this event has them."""
        if (usage := self.usage) is None:
            return None
        details = usage.prompt_tokens_details
        cached = (details and details.cached_tokens) or (self.timings and self.timings.cache_n)
        return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, cached or 0)


E = TypeVar("E", bound=ServerEvent)
M = TypeVar("M", bound=BaseModel)


class _FileSizes(BaseModel):
    """llama.cpp's sizes of the file that is loaded."""

    size: Count = None
    n_params: Count = None


class ListedModel(BaseModel):
    id: str
    owned_by: str | None = None
    max_model_len: Annotated[
        Count, Field(validation_alias=AliasChoices("max_model_len", "context_length"))
    ] = None
    """vLLM, and OpenRouter by the second name."""
    root: Annotated[str | None, OR_NONE] = None  # This is where vLLM's weights came from.
    meta: Annotated[_FileSizes | None, OR_NONE] = None

    def is_called(self, model: str) -> bool:
        """Return whether `model` names it; Ollama lists a name without a tag as `:latest`."""
        return self.id in (model, f"{model}:latest")


class ModelList(BaseModel):
    """`GET /v1/models`."""

    data: Annotated[list[ListedModel], first_of(MODELS_READ)]

    @property
    def llama(self) -> ListedModel | None:
        """llama.cpp's one model, which answers to any name."""
        only = self.data[0] if len(self.data) == 1 else None
        return only if only and only.owned_by == "llamacpp" else None


class OpenAIServer(HttpTransport):
    """One model on one server: the part of a backend that is the same at every endpoint.

    `always` goes into every request as it is.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None,
        api_key: str | None,
        deadlines: TransportDeadlines | None,
        always: Mapping[str, Any],
    ) -> None:
        """Paths begin after `/v1`, which is appended to a bare host.

        Raises:
            ConfigError: the address or the key cannot be used.
        """
        try:
            url = server_url(base_url or DEFAULT_URL, ("http", "https"))
        except ValueError as error:
            raise ConfigError(f"CAAL_BASE_URL: {error}") from error
        if url.count("/") == 2:
            url += "/v1"
        self._is_llama = False
        self.dialect = Dialect()
        """What this server has shown to take. `ModelConnection` keeps it from one session to the
        next."""
        self._always: Final = always
        self._slot: Final = RoomSlot(self)
        super().__init__(
            url,
            model=model,
            api_key=api_key,
            deadlines=deadlines or TransportDeadlines(),
            start="start the server, or set CAAL_BASE_URL",
            fix="start the server with it, or set CAAL_MODEL to one that it has",
        )

    async def capabilities(self) -> Capabilities:
        """Return what the server tells of the model, as `Backend.capabilities`; most tell little.

        Raises:
            ModelMissing: it lists its models, and this one is not among them.
            ModelError: the same as `Backend.capabilities`.
        """
        try:
            models = ModelList.model_validate_json(await self.fetch("GET", "/models"))
        except ModelReplyError as error:
            if error.status != 404:
                raise
            return Capabilities(schema=self._holds_schema)  # The server has no list.
        except ValidationError as error:
            raise ModelReplyError(
                f"{self.address} does not answer like an OpenAI server"
            ) from error
        self._is_llama = (llama := models.llama) is not None
        if llama is not None:
            parameters = llama.meta and llama.meta.n_params
            return replace(await self._llama_capabilities(), parameters=parameters)
        named = [m for m in models.data if m.is_called(self.model)]
        if not named:
            names = ", ".join(m.id for m in models.data[:_NAMES_SHOWN]) or "none"
            raise ModelMissing(f"{self.address} has no model {self.model}; it has: {names}")
        return Capabilities(
            schema=self._holds_schema,
            context_tokens=await self._context(named[0]),
            parameters=await self._parameters(named[0]),
        )

    async def _context(self, listed: ListedModel) -> int | None:
        """Return the tokens that the server reads of the model as it is loaded, if it says so."""
        if listed.owned_by == OLLAMA_OWNER:
            running = await self._page("/../api/ps", RunningModels)
            return running and running.context_of(self.model)
        if listed.owned_by == LM_STUDIO_OWNER:
            loaded = await self._page("/../api/v1/models", LoadedModels)
            return loaded and loaded.context_of(self.model)
        return listed.max_model_len

    async def _parameters(self, listed: ListedModel) -> int | None:
        """Return how many weights the model has, if the server says so."""
        if listed.owned_by != OLLAMA_OWNER:
            return None
        try:
            said = await self.fetch("POST", "/../api/show", {"model": self.model})
            return ShownModel.model_validate_json(said).parameters
        except (ModelReplyError, ValidationError):
            return None

    async def _page(self, path: str, kind: type[M]) -> M | None:
        try:
            return kind.model_validate_json(await self.fetch("GET", path))
        except (ModelReplyError, ValidationError):
            return None  # An older version does not have it.

    @property
    def _holds_schema(self) -> bool | None:
        form = self.dialect.schema_form
        return None if form is None else form != "none"

    async def _llama_capabilities(self) -> Capabilities:
        try:
            props = LlamaProps.model_validate_json(await self.fetch("GET", "/../props"))
        except (ModelReplyError, ValidationError):
            return Capabilities(schema=True)  # The server was started without the endpoint.
        template = props.chat_template
        return Capabilities(
            tools=props.chat_template_caps.supports_tools,
            thinking="enable_thinking" in template or "<think>" in template,
            schema=True,
            context_tokens=props.default_generation_settings.n_ctx,
        )

    async def take_slot(self) -> None:
        """See `KeepsSlots`. Only llama.cpp has slots that can be asked for."""
        if self._is_llama and "id_slot" not in self.dialect.refused.keys() | self._always.keys():
            await self._slot.take()

    async def aclose(self) -> None:
        self._slot.release()
        await super().aclose()

    def _body(self, request: BackendRequest, prompt: Mapping[str, Any]) -> dict[str, Any]:
        """Return what every request holds, with `prompt` in its endpoint's form."""
        body: dict[str, Any] = {"model": self.model, **prompt, "stream": request.stream}
        if request.stream:
            body["stream_options"] = {"include_usage": True}
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        return {**body, **self._slot.use(), **self._always, **request.fields}

    async def _events(
        self, path: str, body: Mapping[str, Any], request: BackendRequest, kind: type[E]
    ) -> AsyncGenerator[E]:
        """POST `body`, and yield each event of the reply as a `kind`.

        Fields that the server refuses are left out, and it is asked again.

        Raises:
            ModelError: one of its kinds.
        """
        without: frozenset[str] = frozenset()
        while True:
            sent = self.dialect.fitted(body, without)
            begun = False
            try:
                async with aclosing(self._read(path, sent, request, kind)) as events:
                    async for event in events:
                        if not begun and without:
                            self.dialect.guessed |= without
                            self._tell(without)
                        begun = True
                        yield event
                return
            except (ModelTimeout, ModelUnreachable):
                # Started anew with fewer slots, a server may wait for this one for ever.
                self._slot.release()
                raise
            except ModelReplyError as error:
                if begun or error.status not in REFUSED or isinstance(error, ModelContextFull):
                    raise
                if named := self.dialect.learn(sent, error.said):
                    self._tell(named)
                elif not (without := self.dialect.guess(sent, error.said, without)):
                    raise

    def _tell(self, fields: Iterable[str]) -> None:
        names = ", ".join(sorted(fields))
        logger.info("%s: %s refuses %s; it is asked otherwise", self.model, self.address, names)

    async def _read(
        self, path: str, body: Mapping[str, Any], request: BackendRequest, kind: type[E]
    ) -> AsyncGenerator[E]:
        split = sse_data if request.stream else whole_body
        patience = Patience(self.deadlines, request.first_s)
        async with aclosing(self.pieces(path, body, split, patience)) as pieces:
            async for data in pieces:
                if data == b"[DONE]":
                    patience.end()
                    continue
                try:
                    event = kind.model_validate_json(data)
                except ValidationError as error:
                    raise ModelReplyError(f"{self.address} sent what is no reply") from error
                if event.error is not None:
                    raise ModelReplyError(f"{self.address} broke off: {server_words(data)}")
                if event.says_something:
                    patience.heard = True
                yield event

    def _done(self, finish: str | None, usage: Usage, request: BackendRequest) -> ReplyDone:
        """Return the end of the reply to `request`, for which the server gave the reason `finish`.

        Raises:
            ModelReplyError: it gave none. That is Ollama's answer to an error in mid-stream.
        """
        if finish is None:
            raise ModelReplyError(f"{self.address} ended its reply in the middle")
        return ReplyDone.of(finish, usage, request)
